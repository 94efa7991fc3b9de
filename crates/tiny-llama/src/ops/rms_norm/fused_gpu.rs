//! RMSNorm with one launch forward and one backward, of which the first may add what a product leaves in parts:
//! `rms_norm_forward.wgsl` and `rms_norm_backward.wgsl`.

use super::Fused;
use crate::ops::format::Format;
use crate::ops::gpu::operand_type;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty, empty_of, is_f16, vector_width};
use crate::ops::shared_work::SharedWork;
use burn::backend::Cube;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

type T = CubeTensor;

impl Fused for Cube {
    fn forward([x, gain]: [T; 2], format: Format, shared: &SharedWork) -> [T; 2] {
        let mut left = shared.left();
        if let Some(partial) = &left.partial {
            // The products before and behind this norm do its work.
            let y = empty_of(DType::F16, &x, x.meta.shape());
            return [y, partial.inverse.clone()];
        }
        let parts = left.parts.take();
        forward(&x, &gain, operand_type(format, &x), parts.as_ref())
    }

    fn backward(saved: [T; 3], dy: T, earlier: Option<T>) -> [T; 2] {
        backward(&dy, saved.each_ref(), earlier.as_ref())
    }
}

const THREADS: usize = 128;
/// Rows from which a workgroup sums one vector of dgain. Otherwise it sums two, 32 bytes of a row, the smallest unit that a GPU reads.
const MANY_ROWS: usize = 2048;
/// Rows whose values an invocation loads together to sum dgain.
const ROWS_AT_ONCE: usize = 4;

/// What both files need: rows, vectors of a row, and those that an invocation has.
fn own_values(rows: usize, columns: usize) -> Numbers {
    Numbers::from([
        ("rows", rows),
        ("columns", columns),
        ("owned", columns.div_ceil(THREADS)),
    ])
}

/// y\[n,d\] = x\[n,d\] · inv_rms\[n\] · gain\[d\], inv_rms\[n\] = 1/√(mean_d x² + eps); x `[N, D]`, gain `[1, D]`.
/// Returns y `[N, D]` with elements of type `element`, and inv_rms `[N, 1]` for the backward pass. (Zhang & Sennrich 2019.)
/// With `sum`, a residual `[N, D]` and parts `[parts·N, D]`, x = residual + Σ parts is computed and written first.
/// One workgroup per row, which keeps it in registers. 1 launch.
pub(crate) fn forward(
    x: &CubeTensor,
    gain: &CubeTensor,
    element: DType,
    sum: Option<&[CubeTensor; 2]>,
) -> [CubeTensor; 2] {
    let width = gain.meta.num_elements();
    let rows = x.meta.num_elements() / width;
    let (y, inv_rms) = (empty_of(element, x, [rows, width]), empty(x, [rows, 1]));
    let lanes = vector_width(&[width]);
    let mut buffers = vec![("x", lanes, x), ("gain", lanes, gain), ("y", lanes, &y)];
    buffers.push(("inverse", 1, &inv_rms));
    let mut count = 0;
    if let Some([residual, parts]) = sum {
        count = parts.meta.num_elements() / x.meta.num_elements();
        buffers.extend([("residual", lanes, residual), ("parts", lanes, parts)]);
    }
    let mut own = own_values(rows, width / lanes);
    own.extend([("count", count), ("half", usize::from(is_f16(&y)))]);
    let sizes = [THREADS, rows, lanes];
    launch_file("rms_norm/rms_norm_forward.wgsl", sizes, &buffers, own);
    [y, inv_rms]
}

