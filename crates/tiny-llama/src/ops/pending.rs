//! What an operation leaves to the kernel of the next one, which saves a launch on a GPU. A product with a residual may store parts of
//! its inner dimension, which the norm that follows adds while it reads its input. Or it does a part of the norm itself, and the product
//! that reads the norm's output does the rest. In the backward pass, a norm leaves its gradient in f16 as well to the product before it.
//!
//! In f16 on matrix cores, a norm with one reader has no forward launch, unless the product before it is in parts or the reader has few outputs.
//! The product or embedding before it stores x·gain in f16 and the sums of squares of x's rows. The product behind it multiplies the rows of its
//! result by 1/rms, and writes the normed x for its backward pass. From a million activations on (x of medium), a norm's backward pass leaves its
//! gradient in f16 to the product before it. A learner's kernel in such a part brings the operation back.

use std::sync::{Arc, Mutex, PoisonError};

use super::cost::Cost;
use burn::tensor::Tensor;
use burn_cubecl::tensor::CubeTensor;

/// How an operation passes `T` to the one that follows.
#[derive(Debug)]
pub struct Pending<T>(Arc<Mutex<Option<T>>>);

/// What a product with a residual, or the embedding, leaves to the norm of its x `[n, d]`.
#[derive(Clone, Debug)]
pub enum ForNorm {
    /// x itself, which has no values until the norm writes it.
    Sum(Pending<Summands>),
    /// What the product that reads the norm's output needs, made with the norm's gain `[1, d]`, which is without autodiff.
    Partial(Box<Tensor<2>>, Pending<PartialNorm>),
}

/// x `[n, d]` = residual + the sum of parts.
#[derive(Clone, Debug)]
pub struct Summands {
    /// `[n, d]`
    pub residual: CubeTensor,
    /// `[parts·n, d]`
    pub parts: CubeTensor,
}

/// The part of a norm of x `[n, d]` that needs no row to be complete.
#[derive(Clone, Debug)]
pub struct PartialNorm {
    /// `[1, d]`
    pub gain: CubeTensor,
    /// x·gain `[n, d]` in f16. Where x·gain is over 65,504, y is infinite.
    pub scaled: CubeTensor,
    /// Σx² of each row, in parts `[parts, n]`.
    pub squares: CubeTensor,
}

/// What a norm leaves to the product that reads its output y `[n, d]`: y = x·gain·r with r = 1/√(mean(x²) + ε).
#[derive(Clone, Debug)]
pub struct UnfinishedNorm {
    pub partial: PartialNorm,
    /// r `[n, 1]`, which the product writes, as it does y.
    pub inverse: CubeTensor,
}

/// What a product and the norm before it do for each other, if nothing else reads the norm's output.
#[derive(Clone, Debug, Default)]
pub struct AfterNorm {
    /// Whether the norm's fused backward pass adds the parts of dx.
    pub adds_parts: bool,
    /// From the norm, if the product may apply it.
    pub unfinished: Option<Pending<UnfinishedNorm>>,
}

impl<T> Pending<T> {
    /// For the operation that comes first.
    pub fn put(&self, left: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// For the second; `None` if nothing is left to it.
    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether something is left.
    pub fn is_due(&self) -> bool {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.is_some()
    }
}

impl<T> Clone for Pending<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl ForNorm {
    /// Adds what the operation before the norm does for it, by x's number of elements: squares, their sums, and x·gain, stored in f16.
    pub fn add_work(&self, to: &mut Cost, count: f64) {
        if let Self::Partial(..) = self {
            to.flops += 3.0 * count;
            to.bytes += 2.0 * count;
        }
    }

