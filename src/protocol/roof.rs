//! What a device was measured to do at most.

use serde::{Deserialize, Serialize};

/// The measured roofs of one device under one driver: the best of several repeats, with their spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roof {
    /// f32 multiply-adds on registers alone, two operations each, per second.
    pub flops: Rate,
    /// Bytes a second of a triad over arrays far larger than the caches, reads and writes each counted.
    pub bytes: Rate,
    /// `device`, `system` or `host`.
    pub clock: String,
    /// When it was measured, `YYYY-MM-DD`, UTC.
    pub date: String,
}

/// A rate per second over several repeats. Noise only slows, so the best is the roof; the rest says how sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub best: f64,
    pub median: f64,
    pub p25: f64,
    pub p75: f64,
    pub n: u32,
}
