

// Rotates four values of a row.
fn turned{{ n }}(row: u32, column: u32, value: vec4<f32>) -> vec4<f32> {
  if column >= {{ rotated }}u { return value; }
  let angle = (row % {{ context }}u * {{ head_dim // 2 }}u + column % {{ head_dim }}u / 2u) / 2u;
  return rotated(value, cos{{ n }}[angle], sin{{ n }}[angle]);
}
