//! The norm of a gradient on the CPU, from the sum of its squares, and the distribution of its exponents.

use super::FusedGradNorm;
use crate::ops::Float;
use crate::ops::cpu::{GRAIN, values};
use burn::backend::Flex;
use rayon::prelude::*;

use crate::ops::cpu::reduce::sum;

impl FusedGradNorm for Flex {
    fn squares(tensors: &[Float<Self>]) -> Vec<f64> {
        let sum = |tensor| sum_of_squares(values(tensor));
        tensors.iter().map(sum).collect()
    }

    fn exponents(tensors: &[Float<Self>]) -> Vec<[u64; 256]> {
        let count = |tensor| exponents(values(tensor));
        tensors.iter().map(count).collect()
    }
}

/// The number of squares that are added in single precision before their sum is added in double precision.
const RUN: usize = 512;

/// Returns `Σ x²` in double precision. The order of additions depends on the length only.
pub(crate) fn sum_of_squares(x: &[f32]) -> f64 {
    let sums: Vec<f64> = x.par_chunks(GRAIN).map(sum_of_part).collect();
    sums.iter().sum()
}

simd! {
    fn sum_of_part(x: &[f32]) -> f64 {
        let mut total = 0.0;
        for run in x.chunks(RUN) {
            total += f64::from(sum::<L>(run, |x| x * x));
        }
        total
    }
}

/// Counts the numbers with each exponent.
pub(crate) fn exponents(x: &[f32]) -> [u64; 256] {
    let count = |x: &[f32]| {
        let mut counts = [0; 256];
        for x in x {
            counts[(x.to_bits() >> 23 & 0xff) as usize] += 1;
        }
        counts
    };
    let add = |a: [u64; 256], b: [u64; 256]| std::array::from_fn(|i| a[i] + b[i]);
    x.par_chunks(GRAIN).map(count).reduce(|| [0; 256], add)
}
