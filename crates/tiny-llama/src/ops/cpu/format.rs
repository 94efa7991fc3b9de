//! Rounding to f16 and bf16 on the CPU device, which multiplies in f32: an operand of a mixed-precision product is rounded and stays f32.

use crate::ops::cpu::{GRAIN, filled};
use protocol::config::Precision;

/// Rounds every value to the nearest number of `format`.
pub fn rounded(x: &[f32], format: Precision) -> Vec<f32> {
    filled(x.len(), GRAIN, |task, out| {
        let x = &x[task * GRAIN..][..out.len()];
        match format {
            Precision::F32 => out.copy_from_slice(x),
            Precision::F16 => to_f16(out, x),
            Precision::Bf16 => to_bf16(out, x),
        }
    })
}

simd! {
    fn to_f16(out: &mut [f32], x: &[f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = nearest(*x, Precision::F16);
        }
    }
}

simd! {
    fn to_bf16(out: &mut [f32], x: &[f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = nearest(*x, Precision::Bf16);
        }
    }
}

/// Returns the nearest number of a short format, ties to even, as hardware converts. It is infinite beyond the format's range.
#[inline(always)]
pub fn nearest(x: f32, format: Precision) -> f32 {
    match format {
        Precision::F32 => x,
        Precision::F16 => nearest_f16(x),
        Precision::Bf16 => nearest_bf16(x),
    }
}

/// Returns the nearest f16: 11 significant bits down to 2⁻¹⁴, multiples of 2⁻²⁴ below, and 65504 as the largest number.
#[inline(always)]
fn nearest_f16(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let kept = (magnitude + 0xfff + (magnitude >> 13 & 1)) & !0x1fff;
    let large = if magnitude > 0x7f80_0000 {
        magnitude
    } else if kept >= 0x4780_0000 {
        0x7f80_0000
    } else {
        kept
    };
    // Between 0.5 and 1, neighbouring f32 are 2⁻²⁴ apart: the addition rounds.
    let small = (f32::from_bits(magnitude) + 0.5) - 0.5;
    let result = if magnitude < 0x3880_0000 {
        small.to_bits()
    } else {
        large
    };
    f32::from_bits(result | bits & 0x8000_0000)
}

/// Returns the nearest bf16: 8 significant bits with the range of f32.
#[inline(always)]
fn nearest_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let kept = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000;
    f32::from_bits(if x.is_nan() { bits } else { kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers above zero of a format, in ascending order up to `largest`. The format has `fraction` bits after the point, and
    /// its normal numbers have exponents from `least`.
    fn numbers(fraction: i32, least: i32, largest: f64) -> Vec<f64> {
        let steps = 1_u32 << fraction;
        let subnormal = (1..steps).map(|m| f64::from(m) * 2f64.powi(least - fraction));
        let normal = (least..128)
            .flat_map(|e| (0..steps).map(move |m| f64::from(steps + m) * 2f64.powi(e - fraction)));
        subnormal
            .chain(normal)
            .take_while(|x| *x <= largest)
            .collect()
    }

    /// Rounds each number, and numbers between it and the next: the middle goes to the even one.
    fn check(format: Precision, all: &[f64]) {
        for (index, pair) in all.windows(2).enumerate() {
            let (low, high) = (pair[0] as f32, pair[1] as f32);
            let middle = ((pair[0] + pair[1]) / 2.0) as f32;
            // The fraction of the number at an odd index is even: the first number, at index 0, has fraction 1.
            let even = if index % 2 == 1 { low } else { high };
            for sign in [1.0, -1.0] {
                assert_eq!(nearest(sign * low, format), sign * low);
                assert_eq!(nearest(sign * middle, format), sign * even, "{middle}");
                assert_eq!(nearest(sign * middle.next_down(), format), sign * low);
                assert_eq!(nearest(sign * middle.next_up(), format), sign * high);
            }
        }
    }

    #[test]
    fn every_f16_is_kept_and_values_between_two_become_the_nearer() {
        check(Precision::F16, &numbers(10, -14, 65504.0));
        assert_eq!(nearest(65519.0, Precision::F16), 65504.0);
        assert_eq!(nearest(-65520.0, Precision::F16), f32::NEG_INFINITY);
        assert_eq!(nearest(2.9e-8, Precision::F16), 0.0);
        assert!(nearest(f32::NAN, Precision::F16).is_nan());
    }

    #[test]
    fn every_bf16_is_kept_and_values_between_two_become_the_nearer() {
        let all = numbers(7, -126, 1e38);
        let normal = all.partition_point(|x| *x < f64::from(f32::MIN_POSITIVE));
        assert_eq!(normal % 2, 1, "the parity of fractions must not shift");
        check(Precision::Bf16, &all);
        assert!(nearest(f32::NAN, Precision::Bf16).is_nan());
        assert_eq!(nearest(f32::MAX, Precision::Bf16), f32::INFINITY);
    }
}
