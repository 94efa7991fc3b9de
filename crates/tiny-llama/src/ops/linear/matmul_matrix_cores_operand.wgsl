{# Loads the vectors of the step at `next` that this invocation stages of an operand, into registers that `declared` declares. #}
{% macro loads(operand, declared) %}
{% set name = operand.name %}
{% set step = " * " ~ operand.whole[1] // 4 ~ "u" if operand.inner_lines else " / 4u" %}
{% for load in range(operand.loads) %}
{% set far = load * operand.lines_of_load %}
{% set far = far // 32 * 16 + far % 16 + far // 16 % 2 * (operand.whole[0] // 2) if operand.in_turns else far %}
{% set at = (name ~ "_at + next" ~ step) | plus(far * operand.whole[1] // 4) %}
{% set line = (name ~ "_first_line") | plus(far) %}
{% if operand.even %}
{% set vector = name ~ n ~ "[" ~ at ~ "]" %}
{% elif operand.inner_lines %}
{% set vector = "read_" ~ name ~ n ~ "(" ~ at ~ ", " ~ line ~ " + next, " ~ name ~ "_value)" %}
{% else %}
{% set vector = "read_" ~ name ~ n ~ "(" ~ at ~ ", " ~ line ~ ", " ~ name ~ "_value + next)" %}
{% endif %}
{{ "  " if declared else "    " }}{{ declared }}{{ name }}_next{{ load }} = {{ vector }};
{% endfor %}
{% endmacro %}
{# Copies these registers to workgroup memory, in f16. #}
{% macro stages(operand) %}
{% set name = operand.name %}
{% for load in range(operand.loads) %}
{% set to = (name ~ "_to") | plus(load * operand.lines_of_load * operand.pitch) %}
{% if halves %}
    stage_{{ name }}({{ to }}, {{ name }}_next{{ load }} * {{ name }}_scale);
{% elif operand.vector == "vec4<f16>" %}
    {{ name }}_staged[{{ to }}] = {{ name }}_next{{ load }};
{% else %}
    {{ name }}_staged[{{ to }}] = vec4<f16>({{ name }}_next{{ load }});
{% endif %}
{% endfor %}
{% endmacro %}
{# Loads the matrices with number `index` of a subgroup. `coopLoadT` loads a matrix that is stored row by row. #}
{% macro matrices(operand, index) %}
{% set name = operand.name %}
{% set load = "coopLoadT" if operand.inner_lines == (name == "b") else "coopLoad" %}
{% set role = "MatrixB" if name == "b" else "MatrixA" %}
{% for part in parts %}{% for inner in [0, 16] if halves or inner == 0 %}
{% set variable = name ~ "_" ~ part ~ index ~ "_" ~ inner if halves else ("columns" if name == "b" else "rows") ~ index %}
{% set far = inner * operand.pitch + index * 4 if operand.inner_lines else index * 16 * operand.pitch + inner // 4 %}
      let {{ variable }} = {{ load }}<{{ role }}>(&{{ name }}_{{ part }}[{{ (name ~ "_from") | plus(far) }}], {{ operand.pitch }}u);
{% endfor %}{% endfor %}
{% endmacro %}
