//! Inspections of a run: the profiled step with its gradient audit, evidence for the lesson, memory, and the tensor that stopped being
//! finite. None of them is part of a timed step.
//!
//! # When a profile counts
//!
//! A GPU's clock changes with its load. Three steps that wait only at their end come before each profile, and three after it. The profile counts
//! if they agree within 10 % and its sum exceeds neither by 5 % and 1.2 µs for each recorded launch. Recorded launches follow each other more
//! closely than launches under the profiler, so a short step may be covered to more than 100 %. A profile that does not count is discarded and
//! repeated, up to eight times; the run reports how many were discarded. On a device whose clock is steady, three such steps follow each profile
//! if the configuration waits between phases, or never. None of these steps counts in a statistic. Runs with a last step take three profiles and
//! report medians.
//!
//! Each repetition is a training step. A run with a last step repeats a profile after its last counted step only, so its last loss belongs to
//! that step however often a profile is repeated.

use std::time::Instant;

use anyhow::Result;

use super::super::observer::Profiled;
use super::super::worker::Worker;
use super::super::{allocator, audit, peaks};
use super::Trainer;
use protocol::config::Sync;
use protocol::lints::longest_kernels_ms;
use protocol::stats::robust::median;
use protocol::{Event, GradientRow, Gradients, Memory, Num, Step, StepProfile};

/// The number of steps whose median is the length of a step on the device alone.
const END_SYNCED_STEPS: usize = 3;
/// The largest share by which the steps before and after a profile may differ if it is to count. A GPU's clock rises under load, and falls while the host
/// compiles or reads.
pub(super) const AGREEMENT: f64 = 0.1;
/// The number of discarded profiles in a row after which the next one counts, with the lint on its coverage.
const MOST_DISCARDED: u32 = 8;

/// Returns true if the device ran at one speed during a profile. The steps before and after it then differ by no more than the share
/// `max_difference`, and the profile's sum is not above the `longest` sum possible for the shorter of them. Times are in ms.
fn agree(
    (before, after): (f64, f64),
    max_difference: f64,
    device: f64,
    longest: impl Fn(f64) -> f64,
) -> bool {
    let shorter = before.min(after);
    let longer = before.max(after);
    longer <= (1.0 + max_difference) * shorter && device <= longest(shorter)
}

/// Returns the name of the first gradient that is not finite although the loss was not scaled up. The optimizer would leave out every step like
/// this one.
fn overflowed(audit: &Gradients) -> Option<&str> {
    if audit.loss_scale != Some(1.0) {
        return None;
    }
    let not_finite = |row: &&GradientRow| row.norm.is_some_and(|norm| !norm.0.is_finite());
    let row = audit.rows.iter().find(not_finite)?;
    Some(&row.name)
}

impl Trainer {
    /// Takes a step under the profiler, with the gradient audit between backward and update. It counts in no statistic. If the profile does
    /// not agree with the steps around it, it is repeated when [`Self::profile_is_due`] returns true.
    pub(super) fn profiled_step(&mut self) -> Result<()> {
        if !self.is_synchronised() && self.is_warm() {
            // A short run may not wait again, so its last counted steps are timed up to here.
            self.queue.sync()?;
            self.stats.unsynced.mark(self.stats.counted);
        }
        self.stats.unsynced.interrupt();
        if !self.pending.is_empty() && !self.read_losses()? {
            return self.stop_not_finite();
        }
        let before = if self.clock_may_change() {
            self.end_synced_ms()?
        } else {
            None
        };
        self.load()?;
        let inspected = self.queue.ask(audit::profiled_step)??;
        let mut audit = inspected.gradients;
        let total_ms = inspected.took.as_secs_f64() * 1e3;
        let loss = self.queue.last_loss()?;

        audit.slot = self.slot();
        audit.step = self.step;
        let step = self.step;
        self.uncounted_step(loss, total_ms);
        if let Some(tensor) = overflowed(&audit) {
            self.overflowed = Some(format!("the gradient of {tensor} (loss scale 1)"));
            self.bad_step = Some(step);
        }
        self.emit(Event::Gradients(audit));
        if self.bad_step.is_none() && self.needs_end_synced_steps() {
            self.stats.end_synced_ms = self.end_synced_ms()?;
        }
        let device_ms = inspected.profiled.device_ms();
        let launches = inspected.profiled.launches;
        let recorded = self.spec.config.records();
        let longest = |step_ms| longest_kernels_ms(recorded, launches, step_ms);
        let around = before.zip(self.stats.end_synced_ms);
        let agrees =
            around.is_none_or(|steps_ms| agree(steps_ms, self.max_difference, device_ms, longest));
        if agrees || self.stats.discarded == MOST_DISCARDED || self.bad_step.is_some() {
            self.report_profile(inspected.profiled, step, total_ms);
        } else {
            self.stats.discarded += 1;
        }
        self.report_memory(inspected.bytes_in_use)?;
        self.stats.profile_due = false;
        self.stats.last_profile = Some((Instant::now(), self.stats.counted));
        self.report();
        if self.bad_step.is_none() {
            return Ok(());
        }
        self.stop_not_finite()
    }

    /// Reports a profile that counts. `total_ms` is the wall time of the profiled step.
    fn report_profile(&mut self, profile: Profiled, step: u64, total_ms: f64) {
        let device_ms = profile.device_ms();
        let step_ms = self.compared_step_ms(total_ms);
        let unseen = || "the profiler saw no operation on this device".to_owned();
        let kernels = StepProfile {
            slot: self.slot(),
            step,
            launches: profile.launches,
            unique: profile.unique,
            device_ms,
            profiled_step_ms: total_ms,
            coverage: device_ms / step_ms,
            step_ms: Some(step_ms),
            discarded: std::mem::take(&mut self.stats.discarded),
            unbracketed_ms: (step_ms - device_ms).max(0.0),
            clock: profile.clock,
            launches_by_phase: profile.launches_by_phase,
            reason: profile.rows.is_empty().then(unseen),
            rows: profile.rows,
            request: self.profile_request.take().unwrap_or_default(),
            file: None,
        };
        self.stats.profiles += 1;
        self.emit(Event::Kernels(kernels));
        self.send_clocks();
    }

