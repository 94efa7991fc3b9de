//! Reductions of many tensors on a GPU: sums of squares, largest magnitudes, and samples of their elements. Only these are read back.

use super::{FusedGradNorm, fused_cpu};
use crate::ops::gpu::read;
use crate::ops::gpu::{arg, empty, horizontal, workgroup_reduce};
use burn::backend::Cube;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

impl FusedGradNorm for Cube {
    fn squares(tensors: &[CubeTensor]) -> Vec<f64> {
        let (partial, parts) = reduced(tensors, false);
        let Some(sums) = read(&partial) else {
            return vec![f64::NAN; tensors.len()];
        };
        let mut remaining = sums.into_iter().map(f64::from);
        parts
            .into_iter()
            .map(|count| remaining.by_ref().take(count).sum())
            .collect()
    }

    fn exponents(tensors: &[CubeTensor]) -> Vec<[u64; 256]> {
        tensors
            .iter()
            .map(|tensor| fused_cpu::exponents(&read(&sample(tensor)).unwrap_or_default()))
            .collect()
    }
}

const THREADS: usize = 256;
/// The number of vectors of an invocation: of large tensors, and if all tensors of a launch are small.
const ITEMS: [usize; 2] = [16, 4];
/// The number of values from which on a tensor is large.
const LARGE: usize = 1 << 23;
/// The largest number of tensors of a launch; each needs a binding.
const MOST_TENSORS: usize = 24;

/// Returns sums of squares `[parts]`, each of a part of one tensor, and the number of parts of each tensor, in the order of the tensors. With
/// `largest`, it returns the largest magnitudes instead of sums; infinities and NaN may then be left out. 1 launch for each 24 tensors.
///
/// # Panics
/// When there is no tensor.
pub(crate) fn reduced(tensors: &[CubeTensor], largest: bool) -> (CubeTensor, Vec<usize>) {
    let like = tensors.first().expect("a norm of at least one tensor");
    let bindings = like.client.properties().hardware.max_bindings as usize;
    let most = bindings.saturating_sub(2).clamp(1, MOST_TENSORS);
    let sizes: Vec<usize> = tensors.iter().map(|t| t.meta.num_elements()).collect();
    let items = ITEMS[usize::from(sizes.iter().all(|size| *size < LARGE))];
    let per_group = |lanes: usize| THREADS * items * lanes;
    let parts: Vec<usize> = sizes
        .chunks(most)
        .flat_map(|sizes| {
            let per_group = per_group(crate::ops::gpu::vector_width(sizes));
            sizes.iter().map(move |size| size.div_ceil(per_group))
        })
        .collect();
    let partial = empty(like, [parts.iter().sum::<usize>()]);
    let mut first = 0;
    for (batch, sizes) in tensors.chunks(most).zip(sizes.chunks(most)) {
        let lanes = crate::ops::gpu::vector_width(sizes);
        let mut args = SequenceArg::new();
        let mut groups = 0;
        for (tensor, size) in batch.iter().zip(sizes) {
            args.push(PieceLaunch::new(arg(tensor), groups, size / lanes));
            groups += size.div_ceil(per_group(lanes));
        }
        unsafe {
            reduce_per_group::launch_unchecked(
                &like.client,
                crate::ops::gpu::groups(groups),
                CubeDim::new_1d(THREADS as u32),
                lanes,
                args,
                arg(&partial),
                first,
                items,
                largest,
            );
        }
        first += groups;
    }
    (partial, parts)
}

/// The largest number of elements of a sample.
const SAMPLE: usize = 16_384;

/// Returns elements `[count]` of a tensor at equal distances, at most [`SAMPLE`]. 1 launch.
pub(crate) fn sample(tensor: &CubeTensor) -> CubeTensor {
    let size = tensor.meta.num_elements();
    // An odd distance reaches every column of a matrix whose rows are a power of two long.
    let distance = size.div_ceil(SAMPLE) | 1;
    let count = size.div_ceil(distance);
    let out = empty(tensor, [count]);
    unsafe {
        take_each::launch_unchecked(
            &tensor.client,
            crate::ops::gpu::groups(count.div_ceil(THREADS)),
            CubeDim::new_1d(THREADS as u32),
            arg(tensor),
            arg(&out),
            count,
            distance,
        );
    }
    out
}

#[cube(launch_unchecked)]
fn take_each(x: &[f32], out: &mut [f32], count: usize, distance: usize) {
    if ABSOLUTE_POS < count {
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS * distance];
    }
}

/// A tensor, its first workgroup, and its size in vectors.
#[derive(CubeType, CubeLaunch)]
struct Piece<N: Size> {
    values: Box<[Vector<f32, N>]>,
    first: usize,
    count: usize,
}

#[cube(launch_unchecked)]
fn reduce_per_group<N: Size>(
    pieces: &Sequence<Piece<N>>,
    partial: &mut [f32],
    offset: usize,
    #[comptime] items: usize,
    #[comptime] largest: bool,
) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(THREADS + 16));
    let mut sum = Vector::<f32, N>::new(0.0);
    let mut valid = 0u32;
    #[unroll]
    for p in 0..pieces.len() {
        let piece = pieces.index(p);
        let groups = piece.count.div_ceil(comptime!(THREADS * items));
        if CUBE_POS >= piece.first && CUBE_POS < piece.first + groups {
            valid = 1u32;
            let start = (CUBE_POS - piece.first) * comptime!(THREADS * items) + UNIT_POS as usize;
            for i in 0..items {
                let at = start + i * THREADS;
                if at < piece.count {
                    let value = piece.values[at];
                    if comptime!(largest) {
                        sum = max(sum, value.abs());
                    } else {
                        sum += value * value;
                    }
                }
            }
        }
    }
    let own = horizontal::<N>(sum, comptime!(!largest));
    let total = workgroup_reduce(own, &mut scratch, THREADS, comptime!(!largest));
    if UNIT_POS == 0 && valid == 1u32 {
        partial[offset + CUBE_POS] = total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::TestDevice;

    #[test]
    fn the_largest_magnitudes_agree_with_the_host() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let host = [numbers(1, 100_000), numbers(2, 148), vec![-3.0; 7]];
        // The first two tensors are read by vectors of four, all three value by value.
        for all in [&host[..], &host[..2]] {
            let tensors: Vec<CubeTensor> = all
                .iter()
                .map(|values| device.tensor(values, [values.len()]))
                .collect();
            let (largest, parts) = reduced(&tensors, true);
            let mut largest = device.read(&largest).into_iter();
            for (values, parts) in all.iter().zip(parts) {
                let got = largest.by_ref().take(parts).fold(0.0, f32::max);
                let want = values.iter().map(|x| x.abs()).fold(0.0, f32::max);
                assert_eq!(got, want);
            }
        }
    }
}
