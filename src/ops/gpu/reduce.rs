//! Sums of the parts of products whose inner dimension is split, in a fixed order.

use super::{arg, empty, groups, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

/// Σ parts (+ `add`), `[rows, columns]`, of `count` parts `[count·rows, columns]`. 1 launch.
pub fn sum_parts(parts: &CubeTensor, count: usize, add: Option<&CubeTensor>) -> CubeTensor {
    let [sum] = sums([parts], [count], add);
    sum
}

/// [`sum_parts`] of two tensors. 1 launch, or none if both have one part.
pub fn sum_pair(all: [CubeTensor; 2], counts: [usize; 2]) -> [CubeTensor; 2] {
    let [one, two] = &all;
    match counts {
        [1, 1] => all,
        [1, count] => [one.clone(), sum_parts(two, count, None)],
        [count, 1] => [sum_parts(one, count, None), two.clone()],
        counts => sums([one, two], counts, None),
    }
}

fn sums<const N: usize>(
    all: [&CubeTensor; N],
    counts: [usize; N],
    add: Option<&CubeTensor>,
) -> [CubeTensor; N] {
    let outs: [CubeTensor; N] = std::array::from_fn(|i| {
        let [rows, columns] = all[i].meta.shape().dims();
        empty(all[i], [rows / counts[i], columns])
    });
    let sizes = outs.each_ref().map(|out| out.meta.num_elements());
    let lanes = vector_width(&sizes);
    let mut args = SequenceArg::new();
    let mut first = 0;
    for (i, parts) in all.into_iter().enumerate() {
        let (add, out, size) = (arg(add.unwrap_or(parts)), arg(&outs[i]), sizes[i] / lanes);
        args.push(SumDataLaunch::new(
            arg(parts),
            add,
            out,
            first,
            counts[i],
            size,
        ));
        first += size.div_ceil(THREADS);
    }
    unsafe {
        sum_of_parts::launch_unchecked(
            &outs[0].client,
            groups(first),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            args,
            add.is_some(),
        );
    }
    outs
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
