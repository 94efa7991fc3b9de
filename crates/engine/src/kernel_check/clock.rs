//! Measures the time that a piece of work has used: processor time of this process where the system reports it, otherwise wall time
//! during which no other program kept the machine busy. A busy machine does not make a kernel slow.

use std::time::{Duration, Instant};

use protocol::KernelWait;
use protocol::machine;
use protocol::machine::{ProcessorTime, others};

/// How often the load is read.
const GLANCE: Duration = Duration::from_millis(250);
/// A limit on wall time is this many times the one on processor time: work on a GPU uses no processor time.
const BY_THE_CLOCK: u32 = 4;
/// Wall time after which a busy machine is reported.
const PATIENCE: Duration = Duration::from_secs(3);

/// Starts with a piece of work.
pub(super) struct WorkClock {
    began: Instant,
    processor: Option<Duration>,
    /// Wall time while no other program kept the machine busy.
    quiet: Duration,
    /// True if others kept the machine busy when the load was last read, and when that was.
    busy: bool,
    looked: Instant,
    load: Option<ProcessorTime>,
}

/// Time that a piece of work has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeUsed {
    pub processor: Option<Duration>,
    pub quiet: Duration,
}

impl WorkClock {
    pub(super) fn start() -> Self {
        Self {
            began: Instant::now(),
            processor: machine::own_time(),
            quiet: Duration::ZERO,
            busy: false,
            looked: Instant::now(),
            load: machine::read().ok(),
        }
    }

    pub(super) fn wall(&self) -> Duration {
        self.began.elapsed()
    }

    /// Time used since the start.
    pub(super) fn spent(&mut self) -> TimeUsed {
        let since = self.looked.elapsed();
        if since >= GLANCE {
            let now = machine::read().ok();
            let share = self.load.as_ref().zip(now.as_ref());
            self.busy = share
                .and_then(|(before, now)| others(before, now))
                .is_some_and(machine::disturbs);
            if !self.busy {
                self.quiet += since;
            }
            (self.looked, self.load) = (Instant::now(), now);
        }
        let processor = machine::own_time().zip(self.processor);
        TimeUsed {
            processor: processor.map(|(now, before)| now.saturating_sub(before)),
            quiet: self.quiet,
        }
    }

    /// The time so far, if other programs slow the work down.
    pub(super) fn waits(&self, spent: TimeUsed) -> Option<KernelWait> {
        let wall = self.wall();
        (self.busy && wall >= PATIENCE).then(|| KernelWait {
            wall: wall.as_secs_f64(),
            processor: spent.processor.map(|it| it.as_secs_f64()),
        })
    }
}

impl TimeUsed {
    /// Returns true if the processor time reached `limit`, or the wall time on a quiet machine reached several times that.
    pub(super) fn is_over(self, limit: Duration) -> bool {
        self.processor.is_some_and(|it| it >= limit) || self.quiet >= BY_THE_CLOCK * limit
    }
}

impl std::ops::AddAssign for TimeUsed {
    fn add_assign(&mut self, other: Self) {
        let own = self.processor.unwrap_or_default();
        self.processor = other.processor.map(|it| own + it);
        self.quiet += other.quiet;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_processor_time_and_a_quiet_clock() {
        let second = Duration::from_secs(1);
        let spent = |processor: Option<Duration>, quiet| TimeUsed { processor, quiet };
        assert!(spent(Some(second), Duration::ZERO).is_over(second));
        assert!(!spent(Some(second / 2), 3 * second).is_over(second));
        assert!(spent(None, 4 * second).is_over(second));
        let mut both = spent(Some(second), second);
        both += spent(Some(second), Duration::ZERO);
        assert_eq!(both, spent(Some(2 * second), second));
    }

    #[test]
    fn waiting_takes_no_processor_time() {
        let mut clock = WorkClock::start();
        std::thread::sleep(2 * GLANCE);
        let waited = clock.spent();
        assert!(clock.wall() >= 2 * GLANCE && waited.quiet <= clock.wall());
        let Some(before) = waited.processor else {
            return;
        };
        while clock.spent().processor < Some(before + GLANCE) {
            std::hint::black_box((0..100_000_u64).sum::<u64>());
        }
        assert_eq!(clock.waits(waited), None);
    }
}
