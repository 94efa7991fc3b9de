//! When the work on the device last made progress. Every operation reports it, and so does all code that submits work. A device that hangs
//! shows in the time since the last report, although the thread that sends heartbeats still runs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the last progress, in milliseconds since the first use of this module, plus 1. The value 0 means that there is no work.
pub struct LastProgress(AtomicU64);

/// The progress of the work on this process's device.
pub static DEVICE: LastProgress = LastProgress(AtomicU64::new(0));

/// Returns the milliseconds since the first call, plus 1.
fn now() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let began = BEGAN.get_or_init(Instant::now);
    u64::try_from(began.elapsed().as_millis()).map_or(u64::MAX, |ms| ms + 1)
}

impl LastProgress {
    /// Starts work.
    pub fn begin(&self) {
        self.0.store(now(), Ordering::Relaxed);
    }

    /// Reports progress. A report while there is no work is ignored, because a queue may still finish work that nothing waits for.
    pub fn step(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.begin();
        }
    }

    /// Ends work until the next `begin`.
    pub fn rest(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns the time since the last progress; `None` while there is no work.
    pub fn since(&self) -> Option<Duration> {
        let last = self.0.load(Ordering::Relaxed);
        (last != 0).then(|| Duration::from_millis(now().saturating_sub(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_progress_grows_only_while_there_is_work() {
        let work = LastProgress(AtomicU64::new(0));
        work.step();
        assert_eq!(work.since(), None);
        work.begin();
        std::thread::sleep(Duration::from_millis(20));
        let silence = work.since();
        assert!(silence.is_some_and(|time| time >= Duration::from_millis(15)));
        work.step();
        assert!(work.since() < silence);
        work.rest();
        assert_eq!(work.since(), None);
    }
}
