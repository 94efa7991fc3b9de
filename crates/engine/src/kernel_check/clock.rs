//! Measures the time that a piece of work has used: the processor time of this process, and the wall time in which no other program kept
//! the machine busy. So a busy machine does not make a kernel count as slow.

use std::time::{Duration, Instant};

use protocol::KernelWait;
use protocol::machine::{self, ProcessorTime};

/// The time between two readings of the load.
const LOAD_INTERVAL: Duration = Duration::from_millis(250);
/// The limit on quiet wall time, in multiples of the limit on processor time. Work on a GPU uses no processor time.
const QUIET_LIMIT: u32 = 4;
/// The wall time after which a busy machine is reported.
const PATIENCE: Duration = Duration::from_secs(3);

/// A clock that starts with a piece of work.
pub(super) struct WorkClock {
    began: Instant,
    /// The processor time of this process when the work began.
    processor: Option<Duration>,
    /// The wall time in which no other program kept the machine busy.
    quiet: Duration,
    /// True if other programs kept the machine busy before the last reading of the load.
    busy: bool,
    /// The last reading of the load, and its time.
    load: Option<ProcessorTime>,
    load_read: Instant,
}

/// The time that a piece of work has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeUsed {
    /// The processor time; `None` if the system does not report it.
    pub processor: Option<Duration>,
    /// The wall time in which no other program kept the machine busy.
    pub quiet: Duration,
}

impl WorkClock {
    pub(super) fn start() -> Self {
        Self {
            began: Instant::now(),
            processor: machine::own_time(),
            quiet: Duration::ZERO,
            busy: false,
            load: machine::read().ok(),
            load_read: Instant::now(),
        }
    }

    pub(super) fn wall(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the time used since the start.
    pub(super) fn spent(&mut self) -> TimeUsed {
        let since_reading = self.load_read.elapsed();
        if since_reading >= LOAD_INTERVAL {
            let load = machine::read().ok();
            self.busy = self
                .load
                .as_ref()
                .zip(load.as_ref())
                .and_then(|(before, now)| machine::share_of_others(before, now))
                .is_some_and(machine::disturbs);
            if !self.busy {
                self.quiet += since_reading;
            }
            self.load = load;
            self.load_read = Instant::now();
        }
        TimeUsed {
            processor: machine::own_time()
                .zip(self.processor)
                .map(|(now, before)| now.saturating_sub(before)),
            quiet: self.quiet,
        }
    }

    /// Returns the time so far if other programs slow the work down; `None` if they do not, or if it is too early to report it.
    pub(super) fn waits(&self, spent: TimeUsed) -> Option<KernelWait> {
        let wall = self.wall();
        (self.busy && wall >= PATIENCE).then(|| KernelWait {
            wall: wall.as_secs_f64(),
            processor: spent.processor.map(|time| time.as_secs_f64()),
        })
    }
}

impl TimeUsed {
    /// Returns true if the processor time reached `limit`, or if the quiet wall time reached several times that.
    pub(super) fn is_over(self, limit: Duration) -> bool {
        self.processor.is_some_and(|time| time >= limit) || self.quiet >= QUIET_LIMIT * limit
    }
}

impl std::ops::Add for TimeUsed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let own = self.processor.unwrap_or_default();
        Self {
            processor: other.processor.map(|time| own + time),
            quiet: self.quiet + other.quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn used(processor: Option<Duration>, quiet: Duration) -> TimeUsed {
        TimeUsed { processor, quiet }
    }

    #[test]
    fn a_limit_counts_processor_time_and_quiet_wall_time() {
        assert!(used(Some(SECOND), Duration::ZERO).is_over(SECOND));
        assert!(!used(Some(SECOND / 2), 3 * SECOND).is_over(SECOND));
        assert!(used(None, 4 * SECOND).is_over(SECOND));
    }

    #[test]
    fn times_add_up() {
        let sum = used(Some(SECOND), SECOND) + used(Some(SECOND), Duration::ZERO);
        assert_eq!(sum, used(Some(2 * SECOND), SECOND));
    }

    #[test]
    fn waiting_is_quiet_time_at_most() {
        let mut clock = WorkClock::start();
        std::thread::sleep(2 * LOAD_INTERVAL);
        let spent = clock.spent();
        assert!(clock.wall() >= 2 * LOAD_INTERVAL);
        assert!(spent.quiet <= clock.wall());
    }

    #[test]
    fn work_of_this_process_does_not_count_as_a_busy_machine() {
        let mut clock = WorkClock::start();
        let Some(before) = clock.spent().processor else {
            return;
        };
        while clock.spent().processor < Some(before + LOAD_INTERVAL) {
            std::hint::black_box((0..100_000_u64).sum::<u64>());
        }
        let spent = clock.spent();
        assert_eq!(clock.waits(spent), None);
    }
}
