

// Rotates four values of a row, and those of four rows.
fn turn{{ n }}(row: u32, column: u32, value: vec4<f32>) -> vec4<f32> {
  let angle = (row % {{ context }}u * {{ head_dim // 2 }}u + column % {{ head_dim }}u / 2u) / 2u;
  return rotated(value, cos{{ n }}[angle], sin{{ n }}[angle]);
}
fn turned{{ n }}(row: u32, column: u32, sum: mat4x4<f32>) -> mat4x4<f32> {
  if column >= {{ rotated }}u { return sum; }
  return mat4x4<f32>(turn{{ n }}(row, column, sum[0]), turn{{ n }}(row + 1u, column, sum[1]),
                     turn{{ n }}(row + 2u, column, sum[2]), turn{{ n }}(row + 3u, column, sum[3]));
}
