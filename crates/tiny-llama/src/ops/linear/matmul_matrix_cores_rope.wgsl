

// Rotates four values of a row of C and stores them.
fn store_row{{ n }}(row: u32, column: u32, value: vec4<f32>) {
  {{ inside }}var turned = value;
  if column < {{ rotated }}u {
    let angle = (row % {{ context }}u * {{ head_dim // 2 }}u + column % {{ head_dim }}u / 2u) / 2u;
    turned = rotated(value, cos{{ n }}[angle], sin{{ n }}[angle]);
  }
  out{{ n }}[(row * {{ width }}u + column) / 4u] = vec4<f16>(turned);{{ end }}
}
