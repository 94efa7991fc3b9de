

// Sums pass from slice to slice through workgroup memory.
fn put_sums(sum: mat4x4<f32>, at: u32) {
  {{ put }}
}
fn plus_sums(sum: mat4x4<f32>, at: u32) -> mat4x4<f32> {
  return sum + mat4x4<f32>({{ get }});
}
