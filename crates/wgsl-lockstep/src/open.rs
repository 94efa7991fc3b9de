//! What WGSL leaves open. The results of some operations differ from device to device: the interpreter reports them as findings. A
//! device may also take liberties with arithmetic: a launch that takes one shows whether the results depend on it.

mod check;
mod results;

pub(crate) use check::{OpenCheck, open_check};

/// An operation whose result WGSL does not fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenResult {
    /// `pow` of a number below 0, or of 0 with an exponent that is not above 0.
    PowOfNegative,
    /// A shift by as many bits as the number has, or more.
    Shift,
    /// A conversion of a float that the integer type cannot hold.
    Conversion,
    /// An integer division by 0, or of the smallest i32 by −1.
    IntegerDivision,
    /// `clamp` whose lower limit is above its upper one.
    Clamp,
    /// An infinity or a NaN is compared, or decides which value is chosen.
    NotFinite,
    /// A float is compared with itself.
    NanTest,
    /// `exp`, `sinh`, `cosh` or `tanh` of a number whose exponential no f32 holds. Most devices give the limit.
    Overflow,
    /// A barrier is under a condition that depends on memory which other invocations may write.
    Barrier,
    /// A subgroup operation reads a lane that does not take part.
    InactiveLane,
    /// The result depends on the size of a subgroup.
    SubgroupSize,
}

/// What a device may do with arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Liberty {
    /// Numbers below the smallest normal one become 0.
    Subnormals,
    /// −0 becomes 0.
    ZeroSign,
    /// `fma` rounds its product.
    Fma,
    /// `(a + b) - a` becomes `b`.
    Reassociation,
}

impl OpenResult {
    /// Returns the description and the alternative.
    const fn texts(self) -> [&'static str; 2] {
        match self {
            Self::PowOfNegative => [
                "`pow` of a number that is not above 0: WGSL leaves the result open",
                "`x * x` for a square, or `pow(abs(x), y)`",
            ],
            Self::Shift => [
                "a shift by all bits of the number or more: devices differ",
                "`x << (n & 31u)`, or a condition on `n`",
            ],
            Self::Conversion => [
                "a float that this integer type cannot hold: devices differ",
                "`u32(clamp(x, 0.0, 4e9))`, or `i32(clamp(x, -2e9, 2e9))`",
            ],
            Self::IntegerDivision => [
                "an integer division by 0, or one that overflows: devices differ",
                "`x / max(n, 1u)`, or a condition on `n`",
            ],
            Self::Clamp => [
                "the lower limit of `clamp` is above the upper one: devices differ",
                "`clamp(x, min(a, b), max(a, b))`",
            ],
            Self::NotFinite => [
                "an infinity or a NaN is used as a value: WGSL promises neither",
                "a large finite number, such as -3.4e38 where a maximum begins, and a condition before a division \
                 by 0",
            ],
            Self::NanTest => [
                "a float is compared with itself: a device may take it for equal, also a NaN",
                "a condition on what makes the NaN, before it is made",
            ],
            Self::Overflow => [
                "the exponential overflows here: WGSL does not promise its limit",
                "a limit inside: `exp(min(x, 80.0))`, `tanh(clamp(x, -15.0, 15.0))`",
            ],
            Self::Barrier => [
                "the barrier is under a condition on a value from memory that others may write: browsers refuse it, \
                 even where all invocations agree",
                "`workgroupUniformLoad(&flag)` for the value, or the barrier outside of the condition",
            ],
            Self::InactiveLane => [
                "a lane that does not take part is read: its value is left open",
                "a lane below the size of the subgroup, outside of conditions",
            ],
            Self::SubgroupSize => [
                "the result depends on the size of a subgroup, and devices differ",
                "`subgroup_size` in place of a number",
            ],
        }
    }

    /// Returns a sentence about what WGSL leaves open.
    pub const fn description(self) -> &'static str {
        self.texts()[0]
    }

    /// Returns code to write instead.
    pub const fn alternative(self) -> &'static str {
        self.texts()[1]
    }
}

impl Liberty {
    /// All liberties, in the order of their numbers.
    pub const ALL: [Self; 4] = [
        Self::Subnormals,
        Self::ZeroSign,
        Self::Fma,
        Self::Reassociation,
    ];

    /// Returns the description and the alternative.
    const fn texts(self) -> [&'static str; 2] {
        match self {
            Self::Subnormals => [
                "a device may replace numbers below 1.2e-38 by 0",
                "numbers scaled to about 1",
            ],
            Self::ZeroSign => [
                "a device may drop the sign of a zero",
                "a comparison with 0",
            ],
            Self::Fma => [
                "a device may round the product of `fma`",
                "a formula that needs no exact product",
            ],
            Self::Reassociation => [
                "a device may simplify `(a + b) - a` to `b`, so that nothing is left of the rounding error",
                "`round(x)` for a whole number, or a sum of fewer terms in each variable",
            ],
        }
    }

    /// Returns a sentence about what a device may do.
    pub const fn description(self) -> &'static str {
        self.texts()[0]
    }

    /// Returns code to write instead.
    pub const fn alternative(self) -> &'static str {
        self.texts()[1]
    }
}
