

// Stores four values of a row of C, or of a part of it.
fn store_row{{ n }}(row: u32, column: u32, value: vec4<f32>, part: u32) {
  {{ inside }}out{{ n }}[part * {{ size }}u + (row * {{ width }}u + column) / 4u] = value;{{ end }}
}
