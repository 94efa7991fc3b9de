

// Reads four gates or ups, whose matrix begins at `first`; and those of a tile.
fn gated_row{{ n }}(first: u32, row: u32, column: u32) -> vec4<f16> {
  {{ read_gated }}
}
fn gated_tile{{ n }}(row: u32, column: u32) -> array<vec4<f16>, {{ count }}> {
  return array<vec4<f16>, {{ count }}>(
    {{ gated }});
}

// Stores the gradients of four gates and of their ups, from those of the activations.
fn store_row{{ n }}(row: u32, column: u32, d: vec4<f32>, gate: vec4<f16>, up: vec4<f16>) {
  {{ inside }}let at = (row * {{ 2 * width }}u + column) / 4u;
  out{{ n }}[at] = vec4<f16>(gate_gradient(d, vec4<f32>(gate), vec4<f32>(up)));
  out{{ n }}[at + {{ width // 4 }}u] = vec4<f16>(up_gradient(d, vec4<f32>(gate)));{{ end }}
}
