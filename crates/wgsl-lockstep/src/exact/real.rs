//! The arithmetic of numbers that carry their error. Every operation adds the rounding error that WGSL allows.

use std::f64::consts::{LN_2, LOG2_E};

use naga::{Scalar, ScalarKind};

use super::super::arithmetic::{f, half};

/// 1.5 times the largest relative error of a rounded f32 operation: other right formulas round once more.
const ROUND: f64 = 1.5 / (1 << 24) as f64;
/// 1.5 times the largest relative error of a number that is rounded to f16.
const ROUND_HALF: f64 = 1.5 / (1 << 11) as f64;
/// Relative error of a division: 2.5 ULP.
const DIVIDE: f64 = 5.0 * ROUND;
/// Relative error of a square root and of its inverse.
const ROOT: f64 = 9.0 * ROUND;
/// Relative error of a logarithm far from 1: 3 ULP.
const LOGARITHM: f64 = 6.0 * ROUND;
/// The smallest bound of a number that is not exact. Devices may replace a factor below the smallest normal f32 (1e-38) by 0.
const SMALLEST: f64 = 1e-30;

/// The accuracy of the kernel whose results are judged. WGSL lets a device be less exact than the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accuracy {
    /// True if `sin`, `cos`, `tanh` and logarithms are computed by a device.
    pub device: bool,
    /// True if sums may be truncated and not rounded, as on matrix cores.
    pub cuts_sums: bool,
}

impl Accuracy {
    /// Returns the absolute error of a function that is within a few roundings on the host.
    const fn error(self, on_device: f64) -> f64 {
        if self.device { on_device } else { 4.0 * ROUND }
    }
}

/// The absolute error of sin and cos on a device, for angles from −π to π.
const DEVICE_SINE: f64 = 1.0 / (1 << 11) as f64;
/// The absolute error of a logarithm on a device, for numbers from 0.5 to 2.
const DEVICE_LOGARITHM: f64 = 1.0 / (1 << 21) as f64;
/// The absolute error of tanh on a device.
const DEVICE_TANH: f64 = 1e-5;

/// A value in f64, with the error that a right kernel's result may have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Real {
    /// The value.
    pub value: f64,
    /// The largest absolute error of f32 arithmetic.
    pub error: f64,
}

impl Real {
    /// The mark of an element that was never written.
    pub(crate) const MISSING: Self = Self {
        value: 0.0,
        error: -1.0,
    };

