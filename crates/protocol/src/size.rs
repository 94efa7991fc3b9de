//! The sizes of a kernel exercise: names such as N, and products of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::unknown;

/// The value of each size, by name.
pub type Sizes = BTreeMap<String, u64>;

/// Returns the sizes as a text: `M = 17, N = 33`.
pub fn with_names(sizes: &Sizes) -> String {
    sizes
        .iter()
        .map(|(name, size)| format!("{name} = {size}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The largest size, and the largest number of elements or workgroups.
pub const MAX_SIZE: u64 = 1 << 30;

/// A product of sizes and numbers that may be divided, rounded up: `N * M`, `N / 64`, `ROWS`, `1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SizeProduct {
    factors: Vec<Factor>,
    divisor: Option<Factor>,
}

#[derive(Clone, Debug, PartialEq, Eq, strum::Display)]
enum Factor {
    #[strum(transparent)]
    Number(u64),
    #[strum(transparent)]
    Name(String),
}

impl SizeProduct {
    /// Parses factors joined by `*`, then at most one `/` and a divisor.
    ///
    /// # Errors
    /// Names the first factor that is neither a number above 0 nor the name of a size.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (product, divisor) = match text.split_once('/') {
            Some((product, divisor)) => (product, Some(Factor::parse(divisor)?)),
            None => (text, None),
        };
        Ok(Self {
            factors: product
                .split('*')
                .map(Factor::parse)
                .collect::<Result<_, _>>()?,
            divisor,
        })
    }

    /// Returns the number for these sizes.
    ///
    /// # Errors
    /// Fails when a size is missing, when the product is above `MAX_SIZE`, or when the divisor is 0.
    pub fn value(&self, sizes: &Sizes) -> Result<u64, String> {
        let mut product: u64 = 1;
        for factor in &self.factors {
            product = product
                .checked_mul(factor.value(sizes)?)
                .filter(|n| *n <= MAX_SIZE)
                .ok_or_else(|| format!("a product of sizes is over the limit of {MAX_SIZE}"))?;
        }
        match &self.divisor {
            None => Ok(product),
            Some(divisor) => match divisor.value(sizes)? {
                0 => Err("divides by 0".to_owned()),
                divisor => Ok(product.div_ceil(divisor)),
            },
        }
    }

    /// Returns an amount of work for these sizes: the number without its limit, and not rounded.
    ///
    /// # Errors
    /// Fails when a size is missing.
    pub fn work(&self, sizes: &Sizes) -> Result<f64, String> {
        let mut work = 1.0;
        for factor in &self.factors {
            work *= factor.value(sizes)? as f64;
        }
        match &self.divisor {
            None => Ok(work),
            Some(divisor) => Ok(work / divisor.value(sizes)? as f64),
        }
    }

    /// Returns the last factor: the length of a row, for a product that counts the elements of a matrix.
    pub fn row(&self, sizes: &Sizes) -> u64 {
        self.factors
            .last()
            .and_then(|factor| factor.value(sizes).ok())
            .unwrap_or(1)
    }
}

impl TryFrom<String> for SizeProduct {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<SizeProduct> for String {
    fn from(product: SizeProduct) -> Self {
        product.to_string()
    }
}

impl fmt::Display for SizeProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factors: Vec<String> = self.factors.iter().map(Factor::to_string).collect();
        match factors.as_slice() {
            [] => f.write_str("1")?,
            factors => f.write_str(&factors.join(" * "))?,
        }
        match &self.divisor {
            Some(divisor) => write!(f, " / {divisor}"),
            None => Ok(()),
        }
    }
}

impl Factor {
    fn parse(text: &str) -> Result<Self, String> {
        let word = text.trim();
        match word.parse::<u64>() {
            Ok(0) => Err("a factor or a divisor of 0 leaves nothing; write 1 or more".to_owned()),
            Ok(n) => Ok(Self::Number(n)),
            Err(_) if is_size_name(word) => Ok(Self::Name(word.to_owned())),
            Err(_) => Err(format!(
                "`{word}` is neither a number nor a size; write a product such as `N * M / 64`"
            )),
        }
    }

    fn value(&self, sizes: &Sizes) -> Result<u64, String> {
        match self {
            Self::Number(n) => Ok(*n),
            Self::Name(name) => sizes
                .get(name)
                .copied()
                .ok_or_else(|| unknown("size", name, sizes.keys().map(String::as_str))),
        }
    }
}

/// Returns true for the name of a size: at most 16 capitals, digits and `_`, a capital first.
pub fn is_size_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.len() <= 16
        && text
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<u64, String> {
        let sizes = Sizes::from([("N".to_owned(), 100), ("M".to_owned(), 3)]);
        SizeProduct::parse(text)?.value(&sizes)
    }

    #[test]
    fn a_quotient_is_rounded_up() {
        assert_eq!(value("N * M"), Ok(300));
        assert_eq!(value("N / 64"), Ok(2));
        assert_eq!(value("N*M / M"), Ok(100));
        assert_eq!(value("1"), Ok(1));
    }

    #[test]
    fn a_wrong_factor_is_named() {
        assert_eq!(
            value("n"),
            Err(
                "`n` is neither a number nor a size; write a product such as `N * M / 64`"
                    .to_owned()
            )
        );
        assert_eq!(
            value("NN"),
            Err("unknown size `NN`; the nearest known size is `N`".to_owned())
        );
    }

    #[test]
    fn a_product_of_0_or_above_the_limit_is_refused() {
        assert!(value("N * N * N * N * N * N").is_err());
        for text in ["N / 0", "N * M * 0", "0"] {
            let error = value(text).expect_err("a factor is 0");
            assert!(error.contains("of 0 leaves nothing"), "{error}");
        }
    }

    #[test]
    fn a_product_is_shown_with_spaces() {
        let shown = SizeProduct::parse("N*M/ 64").map(|product| product.to_string());
        assert_eq!(shown, Ok("N * M / 64".to_owned()));
    }
}
