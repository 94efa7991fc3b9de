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

#[cfg(test)]
mod tests {
    use super::super::testing::numbers;
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        for len in [0, 1, 7, 997, 3 * GRAIN + 5] {
            let x = numbers(1, len);
            let want: f64 = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            assert!((sum_of_squares(&x) - want).abs() <= 1e-7 * want, "{len}");
        }
    }
}
