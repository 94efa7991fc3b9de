// y = x·r·gain with r = 1 / √(mean(x²) + eps) of each row. (Zhang and Sennrich, 2019, arXiv 1910.07467.)
//
// The plain loop:
//
//   for each row n:
//     r[n] = 1 / sqrt(Σ_c x[n, c]² / {{ columns * lanes }} + eps)
//     y[n, c] = x[n, c] * gain[c] * r[n]
//
// 1. Registers. A workgroup has one row and keeps it in registers, so that x is read once; an invocation has every {{ threads }}th vector.
// 2. Sums. An invocation adds its squares alone; the {{ threads }} sums pass through workgroup memory.
{% from "gpu/wgsl/workgroup.wgsl" import over_workgroup, across %}
{% if half %}
enable f16;
{% endif %}
{% include "gpu/wgsl/bindings.wgsl" %}
var<workgroup> shares: array<f32, {{ threads + 16 }}>;

{{ over_workgroup("sum_of_workgroup") }}
{% set v = "vec4<f32>" if lanes == 4 else "f32" %}
{% set of_y = "f16" if half else "f32" %}
{% set of_y = "vec4<" ~ of_y ~ ">" if lanes == 4 else of_y %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = id.y * {{ groups[0] }}u + id.x;
  if row >= {{ rows }}u { return; }
  let start = row * {{ columns }}u + lane;
  var squares = {{ v }}();
{% for i in range(owned) %}
{% set at = "start + " ~ i * threads ~ "u" %}
  var value{{ i }} = {{ v }}();
  {{ "if lane + " ~ i * threads ~ "u < " ~ columns ~ "u " if (i + 1) * threads > columns }}{
    value{{ i }} = x[{{ at }}];
    squares += value{{ i }} * value{{ i }};
  }
{% endfor %}
  let r = 1.0 / sqrt(sum_of_workgroup({{ across("squares") }}, lane) / {{ columns * lanes }}.0 + {{ eps }});
  if lane == 0u { inverse[row] = r; }
{% for i in range(owned) %}
  {{ "if lane + " ~ i * threads ~ "u < " ~ columns ~ "u " if (i + 1) * threads > columns }}{ y[start + {{ i * threads }}u] = {{ of_y }}(value{{ i }} * gain[lane + {{ i * threads }}u] * r); }
{% endfor %}
}
