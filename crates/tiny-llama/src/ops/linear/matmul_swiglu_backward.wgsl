

// Four gates or ups of a row, whose matrix begins at `first`.
fn gated_at{{ n }}(first: u32, row: u32, column: u32) -> vec4<f32> {
  var value = vec4<f32>();
  {{ guard }}{ value = gated{{ n }}[first + (row * {{ width }}u + column) / 4u]; }
  return value;
}

// Stores the gradients of four gates and of their ups, from those of the activations.
fn put{{ n }}(row: u32, column: u32, d: vec4<f32>, gate: vec4<f32>, up: vec4<f32>) {
  let at = (row * {{ 2 * width }}u + column) / 4u;
  {{ guard }}{
    out{{ n }}[at] = gate_gradient(d, gate, up);
    out{{ n }}[at + {{ width // 4 }}u] = up_gradient(d, gate);
  }
}
