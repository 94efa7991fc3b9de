// dweight: the gradient of a table, from the gradients dy of the rows that were copied from it. It needs no atomics, so that sums have the
// same order in every run.
//
// The plain loop:
//
//   for each row v of the table and column c:
//     dweight[v, c] = 0
//     for each token n:  if tokens[n] == v  dweight[v, c] += dy[n, c]
//
// 1. Registers. A workgroup has one row of the table; an invocation sums every {{ threads }}th vector of it.
// 2. Tokens. All tokens pass through workgroup memory, {{ threads * 4 }} at a time: an invocation reads four, then each looks through all.
{% include "gpu/wgsl/bindings.wgsl" %}
var<workgroup> staged: array<vec4<u32>, {{ threads }}>;
// No token has this number.
const none = 0xffffffffu;
{% set c = ["x", "y", "z", "w"] %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = id.y * {{ groups[0] }}u + id.x;
  if row >= {{ vocab }}u { return; }
{% for i in range(owned) %}
  var sum{{ i }} = {{ "vec4<f32>" if lanes == 4 else "f32" }}();
{% endfor %}
  for (var first = 0u; first < {{ rows }}u; first += {{ threads * 4 }}u) {
    var four = vec4<u32>(none);
{% for i in range(4) %}
    if first + lane * 4u + {{ i }}u < {{ rows }}u { four.{{ c[i] }} = tokens[first + lane * 4u + {{ i }}u]; }
{% endfor %}
    workgroupBarrier();
    staged[lane] = four;
    workgroupBarrier();
    for (var group = 0u; group < {{ threads }}u; group += 1u) {
      let seen = staged[group];
{% for i in range(4) %}
      if seen.{{ c[i] }} == row {
        let start = (first + group * 4u + {{ i }}u) * {{ columns }}u + lane;
{% for o in range(owned) %}
        {{ "if lane + " ~ o * threads ~ "u < " ~ columns ~ "u " if (o + 1) * threads > columns }}{ sum{{ o }} += dy[start + {{ o * threads }}u]; }
{% endfor %}
      }
{% endfor %}
    }
  }
{% for o in range(owned) %}
  {{ "if lane + " ~ o * threads ~ "u < " ~ columns ~ "u " if (o + 1) * threads > columns }}{ dweight[row * {{ columns }}u + lane + {{ o * threads }}u] = sum{{ o }}; }
{% endfor %}
}
