//! A number with the error that f32 arithmetic may cause: how far each element of a kernel's output may be off. Every operation
//! adds the rounding that WGSL allows, so a formula written with these numbers computes its own bound.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// 1.5 times the largest relative error of a rounded f32 operation: other right formulas round once more.
pub const ROUND: f64 = 1.5 / (1 << 24) as f64;
/// Relative error of a division (2.5 ULP), of a square root and of its inverse.
const DIVIDE: f64 = 5.0 * ROUND;
const ROOT: f64 = 9.0 * ROUND;
/// Far below every number in a formula of the course: devices may replace a factor below the smallest normal f32 by 0.
const SMALLEST: f64 = 1e-30;

/// Where sin, cos and log2 are computed: WGSL lets a device be far less exact than the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    Host,
    Device,
}

impl Functions {
    /// Absolute error of sin and cos within a turn.
    const fn turn(self) -> f64 {
        match self {
            Self::Host => 4.0 * ROUND,
            Self::Device => 1.0 / (1 << 11) as f64,
        }
    }

    /// Absolute error of log2 between 0.5 and 2.
    const fn log2(self) -> f64 {
        match self {
            Self::Host => 4.0 * ROUND,
            Self::Device => 1.0 / (1 << 21) as f64,
        }
    }
}

/// A value in f64, and how far a right kernel's result may be from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Real {
    pub value: f64,
    pub error: f64,
}

impl Real {
    /// A number that an f32 holds.
    pub const fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }

    /// A literal of the text, rounded to f32.
    pub const fn written(value: f64) -> Self {
        Self::exact(value).rounded(ROUND)
    }

    /// With a further relative error.
    const fn rounded(self, relative: f64) -> Self {
        self.off_by(relative * self.value.abs())
    }

    /// With a further absolute error.
    pub const fn off_by(self, error: f64) -> Self {
        Self {
            error: self.error + error,
            ..self
        }
    }

    /// Returns the largest possible error of a kernel's result.
    pub fn bound(self) -> f64 {
        match self.error {
            error if error.is_nan() => f64::INFINITY,
            0.0 if f64::from(self.value as f32) == self.value => 0.0,
            error => error + SMALLEST,
        }
    }

    /// e^x, within 3 + 2·|x| ULP, and 1 for 0. It stays finite here, far beyond the range of f32.
    pub fn exp(self) -> Self {
        if self == Self::exact(0.0) {
            return Self::exact(1.0);
        }
        let x = self.value.min(700.0);
        let value = x.exp();
        let error = (x + self.error).exp() - value;
        Self { value, error }.rounded((6.0 + 4.0 * x.abs()) * ROUND)
    }

    /// x^n by log2 and exp2, for x between 0.5 and 2.
    pub fn power(self, n: f64, functions: Functions) -> Self {
        let value = self.value.powf(n);
        let exponent = n * self.value.ln().abs();
        let relative =
            n * (self.error / self.value + functions.log2()) + (6.0 + 6.0 * exponent) * ROUND;
        Self::exact(value).rounded(relative)
    }

    pub fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        let error = (self.value + self.error).sqrt() - value;
        Self { value, error }.rounded(ROOT)
    }

    /// sin and cos of an angle of any size.
    pub fn sin_cos(self, functions: Functions) -> (Self, Self) {
        let (sin, cos) = self.value.sin_cos();
        let near = |value, slope: f64| Self {
            value,
            error: slope.abs() * self.error + self.error * self.error / 2.0 + functions.turn(),
        };
        (near(sin, cos), near(cos, sin))
    }

    /// 1 / (1 + e^−x), also when computed with tanh: its error is relative to 1, not to a small result.
    pub fn sigmoid(self) -> Self {
        let one = Self::exact(1.0);
        (one / (one + (-self).exp())).off_by(ROUND)
    }
}

/// The error of adding `count` terms in any order, over the sum of their magnitudes. Roundings have either sign, so their sum grows
/// with the square root of their number (Higham and Mary, 2019).
pub fn adding(count: usize) -> f64 {
    (2.0 * (count as f64).sqrt() + 4.0) * ROUND
}

/// The same for matrix cores, which may truncate instead of rounding.
pub fn adding_cut(count: usize) -> f64 {
    2.0 * count as f64 * ROUND
}

/// The sum in any order.
pub fn sum(terms: impl Iterator<Item = Real>) -> Real {
    let (mut sum, mut size, mut count) = (Real::default(), 0.0, 0);
    for term in terms {
        sum.value += term.value;
        sum.error += term.error;
        size += term.value.abs();
        count += 1;
    }
    match count {
        0 | 1 => sum,
        _ => sum.off_by(adding(count) * size),
    }
}

/// The sum of products of f32 values, and the sum of the products' magnitudes.
pub fn dot(pairs: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    pairs.fold((0.0, 0.0), |(sum, size), (a, b)| {
        (sum + a * b, size + (a * b).abs())
    })
}

impl Add for Real {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            error: self.error + other.error,
        }
        .rounded(ROUND)
    }
}

impl Neg for Real {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            value: -self.value,
            ..self
        }
    }
}

impl Sub for Real {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Real {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            error: self.value.abs() * other.error
                + other.value.abs() * self.error
                + self.error * other.error,
        }
        .rounded(ROUND)
    }
}

impl Div for Real {
    type Output = Self;

    /// A divisor that may be 0 allows any result.
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let least = (other.value.abs() - other.error).max(0.0);
        let error = (self.error + value.abs() * other.error) / least;
        Self { value, error }.rounded(DIVIDE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every formula in f32 stays within the bound that the same formula has here.
    #[test]
    fn f32_stays_within_the_bound() {
        for step in -400..400_i16 {
            let x = f32::from(step) * 0.11;
            let real = Real::exact(x.into());
            let held = |name: &str, found: f32, real: Real| {
                let off = (f64::from(found) - real.value).abs();
                assert!(off <= real.bound(), "{name} of {x}: {found}, {real:?}");
            };
            held("exp", x.exp(), real.exp());
            held("sigmoid", 1.0 / (1.0 + (-x).exp()), real.sigmoid());
            held("by tanh", 0.5 + 0.5 * (0.5 * x).tanh(), real.sigmoid());
            held("sin", x.sin(), real.sin_cos(Functions::Host).0);
            let third = Real::written(1.0 / 3.0);
            held("quotient", x / (1.0 / 3.0), real / third);
            held("difference", x - 1.0 / 3.0, real - third);
        }
        let terms = (1..=3000_u16).map(|i| 1.0 / f32::from(i));
        let expected = sum((1..=3000_u16).map(|i| Real::written(1.0 / f64::from(i))));
        for found in [
            terms.clone().sum::<f32>(),
            terms.rev().fold(0.0, |sum, x| sum + x),
        ] {
            let off = (f64::from(found) - expected.value).abs();
            assert!(off <= expected.bound(), "{found}, {expected:?}");
        }
        assert_eq!(Real::exact(3.0).bound(), 0.0);
        let nothing = Real::exact(1.0) / (Real::written(1.0) - Real::written(1.0));
        assert_eq!(nothing.bound(), f64::INFINITY);
    }

    #[test]
    fn a_power_allows_for_its_logarithm() {
        let power = Real::written(0.999).power(1000.0, Functions::Host);
        assert!((power.value - 0.999_f64.powi(1000)).abs() < 1e-12);
        let found = f64::from((1000.0 * 0.999_f32.log2()).exp2());
        assert!((found - power.value).abs() < power.bound());
        assert!(power.bound() < 1e-3);
    }
}
