//! Sums over the first axis of a matrix, in a fixed order: the second half of every two-stage
//! reduction here (split inner dimension, per-group gradients).

use super::{arg, empty, groups, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

/// out\[w\] = Σ_r parts\[r,w\] (+ add\[w\]); parts `[rows, width]`, out `[width]`. 1 launch.
/// Narrow sums (many rows, few columns) give each column to several invocations, so that the GPU has enough of them.
pub fn sum_rows(
    parts: &CubeTensor,
    rows: usize,
    width: usize,
    add: Option<&CubeTensor>,
) -> CubeTensor {
    let out = empty(parts, [width]);
    let lanes = vector_width(&[width]);
    let slices = if rows >= 32 { 16 } else { 1 };
    let columns_per_group = THREADS / slices;
    let count = (width / lanes).div_ceil(columns_per_group);
    unsafe {
        sum_rows_kernel::launch_unchecked(
            &parts.client,
            groups(count),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(parts),
            arg(add.unwrap_or(parts)),
            arg(&out),
            rows,
            width,
            slices,
            add.is_some(),
        );
    }
    out
}

/// Slice s of a column adds rows s, s + slices, …; slice 0 then adds the slices.
#[cube(launch_unchecked)]
fn sum_rows_kernel<N: Size>(
    parts: &[Vector<f32, N>],
    add: &[Vector<f32, N>],
    out: &mut [Vector<f32, N>],
    rows: usize,
    width: usize,
    #[comptime] slices: usize,
    #[comptime] has_add: bool,
) {
    let per_group = comptime!(THREADS / slices);
    let mut scratch =
        Shared::<[Vector<f32, N>]>::new_slice(comptime!(if slices > 1 { THREADS } else { 1 }));
    let unit = UNIT_POS as usize;
    let columns = width / N::value();
    let column = CUBE_POS * per_group + unit % per_group;
    let mut sum = Vector::<f32, N>::new(0.0);
    if column < columns {
        let mut row = unit / per_group;
        while row < rows {
            sum += parts[row * columns + column];
            row += slices;
        }
    }
    if comptime!(slices > 1) {
        scratch[unit] = sum;
        sync_cube();
        if unit < per_group {
            #[unroll]
            for s in 1..slices {
                sum += scratch[unit + s * per_group];
            }
        }
    }
    if column < columns && unit < per_group {
        if has_add {
            sum += add[column];
        }
        out[column] = sum;
    }
}
