

// Stores four values of a row of C, also times the next norm's gain; returns the sum of their squares.
fn store_row{{ n }}(row: u32, column: u32, value: vec4<f32>, gain: vec4<f32>) -> f32 {
  {{ inside }}let at = (row * {{ width }}u + column) / 4u;
  out{{ n }}[at] = value;
  scaled{{ n }}[at] = in_f16(value * gain);
  return dot(value, value);{{ end }}
}
