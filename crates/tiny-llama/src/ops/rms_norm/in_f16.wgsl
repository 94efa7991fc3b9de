// x·gain in f16. A number above the largest of f16 becomes that one, so that a norm is finite where it is in f32;
// infinities stay.
fn in_f16(x: vec4<f32>) -> vec4<f16> {
  let most = vec4<f32>(65504.0);
  return vec4<f16>(select(clamp(x, -most, most), x, abs(x) > vec4<f32>(3.0e38)));
}
