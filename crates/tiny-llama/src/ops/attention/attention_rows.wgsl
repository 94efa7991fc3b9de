{# The common part of the three kernels for attention in f32. #}
{% set c = ["x", "y", "z", "w"] %}
{% set row_vectors = head_dim // 4 %}
{% set owned = (row_vectors + across - 1) // across %}
{% set pitch = part + 1 %}
{% set weight_pitch = other // 4 + 1 %}
{% include "gpu/wgsl/bindings.wgsl" %}

// Operands of a step: parts of own rows and of the other side's rows, or weights and rows of the other side. Padded against bank conflicts.
var<workgroup> staged: array<vec4<f32>, {{ staged }}>;
// One value per own row and invocation of that row ({{ across }} invocations, and padding); a vector holds four rows.
var<workgroup> shares: array<vec4<f32>, {{ down * (across + 1) }}>;
const lowest = -3.0e38;
{% if rotated %}
{% include "rope/rotated.wgsl" %}
{% endif %}

@compute @workgroup_size({{ down * across }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // This invocation has own rows y, y + {{ down }}, y + {{ 2 * down }} and y + {{ 3 * down }} of the workgroup, columns 4x to 4x + 3 of a tile of scores, and
  // vectors x, x + {{ across }}, … of a row of the result. 16 neighbours have 8 rows by 2 columns: where neighbours
  // read the same vector, one read of workgroup memory serves both.
  let y = lane / 2u % 8u + lane / 32u % {{ down // 8 }}u * 8u;
  let x = lane % 2u + lane / 16u % 2u * 2u + lane / {{ down * 4 }}u * 4u;
  let tiles = {{ (context + own - 1) // own }}u;
{# Reads this invocation's share of a step into registers; zeros past the ends. #}
{% macro fetch(step) %}
{% for stage in step.stages %}
{% for i in range(stage.loads) %}
{% set at = "(lane + " ~ i * down * across ~ "u)" %}
{% set row = stage.first ~ " + " ~ at ~ " / " ~ stage.wide ~ "u" %}
{% set vector = stage.from ~ "u + " ~ at ~ " % " ~ stage.wide ~ "u" %}
{% set read = stage.source ~ "[(" ~ lines[stage.source].start ~ " + (" ~ row ~ ") * " ~ lines[stage.source].stride ~ "u) / 4u + " ~ vector ~ "]" %}
{% set r = "r" ~ (stage.register + i) %}
{% set bounds = [] %}
{% if context % own != 0 %}{% set bounds = bounds + [row ~ " < " ~ context ~ "u"] %}{% endif %}
{% if stage.from + stage.wide > row_vectors %}{% set bounds = bounds + [vector ~ " < " ~ row_vectors ~ "u"] %}{% endif %}
{% if (i + 1) * down * across > stage.rows * stage.wide %}{% set bounds = bounds + [at ~ " < " ~ stage.rows * stage.wide ~ "u"] %}{% endif %}
{% if bounds %}
    {{ r }} = vec4<f32>();
    if {{ bounds | join(" && ") }} { {{ r }} = {{ read }}; }
{% else %}
    {{ r }} = {{ read }};
{% endif %}
{% endfor %}
{% endfor %}
{% endmacro %}
{# Writes the registers to workgroup memory. Rows of the other side of scores are interleaved, so that neighbouring invocations
   read neighbouring rows there. #}
{% macro put(step) %}
{% for stage in step.stages %}
{% for i in range(stage.loads) %}
{% set at = "(lane + " ~ i * down * across ~ "u)" %}
{% set row = at ~ " / " ~ stage.wide ~ "u" %}
{% set to = "(" ~ row ~ " % 4u * " ~ stage.rows // 4 ~ "u + " ~ row ~ " / 4u)" if stage.interleaved else row %}
    {{ "if " ~ at ~ " < " ~ stage.rows * stage.wide ~ "u " if (i + 1) * down * across > stage.rows * stage.wide }}{ staged[{{ stage.at }}u + {{ to }} * {{ stage.pitch }}u + {{ at }} % {{ stage.wide }}u] = r{{ stage.register + i }}; }
{% endfor %}
{% endfor %}
{% endmacro %}
{# The products of a step: a part of the scores `to`ij of own row i and column j, or a slice of `to` += weights · rows. #}
{% macro compute(step) %}
{% if step.scores %}
{% if step.stages[0].from == 0 %}
{% for i in range(4) %}{% for j in range(4) %}
    {{ step.to }}{{ i }}{{ j }} = 0.0;
{% endfor %}{% endfor %}
{% endif %}
    for (var v = 0u; v < {{ part }}u; v += 1u) {
{% for i in range(4) %}
      let a{{ i }} = staged[(y + {{ i * down }}u) * {{ pitch }}u + v];
{% endfor %}
{% for j in range(4) %}
      let b{{ j }} = staged[{{ own * pitch }}u + (x + {{ j * across }}u) * {{ pitch }}u + v];
{% endfor %}
{% for component in c %}{% for i in range(4) %}{% for j in range(4) %}
      {{ step.to }}{{ i }}{{ j }} = fma(a{{ i }}.{{ component }}, b{{ j }}.{{ component }}, {{ step.to }}{{ i }}{{ j }});
{% endfor %}{% endfor %}{% endfor %}
    }
{% else %}
    for (var k = 0u; k < {{ slice // 4 }}u; k += 1u) {
{% for i in range(4) %}
      let w{{ i }} = staged[(y + {{ i * down }}u) * {{ weight_pitch }}u + {{ step.slice * slice // 4 }}u + k];
{% endfor %}
{% for component in c %}{% set d = loop.index0 %}
{% for j in range(owned) %}
      let v{{ d }}{{ j }} = staged[{{ own * weight_pitch }}u + (k * 4u + {{ d }}u) * {{ row_vectors }}u + x + {{ j * across }}u];
{% for i in range(4) %}
      {{ step.to }}{{ i }}{{ j }} = fma(vec4<f32>(w{{ i }}.{{ component }}), v{{ d }}{{ j }}, {{ step.to }}{{ i }}{{ j }});
{% endfor %}
{% endfor %}
{% endfor %}
    }
{% endif %}
{% endmacro %}
{# Registers: a tile's scores, the sums of own rows, and values on their way. #}
{% macro tile(name) %}
{% for i in range(4) %}{% for j in range(4) %}
  var {{ name }}{{ i }}{{ j }} = 0.0;
{% endfor %}{% endfor %}
{% endmacro %}
{% macro zeros(name) %}
{% for i in range(4) %}{% for j in range(owned) %}
  var {{ name }}{{ i }}{{ j }} = vec4<f32>();
{% endfor %}{% endfor %}
{% endmacro %}
{% macro registers() %}
{% for r in range(registers_of_a_step) %}
  var r{{ r }} = vec4<f32>();
{% endfor %}
{% endmacro %}
{# Walks over the keys up to the workgroup's last row, step by step. The caller turns the scores of a tile into weights. #}
{% macro walk_keys() %}
  {{ registers() | trim }}
  let end = min(first + {{ own }}u, {{ context }}u);
  { let other = 0u;
  {{ fetch(steps[0]) | trim }}
  }
  for (var begin = 0u; begin < end; begin += {{ other }}u) {
    let other = begin;
{% for step in steps %}
    {{ put(step) | trim }}
    workgroupBarrier();
{% if loop.last %}
    { let other = select(0u, begin + {{ other }}u, begin + {{ other }}u < end);
    {{ fetch(steps[0]) | trim }}
    }
{% else %}
    {{ fetch(steps[loop.index]) | trim }}
{% endif %}
    {{ compute(step) | trim }}
{% if step.weighs %}
    // The weights overwrite the operands of the scores after all invocations have read these.
    workgroupBarrier();
    {{ caller() | trim }}
{% else %}
    workgroupBarrier();
{% endif %}
{% endfor %}
  }
{% endmacro %}
{# `to`: the sum or the highest of `from`0 to `from`3 over the invocations of each row, as a vector of four rows. #}
{% macro over_rows(from, to, highest) %}
    shares[y * {{ across + 1 }}u + x] = vec4<f32>({{ from }}0, {{ from }}1, {{ from }}2, {{ from }}3);
    workgroupBarrier();
    var {{ to }} = shares[y * {{ across + 1 }}u];
{% for i in range(1, across) %}
{% if highest %}
    {{ to }} = max({{ to }}, shares[y * {{ across + 1 }}u + {{ i }}u]);
{% else %}
    {{ to }} += shares[y * {{ across + 1 }}u + {{ i }}u];
{% endif %}
{% endfor %}
{% endmacro %}
{# Writes the weights of own row i, for the steps that accumulate: a whole vector, by one invocation. #}
{% macro put_weights(i, value) %}
    staged[(y + {{ i * down }}u) * {{ weight_pitch }}u + x] = {{ value }};
{% endmacro %}
{# Writes the accumulated rows, times `factor`, or rotated back by each row's angles. #}
{% macro store(sum, target, lines, factor, back=false) %}
{% for i in range(4) %}
  if first + y + {{ i * down }}u < {{ context }}u {
    let at = ({{ lines.start }} + (first + y + {{ i * down }}u) * {{ lines.stride }}u) / 4u + x;
{% if back %}
    let angle = (first + y + {{ i * down }}u) * {{ row_vectors }}u + x;
{% endif %}
{% for j in range(owned) %}
{% set value = sum ~ i ~ j %}
{% if back %}{% set value = "rotated(" ~ value ~ ", cos[angle + " ~ j * across ~ "u], -sin[angle + " ~ j * across ~ "u])" %}{% endif %}
    {{ "if x + " ~ j * across ~ "u < " ~ row_vectors ~ "u " if (j + 1) * across > row_vectors }}{ {{ target }}[at + {{ j * across }}u] = {{ value }}{{ " * " ~ factor ~ "." ~ c[i] if factor }}; }
{% endfor %}
  }
{% endfor %}
{% endmacro %}
