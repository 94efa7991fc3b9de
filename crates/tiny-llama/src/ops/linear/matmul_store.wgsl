{{ epilogue }}

// Stores four values of a row of C, and those of four rows.
fn put{{ n }}(first: u32, row: u32, column: u32, value: vec4<f32>) {
  {{ put }}
}
fn store{{ n }}(first: u32, row: u32, column: u32, sum: mat4x4<f32>) {
  put{{ n }}(first, row, column, sum[0]); put{{ n }}(first, row + 1u, column, sum[1]);
  put{{ n }}(first, row + 2u, column, sum[2]); put{{ n }}(first, row + 3u, column, sum[3]);
}
