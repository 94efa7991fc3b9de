//! The timed steps of a run. In an unsynchronised run every eighth step is bracketed with syncs: the queue is emptied before it, and the host
//! waits for the device after it.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::worker::Worker;
use super::{REPORT_PAUSE, Trainer};
use protocol::config::Sync;
use protocol::{Event, PhaseTimes, Step, StepClocks};

/// The number of steps from one bracketed step of an unsynchronised run to the next.
const BRACKET_EVERY: u64 = 8;
/// The shortest time between two bracketed steps. The device idles while an empty queue fills again, which would slow a run of short steps.
const BRACKET_PAUSE: Duration = Duration::from_millis(10);
/// The largest number of steps whose losses were not read yet.
const MAX_PENDING: usize = 256;
/// The number of the latest steps whose phases are kept.
const MAX_PHASES: usize = 256;

impl Trainer {
    /// Returns true if the next step of an unsynchronised run is bracketed with syncs.
    fn bracket_is_due(&self) -> bool {
        let last = self.stats.last_bracketed;
        !self.is_synchronised()
            && self.stats.counted.is_multiple_of(BRACKET_EVERY)
            && last.is_none_or(|last| last.elapsed() >= BRACKET_PAUSE)
    }

    /// Takes one step without the profiler, and reports what is due after it.
    pub(super) fn timed_step(&mut self) -> Result<()> {
        let first = self.stats.counted == 0;
        let watch = match &self.compiling {
            Some(compiling) if self.stats.counted < 2 => Some(compiling.watch()),
            _ => None,
        };
        let bracketed = self.bracket_is_due();
        if bracketed {
            self.stats.last_bracketed = Some(Instant::now());
        }
        if bracketed || self.is_synchronised() {
            // This keeps the step before and the copy of the batch out of this step's time.
            self.queue.sync()?;
        }
        if bracketed && self.is_warm() {
            self.stats.unsynced.mark(self.stats.counted);
        }
        let mut timed = self.time_step(bracketed)?;
        if timed.clocks.is_none() {
            self.queue.keep_pace()?;
        }
        drop(watch);

        if self.is_warm() {
            self.count(&timed);
        }
        if !self.stats.counted.is_multiple_of(BRACKET_EVERY) {
            timed.clocks = None;
        }
        let may_read = timed.synced || bracketed;
        self.pending.push(timed);
        self.step += 1;
        self.stats.counted += 1;
        if may_read
            && (self.must_report() || self.pending.len() > MAX_PENDING)
            && !self.read_losses()?
        {
            return self.stop_not_finite();
        }
        if first {
            self.stats.unsynced.interrupt();
            self.compile_ahead = None;
            self.report_evidence()?;
            self.measure_peaks();
        }
        if self.last_report.elapsed() >= REPORT_PAUSE || self.all_counted() {
            self.report();
        }
        Ok(())
    }

    /// Adds a step after warm-up to the statistics.
    fn count(&mut self, timed: &Step) {
        if let Some(clocks) = timed.clocks {
            self.keep_clocks(clocks);
        }
        self.stats.times.push(timed.ms);
        self.stats.phases.extend(timed.phases);
        if self.stats.phases.len() > MAX_PHASES {
            self.stats.phases.remove(0);
        }
    }

    /// Takes one step and times it as `measure.sync` asks, without reading its loss. `bracketed` is true for a step of an unsynchronised run that
    /// ends with a sync.
    fn time_step(&mut self, bracketed: bool) -> Result<Step> {
        let sync = self.spec.config.measure.sync;
        let mut enqueue_ms = 0.0;
        let busy_before = self.queue.busy();
        let began = Instant::now();
        let mut phase_began = began;
        let mut phases_ms = Vec::with_capacity(3);
        for task in Worker::tasks(&self.spec.config, self.on_cpu()) {
            self.queue.submit(*task)?;
            enqueue_ms += phase_began.elapsed().as_secs_f64() * 1e3;
            if sync == Sync::PerPhase {
                self.queue.sync()?;
            }
            let now = Instant::now();
            phases_ms.push((now - phase_began).as_secs_f64() * 1e3);
            phase_began = now;
        }
        if sync == Sync::PerStep || bracketed {
            self.queue.sync()?;
        }
        let busy = self.queue.busy().zip(busy_before);
        let step_ms = began.elapsed().as_secs_f64() * 1e3;
        let synced = self.is_synchronised();
        let mut timed = Step {
            slot: self.slot(),
            step: self.step,
            ms: if synced {
                step_ms
            } else {
                phases_ms.iter().sum()
            },
            synced,
            ..Step::default()
        };
        if synced || bracketed {
            // A step that is replayed whole has no phases.
            timed.phases = <[f64; 3]>::try_from(phases_ms.as_slice())
                .ok()
                .map(|phases| PhaseTimes::from_parts(phases, step_ms));
            timed.clocks = Some(StepClocks {
                enqueue: enqueue_ms,
                host_sync: step_ms,
                device: busy.map(|(now, before)| (now - before).as_secs_f64() * 1e3),
            });
        }
        Ok(timed)
    }

    /// Keeps the host's readings of a step after warm-up, and sends them with every eighth step.
    fn keep_clocks(&mut self, clocks: StepClocks) {
        let host_clocks = StepClocks {
            device: None,
            ..clocks
        };
        let first = self.stats.clocks.replace(host_clocks).is_none();
        if first || self.stats.counted.is_multiple_of(BRACKET_EVERY) {
            self.send_clocks();
        }
    }

    /// Sends the evidence again with the newest clocks: the host's two readings, and the sum over the kernels of the latest profiled step. The
    /// other facts stay those of the step that the evidence was taken from.
    pub(super) fn send_clocks(&mut self) {
        if let (Some(mut evidence), Some(clocks)) = (self.story.evidence.clone(), self.stats.clocks)
        {
            let kernels = self.story.kernels.as_ref();
            let device = kernels.map(|kernels| kernels.device_ms);
            evidence.clocks = Some(StepClocks { device, ..clocks });
            self.emit(Event::Evidence(evidence));
        }
    }
}
