//! RMSNorm with one launch forward and one backward: `rms_norm_forward.wgsl` and `rms_norm_backward.wgsl`.

use super::FusedNorm;
use crate::ops::format::Format;
use crate::ops::gpu::operand_type;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty, empty_of, is_f16, vector_width};
use crate::ops::shared_work::SharedWork;
use burn::backend::Cube;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

type T = CubeTensor;

impl FusedNorm for Cube {
    fn forward([x, gain]: [T; 2], format: Format, shared: &SharedWork) -> [T; 2] {
        if let Some(partial) = &*shared.partial() {
            // The products before and behind this norm do its work.
            let y = empty_of(DType::F16, &x, x.meta.shape());
            return [y, partial.inverse.clone()];
        }
        forward(&x, &gain, operand_type(format, &x))
    }

    fn backward(saved: [T; 3], dy: T, earlier: Option<T>) -> [T; 2] {
        backward(&dy, saved.each_ref(), earlier.as_ref())
    }
}

const THREADS: usize = 128;
/// The number of rows from which on a workgroup sums one vector of dgain. With fewer rows it sums two, which are 32 bytes of a row, the
/// smallest unit that a GPU reads.
const MANY_ROWS: usize = 2048;
/// The number of rows whose values an invocation loads together to sum dgain.
const ROWS_AT_ONCE: usize = 4;

/// Returns the values that both files need: rows, vectors of a row, and vectors of an invocation.
fn own_values(rows: usize, columns: usize) -> Numbers {
    Numbers::from([
        ("rows", rows),
        ("columns", columns),
        ("owned", columns.div_ceil(THREADS)),
    ])
}

/// Computes y\[n,d\] = x\[n,d\] · inv_rms\[n\] · gain\[d\] with inv_rms\[n\] = 1/√(mean_d x² + eps), from x `[N, D]` and gain `[1, D]`.
/// Returns y `[N, D]` with elements of type `element`, and inv_rms `[N, 1]` for the backward pass. This takes 1 launch, in which a
/// workgroup keeps one row in registers.
pub(crate) fn forward(x: &CubeTensor, gain: &CubeTensor, element: DType) -> [CubeTensor; 2] {
    let width = gain.meta.num_elements();
    let rows = x.meta.num_elements() / width;
    let y = empty_of(element, x, [rows, width]);
    let inv_rms = empty(x, [rows, 1]);
    let lanes = vector_width(&[width]);
    let buffers = [
        ("x", lanes, x),
        ("gain", lanes, gain),
        ("y", lanes, &y),
        ("inverse", 1, &inv_rms),
    ];
    let mut own = own_values(rows, width / lanes);
    own.insert("half", usize::from(is_f16(&y)));
    let sizes = [THREADS, rows, lanes];
    launch_file("rms_norm/rms_norm_forward.wgsl", sizes, &buffers, own);
    [y, inv_rms]
}

/// Returns the gradients dx `[N, D]` and dgain `[1, D]` of [`forward`] from dy `[N, D]`. With r = inv_rms, dgain = Σ_n dy·x·r and
/// dx = r·(dy·gain − x·r²·mean_d(dy·gain·x)). `residual`, the gradient that reaches x past the norm, is added to dx.
///
/// This takes 1 launch. Its first workgroups each sum a few columns of dgain over all rows, which takes longest; each of the others
/// computes a row of dx.
pub(crate) fn backward(
    dy: &CubeTensor,
    [x, gain, inv_rms]: [&CubeTensor; 3],
    residual: Option<&CubeTensor>,
) -> [CubeTensor; 2] {
    let width = gain.meta.num_elements();
    let rows = inv_rms.meta.num_elements();
    let dx = empty(x, [rows, width]);
    let dgain = empty(x, [1, width]);
    let lanes = vector_width(&[width]);
    let mut buffers = vec![
        ("dy", lanes, dy),
        ("x", lanes, x),
        ("gain", lanes, gain),
        ("inverse", 1, inv_rms),
        ("dx", lanes, &dx),
        ("dgain", lanes, &dgain),
    ];
    buffers.extend(residual.map(|residual| ("residual", lanes, residual)));
    let columns = width / lanes;
    let wide = if rows < MANY_ROWS { 2 } else { 1 };
    let of_gain = columns.div_ceil(wide);
    let mut own = own_values(rows, columns);
    own.extend([
        // The number of workgroups that sum dgain, of vectors that each of them sums, and of rows that it loads together.
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

    #[test]
    fn texts_that_write_f16_are_valid_wgsl() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for width in [512, 516, 33] {
            let x = device.tensor(&vec![0.0; width], [1, width]);
            let y = empty_of(DType::F16, &x, [1, width]);
            let lanes = vector_width(&[width]);
            let buffers = [
                ("x", lanes, &x),
                ("gain", lanes, &x),
                ("y", lanes, &y),
                ("inverse", 1, &x),
            ];
            let mut own = own_values(3, width / lanes);
            own.insert("half", 1);
            let file = "rms_norm/rms_norm_forward.wgsl";
            let sizes = [THREADS, 3, lanes];
            let program = Program::with_buffers(file, sizes, &buffers, own);
            check::valid_wgsl(&program.text());
        }
    }

    #[test]
    fn norms_agree_with_the_cpu_kernel() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let short = check::has_matrix_cores().then_some((DType::F16, 1e-3));
        for (element, off) in [(DType::F32, 1e-5)].into_iter().chain(short) {
            for [n, d] in SIZES {
                let x = numbers(1, n * d);
                let gain = numbers(2, d);
                let (y, inverse) = fused_cpu::forward(&x, &gain, NORM_EPS as f32);
                let x_tensor = device.tensor(&x, [n, d]);
                let gain_tensor = device.tensor(&gain, [1, d]);
                let results = forward(&x_tensor, &gain_tensor, element);
                for (result, want) in results.into_iter().zip([y, inverse]) {
                    let got = device.read(&converted(result, DType::F32));
                    check::close(&format!("{element:?} [{n}, {d}]"), &got, &want, off);
                }
            }
        }
    }

    #[test]
    fn gradients_agree_with_the_cpu_kernel() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for [n, d] in SIZES.into_iter().chain([[300, 20]]) {
            let [x, earlier, dy] = [1, 2, 4].map(|seed| numbers(seed, n * d));
            let gain = numbers(3, d);
            let (_, inverse) = fused_cpu::forward(&x, &gain, NORM_EPS as f32);
            let [x_tensor, earlier_tensor, dy_tensor] =
                [&x, &earlier, &dy].map(|values| device.tensor(values, [n, d]));
            let gain_tensor = device.tensor(&gain, [1, d]);
            let inverse_tensor = device.tensor(&inverse, [n, 1]);
            let saved = [&x_tensor, &gain_tensor, &inverse_tensor];
            for with_earlier in [false, true] {
                let earlier = with_earlier.then_some(&earlier[..]);
                let (dx, dgain) = fused_cpu::backward(&dy, [&x, &gain, &inverse], earlier);
                let gradients =
                    backward(&dy_tensor, saved, with_earlier.then_some(&earlier_tensor));
                for (got, want) in gradients.iter().zip([dx, dgain]) {
                    check::close(&format!("[{n}, {d}]"), &device.read(got), &want, 1e-5);
                }
            }
        }
    }
}
