//! Cross-entropy on the CPU: the loss and the gradient of the logits in one pass. There is no label smoothing, and no class is ignored.

use super::FusedLoss;
use crate::ops::Float;
use crate::ops::backend::Ints;
use crate::ops::cpu::exp::exp;
use crate::ops::cpu::reduce::{max, sum};
use crate::ops::cpu::{integers, rows_per_task, tensor, values, zeros};
use burn::backend::{Flex, TensorMetadata as _};
use rayon::prelude::*;

type T = Float<Flex>;

impl FusedLoss for Flex {
    fn forward(logits: T, targets: Ints<Self>, scale: Option<T>, batch_rows: usize) -> [T; 2] {
        let factor = scale.map_or(1.0, |scale| values(&scale)[0]);
        let (loss, dlogits) =
            forward_backward(values(&logits), &integers(targets), factor, batch_rows);
        [tensor(vec![loss], [1, 1]), tensor(dlogits, logits.shape())]
    }
}

/// Returns the sum over rows of `ln Σ exp(logits) - logits[target]`, divided by `batch_rows`, and its gradient
/// `dlogits = (softmax(logits) - onehot(target)) · scale / batch_rows`.
///
/// The largest logit of a row is subtracted first, so nothing overflows. The losses of rows are added in double precision.
pub(crate) fn forward_backward(
    logits: &[f32],
    targets: &[i32],
    scale: f32,
    batch_rows: usize,
) -> (f32, Vec<f32>) {
    let width = classes(logits, targets);
    let mut dlogits = zeros(logits.len());
    let row_scale = scale / batch_rows as f32;
    let rows = rows_per_task(width);
    let inputs = logits
        .par_chunks(rows * width)
        .zip(targets.par_chunks(rows));
    let tasks = dlogits.par_chunks_mut(rows * width).zip(inputs);
    // The tasks' sums are added in a fixed order.
    let losses: Vec<f64> = tasks
        .map(|(dlogits, (logits, targets))| loss_of_rows(dlogits, logits, targets, row_scale))
        .collect();
    let loss = losses.iter().sum::<f64>() / batch_rows as f64;
    (loss as f32, dlogits)
}

/// Returns the number of classes, which is the length of a row.
///
/// # Panics
/// When there are no rows, or when a target is no class.
fn classes(logits: &[f32], targets: &[i32]) -> usize {
    assert!(!targets.is_empty(), "no rows to average");
    let width = logits.len() / targets.len();
    assert_eq!(logits.len(), width * targets.len());
    for target in targets {
        assert!(
            usize::try_from(*target).is_ok_and(|target| target < width),
            "target {target} of {width} classes"
        );
    }
    width
}

simd! {
    /// Returns the sum of the rows' losses, and writes their gradients to `dlogits`.
    fn loss_of_rows(dlogits: &mut [f32], logits: &[f32], targets: &[i32], scale: f32) -> f64 {
        let width = logits.len() / targets.len();
        let mut losses = 0.0;
        let rows = dlogits.chunks_exact_mut(width).zip(logits.chunks_exact(width)).zip(targets);
        for ((dlogits, logits), target) in rows {
            let most = max::<L>(logits);
            for (dlogit, logit) in dlogits.iter_mut().zip(logits) {
                *dlogit = exp(*logit - most);
            }
            let total = sum::<L>(dlogits, |x| x);
            let log_total = total.ln();
            losses += f64::from(log_total) - f64::from(logits[*target as usize] - most);
            let scale_row = scale / total;
            for dlogit in dlogits.iter_mut() {
                *dlogit *= scale_row;
            }
            dlogits[*target as usize] -= scale;
        }
        losses
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "target 3 of 3 classes")]
    fn a_target_outside_the_classes_is_refused() {
        let _ = super::forward_backward(&[0.0; 3], &[3], 1.0, 1);
    }
}
