//! RMSNorm on the CPU, forward and backward. No mean is subtracted and there is no bias.

use super::FusedNorm;
use crate::ops::Float;
use crate::ops::cpu::reduce::{sum, sum2};
use crate::ops::cpu::{SharedSlice, add, filled, rows_per_task, tensor, values};
use crate::ops::format::Format;
use crate::ops::shared_work::SharedWork;
use burn::backend::{Flex, TensorMetadata as _};
use protocol::config::NORM_EPS;

type T = Float<Flex>;

impl FusedNorm for Flex {
    fn forward([x, gain]: [T; 2], _: Format, _: &SharedWork) -> [T; 2] {
        let (y, inverse) = forward(values(&x), values(&gain), NORM_EPS as f32);
        let rows = inverse.len();
        [tensor(y, x.shape()), tensor(inverse, [rows, 1])]
    }

    fn backward([x, gain, inverse]: [T; 3], dy: T, earlier: Option<T>) -> [T; 2] {
        let saved = [&x, &gain, &inverse].map(values);
        let (dx, dgain) = backward(values(&dy), saved, earlier.as_ref().map(values));
        [tensor(dx, x.shape()), tensor(dgain, gain.shape())]
    }
}

/// The number of rows whose shares of the gain's gradient are summed together. It is fixed, so the result does not depend on the number of
/// threads.
const GAIN_ROWS: usize = 32;

/// Returns `y = x · inv_rms · gain`, N × D, and `inv_rms = 1 / √(mean(x²) + eps)` of each row, N, from x, N × D, and gain, D.
pub(crate) fn forward(x: &[f32], gain: &[f32], eps: f32) -> (Vec<f32>, Vec<f32>) {
    let width = gain.len();
    assert!(x.len().is_multiple_of(width));
    let mut inv_rms = vec![0.0; x.len() / width];
    let each = SharedSlice::new(&mut inv_rms);
    let rows = rows_per_task(width);
    let y = filled(x.len(), rows * width, |task, y| {
        // SAFETY: the rows of a task are its own.
        let inv_rms = unsafe { each.part(task * rows, y.len() / width) };
        forward_rows(y, inv_rms, &x[task * rows * width..], gain, eps);
    });
    (y, inv_rms)
}

simd! {
    fn forward_rows(y: &mut [f32], inv_rms: &mut [f32], x: &[f32], gain: &[f32], eps: f32) {
        let width = gain.len();
        for ((y, x), inv_rms) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(inv_rms) {
            *inv_rms = 1.0 / (sum::<L>(x, |x| x * x) / width as f32 + eps).sqrt();
            for ((y, x), gain) in y.iter_mut().zip(x).zip(gain) {
                *y = *x * *inv_rms * *gain;
            }
        }
    }
}

/// Returns the gradients dx, N × D, and dgain, D, of [`forward`] from dy, N × D. `earlier`, N × D, is the gradient that reaches x past the
/// norm; it is added to dx.
///
/// With `h = dy · gain`: `dx = inv_rms · (h - x · inv_rms² · mean(h · x))` per row; `dgain = Σ dy · x · inv_rms` over rows.
pub(crate) fn backward(
    dy: &[f32],
    [x, gain, inv_rms]: [&[f32]; 3],
    earlier: Option<&[f32]>,
) -> (Vec<f32>, Vec<f32>) {
    let width = gain.len();
    let len = inv_rms.len() * width;
    assert!(earlier.is_none_or(|earlier| earlier.len() == len));
    assert_eq!((dy.len(), x.len()), (len, len));
    let mut dgain = vec![0.0; width];
    let part = GAIN_ROWS * width;
    let mut partial = vec![0.0; inv_rms.len().div_ceil(GAIN_ROWS) * width];
    let each = SharedSlice::new(&mut partial);
    let dx = filled(len, part, |task, dx| {
        // SAFETY: a task has a row of partial sums of its own.
        let dgain = unsafe { each.part(task * width, width) };
        let start = task * part;
        let task_inv_rms = &inv_rms[task * GAIN_ROWS..];
        backward_rows(dx, dgain, &dy[start..], &x[start..], gain, task_inv_rms);
        if let Some(earlier) = earlier {
            add(dx, &earlier[start..][..dx.len()]);
        }
    });
    for partial in partial.chunks_exact(width) {
        add(&mut dgain, partial);
    }
    (dx, dgain)
}

simd! {
    /// Writes `dx` and adds the rows' shares to `dgain`.
    fn backward_rows(
        dx: &mut [f32],
        dgain: &mut [f32],
        dy: &[f32],
        x: &[f32],
        gain: &[f32],
        inv_rms: &[f32],
    ) {
        let width = gain.len();
        let inputs = dy.chunks_exact(width).zip(x.chunks_exact(width)).zip(inv_rms);
        for (dx, ((dy, x), inv_rms)) in dx.chunks_exact_mut(width).zip(inputs) {
            // One pass stores h in dx and computes the sums of both gradients.
            let elements = dx.iter_mut().zip(dgain.iter_mut()).zip(dy).zip(x).zip(gain);
            for ((((dx, dgain), dy), x), gain) in elements {
                *dx = *dy * *gain;
                *dgain += *dy * *x * *inv_rms;
            }
            let shared = inv_rms * inv_rms * sum2::<L>(dx, x, |h, x| h * x) / width as f32;
            for (dx, x) in dx.iter_mut().zip(x) {
                *dx = *inv_rms * (*dx - *x * shared);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::{numbers, on_threads};

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let n = 501;
        let d = 129;
        let x = numbers(1, n * d);
        let gain = numbers(2, d);
        let dy = numbers(3, n * d);
        let run = |threads| {
            on_threads(threads, || {
                let (y, inv_rms) = forward(&x, &gain, 1e-5);
                (y, backward(&dy, [&x, &gain, &inv_rms], None))
            })
        };
        assert!(run(1) == run(3));
    }
}
