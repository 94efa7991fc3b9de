//! Sums over the first axis of a matrix, in a fixed order: the second stage of reductions (split inner dimension, per-group gradients).

use super::{arg, empty, groups, shaped, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

/// out\[w\] = Σ_r parts\[r,w\] (+ add\[w\]); parts `[rows, width]`, out `[width]`. 1 launch.
/// For narrow sums (many rows, few columns), several invocations share a column, which gives the GPU enough invocations.
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

/// The sums of two sets of few parts, `[parts, rows, columns]` each, as `[rows, columns]`. 1 launch, or none if both have one part.
pub fn sum_pair(all: [CubeTensor; 2], parts: [(usize, [usize; 2]); 2]) -> [CubeTensor; 2] {
    let [one, two] = &all;
    let [width_1, width_2] = parts.map(|(_, [rows, columns])| rows * columns);
    let sums = match parts.map(|(parts, _)| parts) {
        [1, 1] => all,
        [1, parts] => [one.clone(), sum_rows(two, parts, width_2, None)],
        [parts, 1] => [sum_rows(one, parts, width_1, None), two.clone()],
        [parts_1, parts_2] => sum_both([one, two], [parts_1, parts_2], [width_1, width_2]),
    };
    let [one, two] = sums;
    [shaped(one, parts[0].1), shaped(two, parts[1].1)]
}

/// [`sum_rows`] of two sets of few rows, in 1 launch.
fn sum_both(parts: [&CubeTensor; 2], rows: [usize; 2], widths: [usize; 2]) -> [CubeTensor; 2] {
    let lanes = vector_width(&widths);
    let out = [0, 1].map(|i| empty(parts[i], [widths[i]]));
    let count = |i: usize| (widths[i] / lanes).div_ceil(THREADS);
    unsafe {
        sum_both_kernel::launch_unchecked(
            &parts[0].client,
            groups(count(0) + count(1)),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(parts[0]),
            arg(&out[0]),
            arg(parts[1]),
            arg(&out[1]),
            rows[0],
            widths[0],
            rows[1],
            widths[1],
        );
    }
    out
}

#[cube(launch_unchecked)]
fn sum_both_kernel<N: Size>(
    parts1: &[Vector<f32, N>],
    out1: &mut [Vector<f32, N>],
    parts2: &[Vector<f32, N>],
    out2: &mut [Vector<f32, N>],
    rows1: usize,
    width1: usize,
    rows2: usize,
    width2: usize,
) {
    let groups1 = (width1 / N::value()).div_ceil(THREADS);
    let unit = UNIT_POS as usize;
    if CUBE_POS < groups1 {
        let column = CUBE_POS * THREADS + unit;
        sum_column::<N>(parts1, out1, rows1, width1 / N::value(), column);
    } else {
        let column = (CUBE_POS - groups1) * THREADS + unit;
        sum_column::<N>(parts2, out2, rows2, width2 / N::value(), column);
    }
}

#[cube]
fn sum_column<N: Size>(
    parts: &[Vector<f32, N>],
    out: &mut [Vector<f32, N>],
    rows: usize,
    columns: usize,
    column: usize,
) {
    if column < columns {
        let mut sum = parts[column];
        for row in 1..rows {
            sum += parts[row * columns + column];
        }
        out[column] = sum;
    }
}

/// Slice s of a column adds rows s, s + slices, …; then slice 0 adds the slices.
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
