// y = x with the first {{ rotated }} of {{ width }} columns rotated as heads: pairs (a, b) of adjacent values by the angle of position and pair.
//
// The plain loop:
//
//   for each row n and even column c, with angle = n % {{ context }} * {{ head_dim // 2 }} + c % {{ head_dim }} / 2:
//     y[n, c] = x[n, c] * cos[angle] - x[n, c + 1] * {{ "-" if inverse }}sin[angle]
//     y[n, c + 1] = x[n, c] * {{ "-" if inverse }}sin[angle] + x[n, c + 1] * cos[angle]
{% if half %}
enable f16;
{% endif %}
{% include "gpu/wgsl/bindings.wgsl" %}
{% include "rope/rotated.wgsl" %}

{% set of_y = "f16" if half else "f32" %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = ((id.y * {{ groups[0] }}u + id.x) * {{ threads }}u + lane) * 2u;
  if i >= {{ count }}u { return; }
  let row = i / {{ width }}u;
  let column = i % {{ width }}u;
  var pair = vec2<f32>(x[i], x[i + 1u]);
  if column < {{ rotated }}u {
    let angle = row % {{ context }}u * {{ head_dim // 2 }}u + column % {{ head_dim }}u / 2u;
    pair = rotated(vec4<f32>(pair, 0.0, 0.0), vec2<f32>(cos[angle]), vec2<f32>({{ "-" if inverse }}sin[angle])).xy;
  }
  y[i] = {{ of_y }}(pair.x);
  y[i + 1u] = {{ of_y }}(pair.y);
}
