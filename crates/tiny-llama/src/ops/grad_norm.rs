//! The norm of gradients, ‖g‖ = √Σg², and the distribution of their exponents. The audit of a step needs both for every parameter. The device
//! that holds the gradients adds their squares, so only sums are read back. A square below 1e-38 counts as 0.

mod fused_cpu;
pub(crate) mod fused_gpu;

use burn::backend::{Backend, Cube, Flex};
use burn::tensor::Tensor;

use super::{Float, Kernels, backend};

/// A device's own kernels for gradient norms.
pub trait FusedGradNorm: Backend {
    /// Returns Σx² of each tensor; NaN if the device does not answer.
    fn squares(tensors: &[Float<Self>]) -> Vec<f64>;
    /// Counts the elements with each exponent for each tensor. The CPU counts all elements, a GPU a sample.
    fn exponents(tensors: &[Float<Self>]) -> Vec<[u64; 256]>;
}

/// Returns the norm of each tensor, in double precision from single-precision sums of parts; NaN if an entry is NaN.
pub fn lengths(tensors: &[&Tensor<2>]) -> Vec<f64> {
    let Some(first) = tensors.first() else {
        return Vec::new();
    };
    let squares = if backend::is_cpu(&first.device()) {
        Flex::squares(&plain::<Flex>(tensors))
    } else {
        Cube::squares(&plain::<Cube>(tensors))
    };
    squares.into_iter().map(f64::sqrt).collect()
}

/// Returns for each tensor how many elements have each exponent of an f32: exponent 0 for zero and numbers below 2⁻¹²⁶, 127 for numbers from 1
/// to below 2, 255 for infinities and NaN. The CPU counts all elements, a GPU at most 16,384 of each tensor.
pub fn exponents(tensors: &[&Tensor<2>]) -> Vec<[u64; 256]> {
    let Some(first) = tensors.first() else {
        return Vec::new();
    };
    if backend::is_cpu(&first.device()) {
        Flex::exponents(&plain::<Flex>(tensors))
    } else {
        Cube::exponents(&plain::<Cube>(tensors))
    }
}

/// Returns the backend's tensors, contiguous and without autodiff.
fn plain<B: Kernels>(tensors: &[&Tensor<2>]) -> Vec<Float<B>> {
    tensors
        .iter()
        .map(|tensor| B::contiguous(B::constant(tensor)))
        .collect()
}
