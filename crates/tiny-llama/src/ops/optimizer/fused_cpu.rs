//! AdamW on the CPU, in place: one pass that reads and writes each number once. The formula and the defaults are PyTorch's.

use rayon::prelude::*;

use crate::ops::cpu::GRAIN;

/// β₁ of the published configuration, the decay of the mean of gradients.
pub const BETA_1: f64 = 0.9;
/// β₂ of the published configuration, the decay of the mean of squared gradients.
pub const BETA_2: f64 = 0.999;
/// ε, which is added to the square root to avoid division by zero.
pub const EPSILON: f64 = 1e-8;
/// The decay of all parameters: an update multiplies them by `1 - lr · WEIGHT_DECAY`.
pub const WEIGHT_DECAY: f64 = 0.01;

/// The numbers of one update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdamW {
    pub lr: f64,
    /// The number of this update, from 1.
    pub time: i32,
    /// The factor by which gradients are multiplied, which undoes loss scaling.
    pub unscale: f32,
}

/// One parameter tensor with its gradient and running means, all of one length.
#[derive(Debug)]
pub(crate) struct Parameter<'a> {
    pub value: &'a mut [f32],
    pub gradient: &'a [f32],
    /// The running mean of the gradients.
    pub mean: &'a mut [f32],
    /// The running mean of the squared gradients.
    pub square: &'a mut [f32],
}

impl AdamW {
    /// Updates several tensors in one parallel region.
    ///
    /// With m and v the running means: `p -= lr·wd·p`, `m = β₁m + (1-β₁)g`, `v = β₂v + (1-β₂)g²`, then
    /// `p -= lr / (1-β₁ᵗ) · m / (√v / √(1-β₂ᵗ) + ε)`.
    ///
    /// # Panics
    /// If the lengths of a tensor's parts differ.
    pub(crate) fn step<'a>(&self, parameters: impl IntoIterator<Item = Parameter<'a>>) {
        let factors = [
            1.0 - self.lr * WEIGHT_DECAY,
            self.lr / (1.0 - BETA_1.powi(self.time)),
            1.0 / (1.0 - BETA_2.powi(self.time)).sqrt(),
        ]
        .map(|factor| factor as f32);
        let mut tasks = Vec::new();
        for Parameter {
            value,
            gradient,
            mean,
            square,
        } in parameters
        {
            let len = value.len();
            assert_eq!((gradient.len(), mean.len(), square.len()), (len, len, len));
            let state = mean.chunks_mut(GRAIN).zip(square.chunks_mut(GRAIN));
            let values = value.chunks_mut(GRAIN).zip(gradient.chunks(GRAIN));
            tasks.extend(values.zip(state));
        }
        tasks
            .into_par_iter()
            .for_each(|((value, gradient), (mean, square))| {
                update(value, gradient, mean, square, factors, self.unscale);
            });
    }
}

simd! {
    /// Updates a part of a tensor. `factors` are the factor of values, the factor of means, and the factor of the root.
    fn update(
        value: &mut [f32],
        gradient: &[f32],
        mean: &mut [f32],
        square: &mut [f32],
        factors: [f32; 3],
        unscale: f32,
    ) {
        let [keep, step, inv_root] = factors;
        let beta1 = BETA_1 as f32;
        let beta2 = BETA_2 as f32;
        let eps = EPSILON as f32;
        // In double precision, because 1 - 0.999 in single precision is wrong in the fifth digit.
        let rest1 = (1.0 - BETA_1) as f32;
        let rest2 = (1.0 - BETA_2) as f32;
        let elements = value.iter_mut().zip(gradient).zip(mean).zip(square);
        for (((value, gradient), mean), square) in elements {
            let gradient = unscale * *gradient;
            *mean = beta1 * *mean + rest1 * gradient;
            *square = beta2 * *square + rest2 * gradient * gradient;
            *value = keep * *value - step * *mean / (square.sqrt() * inv_root + eps);
        }
    }
}
