//! The measured peaks of a device.

use serde::{Deserialize, Serialize};

/// The measured roofs of one device under one driver: the best of several repeats, with their spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roof {
    /// f32 multiply-adds on registers alone, two operations each, per second.
    pub flops: Rate,
    /// f16 products with f32 sums on matrix cores, on registers alone, where the device has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix_cores: Option<Rate>,
    /// Bytes a second of a triad over arrays far larger than the caches, reads and writes each counted.
    pub bytes: Rate,
    /// `device`, `system` or `host`.
    pub clock: String,
    /// The date of the measurement, `YYYY-MM-DD` in UTC.
    pub date: String,
}

impl Roof {
    /// The largest share that other programs had while one of the rates was measured, where they disturbed it.
    pub fn load(&self) -> Option<f64> {
        [self.flops.load, self.bytes.load]
            .into_iter()
            .flatten()
            .reduce(f64::max)
    }
}

/// A rate per second over several repeats. Noise only slows, so the best is the roof; the rest says how sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub best: f64,
    pub median: f64,
    pub p25: f64,
    pub p75: f64,
    pub n: u32,
    /// The share of the cores that other programs used meanwhile, where it was so much that the rate may be too low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}
