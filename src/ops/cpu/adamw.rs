//! The `AdamW` update, in place: one pass that reads and writes each number once.
//! `PyTorch`'s formula and defaults; this module counts no steps and holds no state. Loshchilov and Hutter, 2017.

use rayon::prelude::*;

use super::GRAIN;

/// The optimizer's settings, and the number of this update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    pub lr: f64,
    pub beta1: f64,
    pub beta2: f64,
    /// Added to the square root to avoid division by zero.
    pub eps: f64,
    /// Weights shrink by `lr · weight_decay` per update.
    pub weight_decay: f64,
    /// The number of this update, from 1.
    pub time: i32,
    /// Factor for gradients.
    pub unscale: f32,
}

/// One parameter tensor with its gradient and running means, all of one length.
#[derive(Debug)]
pub struct Parameter<'a> {
    pub value: &'a mut [f32],
    pub gradient: &'a [f32],
    /// The running mean of the gradients.
    pub mean: &'a mut [f32],
    /// The running mean of the squared gradients.
    pub square: &'a mut [f32],
}

/// Factors of the update, computed once per step.
#[derive(Clone, Copy)]
struct Factors {
    keep: f32,
    beta1: f32,
    rest1: f32,
    beta2: f32,
    rest2: f32,
    step: f32,
    inv_root: f32,
    eps: f32,
    unscale: f32,
}

impl AdamW {
    /// Updates several tensors in one parallel region.
    ///
    /// With m and v the running means: `p -= lr·wd·p`, `m = β₁m + (1-β₁)g`, `v = β₂v + (1-β₂)g²`, then
    /// `p -= lr / (1-β₁ᵗ) · m / (√v / √(1-β₂ᵗ) + ε)`.
    ///
    /// # Panics
    /// If the lengths of a tensor's parts differ.
    pub fn step<'a>(&self, parameters: impl IntoIterator<Item = Parameter<'a>>) {
        let factors = self.factors();
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
                update(value, gradient, mean, square, factors);
            });
    }

    fn factors(&self) -> Factors {
        Factors {
            keep: (1.0 - self.lr * self.weight_decay) as f32,
            beta1: self.beta1 as f32,
            // In double precision, because 1 - 0.999 in single precision is wrong in the fifth digit.
            rest1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            rest2: (1.0 - self.beta2) as f32,
            step: (self.lr / (1.0 - self.beta1.powi(self.time))) as f32,
            inv_root: (1.0 / (1.0 - self.beta2.powi(self.time)).sqrt()) as f32,
            eps: self.eps as f32,
            unscale: self.unscale,
        }
    }
}

simd! {
    fn update(value: &mut [f32], gradient: &[f32], mean: &mut [f32], square: &mut [f32], factors: Factors) {
        let Factors { keep, beta1, rest1, beta2, rest2, step, inv_root, eps, unscale } = factors;
        for (((value, gradient), mean), square) in value.iter_mut().zip(gradient).zip(mean).zip(square) {
            let gradient = unscale * *gradient;
            *mean = beta1 * *mean + rest1 * gradient;
            *square = beta2 * *square + rest2 * gradient * gradient;
            *value = keep * *value - step * *mean / (square.sqrt() * inv_root + eps);
        }
    }
}
