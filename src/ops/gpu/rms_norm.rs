//! RMSNorm with one launch forward and one backward, which add what products leave in parts.

use super::{arg, empty, empty_of, groups, horizontal, vector_width, workgroup_sum};
use burn::cubecl::ir::ElemType;
use burn::cubecl::{self, prelude::*};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 128;

/// Vectors of dgain that one workgroup sums: 32 bytes of a row, the smallest unit that a GPU reads.
const GAIN_COLUMNS: usize = 2;
/// Rows whose values an invocation loads together to sum dgain.
const ROWS_AT_ONCE: usize = 4;

/// y\[n,d\] = x\[n,d\] · inv_rms\[n\] · gain\[d\], inv_rms\[n\] = 1/√(mean_d x² + eps); x `[N, D]`, gain `[1, D]`.
/// Returns y `[N, D]` with elements of type `element`, and inv_rms `[N, 1]` for the backward pass. (Zhang & Sennrich 2019.)
/// With `sum`, a residual `[N, D]` and parts `[parts·N, D]`, x = residual + Σ parts is computed and written first.
/// One workgroup per row, which keeps it in registers. 1 launch.
pub fn forward(
    x: &CubeTensor,
    gain: &CubeTensor,
    eps: f32,
    element: DType,
    sum: Option<[&CubeTensor; 2]>,
) -> (CubeTensor, CubeTensor) {
    let width = gain.meta.num_elements();
    let rows = x.meta.num_elements() / width;
    let (y, inv_rms) = (empty_of(element, x, [rows, width]), empty(x, [rows, 1]));
    let lanes = vector_width(&[width]);
    let [residual, parts] = sum.unwrap_or([x, x]);
    let count = parts.meta.num_elements() / x.meta.num_elements();
    unsafe {
        rms_norm_forward::launch_unchecked(
            &x.client,
            groups(rows),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(x),
            arg(residual),
            arg(parts),
            arg(gain),
            arg(&y),
            arg(&inv_rms),
            rows,
            width,
            eps,
            (width / lanes).div_ceil(THREADS),
            sum.map_or(0, |_| count),
            super::element(&y),
        );
    }
    (y, inv_rms)
}

/// `owned` is the number of vectors of a row per invocation. Without `parts`, x is read.
#[cube(launch_unchecked)]
fn rms_norm_forward<O: Numeric, N: Size>(
    x: &mut [Vector<f32, N>],
    residual: &[Vector<f32, N>],
    parts: &[Vector<f32, N>],
    gain: &[Vector<f32, N>],
    y: &mut [Vector<O, N>],
    inv_rms: &mut [f32],
    rows: usize,
    width: usize,
    eps: f32,
    #[comptime] owned: usize,
    #[comptime] count: usize,
    #[define(O)] _element: ElemType,
) {
    let row = CUBE_POS;
    if row >= rows {
        terminate!();
    }
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(THREADS + 16));
    let columns = width / N::value();
    let start = row * columns;
    let unit = UNIT_POS as usize;
    let mut values = Array::<Vector<f32, N>>::new(owned);
    let mut squares = Vector::<f32, N>::new(0.0);
    #[unroll]
    for i in 0..owned {
        let c = unit + comptime!(i * THREADS);
        if c < columns {
            let at = start + c;
            let value = if comptime!(count == 0) {
                x[at]
            } else {
                sum_of_parts::<N>(parts, at, rows * columns, count) + residual[at]
            };
            if comptime!(count > 0) {
                x[at] = value;
            }
            values[i] = value;
            squares += value * value;
        }
    }
    let total = workgroup_sum(horizontal::<N>(squares, true), &mut scratch, THREADS);
    let scale = 1.0 / (total / width as f32 + eps).sqrt();
    if unit == 0 {
        inv_rms[row] = scale;
    }
    #[unroll]
    for i in 0..owned {
        let c = unit + comptime!(i * THREADS);
        if c < columns {
            let value = values[i] * gain[c] * Vector::<f32, N>::new(scale);
            y[start + c] = Vector::cast_from(value);
        }
    }
}

