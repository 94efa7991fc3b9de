// y = weight[tokens]: a row of the table for each token.{{ " The rest is a part of the norm that follows." if for_norm }}
//
// The plain loop:
//
//   for each token n:
//     y[n, c] = weight[tokens[n], c]     for each column c
{% if for_norm %}
//     scaled[n, c] = y[n, c]·gain[c]
//     squares[n] = Σ_c y[n, c]²
{% endif %}
//
// 1. A workgroup copies a row; neighbouring invocations copy neighbouring vectors.{{ " Their squares pass through workgroup memory." if for_norm }}
{% from "gpu/wgsl/workgroup.wgsl" import over_workgroup, across %}
{% if for_norm %}
enable f16;
{% endif %}
{% include "gpu/wgsl/bindings.wgsl" %}
{% if for_norm %}
var<workgroup> shares: array<f32, {{ threads + 16 }}>;

{{ over_workgroup("sum_of_workgroup") }}
{% include "rms_norm/in_f16.wgsl" %}

{% endif %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = id.y * {{ groups[0] }}u + id.x;
  if row >= {{ rows }}u { return; }
  let token = min(tokens[row], {{ vocab - 1 }}u);
{% if for_norm %}
  var sum = {{ "vec4<f32>" if lanes == 4 else "f32" }}();
{% endif %}
  for (var c = lane; c < {{ columns }}u; c += {{ threads }}u) {
    let value = weight[token * {{ columns }}u + c];
    y[row * {{ columns }}u + c] = value;
{% if for_norm %}
    scaled[row * {{ columns }}u + c] = in_f16(vec4<f32>(value * gain[c])){{ ".x" if lanes == 1 }};
    sum += value * value;
{% endif %}
  }
{% if for_norm %}
  let all = sum_of_workgroup({{ across("sum") }}, lane);
  if lane == 0u { squares[row] = all; }
{% endif %}
}
