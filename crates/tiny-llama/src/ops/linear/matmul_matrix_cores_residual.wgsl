

// Reads four values of a row of R; and those of a tile.
fn residual_row{{ n }}(row: u32, column: u32) -> vec4<f32> {
  {{ read_residual }}
}
fn residual_tile{{ n }}(row: u32, column: u32) -> {{ values }} {
  return {{ values }}({{ residual }});
}
