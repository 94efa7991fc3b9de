//! Adds the parts of a product whose inner dimension is split, in a fixed order.

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
    let sizes: Vec<usize> = in_parts
        .iter()
        .map(|i| all[*i].meta.num_elements() / counts[*i])
        .collect();
    let lanes = vector_width(&sizes);
    let mut args = SequenceArg::new();
    let mut first = 0;
    for (i, size) in in_parts.into_iter().zip(sizes) {
        let parts = &all[i];
        let count = counts[i];
        let vectors = size / lanes;
        let [rows, columns] = parts.meta.shape().dims();
        let out = empty(parts, [rows / count, columns]);
        args.push(SumDataLaunch::new(
            arg(parts),
            arg(add.unwrap_or(parts)),
            arg(&out),
            first,
            count,
            vectors,
        ));
        first += vectors.div_ceil(THREADS);
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

/// The buffers of a sum, its first workgroup, its number of parts, and the size of a part in vectors.
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
        let data = all.index_mut(s);
        if CUBE_POS >= data.first {
            let at = (CUBE_POS - data.first) * THREADS + UNIT_POS as usize;
            if at < data.size {
                let mut sum = data.parts[at];
                for part in 1..data.count {
                    sum += data.parts[part * data.size + at];
                }
                if has_add {
                    sum += data.added[at];
                }
                data.out[at] = sum;
            }
        }
    }
}
