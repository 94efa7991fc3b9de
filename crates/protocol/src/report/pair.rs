//! The engine's report of a paired comparison.

use serde::{Deserialize, Serialize};

use crate::run::{Spread, is_zero};

/// The result of a comparison: how B compares with A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    Faster,
    Slower,
    #[strum(to_string = "less than 1 % apart")]
    Same,
    #[default]
    Unclear,
}

/// The state of a paired comparison. Ratios are time of A / time of B: above 1, B is faster. The ratio, its interval, the verdict and the
/// times of both sides are those of the latest look; before the first look, those of all pairs so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The number of pairs measured so far.
    pub n: u32,
    /// The number of pairs at the next look, which gives a verdict.
    pub wanted: u32,
    pub ratio: f64,
    /// The 95 % interval of the ratio; `None` below 10 pairs.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: Verdict,
    pub a_ms: Spread,
    pub b_ms: Spread,
    /// The seconds left at the present pace, if no look ends the comparison before its limit.
    pub remaining_s: f64,
    /// True for the last report of a comparison.
    pub done: bool,
    /// The paths of the keys in which the two configurations differ.
    pub differs: Vec<String>,
    /// The largest number of pairs, fixed before the first one.
    #[serde(default)]
    pub limit_pairs: u32,
    /// The longest time in seconds, fixed before the first pair.
    #[serde(default)]
    pub limit_s: f64,
    #[serde(default)]
    pub looks: Vec<Look>,
    /// The tokens of a step of A and of B, if these differ in batch or context. Then the ratio is that of the times per token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<[u64; 2]>,
    /// The number of the command that this event answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

/// A look at a comparison. The interval is `None` until the look is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The number of pairs at which the look is made.
    pub pairs: u32,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Pair {
    /// Returns the number of pairs that the ratio, its interval, the verdict and the times include. More may have been measured since.
    pub fn judged(&self) -> u64 {
        match self.a_ms.n {
            0 => self.n.into(),
            judged => judged,
        }
    }

    /// Returns the ratio with its interval, `1.200x [1.100, 1.300]`, or with the reason why it has none. If the ratio does not include all
    /// pairs so far, the text has the number of those that it includes.
    pub fn figures(&self) -> String {
        let per = if self.tokens.is_some() {
            " per token"
        } else {
            ""
        };
        let interval = match self.low.zip(self.high) {
            Some((low, high)) => format!("[{low:.3}, {high:.3}]"),
            None if self.judged() >= 10 => "(no interval yet)".to_owned(),
            None => NO_INTERVAL.to_owned(),
        };
        let judged = self.judged();
        let included = if judged < self.n.into() {
            format!(" of the first {judged} pairs")
        } else {
            String::new()
        };
        format!("{:.3}x{per} {interval}{included}", self.ratio)
    }
}

/// The text that replaces the interval of a comparison with few pairs.
pub const NO_INTERVAL: &str = "(no interval below 10 pairs)";
