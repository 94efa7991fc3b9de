//! Sums of the parts of products whose inner dimension is split, in a fixed order.

use crate::ops::gpu::{arg, empty, groups, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

/// Returns Σ parts (+ `add`), `[rows, columns]`, of each tensor of `counts` parts `[count·rows, columns]`. One part is already the sum.
/// This takes 1 launch, or none.
pub fn sum_parts<const N: usize>(
    mut all: [CubeTensor; N],
    counts: [usize; N],
    add: Option<&CubeTensor>,
) -> [CubeTensor; N] {
    let in_parts: Vec<usize> = (0..N).filter(|i| counts[*i] > 1).collect();
    if in_parts.is_empty() {
        return all;
    }
    let client = all[0].client.clone();
    let size = |i: &usize| all[*i].meta.num_elements() / counts[*i];
    let sizes: Vec<usize> = in_parts.iter().map(size).collect();
    let lanes = vector_width(&sizes);
    let mut args = SequenceArg::new();
    let mut first = 0;
    for (i, size) in in_parts.into_iter().zip(sizes) {
        let (parts, count, size) = (&all[i], counts[i], size / lanes);
        let [rows, columns] = parts.meta.shape().dims();
        let out = empty(parts, [rows / count, columns]);
        let [parts, added, sum] = [parts, add.unwrap_or(parts), &out].map(arg);
        args.push(SumDataLaunch::new(parts, added, sum, first, count, size));
        first += size.div_ceil(THREADS);
        all[i] = out;
    }
    unsafe {
        sum_of_parts::launch_unchecked(
            &client,
            groups(first),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            args,
            add.is_some(),
        );
    }
    all
}

/// The buffers of a sum, its first workgroup, its number of parts, and their length in vectors.
#[derive(CubeType, CubeLaunch)]
struct SumData<N: Size> {
    parts: Box<[Vector<f32, N>]>,
    added: Box<[Vector<f32, N>]>,
    out: Box<[Vector<f32, N>]>,
    first: usize,
    count: usize,
    size: usize,
}

#[cube(launch_unchecked)]
fn sum_of_parts<N: Size>(all: &mut Sequence<SumData<N>>, #[comptime] has_add: bool) {
    #[unroll]
    for s in 0..all.len() {
        let it = all.index_mut(s);
        if CUBE_POS >= it.first {
            let at = (CUBE_POS - it.first) * THREADS + UNIT_POS as usize;
            if at < it.size {
                let mut sum = it.parts[at];
                for part in 1..it.count {
                    sum += it.parts[part * it.size + at];
                }
                if has_add {
                    sum += it.added[at];
                }
                it.out[at] = sum;
            }
        }
    }
}
