// The loss of each row of logits, and the gradient of the mean loss: probabilities are never stored. (Milakov and Gimelshein, 2018,
// arXiv 1805.02867.)
//
// The plain loop:
//
//   for each row n:
//     highest = max_c logits[n, c]
//     total = Σ_c exp(logits[n, c] - highest)
//     losses[n] = log(total) - (logits[n, target] - highest)
//     dlogits[n, c] = (exp(logits[n, c] - highest) / total - (1 if c is the target, else 0)) / {{ batch_rows }}{{ " * scale" if scales }}
//
// 1. One pass for highest and total. An invocation keeps both for every {{ threads }}th vector, and scales its sum down where a higher logit comes.
//    Each of a vector's values has a sum of its own.
// 2. log(total) alone keeps digits that log(total) + highest would lose where logits are large.
{% from "gpu/wgsl/workgroup.wgsl" import over_workgroup, across %}
{% include "gpu/wgsl/bindings.wgsl" %}
var<workgroup> shares: array<f32, {{ threads + 16 }}>;
// Below every logit, but finite: the difference of two infinities is no number.
const lowest = -3.0e38;

{{ over_workgroup("sum_of_workgroup") }}
{{ over_workgroup("highest_of_workgroup", true) }}
{% set v = "vec4<f32>" if lanes == 4 else "f32" %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = id.y * {{ groups[0] }}u + id.x;
  if row >= {{ rows }}u { return; }
  let start = row * {{ columns }}u;
  let label = targets[row];

  var top = {{ v }}(lowest);
  var sum = {{ v }}();
  for (var c = lane; c < {{ columns }}u; c += {{ threads }}u) {
    let value = logits[start + c];
    let higher = max(top, value);
    sum = sum * exp(top - higher) + exp(value - higher);
    top = higher;
  }
{% if lanes == 4 %}
  let highest = highest_of_workgroup(max(max(top.x, top.y), max(top.z, top.w)), lane);
{% else %}
  let highest = highest_of_workgroup(top, lane);
{% endif %}
  sum *= exp(top - {{ v }}(highest));
  let total = sum_of_workgroup({{ across("sum") }}, lane);

  let share = 1.0 / {{ batch_rows }}.0{{ " * scale[0]" if scales }};
  for (var c = lane; c < {{ columns }}u; c += {{ threads }}u) {
    let value = logits[start + c];
    var gradient = exp(value - {{ v }}(highest)) * (1.0 / total);
{% for i in range(lanes) %}
{% set item = "[" ~ i ~ "]" if lanes == 4 else "" %}
    if c * {{ lanes }}u + {{ i }}u == label {
      gradient{{ item }} -= 1.0;
      losses[row] = log(total) - (value{{ item }} - highest);
    }
{% endfor %}
    dlogits[start + c] = gradient * share;
  }
}
