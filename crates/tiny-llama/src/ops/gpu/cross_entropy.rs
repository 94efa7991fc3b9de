//! Softmax cross-entropy with its gradient in one pass over the logits: `wgsl/cross_entropy_rows.wgsl`, and
//! `wgsl/mean_of_losses.wgsl`.

use super::wgsl::{Numbers, launch_file};
use super::{empty, vector_width};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

/// loss = mean_n(logsumexp(logits\[n\]) − logits\[n, target\]), dlogits = (softmax(logits) − onehot)·scale / N; logits `[N, V]`,
/// targets `[N]` of 32-bit integers in 0..V. Returns loss `[1, 1]` and dlogits `[N, V]`. The running maximum is subtracted
/// before every exponential, which avoids overflows. Given some rows of a batch of `of`, N = `of`: the loss is their share.
/// (Milakov & Gimelshein 2018, online softmax.) 2 launches.
pub fn forward(
    logits: &CubeTensor,
    targets: &CubeTensor,
    scale: Option<&CubeTensor>,
    of: usize,
) -> (CubeTensor, CubeTensor) {
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
    let (file, sizes) = ("cross_entropy_rows.wgsl", [THREADS, rows, lanes]);
    launch_file(file, sizes, &buffers, own.clone());
    let buffers = [("losses", 1, &losses), ("loss", 1, &loss)];
    launch_file("mean_of_losses.wgsl", [THREADS, 1, 1], &buffers, own);
    (loss, dlogits)
}
