//! The length of gradients, ‖g‖ = √Σg²: what the audit of a step asks of every parameter. Sums are taken where the gradients lie
//! and only they are read back; a squared entry below 1e-38 counts as 0.

use burn::backend::{Cube, Flex};
use burn::tensor::Tensor;

use super::{Kernels, kernels, primitive};

/// The length of each tensor, in double precision from sums of single-precision parts. Not a number when an entry is not.
pub fn lengths(tensors: &[&Tensor<2>]) -> Vec<f64> {
    let Some(first) = tensors.first() else {
        return Vec::new();
    };
    let plain = tensors.iter().map(|tensor| {
        if tensor.device().is_autodiff() {
            (*tensor).clone().inner()
        } else {
            (*tensor).clone()
        }
    });
    let squares = if kernels::is_cpu(&first.device()) {
        Flex::squares(&plain.map(primitive::<Flex>).collect::<Vec<_>>())
    } else {
        Cube::squares(&plain.map(primitive::<Cube>).collect::<Vec<_>>())
    };
    squares.into_iter().map(f64::sqrt).collect()
}
