

// Four values of a row of R; adds those of four rows.
fn residual_row{{ n }}(row: u32, column: u32) -> vec4<f32> {
  {{ read }}
}
fn plus_residual{{ n }}(row: u32, column: u32, sum: mat4x4<f32>) -> mat4x4<f32> {
  return sum + mat4x4<f32>(residual_row{{ n }}(row, column), residual_row{{ n }}(row + 1u, column),
                           residual_row{{ n }}(row + 2u, column), residual_row{{ n }}(row + 3u, column));
}