/// The sum of a vector over `count` parts of `size` vectors each.
#[cube]
fn sum_of_parts<N: Size>(
    parts: &[Vector<f32, N>],
    at: usize,
    size: usize,
    #[comptime] count: usize,
) -> Vector<f32, N> {
    let mut sum = parts[at];
    #[unroll]
    for part in 1..count {
        sum += parts[part * size + at];
    }
    sum
}

/// Gradients of [`forward`]: with r = inv_rms, dx = r·(dy·gain − x·r²·mean_d(dy·gain·x)) (+ `residual`, the
/// gradient that reaches x past the norm), dgain = Σ_n dy·x·r; dy `[N, D]`, or parts `[parts·N, D]` that are added.
/// Returns dx `[N, D]` and dgain `[1, D]`.
/// 1 launch: workgroups that each sum a few columns of dgain over all rows, which take longest and begin first, then one for each row
/// of dx.
pub fn backward(
    dy: &CubeTensor,
    x: &CubeTensor,
    gain: &CubeTensor,
    inv_rms: &CubeTensor,
    residual: Option<&CubeTensor>,
) -> (CubeTensor, CubeTensor) {
    let width = gain.meta.num_elements();
    let rows = inv_rms.meta.num_elements();
    let lanes = vector_width(&[width]);
    let columns = width / lanes;
    let (dx, dgain) = (empty(x, [rows, width]), empty(x, [1, width]));
    unsafe {
        rms_norm_backward::launch_unchecked(
            &x.client,
            groups(rows + columns.div_ceil(GAIN_COLUMNS)),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(dy),
            arg(x),
            arg(gain),
            arg(inv_rms),
            arg(residual.unwrap_or(dy)),
            arg(&dx),
            arg(&dgain),
            rows,
            width,
            columns.div_ceil(THREADS),
            dy.meta.num_elements() / x.meta.num_elements(),
            residual.is_some(),
        );
    }
    (dx, dgain)
}

