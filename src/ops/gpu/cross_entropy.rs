//! Softmax cross-entropy with its gradient in one pass over the logits; probabilities are never stored.

use super::{arg, empty, groups, horizontal, vector_width, workgroup_max, workgroup_sum};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;
/// Below every logit but finite, because −∞ minus −∞ would be NaN.
const LOWEST: f32 = -3.0e38;

/// loss = mean_n(logsumexp(logits\[n\]) − logits\[n, target\]), dlogits = (softmax(logits) − onehot)·scale / N; logits `[N, V]`,
/// targets `[N]` of 32-bit integers in 0..V. Returns loss `[1, 1]` and dlogits `[N, V]`. The running maximum is subtracted
/// before every exponential, which avoids overflows. Given some rows of a batch of `of`, N = `of`: the loss is their share. (Milakov & Gimelshein 2018, online softmax.) 2 launches.
pub fn forward(
    logits: &CubeTensor,
    targets: &CubeTensor,
    scale: Option<&CubeTensor>,
    of: usize,
) -> (CubeTensor, CubeTensor) {
    let [rows, vocab] = logits.meta.shape().dims();
    let (losses, dlogits) = (empty(logits, [rows]), empty(logits, [rows, vocab]));
    let loss = empty(logits, [1, 1]);
    let dim = CubeDim::new_1d(THREADS as u32);
    unsafe {
        cross_entropy_rows::launch_unchecked(
            &logits.client,
            groups(rows),
            dim,
            vector_width(&[vocab]),
            arg(logits),
            arg(targets),
            arg(&dlogits),
            arg(&losses),
            arg(scale.unwrap_or(logits)),
            rows,
            of,
            vocab,
            scale.is_some(),
        );
        mean_of_losses::launch_unchecked(
            &logits.client,
            CubeCount::new_single(),
            dim,
            arg(&losses),
            arg(&loss),
            rows,
            of,
        );
    }
    (loss, dlogits)
}

#[cube(launch_unchecked)]
fn cross_entropy_rows<N: Size>(
    logits: &[Vector<f32, N>],
    targets: &[u32],
    dlogits: &mut [Vector<f32, N>],
    losses: &mut [f32],
    scale: &[f32],
    rows: usize,
    of: usize,
    vocab: usize,
    #[comptime] scales: bool,
) {
    let row = CUBE_POS;
    if row >= rows {
        terminate!();
    }
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(THREADS + 16));
    let columns = vocab / N::value();
    let start = row * columns;
    let target = targets[row] as usize;

    // Each invocation keeps a maximum and a sum per vector lane, and rescales the sum when the maximum grows.
    let mut top = Vector::<f32, N>::new(LOWEST);
    let mut sum = Vector::<f32, N>::new(0.0);
    let mut c = UNIT_POS as usize;
    while c < columns {
        let value = logits[start + c];
        let higher = max(top, value);
        sum = sum * (top - higher).exp() + (value - higher).exp();
        top = higher;
        c += THREADS;
    }
    let highest = workgroup_max(horizontal::<N>(top, false), &mut scratch, THREADS);
    let scaled = sum * (top - Vector::<f32, N>::new(highest)).exp();
    let total = workgroup_sum(horizontal::<N>(scaled, true), &mut scratch, THREADS);

    let mut share = Vector::<f32, N>::new(1.0 / of as f32);
    if scales {
        share *= Vector::<f32, N>::new(scale[0]);
    }
    let inverse = Vector::<f32, N>::new(1.0 / total);
    c = UNIT_POS as usize;
    while c < columns {
        let value = logits[start + c];
        let mut grad = (value - Vector::<f32, N>::new(highest)).exp() * inverse;
        #[unroll]
        for i in 0..N::value() {
            if c * N::value() + i == target {
                grad.insert(i, grad.extract(i) - 1.0);
                // Computing `highest + ln(total)` first would lose digits of the loss for large logits.
                losses[row] = total.ln() - (value.extract(i) - highest);
            }
        }
        dlogits[start + c] = grad * share;
        c += THREADS;
    }
}

/// out = Σ values / `of`, with one workgroup.
#[cube(launch_unchecked)]
fn mean_of_losses(values: &[f32], out: &mut [f32], count: usize, of: usize) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(THREADS + 16));
    let mut sum = 0.0f32;
    let mut i = UNIT_POS as usize;
    while i < count {
        sum += values[i];
        i += THREADS;
    }
    let total = workgroup_sum(sum, &mut scratch, THREADS);
    if UNIT_POS == 0 {
        out[0] = total / of as f32;
    }
}
