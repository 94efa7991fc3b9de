// silu(gate)·up with silu(g) = g·s, s = 1 / (1 + e^-g), of four values.
fn swiglu(gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
  return gate / (1.0 + exp(-gate)) * up;
}
