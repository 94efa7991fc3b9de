//! The reports of a run: its statistics while it goes on, and its summary at the end.

use std::time::Instant;

use super::{TOP, Trainer, bounding_peaks};
use protocol::lints::lints;
use protocol::stats::robust::typical_phases;
use protocol::{Event, Finished, Num, Throughput};

impl Trainer {
    /// Sends the statistics so far, and the lints if they changed.
    pub(super) fn report(&mut self) {
        self.last_report = Instant::now();
        if let Some(throughput) = self.statistics() {
            self.emit(Event::Throughput(throughput));
        }
        self.check_lints();
    }

    /// Returns the statistics so far; `None` before the first step after warm-up.
    fn statistics(&self) -> Option<Throughput> {
        let config = &self.spec.config;
        let step_ms = self.stats.times.spread()?;
        let peaks = bounding_peaks(config, &self.opened);
        let batch = config.train.batch as f64;
        let by_median = batch / (step_ms.median * 1e-3);
        let wall = self.began.elapsed().saturating_sub(self.stats.pause_time);
        let steps = self.stats.counted + self.stats.uncounted;
        let wall_samples_per_s = steps as f64 * batch / wall.as_secs_f64().max(1e-9);
        let synced = self.is_synchronised();
        let samples_per_s = if synced {
            by_median
        } else {
            let rate = self.stats.unsynced.steps_per_s();
            rate.map_or(wall_samples_per_s, |rate| batch * rate)
        };
        Some(Throughput {
            slot: self.slot(),
            step: self.step.saturating_sub(1),
            state: self.stats.times.state(),
            step_ms,
            samples_per_s,
            tokens_per_s: samples_per_s * config.train.context as f64,
            enqueue_samples_per_s: (!synced).then_some(by_median),
            wall_samples_per_s,
            phases: typical_phases(&self.stats.phases),
            flops: synced.then(|| 3.0 * config.forward_flops() / (step_ms.median * 1e-3)),
            peak_flops: peaks.as_ref().map(|peaks| peaks.flops.best),
            peak_load: peaks.and_then(|peaks| peaks.flops.load),
            clock: self.clock().to_owned(),
        })
    }

    /// Returns the name of the clock that the step times are from.
    fn clock(&self) -> &'static str {
        if self.is_synchronised() {
            "host-sync"
        } else {
            "enqueue"
        }
    }

    /// Sends the lints if they changed.
    pub(super) fn check_lints(&mut self) {
        let lints = lints(&self.story);
        if lints != self.story.lints {
            let slot = self.slot();
            self.emit(Event::Lints { slot, lints });
        }
    }

    /// Waits for the device and returns the summary. `why` is the reason if a command cut the run short; a run that ended by itself has its own
    /// reason.
    pub(crate) fn finish(mut self, why: Option<&str>) -> Finished {
        let _ = self.queue.sync();
        if !self.pending.is_empty() && self.end_reason.is_none() {
            let _ = self.read_losses();
        }
        self.check_lints();
        if let Some(throughput) = self.statistics() {
            self.story.on_event(&Event::Throughput(throughput), 0);
        }
        let throughput = self.story.throughput.as_ref();
        let mut summary = self.story.summed_up(self.spec.config.ln_vocab());
        summary.kernels.top.truncate(TOP);
        summary.grad.tensors = self.story.description.tensors.unwrap_or_default();
        Finished {
            steps: self.stats.counted,
            loss_last: Num(self.loss_last),
            phases_ms: throughput.and_then(|throughput| throughput.phases),
            clock: self.clock().to_owned(),
            evidence: self.story.evidence.clone(),
            ended: self.end_reason.clone().or_else(|| why.map(str::to_owned)),
            request: self.request,
            ..summary
        }
    }
}
