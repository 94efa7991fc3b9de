//! The sum of squares of many numbers, as the norm of a gradient needs it. It takes no root and scales nothing.

use rayon::prelude::*;

use super::{GRAIN, sum};

/// Numbers summed in single precision before the sum goes on in double precision.
const RUN: usize = 512;

/// `Σ x²` in double precision; the order of additions depends on the length only.
pub fn sum_of_squares(x: &[f32]) -> f64 {
    let parts: Vec<f64> = x.par_chunks(GRAIN).map(part).collect();
    parts.iter().sum()
}

simd! {
    fn part(x: &[f32]) -> f64 {
        let mut total = 0.0;
        for run in x.chunks(RUN) {
            total += f64::from(sum::<L>(run, |x| x * x));
        }
        total
    }
}
