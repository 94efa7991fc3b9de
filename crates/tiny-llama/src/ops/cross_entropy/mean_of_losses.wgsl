// loss = Σ_n losses[n] / {{ batch_rows }} over {{ rows }} rows, by one workgroup.
{% from "gpu/wgsl/workgroup.wgsl" import over_workgroup %}
{% include "gpu/wgsl/bindings.wgsl" %}
var<workgroup> shares: array<f32, {{ threads + 16 }}>;

{{ over_workgroup("sum_of_workgroup") }}
@compute @workgroup_size({{ threads }})
fn main(@builtin(local_invocation_index) lane: u32) {
  var sum = 0.0;
  for (var n = lane; n < {{ rows }}u; n += {{ threads }}u) { sum += losses[n]; }
  let total = sum_of_workgroup(sum, lane);
  if lane == 0u { loss[0] = total / {{ batch_rows }}.0; }
}
