//! Softmax cross-entropy with its gradient in one pass over the logits: `cross_entropy_rows.wgsl`, and
//! `mean_of_losses.wgsl`.

use super::Fused;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty, vector_width};
use burn::backend::Cube;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

type T = CubeTensor;

impl Fused for Cube {
    fn forward(logits: T, targets: T, scale: Option<T>, of: usize) -> [T; 2] {
        forward(&logits, &into_contiguous(targets), scale.as_ref(), of)
    }
}

const THREADS: usize = 256;

/// loss = mean_n(logsumexp(logits\[n\]) − logits\[n, target\]), dlogits = (softmax(logits) − onehot)·scale / N; logits `[N, V]`,
/// targets `[N]` of 32-bit integers in 0..V. Returns loss `[1, 1]` and dlogits `[N, V]`. The running maximum is subtracted
/// before every exponential, which avoids overflows. Given some rows of a batch of `of`, N = `of`: the loss is their share.
/// (Milakov & Gimelshein 2018, online softmax.) 2 launches.
pub(crate) fn forward(
    logits: &CubeTensor,
    targets: &CubeTensor,
    scale: Option<&CubeTensor>,
    of: usize,
) -> [CubeTensor; 2] {
    let [rows, vocab] = logits.meta.shape().dims();
    let (losses, dlogits) = (empty(logits, [rows]), empty(logits, [rows, vocab]));
    let loss = empty(logits, [1, 1]);
    let lanes = vector_width(&[vocab]);
    let mut buffers = vec![("logits", lanes, logits), ("dlogits", lanes, &dlogits)];
    buffers.push(("losses", 1, &losses));
    buffers.extend(scale.map(|scale| ("scale", 1, scale)));
    buffers.push(("targets", 1, targets));
    let own = Numbers::from([
        ("rows", rows),
        // Vectors of a row, rows of the whole batch, and whether gradients are multiplied by a factor.
        ("columns", vocab / lanes),
        ("of", of),
        ("scales", usize::from(scale.is_some())),
    ]);
    let (file, sizes) = (
        "cross_entropy/cross_entropy_rows.wgsl",
        [THREADS, rows, lanes],
    );
    launch_file(file, sizes, &buffers, own.clone());
    let buffers = [("losses", 1, &losses), ("loss", 1, &loss)];
    launch_file(
        "cross_entropy/mean_of_losses.wgsl",
        [THREADS, 1, 1],
        &buffers,
        own,
    );
    [loss, dlogits]
}
