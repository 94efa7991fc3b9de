//! How long the parent waits for its engine.

use std::time::Duration;

/// How long an engine may take. Tests shorten these.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until the engine's `hello`.
    pub hello: Duration,
    /// Between two lines, heartbeats included.
    pub silence: Duration,
    /// To end by itself after `quit`, or after closing its output.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(10),
            silence: Duration::from_secs(5),
            shutdown: Duration::from_millis(400),
        }
    }
}

/// Lines in a row that are not the protocol before the engine is given up.
pub(super) const MAX_NONSENSE: u32 = 100;

/// How long stderr of an engine that exited is waited for; something it started may hold it open.
pub(super) const STDERR_WAIT: Duration = Duration::from_millis(200);
