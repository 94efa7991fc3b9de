//! The embedding on a GPU: rows by token with `embedding_forward.wgsl`, and their gradient with `embedding_backward.wgsl`.

use super::FusedEmbedding;
use crate::ops::Kernels as _;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty, vector_width};
use crate::ops::shared_work::{PartialNorm, SharedWork};
use burn::backend::Cube;
use burn::backend::TensorMetadata as _;
use burn_cubecl::tensor::CubeTensor;

impl FusedEmbedding for Cube {
    fn forward(weight: CubeTensor, tokens: CubeTensor, shared: &SharedWork) -> CubeTensor {
        let sizes = [tokens.shape()[0], weight.shape()[1]];
        let gain = shared.gain.as_ref().map(Self::constant); // [1, d]
        let partial = gain.map(|gain| PartialNorm::empty(gain, 1, sizes));
        let y = forward(&weight, &tokens, partial.as_ref());
        *shared.partial() = partial;
        y
    }

    fn backward(weight: CubeTensor, tokens: CubeTensor, dy: CubeTensor) -> CubeTensor {
        backward(&dy, &tokens, weight.shape().dims())
    }
}

/// The largest number of invocations of a workgroup.
const MOST_THREADS: usize = 128;
/// The smallest number of invocations of a workgroup, which is a subgroup.
const FEWEST_THREADS: usize = 32;

/// Computes y\[n\] = weight\[tokens\[n\]\], `[N, D]`, from weight `[V, D]` and tokens `[N]` of 32-bit integers. If a `norm` follows, this also does
/// the first part of its work. 1 launch.
pub(crate) fn forward(
    weight: &CubeTensor,
    tokens: &CubeTensor,
    norm: Option<&PartialNorm>,
) -> CubeTensor {
    let rows = tokens.meta.num_elements();
    let [vocab, width] = weight.meta.shape().dims();
    let y = empty(weight, [rows, width]);
    let (mut own, [threads, lanes]) = sizes(tokens, [vocab, width]);
    let mut buffers = vec![
        ("weight", lanes, weight),
        ("y", lanes, &y),
        ("tokens", 1, tokens),
    ];
    if let Some(norm) = norm {
        buffers.extend([
            ("gain", lanes, &norm.gain),
            ("scaled", lanes, &norm.scaled),
            ("squares", 1, &norm.squares),
        ]);
    }
    own.insert("for_norm", usize::from(norm.is_some()));
    launch_file(
        "embedding/embedding_forward.wgsl",
        [threads, rows, lanes],
        &buffers,
        own,
    );
    y
}

/// Computes dweight\[v\] = Σ_{n: tokens\[n\]=v} dy\[n\], `[V, D]`, from dy `[N, D]`. Each row of the table has a workgroup, which looks through all
/// tokens. 1 launch.
pub(crate) fn backward(
    dy: &CubeTensor,
    tokens: &CubeTensor,
    [vocab, width]: [usize; 2],
) -> CubeTensor {
    let dweight = empty(dy, [vocab, width]);
    let (mut own, [threads, lanes]) = sizes(tokens, [vocab, width]);
    own.insert("owned", (width / lanes).div_ceil(threads));
    let buffers = [
        ("dy", lanes, dy),
        ("tokens", 1, tokens),
        ("dweight", lanes, &dweight),
    ];
    launch_file(
        "embedding/embedding_backward.wgsl",
        [threads, vocab, lanes],
        &buffers,
        own,
    );
    dweight
}

/// Returns the values that both files need (tokens, rows of the table, vectors of a row), the invocations of a workgroup, and the values of a
/// vector.
fn sizes(tokens: &CubeTensor, [vocab, width]: [usize; 2]) -> (Numbers, [usize; 2]) {
    let lanes = vector_width(&[width]);
    let columns = width / lanes;
    let rows = tokens.meta.num_elements();
    let own = Numbers::from([("rows", rows), ("vocab", vocab), ("columns", columns)]);
    let threads = columns
        .next_power_of_two()
        .clamp(FEWEST_THREADS, MOST_THREADS);
    (own, [threads, lanes])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::empty_of;
    use crate::ops::gpu::format::converted;
    use burn::cubecl::ir::FloatKind;
    use burn::tensor::DType;

    fn has_f16(like: &CubeTensor) -> bool {
        like.client.properties().supports_type(FloatKind::F16)
    }

    fn tokens_on(like: &CubeTensor, rows: &[usize]) -> CubeTensor {
        let mut tokens = empty_of(DType::I32, like, [rows.len()]);
        let bytes: Vec<u8> = rows
            .iter()
            .flat_map(|row| (*row as i32).to_le_bytes())
            .collect();
        tokens.handle = like.client.create_from_slice(&bytes);
        tokens
    }

    /// A width of 32 is scaled by vectors, a width of 33 value by value.
    #[test]
    fn a_row_that_is_scaled_for_a_norm_is_finite_where_it_is_in_f32() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for width in [32, 33] {
            let weight = device.tensor(&vec![-1e5; width], [1, width]);
            let gain = device.tensor(&vec![1.0; width], [1, width]);
            if !has_f16(&gain) {
                return println!("skipped: no f16");
            }
            let partial = PartialNorm::empty(gain, 1, [4, width]);
            forward(&weight, &tokens_on(&weight, &[0; 4]), Some(&partial));
            let scaled = device.read(&converted(partial.scaled, DType::F32));
            assert_eq!(scaled, vec![-65504.0; 4 * width]);
        }
    }

    #[test]
    fn rows_are_copied_scaled_for_a_norm_and_their_gradients_added() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for width in [32, 33, 516] {
            let weight = numbers(1, 7 * width);
            let gain = numbers(2, width);
            let on_device = device.tensor(&weight, [7, width]);
            let gains = device.tensor(&gain, [1, width]);
            // More tokens than pass through workgroup memory at a time, of all rows but the last.
            let rows: Vec<usize> = (0..300).map(|i| i * 5 % 7 % 6).collect();
            let tokens = tokens_on(&gains, &rows);
            let want: Vec<f32> = rows
                .iter()
                .flat_map(|row| &weight[row * width..][..width])
                .copied()
                .collect();
            let y = forward(&on_device, &tokens, None);
            assert_eq!(device.read(&y), want);
            let slopes = numbers(3, rows.len() * width);
            let mut sums = vec![0.0; 7 * width];
            for (row, slopes) in rows.iter().zip(slopes.chunks(width)) {
                let sums = &mut sums[row * width..][..width];
                sums.iter_mut().zip(slopes).for_each(|(sum, x)| *sum += x);
            }
            let dy = device.tensor(&slopes, [rows.len(), width]);
            assert_eq!(device.read(&backward(&dy, &tokens, [7, width])), sums);
            if !has_f16(&gains) {
                continue;
            }
            let partial = PartialNorm::empty(gains, 1, [rows.len(), width]);
            assert_eq!(
                device.read(&forward(&on_device, &tokens, Some(&partial))),
                want
            );
            let products: Vec<f32> = want
                .iter()
                .zip(gain.iter().cycle())
                .map(|(x, g)| x * g)
                .collect();
            let got = device.read(&converted(partial.scaled, DType::F32));
            check::close(&format!("scaled, {width}"), &got, &products, 1e-3);
            let squares: Vec<f32> = want
                .chunks(width)
                .map(|row| row.iter().map(|x| x * x).sum())
                .collect();
            check::close(
                &format!("squares, {width}"),
                &device.read(&partial.squares),
                &squares,
                1e-5,
            );
        }
    }
}
