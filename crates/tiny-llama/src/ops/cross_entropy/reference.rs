//! Cross-entropy from burn's primitives.

use burn::backend::TensorMetadata;
use burn::tensor::{FloatDType, IndexingUpdateOp, Shape};

use crate::ops::backend::Ints;
use crate::ops::{Float, Kernels};

/// Returns the loss `[1, 1]` and the log-probabilities `[n, vocab]`.
pub(super) fn forward<B: Kernels>(logits: Float<B>, targets: Ints<B>) -> [Float<B>; 2] {
    let rows = logits.shape()[0];
    let logs = B::log_softmax(logits, 1); // [n, vocab]
    let column = B::int_reshape(targets, Shape::from([rows, 1])); // [n, 1]
    let picked = B::float_gather(1, logs.clone(), column); // [n, 1]
    let mean = B::float_mean_dim(picked, 0); // [1, 1]
    [B::float_neg(mean), logs]
}

/// Returns dlogits `[n, vocab]` from the log-probabilities, times `factor` `[1, 1]`.
pub(super) fn backward<B: Kernels>(logs: Float<B>, targets: Ints<B>, factor: Float<B>) -> Float<B> {
    let rows = logs.shape()[0];
    let column = B::int_reshape(targets, Shape::from([rows, 1])); // [n, 1]
    let zeros = B::float_zeros(Shape::from([rows, 1]), &logs.device(), FloatDType::F32); // [n, 1]
    let minus = B::float_add_scalar(zeros, (-1.0).into()); // [n, 1]
    let difference = B::float_scatter(1, B::float_exp(logs), column, minus, IndexingUpdateOp::Add); // [n, vocab]
    let mean = B::float_mul_scalar(difference, (1.0 / rows as f64).into()); // [n, vocab]
    B::float_mul(mean, factor)
}
