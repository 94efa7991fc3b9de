// y = silu(gate)·up of gates and ups side by side in x, of which an invocation has {{ "four" if lanes == 4 else "one" }}.
//
// The plain loop:
//
//   for each row n and column c:
//     y[n, c] = silu(x[n, c]) * x[n, c + {{ columns * lanes }}]
{% if half %}
enable f16;
{% endif %}
{% include "gpu/wgsl/bindings.wgsl" %}
{% include "swiglu/swiglu.wgsl" %}

{% set of_y = "f16" if half else "f32" %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = (id.y * {{ groups[0] }}u + id.x) * {{ threads }}u + lane;
  if i >= {{ count }}u { return; }
  let at = i / {{ columns }}u * {{ 2 * columns }}u + i % {{ columns }}u;
  let value = swiglu(vec4<f32>(x[at]), vec4<f32>(x[at + {{ columns }}u]));
  y[i] = {{ "vec4<" ~ of_y ~ ">(value)" if lanes == 4 else of_y ~ "(value.x)" }};
}
