// y = weight[tokens]: a row of the table for each token. The sums of squares of its rows are for a norm that follows.
//
// The plain loop:
//
//   for each token n:
//     y[n, c] = weight[tokens[n], c]     for each column c
//     squares[n] = Σ_c y[n, c]²
//
// 1. A workgroup copies a row; neighbouring invocations copy neighbouring vectors. Their squares pass through workgroup memory.
{% from "workgroup.wgsl" import over_workgroup, across %}
{% include "bindings.wgsl" %}
var<workgroup> shares: array<f32, {{ threads + 16 }}>;

{{ over_workgroup("sum_of_workgroup") }}
{% set v = "vec4<f32>" if lanes == 4 else "f32" %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = id.y * {{ groups[0] }}u + id.x;
  if row >= {{ rows }}u { return; }
  let token = min(tokens[row], {{ vocab - 1 }}u);
  var sum = {{ v }}();
  for (var c = lane; c < {{ columns }}u; c += {{ threads }}u) {
    let value = weight[token * {{ columns }}u + c];
    y[row * {{ columns }}u + c] = value;
    sum += value * value;
  }
  let all = sum_of_workgroup({{ across("sum") }}, lane);
  if lane == 0u { squares[row] = all; }
}
