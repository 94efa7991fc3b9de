//! Inspections of a run: the profiled step with its gradient audit, evidence for the lesson, memory, and which tensor stopped being
//! finite. None of it is part of a timed step.
//!
//! # When a profile counts
//!
//! A GPU's clock changes with its load. Three steps that wait only at their end come before each profile, and three after it. The profile counts
//! when they agree within 10 % and its sum exceeds neither by 5 % and 1.2 µs for each recorded launch: recorded launches follow each other more
//! closely than under the profiler, so a short step may be covered to more than 100 %. Else the profile is discarded and repeated, up to eight
//! times, and the run says how many were. Where the configuration waits between phases, or never, three such steps follow each profile. None of
//! these steps counts in a statistic. Runs with a last step take three profiles and report medians.
//!
//! Each try trains. A run with a last step repeats a profile after its last counted step only, so that its last loss is of the same step
//! however often a profile is repeated.

use std::time::Instant;

use anyhow::Result;

use super::super::observer::Profiled;
use super::super::worker::Worker;
use super::super::{allocator, audit, roof};
use super::Trainer;
use protocol::config::Sync;
use protocol::lints::longest_kernels_ms;
use protocol::stats::robust::median;
use protocol::{Event, Gradients, Memory, Num, Step, StepProfile};

/// Steps taken to see how long the device alone takes.
const END_SYNCED_STEPS: usize = 3;
/// A GPU's clock rises under load, and falls while the host compiles or reads: a profile counts when the steps before and
/// after it differ by no more than this share, and its sum exceeds neither.
pub(super) const AGREEMENT: f64 = 0.1;
/// After this many discarded profiles in a row the next one is kept, with the lint on its coverage.
const MOST_DISCARDED: u32 = 8;

/// Whether the device ran at one speed during a profile: the steps before and after it differ by no more than the share `most_apart`, and
/// the profile's sum is not above the `longest` sum possible for the shorter of them. Times are in ms.
fn agree(
    (before, after): (f64, f64),
    most_apart: f64,
    device: f64,
    longest: impl Fn(f64) -> f64,
) -> bool {
    let (least, most) = (before.min(after), before.max(after));
    most <= (1.0 + most_apart) * least && device <= longest(least)
}

/// The first gradient that is not finite although the loss was not scaled up: every step like this one would be left out.
fn overflowed(audit: &Gradients) -> Option<&str> {
    let mut rows = audit.rows.iter().filter(|_| audit.loss_scale == Some(1.0));
    let row = rows.find(|row| row.norm.is_some_and(|norm| !norm.0.is_finite()))?;
    Some(&row.name)
}

