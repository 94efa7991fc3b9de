//! The exponential function in a form that the compiler vectorises, and the sigmoid made of it. Both are for kernels only: the last digit may
//! be wrong, and a result that would be subnormal is 0.

/// Returns e to the power `x`. The relative error is below 2e-7; the result is 0 below -87.3 and
/// infinite above 88.3.
///
/// `x = n·ln 2 + r` with `|r| <= ln 2 / 2`; a polynomial gives e to the power `r`, the exponent bits give `2ⁿ`.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding 1.5·2²³ leaves the nearest integer in the low mantissa bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has so few bits that n times it is exact.
    const LN_2_HIGH: f32 = 355.0 / 512.0;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-88.0, 89.0);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN_2_HIGH - n * LN_2_LOW;
    // (eʳ - 1 - r) / r², interpolated at the five Chebyshev points of the interval.
    let p =
        (((0.001_392_617_6 * r + 0.008_363_173) * r + 0.041_666_556) * r + 0.166_665_78) * r + 0.5;
    let power = p * r * r + r + 1.0;
    let two_to_n = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < -87.3 { 0.0 } else { power * two_to_n }
}

/// Returns `1 / (1 + exp(-x))`.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_and_safe_at_the_ends() {
        let mut worst = 0.0_f64;
        for step in -870_000..=880_000 {
            let x = step as f32 * 1e-4;
            let want = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / want - 1.0).abs());
        }
        assert!(worst < 2e-7, "relative error {worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(1e30), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(sigmoid(-1e4), 0.0);
        assert_eq!(sigmoid(1e4), 1.0);
    }
}
