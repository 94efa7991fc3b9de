//! The statistics of a run since it began or its knobs changed.

use std::time::{Duration, Instant};

use protocol::stats::robust::StepTimes;
use protocol::{PhaseTimes, StepClocks};

/// The wall time between steps of an unsynchronised run that began with an empty queue. It gives a true rate without a wait in each step.
#[derive(Default)]
pub(crate) struct UnsyncedTiming {
    /// The start of the latest such step, and the number of steps counted before it. `None` after anything other than a counted step.
    last_mark: Option<(Instant, u64)>,
    steps: u64,
    seconds: f64,
}

impl UnsyncedTiming {
    /// Marks this moment, at which the queue is empty, after `counted` counted steps. The time since the mark before counts.
    pub(super) fn mark(&mut self, counted: u64) {
        let now = Instant::now();
        if let Some((marked_at, counted_before)) = self.last_mark.replace((now, counted)) {
            self.steps += counted - counted_before;
            self.seconds += (now - marked_at).as_secs_f64();
        }
    }

    /// Forgets the last mark, because the work that follows is not a counted step: a profile, evidence, a pause.
    pub(crate) fn interrupt(&mut self) {
        self.last_mark = None;
    }

    /// Leaves out time that went by with an empty queue while a loss was read: no timed step contains it.
    pub(super) fn leave_out(&mut self, took: Duration) {
        if let Some((marked_at, _)) = &mut self.last_mark {
            *marked_at += took;
        }
    }

    /// Returns the steps per second; `None` before two marks in a row.
    pub(super) fn steps_per_s(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.steps as f64 / self.seconds)
    }
}

/// The counts and measurements of a run. They begin anew when the run continues with changed knobs.
#[derive(Default)]
pub(crate) struct Statistics {
    /// The number of steps that were not profiled.
    pub(super) counted: u64,
    /// The number of steps that count in no statistic.
    pub(super) uncounted: u64,
    pub(super) times: StepTimes,
    pub(super) phases: Vec<PhaseTimes>,
    /// The wall time spent in pauses.
    pub pause_time: Duration,
    pub unsynced: UnsyncedTiming,
    /// The time of the last step of an unsynchronised run that was bracketed with syncs.
    pub(super) last_bracketed: Option<Instant>,
    /// True if the next step is profiled to find a gradient that overflowed.
    pub(super) profile_due: bool,
    /// The time of the latest profile, and the number of steps counted before it.
    pub(super) last_profile: Option<(Instant, u64)>,
    pub(super) profiles: usize,
    /// The number of profiles discarded since the last one that counted.
    pub(super) discarded: u32,
    /// The two readings of the host's clock.
    pub(super) clocks: Option<StepClocks>,
    /// The milliseconds of a step that waits for the device at its end only.
    pub(super) end_synced_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_an_unsynchronised_run_counts_only_steps_between_two_waits() {
        let mut timing = UnsyncedTiming::default();
        assert_eq!(timing.steps_per_s(), None);
        timing.mark(8);
        assert_eq!(timing.steps_per_s(), None);
        timing.mark(16);
        assert_eq!(timing.steps, 8);
        let seconds = timing.seconds;
        timing.interrupt();
        timing.mark(40);
        assert_eq!((timing.steps, timing.seconds), (8, seconds));
        timing.mark(48);
        assert_eq!(timing.steps, 16);
        assert!(timing.steps_per_s().is_some_and(f64::is_finite));
        // A synchronised step is timed without the reading of its loss, so this time is left out here as well.
        let seconds = timing.seconds;
        timing.leave_out(Duration::from_secs(3600));
        timing.mark(56);
        assert_eq!((timing.steps, timing.seconds), (24, seconds));
    }
}
