

// Four values of a row of R.
fn residual_at{{ n }}(row: u32, column: u32) -> vec4<f32> {
  {{ read }}
}
