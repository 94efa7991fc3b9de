//! The numbers that a buffer of a kernel exercise can hold.

use serde::{Deserialize, Serialize};

/// The kind of numbers that an input holds. N(0, 1) is a standard normal number, drawn anew for each element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum KernelFill {
    /// N(0, 1).
    #[default]
    #[strum(serialize = "ordinary normal numbers")]
    Normal,
    /// N(0, 1) · 100: large enough that exp overflows where the maximum is not subtracted first.
    #[strum(serialize = "numbers of hundreds, of both signs")]
    Large,
    /// N(0, 1) / 1000.
    #[strum(serialize = "numbers of thousandths")]
    Small,
    /// N(0, 1) · 1e-8.
    #[strum(serialize = "tiny numbers, of 1e-8")]
    Tiny,
    #[strum(serialize = "zeros")]
    Zero,
    /// Uniform in 0 to 1.
    #[strum(serialize = "numbers from 0 to 1")]
    Positive,
    /// N(0, 1) + 5.
    #[strum(serialize = "numbers around 5")]
    Above,
    /// N(0, 1) · 10 − 200.
    #[strum(serialize = "numbers around -200")]
    Below,
    /// N(0, 1) + 4 · i for element i.
    #[strum(serialize = "rising numbers")]
    Rising,
    /// N(0, 1) − 4 · i.
    #[strum(serialize = "falling numbers")]
    Falling,
    /// −s · (1 + N(0, 1) / 4), where each buffer has one s between 1e5 and 1e8; positive in every second buffer.
    #[strum(serialize = "numbers far from zero")]
    Far,
    /// −s · (1.25 to 1.5), where s is the largest number of the learner's text; positive in every second buffer.
    #[strum(serialize = "numbers below every number of the text")]
    Beneath,
    /// N(0, 1) · s, where each buffer has one s between 1e4 and 1e8.
    #[strum(serialize = "huge numbers, of both signs")]
    Huge,
    /// One number, drawn once, in every element.
    #[strum(serialize = "one number everywhere")]
    Constant,
    /// N(0, 1), and in each row one element s, where each buffer has one s between 8 and 2,000.
    #[strum(serialize = "normal numbers with one large one in each row")]
    Outlier,
    /// N(0, 1), and about one element in eight is 0.
    #[strum(serialize = "normal numbers with zeros among them")]
    Sparse,
    /// N(0, 1), mixed with numbers that the learner's text names and numbers near them, of both signs.
    #[strum(serialize = "numbers near those that the text names")]
    Written,
    /// Integers, drawn evenly from 0 up to but not including `KernelBinding::below`.
    #[strum(serialize = "indices in any order")]
    Index,
    /// At most three different integers, each drawn like `Index`.
    #[strum(serialize = "indices that are often the same")]
    Repeated,
    /// Integers drawn like `Index`, in rising order.
    #[strum(serialize = "indices in rising order")]
    Sorted,
}

impl KernelFill {
    /// The kinds that a drawn shape is tried with. A check of a large shape may run out of steps, so the kinds that find mistakes which
    /// no other kind finds come first.
    pub const DRAWN: [Self; 13] = [
        Self::Normal,
        Self::Beneath,
        Self::Far,
        Self::Large,
        Self::Tiny,
        Self::Below,
        Self::Huge,
        Self::Falling,
        Self::Constant,
        Self::Outlier,
        Self::Sparse,
        Self::Zero,
        Self::Written,
    ];

    /// The kinds that a buffer of integers can hold.
    pub const OF_INTEGERS: [Self; 3] = [Self::Index, Self::Repeated, Self::Sorted];

    /// The kinds that a shape is tried with if it was drawn because the learner's text names its size.
    pub const OF_TEXT: [Self; 2] = [Self::Normal, Self::Written];
}
