//! Softmax cross-entropy with its gradient in one pass over the logits: `wgsl/cross_entropy_rows.wgsl`, and
//! `wgsl/mean_of_losses.wgsl`.

use super::wgsl::{self, Binding, Program};
use super::{empty, vector_width};
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;

const THREADS: usize = 256;

/// The values that fill in the files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct LossValues {
    bindings: Vec<Binding>,
    threads: usize,
    groups: [usize; 3],
    rows: usize,
    /// Vectors of a row, and values of a vector.
    columns: usize,
    lanes: usize,
    /// Rows of the whole batch.
    of: usize,
    /// Whether gradients are multiplied by a factor.
    scales: bool,
}

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
    let mut buffers = vec![
        ("logits", logits),
        ("dlogits", &dlogits),
        ("losses", &losses),
    ];
    buffers.extend(scale.map(|scale| ("scale", scale)));
    let is_matrix = |name: &str| name.ends_with("logits");
    let mut bindings = wgsl::bindings(&buffers, |name| if is_matrix(name) { lanes } else { 1 });
    bindings.push(Binding {
        name: "targets".to_owned(),
        of: "u32",
    });
    let values = LossValues {
        bindings,
        threads: THREADS,
        groups: wgsl::groups(rows),
        rows,
        columns: vocab / lanes,
        lanes,
        of,
        scales: scale.is_some(),
    };
    let buffers = buffers.iter().map(|(_, buffer)| *buffer).chain([targets]);
    let buffers: Vec<&CubeTensor> = buffers.collect();
    let mean = LossValues {
        bindings: wgsl::bindings(&[("losses", &losses), ("loss", &loss)], |_| 1),
        groups: [1; 3],
        ..values.clone()
    };
    let groups = values.groups;
    let rows = Program::new("cross_entropy_rows.wgsl", THREADS, values);
    wgsl::launch(rows, groups, &buffers);
    let mean = Program::new("mean_of_losses.wgsl", THREADS, mean);
    wgsl::launch(mean, [1; 3], &[&losses, &loss]);
    (loss, dlogits)
}
