// The gradients of gates and ups side by side in x, from the gradient dy of silu(gate)·up. An invocation has {{ "four" if lanes == 4 else "one" }} of each.
//
// The plain loop:
//
//   for each row n and column c, with g = x[n, c] and s = 1 / (1 + e^-g):
//     dx[n, c] = dy[n, c] * x[n, c + {{ columns * lanes }}] * s * (1 + g * (1 - s))
//     dx[n, c + {{ columns * lanes }}] = dy[n, c] * g * s
{% if half %}
enable f16;
{% endif %}
{% include "gpu/wgsl/bindings.wgsl" %}
{% include "swiglu/swiglu.wgsl" %}

{% set of_dx = "f16" if half else "f32" %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = (id.y * {{ groups[0] }}u + id.x) * {{ threads }}u + lane;
  if i >= {{ count }}u { return; }
  let at = i / {{ columns }}u * {{ 2 * columns }}u + i % {{ columns }}u;
  let d = vec4<f32>(dy[i]);
  let gate = vec4<f32>(x[at]);
  let of_gate = gate_gradient(d, gate, vec4<f32>(x[at + {{ columns }}u]));
  let of_up = up_gradient(d, gate);
  dx[at] = {{ "vec4<" ~ of_dx ~ ">(of_gate)" if lanes == 4 else of_dx ~ "(of_gate.x)" }};
  dx[at + {{ columns }}u] = {{ "vec4<" ~ of_dx ~ ">(of_up)" if lanes == 4 else of_dx ~ "(of_up.x)" }};
}
