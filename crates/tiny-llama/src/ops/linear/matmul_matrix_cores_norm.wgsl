

// Reads vector i of x·gain in a block's share, which begins at `row`; multiplies it by 1/rms, and stores it in y.
fn place_in_share{{ n }}(i: u32, row: u32, block: u32) -> u32 {
  return (row + i / {{ share }}u) * {{ width }}u + block * {{ share }}u + i % {{ share }}u;
}
fn read_scaled{{ n }}(i: u32, row: u32, block: u32) -> vec4<f16> {
  {{ read }}
}
fn store_normed{{ n }}(i: u32, row: u32, block: u32, value: vec4<f16>) {
  {{ inside }}normed{{ n }}[place_in_share{{ n }}(i, row, block)] = vec4<f16>(vec4<f32>(value) * tiles[i / {{ share }}u].x);{{ end }}
}
