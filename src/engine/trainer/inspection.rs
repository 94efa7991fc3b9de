//! Looks inside a run: the profiled step with its gradient audit, evidence for the lesson, memory, and which tensor
//! stopped being finite. None of it is in a timed step.

use std::time::Instant;

use anyhow::Result;

use super::super::observer::Profiled;
use super::super::worker::Worker;
use super::super::{allocator, audit};
use super::Trainer;
use crate::config::Sync;
use crate::profile::stats::median;
use crate::protocol::{Event, GradSummary, Kernels, Memory, Num, Step};

/// Steps taken to see how long the device alone takes.
const END_SYNCED_STEPS: usize = 3;

impl Trainer {
    /// A step under the profiler, with the gradient audit between backward and update. Counts in no statistic.
    pub(super) fn profiled_step(&mut self) -> Result<()> {
        if !self.pending.is_empty() && !self.read_losses()? {
            return self.stop_not_finite();
        }
        let looked = self.queue.ask(audit::profiled_step)??;
        let (mut audit, total_ms) = (looked.gradients, looked.took.as_secs_f64() * 1e3);
        let loss = self.queue.ask(Worker::losses)??.pop().unwrap_or(f64::NAN);

        audit.slot = self.slot();
        audit.step = self.step;
        self.gradients = GradSummary {
            tensors: audit.tensors,
            with_grad: audit.with_grad,
            params_pct: audit.params_pct,
        };
        let step = self.step;
        self.uncounted_step(loss, total_ms);
        self.emit(Event::Gradients(audit));
        if loss.is_finite() {
            self.end_synced_steps()?;
        }
        self.profiled(looked.profiled, step, total_ms);
        self.measure_memory(looked.kept)?;
        self.stats.profile_due = false;
        self.stats.last_profile = Some((Instant::now(), self.stats.counted));
        self.report();
        if self.bad_step.is_none() {
            return Ok(());
        }
        self.stop_not_finite()
    }

    fn profiled(&mut self, p: Profiled, step: u64, total_ms: f64) {
        let device_ms: f64 = p.rows.iter().map(|row| row.ms).sum();
        let explained = self.explained(total_ms);
        let unseen = || "the profiler saw no operation on this device".to_owned();
        let kernels = Kernels {
            slot: self.slot(),
            step,
            launches: p.launches,
            unique: p.unique,
            device_ms,
            profiled_step_ms: total_ms,
            coverage: device_ms / explained,
            step_ms: Some(explained),
            unbracketed_ms: (explained - device_ms).max(0.0),
            clock: p.clock,
            launches_by_phase: p.launches_by_phase,
            reason: p.rows.is_empty().then(unseen),
            rows: p.rows,
        };
        self.stats.kernels = Some(kernels.clone());
        self.emit(Event::Kernels(kernels));
        self.send_clocks();
    }

    /// The step that kernel rows are compared with; see `Kernels::step_ms`.
    pub(super) fn explained(&self, profiled_ms: f64) -> f64 {
        if self.opened.queued {
            return profiled_ms;
        }
        let found = if self.spec.config.measure.sync == Sync::PerStep {
            self.stats.times.spread().map(|it| it.median)
        } else {
            self.stats.end_synced_ms
        };
        found.unwrap_or(profiled_ms)
    }

    /// On a GPU whose steps wait between phases, or not at all: a few steps that wait once, at the end.
    fn end_synced_steps(&mut self) -> Result<()> {
        if self.opened.queued || self.spec.config.measure.sync == Sync::PerStep {
            return Ok(());
        }
        let mut times = Vec::new();
        for _ in 0..END_SYNCED_STEPS {
            let batch = self.source.batch(self.step);
            self.queue.submit(move |worker| worker.load(&batch))?;
            self.queue.sync()?;
            let began = Instant::now();
            for task in [Worker::forward, Worker::backward, Worker::update] {
                self.queue.submit(task)?;
            }
            self.queue.sync()?;
            let ms = began.elapsed().as_secs_f64() * 1e3;
            let loss = self.queue.ask(Worker::losses)??.pop().unwrap_or(f64::NAN);
            self.uncounted_step(loss, ms);
            if !loss.is_finite() {
                return Ok(());
            }
            times.push(ms);
        }
        self.stats.end_synced_ms = Some(median(&times));
        Ok(())
    }

    /// Reports a step that counts in no statistic.
    fn uncounted_step(&mut self, loss: f64, ms: f64) {
        let event = Event::Step(Step {
            slot: self.slot(),
            step: self.step,
            loss: Num(loss),
            ms,
            synced: true,
            profiled: true,
            ..Step::default()
        });
        self.emit(event);
        if !loss.is_finite() {
            self.bad_step = Some(self.step);
        }
        self.step += 1;
        self.stats.uncounted += 1;
    }

    pub(super) fn evidence_now(&mut self) -> Result<()> {
        let peak = allocator::peak();
        let mut evidence = self.queue.ask(|worker| audit::evidence(worker))?;
        allocator::forget_since(peak);
        evidence.slot = self.slot();
        evidence.step = self.step;
        evidence.clocks = self.stats.clocks;
        self.stats.evidence = Some(evidence.clone());
        self.emit(Event::Evidence(evidence));
        Ok(())
    }

    fn measure_memory(&mut self, kept: Option<u64>) -> Result<()> {
        let (weights, moments) = self.queue.ask(|worker| {
            let parameters = worker.model.parameters();
            let values = parameters.iter().map(|p| p.value.shape().num_elements());
            let weights = 4 * values.sum::<usize>() as u64;
            (weights, worker.optimizer.moment_bytes(&parameters))
        })?;
        let gradients = (weights as f64 * self.gradients.params_pct / 100.0) as u64;
        let (current_bytes, peak_bytes, reason) = if self.on_cpu() {
            (Some(allocator::current()), Some(allocator::peak()), None)
        } else {
            let reason = match kept {
                Some(_) => "peak: what was in use after the forward or the backward pass",
                None => "this device reports no memory use",
            };
            (audit::in_use(&self.opened.device), kept, Some(reason))
        };
        self.memory = Memory {
            slot: self.slot(),
            peak_bytes,
            current_bytes,
            weights,
            gradients,
            moments,
            reason: reason.map(str::to_owned),
        };
        self.outlet.send(Event::Memory(self.memory.clone()));
        Ok(())
    }

    pub(super) fn stop_not_finite(&mut self) -> Result<()> {
        let tensor = self.queue.ask(|worker| audit::not_finite(worker))?;
        let step = self.bad_step.unwrap_or(self.step.saturating_sub(1));
        self.facts.stopped_at(step, &tensor);
        self.ended = Some(format!("not-finite: {tensor} at step {step}"));
        self.check_lints();
        Ok(())
    }
}