    /// Returns the length in ms of the step that kernel rows are compared with; see `StepProfile::step_ms`.
    fn compared_step_ms(&self, profiled_ms: f64) -> f64 {
        if self.opened.queued {
            return profiled_ms;
        }
        let step_ms = if self.needs_end_synced_steps() {
            self.stats.end_synced_ms
        } else {
            self.stats.times.spread().map(|spread| spread.median)
        };
        step_ms.unwrap_or(profiled_ms)
    }

    /// Returns true on a GPU. A driver that computes on the cores has a steady clock.
    fn clock_may_change(&self) -> bool {
        self.opened.info.kind == "gpu"
    }

    /// Returns true if a profile is compared with additional steps that wait at their end only. The run's own steps do not serve if they wait
    /// between phases or not at all, or if the clock may have changed since.
    fn needs_end_synced_steps(&self) -> bool {
        let per_step = self.spec.config.measure.sync == Sync::PerStep;
        !self.opened.queued && (!per_step || self.clock_may_change())
    }

    /// Takes a few steps that wait for the device at their end only, and returns their median in ms; `None` if a loss was not finite.
    fn end_synced_ms(&mut self) -> Result<Option<f64>> {
        let mut times = Vec::new();
        let tasks = Worker::tasks(&self.spec.config, self.on_cpu());
        for _ in 0..END_SYNCED_STEPS {
            self.load()?;
            let (ms, loss) = self.queue.bracketed_step(tasks, false)?;
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

    /// Takes the evidence for the lesson and reports it. Its memory does not count in the run's peak.
    pub(super) fn report_evidence(&mut self) -> Result<()> {
        let peak = allocator::peak();
        let mut evidence = self.queue.ask(|worker| audit::evidence(worker))?;
        allocator::forget_since(peak);
        evidence.slot = self.slot();
        evidence.step = self.step;
        evidence.clocks = self.stats.clocks;
        self.emit(Event::Evidence(evidence));
        Ok(())
    }

    /// Measures the device's peaks if that is due, while the run waits. This time counts as a pause.
    pub(super) fn measure_peaks(&mut self) {
        if !self.opened.peaks_due {
            return;
        }
        let began = Instant::now();
        let before = self.opened.peaks.clone();
        if before.is_none() {
            let name = &self.opened.info.name;
            let text = format!("the run waits while the peaks of {name} are measured, once");
            self.outlet.log("info", text);
        }
        let peak = allocator::peak();
        peaks::measure_if_due(&mut self.opened, |text| self.outlet.log("warn", text));
        if self.opened.peaks != before
            && let Some(peaks) = self.opened.peaks.clone()
        {
            let device = self.opened.info.clone();
            self.emit(Event::Calibrated { device, peaks });
        }
        allocator::forget_since(peak);
        self.stats.pause_time += began.elapsed();
    }

    /// Reports the memory of the run. `gpu_peak` has the bytes in use on a GPU after the forward or the backward pass, whichever is more.
    fn report_memory(&mut self, gpu_peak: Option<u64>) -> Result<()> {
        let (weights, moments) = self.queue.ask(|worker| {
            let parameters = worker.model.parameters();
            let values: usize = parameters
                .iter()
                .map(|parameter| parameter.value.shape().num_elements())
                .sum();
            (
                4 * values as u64,
                worker.optimizer.moment_bytes(&parameters),
            )
        })?;
        let audit = self.story.gradients.as_ref();
        let share = audit.map_or(0.0, |audit| audit.params_pct / 100.0);
        let gradients = (weights as f64 * share) as u64;
        let (current_bytes, peak_bytes, reason) = if self.on_cpu() {
            let of_run = |process: u64| Some(process.saturating_sub(self.memory_before));
            (
                of_run(allocator::current()),
                of_run(allocator::peak()),
                None,
            )
        } else {
            let reason = match gpu_peak {
                Some(_) if self.spec.config.records() => {
                    "peak: what was in use after the forward or the backward pass, \
                     without what the recorded step keeps"
                }
                Some(_) => "peak: what was in use after the forward or the backward pass",
                None => "this device reports no memory use",
            };
            let current = audit::bytes_in_use(&self.opened.device);
            (current, gpu_peak, Some(reason))
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

    /// Ends the run because a number is not finite, and names the tensor.
    pub(super) fn stop_not_finite(&mut self) -> Result<()> {
        let tensor = match self.overflowed.take() {
            Some(tensor) => tensor,
            None => self.queue.ask(|worker| audit::not_finite(worker))?,
        };
        let step = self.bad_step.unwrap_or(self.step.saturating_sub(1));
        self.story.not_finite = Some((step, tensor.clone()));
        self.end_reason = Some(format!("not-finite: {tensor} at step {step}"));
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
        let counts = |before_ms, after_ms, profile_ms| {
            let longest = |step_ms| 1.05 * step_ms;
            agree((before_ms, after_ms), AGREEMENT, profile_ms, longest)
        };
        assert!(
            counts(8.5, 8.6, 8.2),
            "the device waits for the host a little"
        );
        assert!(counts(8.5, 8.6, 4.0), "the device waits half the time");
        // These were measured on an H200.
        assert!(!counts(24.5, 8.6, 12.8), "the clock rose in the profile");
        assert!(!counts(8.6, 8.5, 11.8), "the clock fell before the profile");
    }
}
