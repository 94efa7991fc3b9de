

// Four gates or ups of a row, whose matrix begins at `first`, and those of four rows.
fn gated_row{{ n }}(first: u32, row: u32, column: u32) -> vec4<f32> {
  var value = vec4<f32>();
  {{ guard }}{ value = gated{{ n }}[first + (row * {{ width }}u + column) / 4u]; }
  return value;
}
fn gated_at{{ n }}(first: u32, row: u32, column: u32) -> mat4x4<f32> {
  return mat4x4<f32>(gated_row{{ n }}(first, row, column), gated_row{{ n }}(first, row + 1u, column),
                     gated_row{{ n }}(first, row + 2u, column), gated_row{{ n }}(first, row + 3u, column));
}

// Stores the gradients of four gates and of their ups, from those of the activations. Then those of four rows.
fn put{{ n }}(row: u32, column: u32, d: vec4<f32>, gate: vec4<f32>, up: vec4<f32>) {
  let at = (row * {{ 2 * width }}u + column) / 4u;
  {{ guard }}{
    out{{ n }}[at] = gate_gradient(d, gate, up);
    out{{ n }}[at + {{ width // 4 }}u] = up_gradient(d, gate);
  }
}
fn store{{ n }}(row: u32, column: u32, d: mat4x4<f32>, gates: mat4x4<f32>, ups: mat4x4<f32>) {
  put{{ n }}(row, column, d[0], gates[0], ups[0]);
  put{{ n }}(row + 1u, column, d[1], gates[1], ups[1]);
  put{{ n }}(row + 2u, column, d[2], gates[2], ups[2]);
  put{{ n }}(row + 3u, column, d[3], gates[3], ups[3]);
}
