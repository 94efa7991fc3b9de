//! How the work of a norm is divided on a GPU, which saves launches. The operation before the norm (the embedding, or a product with a
//! residual) may do the first part, and the product that reads the norm the rest. The norm and the two operations around it have copies of
//! one [`SharedWork`], through which buffers pass from one to the next. The rules, which decide who does what, are in `fusion`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::{DType, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::cost::Cost;
use super::gpu::{empty, empty_of};

/// The work of one norm's forward pass, which the operations around the norm share. By default, the norm does all of it.
#[derive(Clone, Debug, Default)]
pub struct SharedWork {
    /// The norm's gain `[1, d]` without autodiff, if the operation before the norm and the product behind it do the norm's work; `None` if
    /// the norm does its own work.
    pub gain: Option<Tensor<2>>,
    partial: Arc<Mutex<Option<PartialNorm>>>,
}

/// The part of a norm of x `[n, d]` that needs no row to be complete. The product behind does the rest: y = x·gain·r with
/// r = 1/√(mean(x²) + ε).
#[derive(Clone, Debug)]
pub struct PartialNorm {
    /// The gain `[1, d]`.
    pub gain: CubeTensor,
    /// x·gain `[n, d]` in f16. A value over 65,504 is stored as 65,504, so that y is finite, but too small.
    pub scaled: CubeTensor,
    /// The sums Σx² of each row, in parts `[parts, n]`.
    pub squares: CubeTensor,
    /// r `[n, 1]`, which the product behind writes together with y.
    pub inverse: CubeTensor,
}

impl SharedWork {
    /// Makes the shared work of a norm. With a gain, the operations around the norm do it.
    pub(super) fn new(gain: Option<Tensor<2>>) -> Self {
        let partial = Arc::default();
        Self { gain, partial }
    }

    /// Returns the part of the norm that the operation before it has done and that the product behind it has not yet taken.
    pub(super) fn partial(&self) -> MutexGuard<'_, Option<PartialNorm>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to a cost the work that the operation before the norm does for the norm of `count` elements: squares, their sums, and x·gain,
    /// stored in f16. Adds nothing if the norm does its own work.
    pub(super) fn add_cost(&self, to: &mut Cost, count: f64) {
        if self.gain.is_some() {
            to.flops += 3.0 * count;
            to.bytes += 2.0 * count;
        }
    }
}

impl PartialNorm {
    /// Allocates buffers for the norm of an x `[n, d]` with this gain. The sums of squares of a row have `parts` parts.
    pub(crate) fn empty(gain: CubeTensor, parts: usize, [n, d]: [usize; 2]) -> Self {
        Self {
            scaled: empty_of(DType::F16, &gain, [n, d]),
            squares: empty(&gain, [parts, n]),
            inverse: empty(&gain, [n, 1]),
            gain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::format::Format;
    use crate::ops::gpu::check;
    use crate::ops::linear::{Linear, LinearResidual};
    use crate::ops::rms_norm::RmsNorm;
    use crate::ops::{Scope, apply};
    use burn::tensor::{Tensor, TensorData};
    use protocol::config::{Matmul, Norm};

    /// The test runs a product, the norm of its sum with a residual, a product that reads the norm, and a product that reads both, forward
    /// and backward. Inner dimensions are long enough for parts.
    #[test]
    fn what_norms_and_products_do_for_each_other_changes_no_output_and_no_gradient() {
        let Some(device) = check::TestDevice::any() else {
            return;
        };
        let on_device = device.burn().autodiff();
        let run = |norm_in_products: bool, format, [n, d]: [usize; 2]| -> Vec<Vec<f32>> {
            let wide = 1024;
            let shapes = [[n, wide], [d, wide], [n, d], [1, d], [wide, d], [d, wide]];
            let inputs = shapes.map(|shape| {
                let values = numbers(shape[0] as u64, shape[0] * shape[1]);
                let data = TensorData::new(values, shape);
                Tensor::<2>::from_data(data, &on_device).require_grad()
            });
            let [active, down, residual, gain, up, last] = inputs.clone();
            let shared = SharedWork::new(norm_in_products.then(|| gain.clone().without_autodiff()));
            let onto = |shared: SharedWork| LinearResidual {
                format,
                shared,
                ..LinearResidual::default()
            };
            let at = Scope::outside("test");
            let x = apply(at, onto(shared.clone()), [active, down, residual]); // [n, d]
            let norm = RmsNorm {
                version: Norm::Fused,
                on_trunk: true,
                format,
                shared: shared.clone(),
            };
            let h = apply(at, norm, [x.clone(), gain]); // [n, d]
            assert_eq!(shared.partial().is_some(), norm_in_products);
            let product = Linear {
                matmul: Matmul::Own,
                format,
                shared: shared.clone(),
                ..Linear::default()
            };
            let y = apply(at, product, [h, up]); // [n, wide]
            assert!(shared.partial().is_none());
            let z = apply(at, onto(SharedWork::default()), [y, last, x.clone()]); // [n, d]
            let mut found = vec![x.clone().inner(), z.clone().inner()];
            // The factor keeps the gradients small enough for f16 at every size.
            let gradients = (z.clone() * z / 64.0).sum().backward();
            found.extend(inputs.iter().filter_map(|input| input.grad(&gradients)));
            found
                .into_iter()
                .map(|tensor| tensor.into_data().iter().collect())
                .collect()
        };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for sizes in [16, 60, 512].map(|d| [16, d]) {
            let want = run(false, Format::Native, sizes);
            let got = run(true, Format::Native, sizes);
            assert_eq!(got.len(), 8, "two outputs and six gradients");
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                check::close(&format!("{sizes:?}, {i}"), got, want, 3e-3);
            }
        }
    }

    /// Where x·gain is above f16's largest number, y is finite, as it is in f32.
    #[test]
    fn a_norm_in_products_is_finite_where_it_is_in_f32() {
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        let Some(device) = check::TestDevice::any() else {
            return;
        };
        let on_device = device.burn();
        let [n, d] = [16, 64];
        let full = |value: f32, shape: [usize; 2]| Tensor::<2>::full(shape, value, &on_device);
        let shared = SharedWork::new(Some(full(1.0, [1, d])));
        let onto = LinearResidual {
            format: Format::Native,
            shared: shared.clone(),
            ..LinearResidual::default()
        };
        let norm = RmsNorm {
            version: Norm::Fused,
            format: Format::Native,
            shared: shared.clone(),
            ..RmsNorm::default()
        };
        let product = Linear {
            matmul: Matmul::Own,
            format: Format::Native,
            shared,
            ..Linear::default()
        };
        let at = Scope::outside("test");
        let inputs = [full(0.0, [n, d]), full(0.0, [d, d]), full(1e5, [n, d])];
        let x = apply(at, onto, inputs); // [n, d]
        let h = apply(at, norm, [x, full(1.0, [1, d])]); // [n, d]
        let y = apply(at, product, [h, full(1.0 / 64.0, [d, d])]); // [n, d]
        let values = y.into_data().iter::<f32>().collect::<Vec<_>>();
        // In f32 each value is 1. Here x·gain = 1e5 is stored as 65,504, so each is 0.655.
        assert!(
            values.iter().all(|y| (y - 0.655).abs() < 0.01),
            "{values:?}"
        );
    }
}
