//! Softmax cross-entropy with its gradient in one pass over the logits: `cross_entropy_rows.wgsl`, and
//! `mean_of_losses.wgsl`.

use super::FusedLoss;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty, vector_width};
use burn::backend::Cube;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

type T = CubeTensor;

impl FusedLoss for Cube {
    /// loss = mean_n(logsumexp(logits\[n\]) − logits\[n, target\]), dlogits = (softmax(logits) − onehot)·scale / `of`; targets `[N]` of
    /// 32-bit integers in 0..V. The running maximum is subtracted before every exponential, which avoids overflows.
    /// (Milakov & Gimelshein 2018, online softmax.) 2 launches.
    fn forward(logits: T, targets: T, scale: Option<T>, of: usize) -> [T; 2] {
        let [rows, vocab] = logits.meta.shape().dims();
        let [losses, loss] = [[rows, 1], [1, 1]].map(|shape| empty(&logits, shape));
        let (dlogits, targets) = (empty(&logits, [rows, vocab]), into_contiguous(targets));
        let lanes = vector_width(&[vocab]);
        let mut buffers = vec![("logits", lanes, &logits), ("dlogits", lanes, &dlogits)];
        buffers.push(("losses", 1, &losses));
        buffers.extend(scale.iter().map(|scale| ("scale", 1, scale)));
        buffers.push(("targets", 1, &targets));
        let own = Numbers::from([
            ("rows", rows),
            // Vectors of a row, rows of the whole batch, and whether gradients are multiplied by a factor.
            ("columns", vocab / lanes),
            ("of", of),
            ("scales", usize::from(scale.is_some())),
        ]);
        let (of_rows, of_all) = ([THREADS, rows, lanes], [THREADS, 1, 1]);
        launch_file(ROWS, of_rows, &buffers, own.clone());
        let buffers = [("losses", 1, &losses), ("loss", 1, &loss)];
        launch_file(MEAN, of_all, &buffers, own);
        [loss, dlogits]
    }
}

const ROWS: &str = "cross_entropy/cross_entropy_rows.wgsl";
const MEAN: &str = "cross_entropy/mean_of_losses.wgsl";