    /// Returns a number without error.
    #[inline]
    pub const fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }

    /// Returns the number that a word in memory holds.
    pub(crate) fn from_word(scalar: Scalar, word: u32) -> Self {
        Self::exact(match scalar.kind {
            ScalarKind::Float => f32::from_bits(word).into(),
            ScalarKind::Sint => (word as i32).into(),
            _ => word.into(),
        })
    }

    /// Returns the number with a further absolute error.
    #[must_use]
    #[inline]
    pub const fn off_by(self, error: f64) -> Self {
        Self {
            error: self.error + error,
            ..self
        }
    }

    /// Returns the largest difference from `value` that a kernel's result may have. It is 0 only for an exact value that an f32 holds.
    pub fn bound(self) -> f64 {
        match self.error {
            error if error.is_nan() => f64::INFINITY,
            0.0 if f64::from(self.value as f32) == self.value => 0.0,
            error => error + SMALLEST,
        }
    }

    /// Returns the number with a further relative error.
    #[inline]
    const fn rounded(self, relative: f64) -> Self {
        self.off_by(relative * self.value.abs())
    }

    pub(crate) const fn abs(self) -> Self {
        Self {
            value: self.value.abs(),
            ..self
        }
    }

    pub(crate) const fn min(self, other: Self) -> Self {
        Self {
            value: self.value.min(other.value),
            error: self.error.max(other.error),
        }
    }

    pub(crate) const fn max(self, other: Self) -> Self {
        Self {
            value: self.value.max(other.value),
            error: self.error.max(other.error),
        }
    }

    /// Applies a step function such as `floor`. Near a step, a kernel may get the value of either side.
    pub(crate) fn apply_steps(self, apply: fn(f64) -> f64) -> Self {
        let [low, high] = [self.value - self.error, self.value + self.error].map(apply);
        Self {
            value: apply(self.value),
            error: high - low,
        }
    }

    /// Returns e^x, within 3 + 2·|x| ULP, and exactly 1 for 0. The value stays finite far beyond the range of f32.
    pub(crate) fn exp(self) -> Self {
        if self == Self::exact(0.0) {
            return Self::exact(1.0);
        }
        let x = self.value.min(700.0);
        let value = x.exp();
        // For d up to 1, e^d − 1 is at most d + d².
        let error = match self.error {
            near @ ..1.0 => value * (near + near * near),
            far => (x + far).exp() - value,
        };
        Self { value, error }.rounded((6.0 + 4.0 * x.abs()) * ROUND)
    }

    /// Returns 2^x, within 3 + 2·|x| ULP.
    pub(crate) fn exp2(self) -> Self {
        let Self { value, error } = Self {
            value: self.value * LN_2,
            error: self.error * LN_2,
        }
        .exp();
        let wider = 4.0 * (1.0 - LN_2) * self.value.abs() * ROUND;
        Self { value, error }.rounded(wider)
    }

    /// Returns the logarithm to a base, which is 2 or e.
    pub(crate) fn log(self, base: f64, accuracy: Accuracy) -> Self {
        let scale = if base == 2.0 { LOG2_E } else { 1.0 };
        let value = self.value.ln() * scale;
        let smallest = (self.value - self.error).max(0.0);
        let own = if (0.5..=2.0).contains(&self.value) {
            accuracy.error(DEVICE_LOGARITHM)
        } else {
            LOGARITHM * value.abs()
        };
        Self::exact(value).off_by(scale * self.error / smallest + own)
    }

    /// Returns x^y as WGSL defines it: 2^(y·log2 x).
    pub(crate) fn power(self, y: Self, accuracy: Accuracy) -> Self {
        if y == Self::exact(0.0) {
            return Self::exact(1.0);
        }
        let log = self.log(2.0, accuracy);
        y.product(log).exp2()
    }

    pub(crate) fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        let error = (self.value + self.error).sqrt() - value;
        Self { value, error }.rounded(ROOT)
    }

    pub(crate) fn inverse_sqrt(self) -> Self {
        let value = self.value.sqrt().recip();
        let smallest = (self.value - self.error).max(0.0);
        let error = smallest.sqrt().recip() - value;
        Self { value, error }.rounded(ROOT)
    }

    /// Applies `f64::sin` or `f64::cos` to an angle of any size.
    pub(crate) fn sine_or_cosine(self, apply: fn(f64) -> f64, accuracy: Accuracy) -> Self {
        let value = apply(self.value);
        let slope = (1.0 - value * value).max(0.0).sqrt();
        let error =
            slope * self.error + self.error * self.error / 2.0 + accuracy.error(DEVICE_SINE);
        Self { value, error }
    }

    pub(crate) fn tanh(self, accuracy: Accuracy) -> Self {
        let value = self.value.tanh();
        Self::exact(value).off_by(self.error + accuracy.error(DEVICE_TANH))
    }

    #[inline]
    fn product(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            error: self.value.abs() * other.error
                + other.value.abs() * self.error
                + self.error * other.error,
        }
        .rounded(ROUND)
    }

    /// Returns the quotient. A divisor that may be 0 allows any result.
    #[inline]
    fn quotient(self, other: Self) -> Self {
        let value = self.value / other.value;
        let smallest = (other.value.abs() - other.error).max(0.0);
        let error = (self.error + value.abs() * other.error) / smallest;
        Self { value, error }.rounded(DIVIDE)
    }
}