/// `owned` is the number of vectors of a row per invocation, `count` that of the parts of dy.
#[cube(launch_unchecked)]
fn rms_norm_backward<N: Size>(
    dy: &[Vector<f32, N>],
    x: &[Vector<f32, N>],
    gain: &[Vector<f32, N>],
    inv_rms: &[f32],
    residual: &[Vector<f32, N>],
    dx: &mut [Vector<f32, N>],
    dgain: &mut [Vector<f32, N>],
    rows: usize,
    width: usize,
    #[comptime] owned: usize,
    #[comptime] count: usize,
    #[comptime] has_residual: bool,
) {
    let columns = width / N::value();
    let size = rows * columns;
    let unit = UNIT_POS as usize;
    let of_gain = columns.div_ceil(GAIN_COLUMNS);
    if CUBE_POS >= of_gain {
        let row = CUBE_POS - of_gain;
        if row >= rows {
            terminate!();
        }
        let mut scratch = Shared::<[f32]>::new_slice(comptime!(THREADS + 16));
        let mut scaled = Array::<Vector<f32, N>>::new(owned);
        let start = row * columns;
        let mut products = Vector::<f32, N>::new(0.0);
        #[unroll]
        for i in 0..owned {
            let c = unit + comptime!(i * THREADS);
            if c < columns {
                scaled[i] = sum_of_parts::<N>(dy, start + c, size, count) * gain[c];
                products += scaled[i] * x[start + c];
            }
        }
        let dot = workgroup_sum(horizontal::<N>(products, true), &mut scratch, THREADS);
        let r = inv_rms[row];
        let along_x = Vector::<f32, N>::new(dot / width as f32 * r * r * r);
        let scale = Vector::<f32, N>::new(r);
        #[unroll]
        for i in 0..owned {
            let c = unit + comptime!(i * THREADS);
            if c < columns {
                let mut out = scaled[i] * scale - x[start + c] * along_x;
                if has_residual {
                    out += residual[start + c];
                }
                dx[start + c] = out;
            }
        }
    } else {
        // Sums rows unit / GAIN_COLUMNS, + slices, … of one column; then one half of the slices adds the other half, and so on.
        let slices = comptime!(THREADS / GAIN_COLUMNS);
        let mut sums = Shared::<[Vector<f32, N>]>::new_slice(THREADS);
        let column = CUBE_POS * GAIN_COLUMNS + unit % GAIN_COLUMNS;
        let mut sum = Vector::<f32, N>::new(0.0);
        if column < columns {
            let mut row = unit / GAIN_COLUMNS;
            while row < rows {
                // Several rows at once, so that their loads do not wait for each other.
                #[unroll]
                for i in 0..ROWS_AT_ONCE {
                    let row = row + comptime!(i * slices);
                    if row < rows {
                        let at = row * columns + column;
                        let dy = sum_of_parts::<N>(dy, at, size, count);
                        sum += dy * x[at] * Vector::<f32, N>::new(inv_rms[row]);
                    }
                }
                row += comptime!(slices * ROWS_AT_ONCE);
            }
        }
        sums[unit] = sum;
        sync_cube();
        #[unroll]
        for round in 0..comptime!(slices.ilog2() as usize) {
            let half = comptime!(THREADS >> (round + 1));
            if unit < half {
                sums[unit] = sums[unit] + sums[unit + half];
            }
            sync_cube();
        }
        if unit < GAIN_COLUMNS && column < columns {
            dgain[column] = sums[unit];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, TestDevice};
    use super::super::format::full;
    use super::*;
    use crate::ops::cpu::testing::numbers;

    const EPS: f32 = 1e-5;
    const SIZES: [[usize; 2]; 4] = [[5, 32], [8, 33], [3, 516], [2, 1030]];

    /// The sum of `parts` matrices of `size` numbers.
    fn sum(parts: &[f32], size: usize) -> Vec<f32> {
        let of = |at: usize| parts.iter().skip(at).step_by(size).sum();
        (0..size).map(of).collect()
    }

    #[test]
    fn the_norm_of_parts_and_a_residual_is_that_of_their_sum() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let short = check::has_matrix_cores().then_some((DType::F16, 1e-3));
        for (element, off) in [(DType::F32, 1e-5)].into_iter().chain(short) {
            for [n, d] in SIZES {
                let (residual, gain) = (numbers(1, n * d), numbers(2, d));
                for count in 1..=4 {
                    let parts = numbers(3, count * n * d);
                    let pairs = sum(&parts, n * d).into_iter().zip(&residual);
                    let want: Vec<f32> = pairs.map(|(part, rest)| part + rest).collect();
                    let [gwant, gx] = [(); 2].map(|()| device.tensor(&want, [n, d]));
                    let gain = device.tensor(&gain, [1, d]);
                    let (y, inverse) = forward(&gwant, &gain, EPS, element, None);
                    let [gresidual, parts, empty] =
                        [(&residual, n), (&parts, count * n), (&vec![0.0; n * d], n)]
                            .map(|(values, rows)| device.tensor(values, [rows, d]));
                    let got = forward(&empty, &gain, EPS, element, Some([&gresidual, &parts]));
                    let name = format!("{element:?} [{n}, {d}] of {count}");
                    let same = |got: &CubeTensor, want: &CubeTensor| {
                        let [got, want] = [got, want].map(|it| device.read(&full(it.clone())));
                        check::close(&name, &got, &want, off);
                    };
                    same(&got.0, &y);
                    same(&got.1, &inverse);
                    same(&empty, &gx);
                }
            }
        }
    }

    #[test]
    fn gradients_of_parts_are_those_of_their_sum() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for [n, d] in SIZES.into_iter().chain([[300, 20]]) {
            let [x, earlier] = [1, 2].map(|seed| device.tensor(&numbers(seed, n * d), [n, d]));
            let gain = device.tensor(&numbers(3, d), [1, d]);
            let (_, inverse) = forward(&x, &gain, EPS, DType::F32, None);
            for count in 1..=4 {
                let parts = numbers(4, count * n * d);
                let whole = device.tensor(&sum(&parts, n * d), [n, d]);
                let parts = device.tensor(&parts, [count * n, d]);
                for earlier in [None, Some(&earlier)] {
                    let [want, got] =
                        [&whole, &parts].map(|dy| backward(dy, &x, &gain, &inverse, earlier));
                    let name = format!("[{n}, {d}] of {count}");
                    for (got, want) in [(got.0, want.0), (got.1, want.1)] {
                        check::close(&name, &device.read(&got), &device.read(&want), 1e-5);
                    }
                }
            }
        }
    }
}
