//! RMSNorm from burn's primitives, one after the other.

use burn::backend::TensorMetadata;
use burn::tensor::Shape;

use crate::ops::{Float, Kernels};
use protocol::config::NORM_EPS;

/// Returns y `[n, d]` and r = 1/√(mean(x²) + ε) `[n, 1]` from x `[n, d]` and γ `[1, d]`.
pub fn forward<B: Kernels>([x, gain]: [Float<B>; 2]) -> [Float<B>; 2] {
    let squares = B::float_mul(x.clone(), x.clone()); // [n, d]
    let mean = B::float_mean_dim(squares, 1); // [n, 1]
    let inverse = B::float_recip(B::float_sqrt(B::float_add_scalar(mean, NORM_EPS.into()))); // [n, 1]
    let scaled = B::float_mul(x, inverse.clone()); // [n, d]
    [B::float_mul(scaled, gain), inverse] // [n, d], [n, 1]
}

/// Returns dx `[n, d]` and dγ `[1, d]` from x, γ, r and dy `[n, d]`.
pub fn backward<B: Kernels>([x, gain, inverse]: [Float<B>; 3], dy: Float<B>) -> [Float<B>; 2] {
    let width = gain.shape().num_elements();
    let normal = B::float_mul(x, inverse.clone()); // [n, d]
    let dgain = B::float_sum_dim(B::float_mul(dy.clone(), normal.clone()), 0); // [1, d]
    let scaled = B::float_mul(dy, gain); // [n, d]
    let mean = B::float_mean_dim(B::float_mul(scaled.clone(), normal.clone()), 1); // [n, 1]
    let dx = B::float_mul(B::float_sub(scaled, B::float_mul(normal, mean)), inverse); // [n, d]
    [dx, B::float_reshape(dgain, Shape::from([1, width]))]
}
