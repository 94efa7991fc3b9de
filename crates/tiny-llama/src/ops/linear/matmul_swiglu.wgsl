

// Stores four gates, their ups and activations: one matrix after the other. Then those of four rows.
fn put{{ n }}(row: u32, column: u32, gate: vec4<f32>, up: vec4<f32>) {
  let at = (row * {{ width }}u + column) / 4u;
  {{ guard }}{
    out{{ n }}[at] = gate;
    out{{ n }}[at + {{ height * width // 4 }}u] = up;
    out{{ n }}[at + {{ height * width // 2 }}u] = swiglu(gate, up);
  }
}
fn store{{ n }}(row: u32, column: u32, gates: mat4x4<f32>, ups: mat4x4<f32>) {
  put{{ n }}(row, column, gates[0], ups[0]); put{{ n }}(row + 1u, column, gates[1], ups[1]);
  put{{ n }}(row + 2u, column, gates[2], ups[2]); put{{ n }}(row + 3u, column, gates[3], ups[3]);
}