/// Gradients of [`forward`]: with r = inv_rms, dx = r·(dy·gain − x·r²·mean_d(dy·gain·x)) (+ `residual`, the
/// gradient that reaches x past the norm), dgain = Σ_n dy·x·r; dy `[N, D]`.
/// Returns dx `[N, D]` and dgain `[1, D]`.
/// 1 launch: workgroups that each sum a few columns of dgain over all rows, which take longest and begin first, then one for each row
/// of dx.
pub(crate) fn backward(
    dy: &CubeTensor,
    [x, gain, inv_rms]: [&CubeTensor; 3],
    residual: Option<&CubeTensor>,
) -> [CubeTensor; 2] {
    let width = gain.meta.num_elements();
    let rows = inv_rms.meta.num_elements();
    let (dx, dgain) = (empty(x, [rows, width]), empty(x, [1, width]));
    let lanes = vector_width(&[width]);
    let mut buffers = vec![("dy", lanes, dy), ("x", lanes, x), ("gain", lanes, gain)];
    buffers.push(("inverse", 1, inv_rms));
    buffers.extend([("dx", lanes, &dx), ("dgain", lanes, &dgain)]);
    buffers.extend(residual.map(|residual| ("residual", lanes, residual)));
    let columns = width / lanes;
    let wide = if rows < MANY_ROWS { 2 } else { 1 };
    let of_gain = columns.div_ceil(wide);
    let mut own = own_values(rows, columns);
    own.extend([
        // Workgroups that sum dgain, the vectors of each, and the rows that they load together.
        ("of_gain", of_gain),
        ("wide", wide),
        ("rows_at_once", ROWS_AT_ONCE),
        ("has_residual", usize::from(residual.is_some())),
    ]);
    let sizes = [THREADS, of_gain + rows, lanes];
    launch_file("rms_norm/rms_norm_backward.wgsl", sizes, &buffers, own);
    [dx, dgain]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::format::converted;
    use crate::ops::gpu::wgsl::{Program, Wgsl as _};
    use crate::ops::rms_norm::fused_cpu;
    use protocol::config::NORM_EPS;

    const SIZES: [[usize; 2]; 4] = [[5, 32], [8, 33], [3, 516], [2, 1030]];

    /// The sum of `parts` matrices of `size` numbers.
    fn sum(parts: &[f32], size: usize) -> Vec<f32> {
        let of = |at: usize| parts.iter().skip(at).step_by(size).sum();
        (0..size).map(of).collect()
    }

    #[test]
    fn texts_that_write_f16_are_valid_wgsl() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for (width, count) in [(512, 0), (516, 3), (33, 1)] {
            let x = device.tensor(&vec![0.0; width], [1, width]);
            let y = empty_of(DType::F16, &x, [1, width]);
            let lanes = vector_width(&[width]);
            let mut buffers = vec![("x", lanes, &x), ("gain", lanes, &x), ("y", lanes, &y)];
            buffers.push(("inverse", 1, &x));
            if count > 0 {
                buffers.extend([("residual", lanes, &x), ("parts", lanes, &x)]);
            }
            let mut own = own_values(3, width / lanes);
            own.extend([("count", count), ("half", 1)]);
            let (file, sizes) = ("rms_norm/rms_norm_forward.wgsl", [THREADS, 3, lanes]);
            let program = Program::with_buffers(file, sizes, &buffers, own);
            check::valid_wgsl(&program.text());
        }
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
                    let [y, inverse] = forward(&gwant, &gain, element, None);
                    let [gresidual, parts, empty] =
                        [(&residual, n), (&parts, count * n), (&vec![0.0; n * d], n)]
                            .map(|(values, rows)| device.tensor(values, [rows, d]));
                    let got = forward(&empty, &gain, element, Some(&[gresidual, parts]));
                    let name = format!("{element:?} [{n}, {d}] of {count}");
                    let same = |got: &CubeTensor, want: &CubeTensor| {
                        let [got, want] =
                            [got, want].map(|it| device.read(&converted(it.clone(), DType::F32)));
                        check::close(&name, &got, &want, off);
                    };
                    same(&got[0], &y);
                    same(&got[1], &inverse);
                    same(&empty, &gx);
                }
            }
        }
    }

    #[test]
    fn gradients_are_those_of_the_cpu() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for [n, d] in SIZES.into_iter().chain([[300, 20]]) {
            let [x, earlier, dy] = [1, 2, 4].map(|seed| numbers(seed, n * d));
            let gain = numbers(3, d);
            let (_, inverse) = fused_cpu::forward(&x, &gain, NORM_EPS as f32);
            let on_device =
                |values: &[f32], rows| device.tensor(values, [rows, values.len() / rows]);
            let [of_x, of_earlier, of_dy] = [&x, &earlier, &dy].map(|it| on_device(it, n));
            let (of_gain, of_inverse) = (on_device(&gain, 1), on_device(&inverse, n));
            for (earlier, of_earlier) in [(None, None), (Some(&earlier[..]), Some(&of_earlier))] {
                let (dx, dgain) = fused_cpu::backward(&dy, [&x, &gain, &inverse], earlier);
                let got = backward(&of_dy, [&of_x, &of_gain, &of_inverse], of_earlier);
                for (got, want) in got.iter().zip([dx, dgain]) {
                    check::close(&format!("[{n}, {d}]"), &device.read(got), &want, 1e-5);
                }
            }
        }
    }
}