    /// x has no values yet.
    pub fn is_sum_due(&self) -> bool {
        matches!(self, Self::Sum(sum) if sum.is_due())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::format::Format;
    use crate::ops::gpu::check;
    use crate::ops::linear::{Linear, LinearResidual, NextOperation};
    use crate::ops::rms_norm::RmsNorm;
    use crate::ops::{Scope, apply};
    use burn::tensor::{Tensor, TensorData};
    use protocol::config::{Matmul, Norm};

    /// A product, the norm of its sum with a residual, a product with what is normed, and one with both: with inner dimensions long
    /// enough for parts, forward and backward.
    #[test]
    fn what_norms_and_products_do_for_each_other_changes_no_output_and_no_gradient() {
        let Some(device) = check::TestDevice::any() else {
            return;
        };
        let on_device = device.burn().autodiff();
        // Neither, or the norm adds the parts of the products around it, or the product behind it applies the norm.
        let run = |adds_parts: bool, applied: bool, format, [n, d]: [usize; 2]| -> Vec<Vec<f32>> {
            let wide = 1024;
            let shapes = [[n, wide], [d, wide], [n, d], [1, d], [wide, d], [d, wide]];
            let inputs = shapes.map(|shape| {
                let values = numbers(shape[0] as u64, shape[0] * shape[1]);
                let data = TensorData::new(values, shape);
                Tensor::<2>::from_data(data, &on_device).require_grad()
            });
            let [active, down, residual, gain, up, last] = inputs.clone();
            let unfinished = applied.then(Pending::default);
            let partial = applied.then(|| {
                let gain = gain.clone().without_autodiff(); // [1, d]
                ForNorm::Partial(Box::new(gain), Pending::default())
            });
            let pending = partial.or(adds_parts.then(|| ForNorm::Sum(Pending::default())));
            let onto = |pending| LinearResidual {
                format,
                operand: None,
                pending,
                gradient: Pending::default(),
                gated: false,
            };
            let first = onto(pending.clone());
            let gradient = first.gradient(n * d).filter(|_| adds_parts);
            let at = Scope::outside("test");
            let x = apply(at, first, [active, down, residual]); // [n, d]
            let norm = RmsNorm {
                version: Norm::Fused,
                on_trunk: true,
                format,
                pending: pending.clone(),
                unfinished: unfinished.clone(),
                gradient,
            };
            let h = apply(at, norm, [x.clone(), gain]); // [n, d]
            assert!(!pending.is_some_and(|it| it.is_sum_due()));
            assert_eq!(unfinished.as_ref().is_some_and(Pending::is_due), applied);
            let product = Linear {
                matmul: Matmul::Own,
                format,
                operand: None,
                after: AfterNorm {
                    adds_parts,
                    unfinished: unfinished.clone(),
                },
                then: NextOperation::Nothing,
            };
            let y = apply(at, product, [h, up]); // [n, wide]
            assert!(!unfinished.is_some_and(|it| it.is_due()));
            let z = apply(at, onto(None), [y, last, x.clone()]); // [n, d]
            let mut found = vec![x.clone().inner(), z.clone().inner()];
            // Small enough for f16 at every size.
            let gradients = (z.clone() * z / 64.0).sum().backward();
            found.extend(inputs.iter().filter_map(|it| it.grad(&gradients)));
            let values = found.into_iter().map(|it| it.into_data().iter().collect());
            values.collect()
        };
        let native = check::has_matrix_cores().then_some((Format::Native, 3e-3));
        // The last two are so large that the norm's gradient is also left in f16, or would be, if its elements were whole vectors.
        let large = [[2056, 512], [1025, 1026]];
        for (format, off) in [(Format::Full, 1e-5)].into_iter().chain(native) {
            let large = large.into_iter().filter(|_| format == Format::Native);
            let small = [16, 18, 60, 512].map(|d| [16, d]).into_iter();
            for sizes in small.chain(large) {
                let want = run(false, false, format, sizes);
                let applied = format == Format::Native && sizes[1] % 4 == 0;
                let applied = applied.then_some((true, true));
                for (adds_parts, applied) in [(true, false)].into_iter().chain(applied) {
                    let got = run(adds_parts, applied, format, sizes);
                    assert_eq!(got.len(), 8);
                    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                        let name = format!("{format:?} {sizes:?}, {adds_parts} {applied}, {i}");
                        check::close(&name, got, want, off);
                    }
                }
            }
        }
    }
}