/// A sum of terms; a number that is no sum has one term.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number {
    pub(crate) value: f64,
    /// The sum of the terms' errors.
    error: f64,
    /// The sum of the terms' absolute values.
    magnitude: f64,
    /// The number of terms.
    terms: f64,
}

impl From<Real> for Number {
    #[inline]
    fn from(real: Real) -> Self {
        Self {
            value: real.value,
            error: real.error,
            magnitude: real.value.abs(),
            terms: 1.0,
        }
    }
}

// The operations of sums are inlined into the loops over lanes: a result that goes through memory would make each lane wait.
impl Number {
    pub(crate) fn exact(value: f64) -> Self {
        Real::exact(value).into()
    }

    /// Returns the number that a word holds exactly.
    #[inline]
    pub(crate) fn of_word(word: u32) -> Self {
        Self::exact(f(word).into())
    }

    /// Returns the number of a literal. A literal whose low bits are not 0 was probably rounded.
    pub(crate) fn of_literal(value: f32) -> Self {
        let real = Real::exact(value.into());
        match value.to_bits() & 0xff {
            0 => real.into(),
            _ => real.rounded(ROUND).into(),
        }
    }

    /// Returns an integer, rounded where an f32 does not hold it.
    pub(crate) fn of_integer(value: f64) -> Self {
        let real = Real::exact(value);
        if f64::from(value as f32) == value {
            real.into()
        } else {
            real.rounded(ROUND).into()
        }
    }

    /// Returns true if the number is one term without error.
    pub(crate) fn is_exact(self) -> bool {
        self.error == 0.0 && self.terms == 1.0
    }

    /// Returns the value with the error of adding its terms in any order. Rounding errors have either sign, so their sum grows with the square
    /// root of their number (Higham and Mary, 2019). Truncation errors have one sign.
    #[inline]
    pub(crate) fn to_real(self, accuracy: Accuracy) -> Real {
        let real = Real {
            value: self.value,
            error: self.error,
        };
        if self.terms < 2.0 {
            return real;
        }
        if self.terms == 2.0 && !accuracy.cuts_sums {
            return real.rounded(ROUND);
        }
        if accuracy.cuts_sums {
            return real.off_by(2.0 * self.terms * ROUND * self.magnitude);
        }
        let partial = (self.terms - 2.0).min(2.0 * self.terms.sqrt() + 2.0);
        real.off_by(partial * ROUND * self.magnitude).rounded(ROUND)
    }

    #[inline]
    pub(crate) const fn negated(self) -> Self {
        Self {
            value: -self.value,
            ..self
        }
    }

    /// Returns the sum, with the terms of both numbers. A number that is exactly 0 adds no term.
    #[inline]
    pub(crate) fn plus(self, other: Self) -> Self {
        if self == Self::ZERO {
            return other;
        }
        if other == Self::ZERO {
            return self;
        }
        Self {
            value: self.value + other.value,
            error: self.error + other.error,
            magnitude: self.magnitude + other.magnitude,
            terms: self.terms + other.terms,
        }
    }

    const ZERO: Self = Self {
        value: 0.0,
        error: 0.0,
        magnitude: 0.0,
        terms: 1.0,
    };

    #[inline(always)]
    pub(crate) fn times(self, other: Self, accuracy: Accuracy) -> Self {
        self.to_real(accuracy)
            .product(other.to_real(accuracy))
            .into()
    }

    #[inline(always)]
    pub(crate) fn divided_by(self, other: Self, accuracy: Accuracy) -> Self {
        self.to_real(accuracy)
            .quotient(other.to_real(accuracy))
            .into()
    }

    /// Returns a number that has an error, rounded to f16.
    pub(crate) fn to_half(self, accuracy: Accuracy) -> Self {
        let Real { value, error } = self.to_real(accuracy);
        let value = f(half((value as f32).to_bits())).into();
        Real { value, error }.rounded(ROUND_HALF).into()
    }
}
