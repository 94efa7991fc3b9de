{# Where the first piece of an operand is that this invocation loads, in memory and in workgroup memory. A piece is a vector, or four lines of
   four inner values where these are adjacent in memory (`transposed`). #}
{% macro places(operand) %}
{% set name = operand.name %}
{% set line = operand.line %}
{% set quads = operand.quads %}
{% set four = "lane / " ~ quads ~ "u * 4u" %}
{% if operand.ups is not none %}
{# The first half of a tile's lines are gates, the other half their ups. #}
  let {{ name }}_line = {{ operand.outer }} / 2u + {{ four }} % {{ line * 2 }}u + {{ four }} / {{ line * 2 }}u * {{ operand.ups }}u;
{% elif operand.transposed %}
  let {{ name }}_line = {{ operand.outer }} + {{ four }};
{% else %}
  let {{ name }}_line = lane / {{ line }}u;
{% endif %}
  let {{ name }}_vector = {{ "lane % " ~ quads ~ "u" if operand.transposed else operand.outer ~ " / 4u + lane % " ~ line ~ "u" }};
{% if operand.whole %}
  let {{ name }}_from = {{ name }}_line * {{ operand.stride // 4 }}u + {{ name }}_vector;
{% endif %}
  let {{ name }}_to = {{ operand.first }}u + {{ "lane % " ~ quads ~ "u * " ~ operand.pitch ~ "u + lane / " ~ quads ~ "u" if operand.transposed else "lane % " ~ line ~ "u" }};
{% endmacro %}
{# A register for each vector of this invocation. #}
{% macro registers(operand) %}
{% for vector in range(operand.held * operand.vectors) %}
  var {{ operand.name }}_next{{ vector }} = vec4<f32>();
{% endfor %}
{% endmacro %}
{# The caller's lines for each piece of this invocation, under a condition where not every invocation has the piece. #}
{% macro each_piece(operand) %}
{% for piece in range(operand.held) %}
{% set rest = operand.pieces - piece * operand.threads %}
{% if rest < operand.threads %}
    if lane < {{ rest }}u { {{ ("\n" ~ caller(piece)) | replace("\n    ", "\n      ") | flow | trim }} }
{% else %}
{{ caller(piece) }}
{% endif %}
{% endfor %}
{% endmacro %}
{# Loads this invocation's pieces of the step at `next` into its registers. #}
{% macro load(operand) %}
{% set name = operand.name %}
{% set half = operand.line * 2 %}
{% call(piece) each_piece(operand) %}
{% for vector in range(piece * operand.vectors, (piece + 1) * operand.vectors) %}
{% if operand.transposed %}
{% set far = vector // 4 * operand.threads // operand.quads * 4 + vector % 4 %}
{% else %}
{% set far = vector * operand.threads // operand.line %}
{% endif %}
{% set far = far if operand.ups is none else far % half + far // half * operand.ups %}
{% if operand.whole %}
{% set step = "next / 4u" if operand.transposed else "next * " ~ operand.stride // 4 ~ "u" %}
    {{ name }}_next{{ vector }} = {{ name }}{{ n }}[{{ name }}_from + {{ step }} + {{ far * operand.stride // 4 }}u];
{% elif operand.transposed %}
    {{ name }}_next{{ vector }} = read_{{ name }}{{ n }}({{ name }}_line + {{ far }}u, {{ name }}_vector + next / 4u, end);
{% else %}
    {{ name }}_next{{ vector }} = read_{{ name }}{{ n }}({{ name }}_line + next + {{ far }}u, {{ name }}_vector, end);
{% endif %}
{% endfor %}
{% endcall %}
{% endmacro %}
{# Copies this invocation's registers to workgroup memory. #}
{% macro stage(operand) %}
{% set name = operand.name %}
{% call(piece) each_piece(operand) %}
{% if operand.transposed %}
{% for value in range(4) %}
{% set place = piece * operand.threads // operand.quads + value * operand.quads * operand.pitch %}
    staged[{{ name }}_to + {{ place }}u] = vec4<f32>({% for i in range(4) %}{{ name }}_next{{ 4 * piece + i }}.{{ ["x", "y", "z", "w"][value] }}{{ ", " if not loop.last }}{% endfor %});
{% endfor %}
{% else %}
{% set inner = "lane / " ~ operand.line ~ "u + " ~ piece * operand.threads // operand.line ~ "u" %}
    staged[{{ name }}_to + {{ "line_of(" if is_reordered else "(" }}{{ inner }}) * {{ operand.pitch }}u] = {{ name }}_next{{ piece }};
{% endif %}
{% endcall %}
{% endmacro %}
