{{ epilogue }}

// Stores four values of a row of C.
fn put{{ n }}(first: u32, row: u32, column: u32, value: vec4<f32>) {
  {{ put }}
}
