//! A sum that the next kernel computes. A norm follows each product with a residual; on a GPU the product stores its parts of the inner
//! dimension, and the norm's kernel adds them to the residual while it reads its input. That saves the launch that adds the parts.

use std::sync::{Arc, Mutex, PoisonError};

use burn_cubecl::tensor::CubeTensor;

/// How a product passes its sum x `[n, d]` to the norm that follows, which writes x: until then x has no values.
#[derive(Clone, Debug, Default)]
pub struct PendingSum(Arc<Mutex<Option<Summands>>>);

/// x `[n, d]` = residual + the sum of parts.
#[derive(Clone, Debug)]
pub struct Summands {
    /// `[n, d]`
    pub residual: CubeTensor,
    /// `[parts·n, d]`
    pub parts: CubeTensor,
}

impl PendingSum {
    /// For the product's forward pass.
    pub fn put(&self, sum: Summands) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sum);
    }

    /// For the norm's forward pass; `None` if the product has computed the sum.
    pub fn take(&self) -> Option<Summands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether x has no values yet.
    pub fn is_due(&self) -> bool {
        let sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Matmul, Norm};
    use crate::ops::cpu::testing::numbers;
    use crate::ops::format::Format;
    use crate::ops::gpu::check;
    use crate::ops::linear::{Linear, LinearResidual};
    use crate::ops::rms_norm::RmsNorm;
    use crate::ops::{Scope, apply};
    use burn::tensor::{Tensor, TensorData};

    /// A product, the norm of its sum with a residual, a product with what is normed, and one with both: with inner dimensions long
    /// enough for parts, forward and backward.
    #[test]
    fn a_norm_that_adds_parts_changes_no_output_and_no_gradient() {
        let Some(device) = check::TestDevice::any() else {
            return;
        };
        let on_device = device.burn().autodiff();
        let run = |fused: bool, format, d: usize| -> Vec<Vec<f32>> {
            let (n, wide) = (16, 1024);
            let shapes = [[n, wide], [d, wide], [n, d], [1, d], [wide, d], [d, wide]];
            let inputs = shapes.map(|shape| {
                let values = numbers(shape[0] as u64, shape[0] * shape[1]);
                let data = TensorData::new(values, shape);
                Tensor::<2>::from_data(data, &on_device).require_grad()
            });
            let [active, down, residual, gain, up, last] = inputs.clone();
            let pending = fused.then(PendingSum::default);
            let onto = |pending| LinearResidual {
                format,
                operand: None,
                pending,
            };
            let at = Scope::outside("test");
            let x = apply(at, onto(pending.clone()), [active, down, residual]); // [n, d]
            let norm = RmsNorm {
                version: Norm::Fused,
                on_trunk: true,
                format,
                pending: pending.clone(),
            };
            let h = apply(at, norm, [x.clone(), gain]); // [n, d]
            assert!(!pending.is_some_and(|it| it.is_due()));
            let product = Linear {
                matmul: Matmul::Own,
                format,
                operand: None,
                normed: fused,
            };
            let y = apply(at, product, [h, up]); // [n, wide]
            let z = apply(at, onto(None), [y, last, x.clone()]); // [n, d]
            let mut found = vec![x.clone().inner(), z.clone().inner()];
            let gradients = (z.clone() * z).sum().backward();
            found.extend(inputs.iter().filter_map(|it| it.grad(&gradients)));
            let values = found.into_iter().map(|it| it.into_data().iter().collect());
            values.collect()
        };
        let native = check::has_matrix_cores().then_some((Format::Native, 3e-3));
        for (format, off) in [(Format::Full, 1e-5)].into_iter().chain(native) {
            for d in [16, 18, 60] {
                let (want, got) = (run(false, format, d), run(true, format, d));
                assert_eq!(got.len(), 8);
                for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                    check::close(&format!("{format:?} {d}, {i}"), got, want, off);
                }
            }
        }
    }
}
