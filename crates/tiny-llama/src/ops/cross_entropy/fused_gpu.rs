//! Cross-entropy on a GPU: the loss and the gradient of each row with `cross_entropy_rows.wgsl`, then the mean with `mean_of_losses.wgsl`.

use super::FusedLoss;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty, vector_width};
use burn::backend::Cube;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

type T = CubeTensor;

impl FusedLoss for Cube {
    /// Computes loss = Σ_n (logsumexp(logits\[n\]) − logits\[n, target\]) / `batch_rows` and
    /// dlogits = (softmax(logits) − onehot)·scale / `batch_rows`. The targets `[N]` are 32-bit integers in 0..V. 2 launches.
    fn forward(logits: T, targets: T, scale: Option<T>, batch_rows: usize) -> [T; 2] {
        let [rows, vocab] = logits.meta.shape().dims();
        let losses = empty(&logits, [rows, 1]);
        let loss = empty(&logits, [1, 1]);
        let dlogits = empty(&logits, [rows, vocab]);
        let targets = into_contiguous(targets);
        let lanes = vector_width(&[vocab]);
        let mut buffers = vec![
            ("logits", lanes, &logits),
            ("dlogits", lanes, &dlogits),
            ("losses", 1, &losses),
        ];
        buffers.extend(scale.iter().map(|scale| ("scale", 1, scale)));
        buffers.push(("targets", 1, &targets));
        let own = Numbers::from([
            ("rows", rows),
            // The vectors of a row.
            ("columns", vocab / lanes),
            ("batch_rows", batch_rows),
            ("scales", usize::from(scale.is_some())),
        ]);
        launch_file(ROWS, [THREADS, rows, lanes], &buffers, own.clone());
        let mean_buffers = [("losses", 1, &losses), ("loss", 1, &loss)];
        launch_file(MEAN, [THREADS, 1, 1], &mean_buffers, own);
        [loss, dlogits]
    }
}

const ROWS: &str = "cross_entropy/cross_entropy_rows.wgsl";
const MEAN: &str = "cross_entropy/mean_of_losses.wgsl";
