//! The norm of gradients, ‖g‖ = √Σg², and the distribution of their exponents, which the audit of a step needs for every parameter.
//! The device that holds the gradients computes the sums, and only these are read back; a squared entry below 1e-38 counts as 0.

use burn::backend::{Cube, Flex};
use burn::tensor::Tensor;

use super::{Kernels, kernels, primitive};

/// The norm of each tensor, in double precision from single-precision sums of parts; NaN if an entry is NaN.
pub fn lengths(tensors: &[&Tensor<2>]) -> Vec<f64> {
    let Some(first) = tensors.first() else {
        return Vec::new();
    };
    let squares = if kernels::is_cpu(&first.device()) {
        Flex::squares(&plain(tensors).map(primitive::<Flex>).collect::<Vec<_>>())
    } else {
        Cube::squares(&plain(tensors).map(primitive::<Cube>).collect::<Vec<_>>())
    };
    squares.into_iter().map(f64::sqrt).collect()
}

/// How many elements of each tensor have each exponent of an f32: 0 stands for zero and numbers below 2⁻¹²⁶, 127 for 1 up to 2,
/// 255 for infinities and NaN. All elements on the CPU, at most 16,384 of each tensor on a GPU.
pub fn exponents(tensors: &[&Tensor<2>]) -> Vec<[u64; 256]> {
    let Some(first) = tensors.first() else {
        return Vec::new();
    };
    if kernels::is_cpu(&first.device()) {
        Flex::exponents(&plain(tensors).map(primitive::<Flex>).collect::<Vec<_>>())
    } else {
        Cube::exponents(&plain(tensors).map(primitive::<Cube>).collect::<Vec<_>>())
    }
}

/// The tensors without autodiff.
fn plain(tensors: &[&Tensor<2>]) -> impl Iterator<Item = Tensor<2>> {
    tensors.iter().map(|tensor| {
        if tensor.device().is_autodiff() {
            (*tensor).clone().inner()
        } else {
            (*tensor).clone()
        }
    })
}
