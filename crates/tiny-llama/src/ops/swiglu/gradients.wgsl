// The gradient of gate, from the gradient d of silu(gate)·up.
fn gate_gradient(d: vec4<f32>, gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
  let s = 1.0 / (1.0 + exp(-gate));
  return d * up * s * (1.0 + gate * (1.0 - s));
}

// The gradient of up.
fn up_gradient(d: vec4<f32>, gate: vec4<f32>) -> vec4<f32> {
  let s = 1.0 / (1.0 + exp(-gate));
  return d * gate * s;
}