impl Trainer {
    /// A step under the profiler, with the gradient audit between backward and update. Counts in no statistic. Where the profile does not
    /// agree with the steps around it, [`Self::profile_is_due`] says when it is repeated.
    pub(super) fn profiled_step(&mut self) -> Result<()> {
        if !self.spec_synced() && self.stats.counted >= self.warmup() {
            // A short run has no later wait to be timed by.
            self.queue.sync()?;
            self.stats.drained.mark(self.stats.counted);
        }
        self.stats.drained.interrupt();
        if !self.pending.is_empty() && !self.read_losses()? {
            return self.stop_not_finite();
        }
        let before = match self.clock_may_change() {
            true => self.end_synced_ms()?,
            false => None,
        };
        self.load()?;
        let looked = self.queue.ask(audit::profiled_step)??;
        let (mut audit, total_ms) = (looked.gradients, looked.took.as_secs_f64() * 1e3);
        let loss = self.queue.ask(Worker::losses)??.pop().unwrap_or(f64::NAN);

        audit.slot = self.slot();
        audit.step = self.step;
        let step = self.step;
        self.uncounted_step(loss, total_ms);
        if let Some(tensor) = overflowed(&audit) {
            self.overflowed = Some(format!("the gradient of {tensor} (loss scale 1)"));
            self.bad_step = Some(step);
        }
        self.emit(Event::Gradients(audit));
        if self.bad_step.is_none() && self.waits_elsewhere() {
            self.stats.end_synced_ms = self.end_synced_ms()?;
        }
        let device_ms: f64 = looked.profiled.rows.iter().map(|row| row.ms).sum();
        let around = before.zip(self.stats.end_synced_ms);
        let launches = looked.profiled.launches;
        let recorded = self.spec.config.records();
        let longest = |step_ms| longest_kernels_ms(recorded, launches, step_ms);
        let agrees = around.is_none_or(|it| agree(it, self.most_apart, device_ms, longest));
        if agrees || self.stats.discarded == MOST_DISCARDED || self.bad_step.is_some() {
            self.profiled(looked.profiled, step, total_ms);
        } else {
            self.stats.discarded += 1;
        }
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
        let kernels = StepProfile {
            slot: self.slot(),
            step,
            launches: p.launches,
            unique: p.unique,
            device_ms,
            profiled_step_ms: total_ms,
            coverage: device_ms / explained,
            step_ms: Some(explained),
            discarded: std::mem::take(&mut self.stats.discarded),
            unbracketed_ms: (explained - device_ms).max(0.0),
            clock: p.clock,
            launches_by_phase: p.launches_by_phase,
            reason: p.rows.is_empty().then(unseen),
            rows: p.rows,
            request: self.profile_asked.take().unwrap_or_default(),
        };
        self.stats.profiles += 1;
        self.emit(Event::Kernels(kernels));
        self.send_clocks();
    }

    /// The step that kernel rows are compared with; see `StepProfile::step_ms`.
    pub(super) fn explained(&self, profiled_ms: f64) -> f64 {
        if self.opened.queued {
            return profiled_ms;
        }
        let found = if self.waits_elsewhere() {
            self.stats.end_synced_ms
        } else {
            self.stats.times.spread().map(|it| it.median)
        };
        found.unwrap_or(profiled_ms)
    }

    /// Whether this is a GPU, and not a driver that computes on the cores.
    fn clock_may_change(&self) -> bool {
        self.opened.info.kind == "gpu"
    }

    /// Whether rows are compared with steps of their own: those of the run wait between phases, or not at all, or lie too far
    /// back on a device whose clock may change.
    fn waits_elsewhere(&self) -> bool {
        let per_step = self.spec.config.measure.sync == Sync::PerStep;
        !self.opened.queued && (!per_step || self.clock_may_change())
    }

    /// The median of a few steps that wait for the device once, at the end; `None` when a loss was not finite.
    fn end_synced_ms(&mut self) -> Result<Option<f64>> {
        let mut times = Vec::new();
        for _ in 0..END_SYNCED_STEPS {
            self.load()?;
            self.queue.sync()?;
            let began = Instant::now();
            for task in Worker::tasks(&self.spec.config, self.on_cpu()) {
                self.queue.submit(*task)?;
            }
            self.queue.sync()?;
            let ms = began.elapsed().as_secs_f64() * 1e3;
            let loss = self.queue.ask(Worker::losses)??.pop().unwrap_or(f64::NAN);
            self.uncounted_step(loss, ms);
            if !loss.is_finite() {
                return Ok(None);
            }
            times.push(ms);
        }
        Ok(Some(median(&times)))
    }

