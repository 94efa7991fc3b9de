// Rotates two pairs (a, b) of adjacent values by one angle each: (a·cos - b·sin, a·sin + b·cos).
fn rotated(x: vec4<f32>, c: vec2<f32>, s: vec2<f32>) -> vec4<f32> {
  return vec4<f32>(x.xz * c - x.yw * s, x.xz * s + x.yw * c).xzyw;
}
