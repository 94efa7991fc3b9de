//! Types that many messages share: numbers that JSON can carry, the two slots, the run to make, its device, and the spread of times.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::RunConfig;

/// Returns true for 0. Counts that are 0 are left out of the JSON.
pub(crate) fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

/// A number that may be NaN or infinite; JSON has no such numbers, so those travel as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Num(pub f64);

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&self.to_string())
        }
    }
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(x) => Ok(Self(x)),
            Form::Text(text) => match text.as_str() {
                "NaN" => Ok(Self(f64::NAN)),
                "inf" => Ok(Self(f64::INFINITY)),
                "-inf" => Ok(Self(f64::NEG_INFINITY)),
                _ => Err(serde::de::Error::custom(format!(
                    "`{text}` is not a number, NaN, inf or -inf"
                ))),
            },
        }
    }
}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<f64> for Num {
    fn from(x: f64) -> Self {
        Self(x)
    }
}

/// One of the two runs on the screen. A is the first run; B is the run after a toggle, or the other side of a comparison.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum Slot {
    #[default]
    A,
    B,
}

impl Slot {
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Returns true for A. Events that got their slot in a later version leave A out of their JSON.
    pub(crate) fn is_a(&self) -> bool {
        *self == Self::A
    }
}

/// A run to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The stage's number; 0 when the run belongs to no stage.
    pub stage: u32,
    /// The variant: `broken`, `fixed` or `custom`.
    pub variant: String,
    pub slot: Slot,
    pub config: RunConfig,
    /// The number of steps; `None` means that the run goes on until it is stopped.
    pub steps: Option<u64>,
    /// True for a mystery: recordings and reports must not show the configuration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}

impl RunSpec {
    /// Returns a run in slot A that belongs to no stage and goes on until it is stopped.
    pub fn new(variant: &str, config: &RunConfig) -> Self {
        Self {
            stage: 0,
            variant: variant.to_owned(),
            slot: Slot::A,
            config: config.clone(),
            steps: None,
            sealed: false,
        }
    }
}

/// The device of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The kind: `cpu`, `gpu` or `vulkan-cpu`.
    pub kind: String,
    /// The name: `EPYC 9654, 2 threads`, `NVIDIA H100 (Vulkan)`.
    pub name: String,
}

/// Median, quartiles and 95th percentile of step times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub p25: f64,
    pub p75: f64,
    pub p95: f64,
    /// The number of steps.
    pub n: u64,
}
