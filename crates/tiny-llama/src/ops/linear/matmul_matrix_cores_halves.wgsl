// 2^(biased - 127).
fn power_of_two(biased: u32) -> f32 { return bitcast<f32>(biased << 23u); }

// The 11 leading bits of each significand, as many as f16 has. Drivers would remove a conversion to f16 and back.
fn high_part(value: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(value) & vec4<u32>(0xffffe000u));
}
fn stage_a(at: u32, value: vec4<f32>) {
  let high = high_part(value);
  a_high[at] = vec4<f16>(high);
  a_low[at] = vec4<f16>(value - high);
}
fn stage_b(at: u32, value: vec4<f32>) {
  let high = high_part(value);
  b_high[at] = vec4<f16>(high);
  b_low[at] = vec4<f16>(value - high);
}
