//! Sums of squares and largest values of many tensors on the device, and samples of their elements. Of gradients, only norms and
//! samples are read back.

use super::{FusedGradNorm, fused_cpu};
use crate::ops::gpu::read;
use crate::ops::gpu::{arg, empty, horizontal, workgroup_reduce};
use burn::backend::Cube;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

impl FusedGradNorm for Cube {
    fn squares(tensors: &[CubeTensor]) -> Vec<f64> {
        let (sums, parts) = reduced(tensors, false);
        let Some(sums) = read(&sums) else {
            return vec![f64::NAN; tensors.len()];
        };
        let mut sums = sums.into_iter().map(f64::from);
        let parts = parts.into_iter();
        parts.map(|n| sums.by_ref().take(n).sum()).collect()
    }

    fn exponents(tensors: &[CubeTensor]) -> Vec<[u64; 256]> {
        let samples = tensors.iter().map(|tensor| read(&sample(tensor)));
        let samples = samples.map(|sample| fused_cpu::exponents(&sample.unwrap_or_default()));
        samples.collect()
    }
}

const THREADS: usize = 256;
/// An invocation has this many vectors of a large tensor, and of a small one.
const ITEMS: [usize; 2] = [16, 4];
/// A large tensor has at least this many values.
const LARGE: usize = 1 << 23;
/// A launch has at most this many tensors, because each needs a binding.
const MOST_TENSORS: usize = 24;

/// Sums of squares `[parts]`, each of a part of one tensor, and the number of parts of each tensor, in the order of the tensors. With
/// `largest`, the largest magnitudes instead of sums; infinities and NaN may or may not count there. 1 launch for each 24 tensors.
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

/// A sample has at most this many elements.
const SAMPLE: usize = 16_384;

/// Returns elements `[count]` of a tensor at equal distances, at most 16,384, in 1 launch.
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

/// A tensor, its first workgroup, and its length in vectors.
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
    fn the_largest_magnitudes_are_those_of_the_host() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let host = [numbers(1, 100_000), numbers(2, 148), vec![-3.0; 7]];
        for some in [&host[..], &host[..2]] {
            let tensors: Vec<CubeTensor> = some
                .iter()
                .map(|all| device.tensor(all, [all.len()]))
                .collect();
            let (values, parts) = reduced(&tensors, true);
            let mut values = device.read(&values).into_iter();
            for (all, parts) in some.iter().zip(parts) {
                let most = |values: &mut dyn Iterator<Item = f32>| values.fold(0.0, f32::max);
                let got = most(&mut values.by_ref().take(parts));
                assert_eq!(got, most(&mut all.iter().map(|x| x.abs())));
            }
        }
    }
}
