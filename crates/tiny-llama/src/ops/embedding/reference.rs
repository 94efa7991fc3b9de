//! The embedding from burn's primitives.

use burn::backend::TensorMetadata;
use burn::tensor::{FloatDType, IndexingUpdateOp};

use crate::ops::backend::Ints;
use crate::ops::{Float, Kernels};

/// Returns the rows of W for the tokens, `[n, d]`.
pub(super) fn forward<B: Kernels>(weight: Float<B>, tokens: Ints<B>) -> Float<B> {
    B::float_select(weight, 0, tokens)
}

/// Returns the gradient `[vocab, d]`: zeros, then one addition for each token.
pub(super) fn backward<B: Kernels>(weight: Float<B>, tokens: Ints<B>, dy: Float<B>) -> Float<B> {
    let zeros = B::float_zeros(weight.shape(), &weight.device(), FloatDType::F32);
    B::float_select_assign(zeros, 0, tokens, dy, IndexingUpdateOp::Add)
}
