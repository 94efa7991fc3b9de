//! Statistics of a run while it goes on, and the summary at its end.

use std::time::Instant;

use super::{TOP, Trainer, roof};
use protocol::stats::robust::typical_phases;
use protocol::stats::roofline::top;
use protocol::stats::typical::typical;
use protocol::{Event, Finished, KernelSummary, Num, StepProfile, Throughput};

impl Trainer {
    /// Statistics so far.
    pub(super) fn report(&mut self) {
        self.last_report = Instant::now();
        if let Some(throughput) = self.statistics() {
            self.stats.throughput = Some(throughput.clone());
            self.emit(Event::Throughput(throughput));
        }
        self.check_lints();
    }

    fn statistics(&self) -> Option<Throughput> {
        let config = &self.spec.config;
        let step_ms = self.stats.times.spread()?;
        let roof = roof(config, &self.opened);
        let batch = config.train.batch as f64;
        let by_median = batch / (step_ms.median * 1e-3);
        let wall = self.began.elapsed().saturating_sub(self.stats.paused);
        let steps = self.stats.counted + self.stats.uncounted;
        let wall_samples_per_s = steps as f64 * batch / wall.as_secs_f64().max(1e-9);
        let unsynced = !self.spec_synced();
        let samples_per_s = match self.stats.drained.steps_per_s() {
            Some(rate) if unsynced => batch * rate,
            None if unsynced => wall_samples_per_s,
            _ => by_median,
        };
        Some(Throughput {
            slot: self.slot(),
            step: self.step.saturating_sub(1),
            state: self.stats.times.state(),
            step_ms,
            samples_per_s,
            tokens_per_s: samples_per_s * config.train.context as f64,
            enqueue_samples_per_s: unsynced.then_some(by_median),
            wall_samples_per_s,
            phases: typical_phases(&self.stats.phases),
            flops: self
                .spec_synced()
                .then(|| 3.0 * config.forward_flops() / (step_ms.median * 1e-3)),
            peak_flops: roof.as_ref().map(|roof| roof.flops.best),
            peak_load: roof.and_then(|roof| roof.flops.load),
            clock: self.clock().to_owned(),
        })
    }

    /// Which clock the step times are from.
    fn clock(&self) -> &'static str {
        if self.spec_synced() {
            "host-sync"
        } else {
            "enqueue"
        }
    }

    pub(super) fn check_lints(&mut self) {
        let lints = self.facts.lints();
        if lints != self.stats.lints {
            self.stats.lints.clone_from(&lints);
            self.outlet.send(Event::Lints {
                slot: self.slot(),
                lints,
            });
        }
    }

    /// Ends the run: waits, and sums up. `why`: what cut it short.
    pub(crate) fn finish(mut self, why: Option<&str>) -> Finished {
        let _ = self.queue.sync();
        if !self.pending.is_empty() && self.ended.is_none() {
            let _ = self.read_losses();
        }
        self.check_lints();
        let throughput = self.statistics();
        let throughput = throughput.as_ref();
        let profiles = std::mem::take(&mut self.stats.profiles);
        let kernels = match self.stats.kernels.take() {
            Some(latest) => typical(&latest, profiles.iter()),
            None => StepProfile {
                reason: Some("no step was profiled".to_owned()),
                ..StepProfile::default()
            },
        };
        let config = &self.spec.config;
        let roof = self.opened.roof.as_ref();
        let rows = kernels.rows.iter().take(TOP).map(|row| top(row, roof));
        Finished {
            stage: self.spec.stage,
            variant: self.spec.variant.clone(),
            slot: self.spec.slot,
            config: config.hash(),
            device: self.opened.info.clone(),
            steps: self.stats.counted,
            loss_first: Num(self.stats.loss_first.unwrap_or(f64::NAN)),
            loss_last: Num(self.loss_last),
            ln_vocab: config.ln_vocab(),
            entropy: Some(self.source.entropy()),
            samples_per_s: throughput.map(|t| t.samples_per_s),
            tokens_per_s: throughput.map(|t| t.tokens_per_s),
            enqueue_samples_per_s: throughput.and_then(|t| t.enqueue_samples_per_s),
            step_ms: throughput.map(|t| t.step_ms),
            phases_ms: throughput.and_then(|t| t.phases),
            clock: self.clock().to_owned(),
            state: throughput.map(|t| t.state).unwrap_or_default(),
            grad: self.gradients,
            kernels: KernelSummary {
                launches_per_step: kernels.launches,
                unique: kernels.unique,
                device_ms: kernels.device_ms,
                coverage: kernels.coverage,
                top: rows.collect(),
                profiles: match profiles.len() {
                    0 | 1 => 0,
                    several => several as u32,
                },
                discarded: profiles.iter().map(|it| it.discarded).sum(),
                reason: kernels.reason,
            },
            memory: self.memory,
            evidence: self.stats.evidence,
            lints: self.stats.lints,
            pair: None,
            others: None,
            ended: self.ended.or_else(|| why.map(str::to_owned)),
            request: self.request,
        }
    }
}
