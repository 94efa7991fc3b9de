

// Stores four gates, their ups and activations: one matrix after the other.
fn put{{ n }}(row: u32, column: u32, gate: vec4<f32>, up: vec4<f32>) {
  let at = (row * {{ width }}u + column) / 4u;
  {{ guard }}{
    out{{ n }}[at] = gate;
    out{{ n }}[at + {{ height * width // 4 }}u] = up;
    out{{ n }}[at + {{ height * width // 2 }}u] = swiglu(gate, up);
  }
}