    /// Reports a step that counts in no statistic.
    fn uncounted_step(&mut self, loss: f64, ms: f64) {
        let event = Event::Step(Step {
            slot: self.slot(),
            step: self.step,
            loss: Some(Num(loss)),
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
        self.emit(Event::Evidence(evidence));
        Ok(())
    }

    /// Measures the device's peaks if that is due, while the run waits.
    pub(super) fn measure_peaks(&mut self) {
        if !std::mem::take(&mut self.opened.peaks_due) {
            return;
        }
        let began = Instant::now();
        let outlet = self.outlet.clone();
        let warn = |text| outlet.log("warn", text);
        if self.opened.roof.is_none() {
            let name = &self.opened.info.name;
            let text = format!("the run waits while the peaks of {name} are measured, once");
            outlet.log("info", text);
        }
        let peak = allocator::peak();
        match roof::of(&self.opened, warn) {
            Ok(roof) if self.opened.roof.as_ref() == Some(&roof) => {}
            Ok(roof) => {
                self.opened.roof = Some(roof.clone());
                let device = self.opened.info.clone();
                self.emit(Event::Calibrated { device, roof });
            }
            Err(error) => warn(format!("no peaks of {}: {error:#}", self.opened.info.name)),
        }
        allocator::forget_since(peak);
        self.stats.paused += began.elapsed();
    }

    fn measure_memory(&mut self, kept: Option<u64>) -> Result<()> {
        let (weights, moments) = self.queue.ask(|worker| {
            let parameters = worker.model.parameters();
            let values = parameters.iter().map(|p| p.value.shape().num_elements());
            let weights = 4 * values.sum::<usize>() as u64;
            (weights, worker.optimizer.moment_bytes(&parameters))
        })?;
        let audit = self.story.gradients.as_ref();
        let share = audit.map_or(0.0, |audit| audit.params_pct / 100.0);
        let gradients = (weights as f64 * share) as u64;
        let (current_bytes, peak_bytes, reason) = if self.on_cpu() {
            let own = |all: u64| Some(all.saturating_sub(self.memory_before));
            (own(allocator::current()), own(allocator::peak()), None)
        } else {
            let reason = match kept {
                Some(_) if self.spec.config.records() => {
                    "peak: what was in use after the forward or the backward pass, without what the recorded step keeps"
                }
                Some(_) => "peak: what was in use after the forward or the backward pass",
                None => "this device reports no memory use",
            };
            (audit::in_use(&self.opened.device), kept, Some(reason))
        };
        let memory = Memory {
            slot: self.slot(),
            peak_bytes,
            current_bytes,
            weights,
            gradients,
            moments,
            reason: reason.map(str::to_owned),
        };
        self.emit(Event::Memory(memory));
        Ok(())
    }

    pub(super) fn stop_not_finite(&mut self) -> Result<()> {
        let tensor = match self.overflowed.take() {
            Some(tensor) => tensor,
            None => self.queue.ask(|worker| audit::not_finite(worker))?,
        };
        let step = self.bad_step.unwrap_or(self.step.saturating_sub(1));
        self.story.stopped_at(step, &tensor);
        self.ended = Some(format!("not-finite: {tensor} at step {step}"));
        self.check_lints();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{AGREEMENT, agree, overflowed};
    use protocol::{GradientRow, Gradients, Num};

    #[test]
    fn an_overflow_without_a_scale_is_named_and_one_with_a_scale_is_not() {
        let row = |name: &str, norm: f64| GradientRow {
            name: name.to_owned(),
            norm: Some(Num(norm)),
            ..GradientRow::default()
        };
        let mut audit = Gradients {
            rows: vec![row("embedding", 0.5), row("head", f64::INFINITY)],
            loss_scale: Some(2.0),
            ..Gradients::default()
        };
        assert_eq!(overflowed(&audit), None, "the factor halves");
        audit.loss_scale = Some(1.0);
        assert_eq!(overflowed(&audit), Some("head"));
        audit.rows.pop();
        assert_eq!(overflowed(&audit), None);
    }

    #[test]
    fn a_profile_counts_when_the_device_ran_at_one_speed() {
        let agree = |before, after, device| {
            agree((before, after), AGREEMENT, device, |step_ms| 1.05 * step_ms)
        };
        assert!(
            agree(8.5, 8.6, 8.2),
            "the device waits for the host a little"
        );
        assert!(agree(8.5, 8.6, 4.0), "or half the time");
        // Seen on an H200: the clock rose during the profile.
        assert!(!agree(24.5, 8.6, 12.8));
        assert!(!agree(8.6, 8.5, 11.8), "and fell before it");
    }
}
