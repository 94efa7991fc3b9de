

// Copies the sums of a slice to workgroup memory, and adds those of another slice.
fn put_sums(sums: ptr<function, array<vec4<f32>, {{ sums }}>>, at: u32) {
  {{ put }}
}
fn add_sums(sums: ptr<function, array<vec4<f32>, {{ sums }}>>, at: u32) {
  {{ add }}
}
