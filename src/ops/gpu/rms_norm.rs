//! RMSNorm with one launch forward and one backward, which add what products leave in parts: `wgsl/rms_norm_forward.wgsl` and
//! `wgsl/rms_norm_backward.wgsl`.

use super::wgsl::{self, Binding, Program};
use super::{empty, empty_of, is_f16, vector_width};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;

const THREADS: usize = 128;
/// Vectors of dgain that one workgroup sums: 32 bytes of a row, the smallest unit that a GPU reads.
const GAIN_COLUMNS: usize = 2;
/// Rows whose values an invocation loads together to sum dgain.
const ROWS_AT_ONCE: usize = 4;

/// The values that fill in the files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct RmsNormValues {
    bindings: Vec<Binding>,
    threads: usize,
    groups: [usize; 3],
    rows: usize,
    /// Vectors of a row, and values of a vector.
    columns: usize,
    lanes: usize,
    /// Vectors of a row that an invocation has.
    owned: usize,
    /// Parts of x or of dy.
    count: usize,
    eps: String,
    /// Whether y is f16.
    half: bool,
    /// Workgroups that sum dgain, the vectors of each, and the rows that they load together.
    of_gain: usize,
    wide: usize,
    rows_at_once: usize,
    has_residual: bool,
}

impl RmsNormValues {
    fn new(rows: usize, width: usize, count: usize, bindings: &[(&str, &CubeTensor)]) -> Self {
        let lanes = vector_width(&[width]);
        let columns = width / lanes;
        Self {
            bindings: wgsl::bindings(bindings, |name| if name == "inverse" { 1 } else { lanes }),
            threads: THREADS,
            groups: wgsl::groups(rows),
            rows,
            columns,
            lanes,
            owned: columns.div_ceil(THREADS),
            count,
            eps: "0.0".to_owned(),
            half: false,
            of_gain: 0,
            wide: GAIN_COLUMNS,
            rows_at_once: ROWS_AT_ONCE,
            has_residual: false,
        }
    }

    fn launch(self, file: &'static str, buffers: &[(&str, &CubeTensor)]) {
        let groups = self.groups;
        let buffers: Vec<&CubeTensor> = buffers.iter().map(|(_, buffer)| *buffer).collect();
        wgsl::launch(Program::new(file, THREADS, self), groups, &buffers);
    }
}

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
    let mut buffers = vec![("x", x), ("gain", gain), ("y", &y), ("inverse", &inv_rms)];
    let mut count = 0;
    if let Some([residual, parts]) = sum {
        count = parts.meta.num_elements() / x.meta.num_elements();
        buffers.extend([("residual", residual), ("parts", parts)]);
    }
    let values = RmsNormValues {
        eps: format!("{eps:?}"),
        half: is_f16(&y),
        ..RmsNormValues::new(rows, width, count, &buffers)
    };
    values.launch("rms_norm_forward.wgsl", &buffers);
    (y, inv_rms)
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
    let (dx, dgain) = (empty(x, [rows, width]), empty(x, [1, width]));
    let mut buffers = vec![("dy", dy), ("x", x), ("gain", gain), ("inverse", inv_rms)];
    buffers.extend([("dx", &dx), ("dgain", &dgain)]);
    buffers.extend(residual.map(|residual| ("residual", residual)));
    let count = dy.meta.num_elements() / x.meta.num_elements();
    let values = RmsNormValues::new(rows, width, count, &buffers);
    let of_gain = values.columns.div_ceil(GAIN_COLUMNS);
    let values = RmsNormValues {
        groups: wgsl::groups(of_gain + rows),
        of_gain,
        has_residual: residual.is_some(),
        ..values
    };
    values.launch("rms_norm_backward.wgsl", &buffers);
    (dx, dgain)
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, TestDevice};
    use super::super::format::full;
    use super::super::wgsl::Wgsl as _;
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
    fn texts_that_write_f16_are_valid_wgsl() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for (width, count) in [(512, 0), (516, 3), (33, 1)] {
            let x = device.tensor(&vec![0.0; width], [1, width]);
            let y = empty_of(DType::F16, &x, [1, width]);
            let mut buffers = vec![("x", &x), ("gain", &x), ("y", &y), ("inverse", &x)];
            if count > 0 {
                buffers.extend([("residual", &x), ("parts", &x)]);
            }
            let values = RmsNormValues {
                half: true,
                eps: "1e-5".to_owned(),
                ..RmsNormValues::new(3, width, count, &buffers)
            };
            let program = Program::new("rms_norm_forward.wgsl", THREADS, values);
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
