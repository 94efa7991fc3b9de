

// Stores four gates, their ups and activations: one matrix after the other.
fn store_row{{ n }}(row: u32, column: u32, gate: vec4<f32>, up: vec4<f32>) {
  {{ inside }}let at = (row * {{ width }}u + column) / 4u;
  out{{ n }}[at] = vec4<f16>(gate);
  out{{ n }}[at + {{ size }}u] = vec4<f16>(up);
  out{{ n }}[at + {{ 2 * size }}u] = vec4<f16>(swiglu(gate, up));{{ end }}
}
