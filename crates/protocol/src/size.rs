//! The sizes of a kernel exercise: names such as N, and products of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::unknown;

/// Sizes by name.
pub type Sizes = BTreeMap<String, u64>;

/// `M = 17, N = 33`.
pub fn with_names(sizes: &Sizes) -> String {
    let sizes: Vec<_> = sizes
        .iter()
        .map(|(name, n)| format!("{name} = {n}"))
        .collect();
    sizes.join(", ")
}

/// Largest size and largest number of elements or workgroups.
pub const MAX_SIZE: u64 = 1 << 30;

/// `N * M`, `N / 64` rounded up, `ROWS`, `1`.
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
    /// Factors joined by `*`, then at most one `/` and a divisor; the quotient is rounded up.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (product, divisor) = text
            .split_once('/')
            .map_or((text, None), |(p, d)| (p, Some(d)));
        let factors = product
            .split('*')
            .map(factor)
            .collect::<Result<Vec<_>, _>>()?;
        let divisor = divisor.map(factor).transpose()?;
        Ok(Self { factors, divisor })
    }

    /// The number, with the sizes put in.
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

    /// Returns an amount of work, without a limit and with fractions.
    ///
    /// # Errors
    /// When a size is missing.
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

    /// Of a number of elements: how many lie in the last axis.
    pub fn row(&self, sizes: &Sizes) -> u64 {
        let last = self.factors.last();
        last.and_then(|factor| factor.value(sizes).ok())
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
        self.divisor
            .iter()
            .try_for_each(|divisor| write!(f, " / {divisor}"))
    }
}

impl Factor {
    fn value(&self, sizes: &Sizes) -> Result<u64, String> {
        match self {
            Self::Number(n) => Ok(*n),
            Self::Name(name) => {
                let known = sizes.keys().map(String::as_str);
                let size = sizes.get(name).copied();
                size.ok_or_else(|| unknown("size", name, known))
            }
        }
    }
}

fn factor(text: &str) -> Result<Factor, String> {
    let text = text.trim();
    match text.parse::<u64>() {
        Ok(0) => Err("a factor or a divisor of 0 leaves nothing; write 1 or more".to_owned()),
        Ok(n) => Ok(Factor::Number(n)),
        Err(_) if is_size_name(text) => Ok(Factor::Name(text.to_owned())),
        Err(_) => Err(format!(
            "`{text}` is neither a number nor a size; write a product such as `N * M / 64`"
        )),
    }
}

/// Capitals, digits and `_`, a capital first.
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

    fn sizes() -> Sizes {
        Sizes::from([("N".to_owned(), 100), ("M".to_owned(), 3)])
    }

    #[test]
    fn products_round_up() {
        let value =
            |text: &str| SizeProduct::parse(text).and_then(|product| product.value(&sizes()));
        assert_eq!(value("N * M"), Ok(300));
        assert_eq!(value("N / 64"), Ok(2));
        assert_eq!(value("N*M / M"), Ok(100));
        assert_eq!(value("1"), Ok(1));
        assert!(
            value("n")
                .expect_err("lower case")
                .contains("neither a number nor a size")
        );
        assert_eq!(
            value("NN"),
            Err("unknown size `NN`; the nearest known size is `N`".to_owned())
        );
        assert!(value("N * N * N * N * N * N").is_err());
        for nothing in ["N / 0", "N * M * 0", "0"] {
            assert!(
                value(nothing)
                    .expect_err("nothing")
                    .contains("of 0 leaves nothing")
            );
        }
        let shown = SizeProduct::parse("N*M/ 64").map(|product| product.to_string());
        assert_eq!(shown, Ok("N * M / 64".to_owned()));
    }
}
