//! The measured peaks of a device.

use serde::{Deserialize, Serialize};

/// The measured peaks of one device under one driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peaks {
    /// The floating-point operations a second: multiply-adds of f32 on registers alone, two operations each.
    pub flops: Rate,
    /// The floating-point operations a second on matrix cores: f16 products with f32 sums, on registers alone. `None` for a device without
    /// matrix cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix_cores: Option<Rate>,
    /// The bytes a second, read and written, of a triad over arrays far larger than the caches.
    pub bytes: Rate,
    /// The clock of the measurement: `device`, `system` or `host`.
    pub clock: String,
    /// The date of the measurement, `YYYY-MM-DD` in UTC.
    pub date: String,
}

impl Peaks {
    /// Returns the largest share of the cores that other programs used while one of the rates was measured; `None` if they did not
    /// disturb it.
    pub fn load(&self) -> Option<f64> {
        [self.flops.load, self.bytes.load]
            .into_iter()
            .flatten()
            .reduce(f64::max)
    }
}

/// A rate per second, measured in several repeats. Noise only slows, so the best repeat is the peak; the others show how certain it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub best: f64,
    pub median: f64,
    pub p25: f64,
    pub p75: f64,
    /// The number of repeats.
    pub n: u32,
    /// The share of the cores that other programs used during the measurement; `None` if it was too small to lower the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}
