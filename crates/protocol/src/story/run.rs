//! The story of one run, with all figures that it showed.

use std::collections::VecDeque;

use super::description::RunDescription;
use super::series::{Series, ThinCurve};
use crate::stats::robust::{quantile, sorted};
use crate::stats::roofline::{bounding, top};
use crate::stats::typical::{times_of, typical};
use crate::{
    Event, Evidence, Finished, GradSummary, Gradients, KernelRow, KernelSummary, Lint, Memory, Num,
    Pair, PhaseTimes, Slot, Step, StepClocks, StepProfile, Throughput,
};

/// The largest number of profiles that are kept of one run.
const PROFILES: usize = 16;
/// The time for which the ledger stays at one step, so that it can be read.
const HOLD_MS: u64 = 1000;
/// The time for which a speed is shown before the next one replaces it.
const SETTLED_MS: u64 = 2000;

/// One step with its phases and clocks, which all lines of the ledger show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReading {
    pub step: u64,
    pub phases: PhaseTimes,
    /// `None` in recordings of older versions.
    pub clocks: Option<StepClocks>,
    /// The time at which the step was first shown, on the reader's clock in milliseconds.
    at_ms: u64,
}

/// The last figures of a run before another run trained its weights further.
#[derive(Clone, Debug, PartialEq)]
struct OwnFigures {
    step: u64,
    loss: f64,
    gradients: Option<Gradients>,
}

/// The story of one run. It has the latest value of each figure, with its step and its clock.
#[derive(Clone, Debug, Default)]
pub struct RunStory {
    pub description: RunDescription,
    /// The number of the run in its stream, from 1; 0 for an empty story.
    pub number: u64,
    /// The date in the engine's greeting.
    pub date: String,
    /// The time at which the run began, on the reader's clock in milliseconds.
    pub began_ms: u64,
    /// The number of the start from step 0 that the weights come from. Runs that train one set of weights have one number.
    pub weights: u32,
    /// The slot whose weights the run went on with; `None` for a run that began with weights of its own.
    pub went_on_from: Option<Slot>,
    /// True for a side of a paired comparison whose configuration never ran alone.
    pub of_pairs: bool,
    /// The loss of every reported step.
    pub loss: Series,
    /// Some points of `loss`, up to the step from which another run trained the weights.
    pub curve: ThinCurve,
    /// The times of unprofiled steps in milliseconds.
    pub step_ms: Series,
    pub last: Option<Step>,
    /// The phases of the latest unprofiled step that has them.
    last_phases: Option<PhaseTimes>,
    /// The rate that is shown everywhere. `replaces_rate` decides how long it stays. A reader without a clock always has the latest rate,
    /// and after the end of the run every reader has it.
    pub throughput: Option<Throughput>,
    /// The time at which `throughput` was first shown, on the reader's clock in milliseconds.
    throughput_ms: u64,
    /// The latest rate, if it is not shown yet.
    newer: Option<Throughput>,
    pub(super) for_audience: bool,
    /// The latest profile. An empty one has the reason.
    pub kernels: Option<StepProfile>,
    /// The latest profiles with rows, oldest first.
    pub profiles: VecDeque<StepProfile>,
    /// The step that the ledger shows.
    pub ledger: Option<StepReading>,
    pub gradients: Option<Gradients>,
    pub evidence: Option<Evidence>,
    pub memory: Option<Memory>,
    pub lints: Vec<Lint>,
    /// The step and the first tensor that was not finite, if the run ended because of it.
    pub not_finite: Option<(u64, String)>,
    /// The paired comparison of this run.
    pub pair: Option<Pair>,
    /// The engine's summary; `None` until the run has ended.
    pub finished: Option<Finished>,
    /// The step up to which the run trained its weights; `None` until another run went on with them.
    pub(super) trained_to: Option<u64>,
    /// `None` until another run trains the weights further.
    own: Option<OwnFigures>,
}

impl RunStory {
    /// Returns the empty story of a run that is not read from a stream.
    pub fn new(description: RunDescription) -> Self {
        Self {
            description,
            number: 1,
            ..Self::default()
        }
    }

    /// Returns true if the run has begun.
    pub fn has_begun(&self) -> bool {
        self.number > 0
    }

    /// Returns true if both runs have one configuration.
    pub fn is_like(&self, other: &Self) -> bool {
        other.has_begun() && self.is_of(&other.description)
    }

    /// Returns true if the run has the described configuration.
    pub(super) fn is_of(&self, description: &RunDescription) -> bool {
        self.has_begun() && self.description.is_like(description)
    }

    /// Begins the run, or lets it go on. Summary, ledger and lints are measured anew; the other figures stay, because they belong to this
    /// configuration.
    pub(super) fn begin(&mut self, description: RunDescription) {
        let trained_by_another = self.trained_to.is_some_and(|to| description.from_step > to);
        if trained_by_another
            && self.own.is_none()
            && let Some((step, loss)) = self.loss.last()
        {
            self.own = Some(OwnFigures {
                step,
                loss,
                gradients: self.gradients.clone(),
            });
        }
        self.finished = None;
        self.ledger = None;
        self.lints.clear();
        self.description = description;
    }

    /// Adds an event of this run to its story. `at_ms` is the reader's clock in milliseconds.
    pub fn on_event(&mut self, event: &Event, at_ms: u64) {
        match event {
            Event::Step(step) => self.add_step(step, at_ms),
            Event::Throughput(throughput) => {
                self.newer = Some(throughput.clone());
                if self.replaces_rate(throughput, at_ms) {
                    self.throughput_ms = at_ms;
                    self.show_newer();
                }
            }
            Event::Kernels(profile) => {
                if profile.reason.is_none() {
                    if self.profiles.len() == PROFILES {
                        self.profiles.pop_front();
                    }
                    self.profiles.push_back(profile.clone());
                }
                self.kernels = Some(profile.clone());
            }
            Event::Gradients(gradients) => self.gradients = Some(gradients.clone()),
            // Only the first evidence counts: later evidence, after a toggle, would change the figures that the lesson quotes.
            Event::Evidence(evidence) => match &mut self.evidence {
                Some(first) => first.clocks = evidence.clocks.or(first.clocks),
                None => self.evidence = Some(evidence.clone()),
            },
            Event::Memory(memory) => self.memory = Some(memory.clone()),
            Event::Lints { lints, .. } => self.lints.clone_from(lints),
            Event::Calibrated { device, peaks } => self.description.update_peaks(device, peaks),
            Event::Finished(finished) => {
                self.show_newer();
                self.lints.clone_from(&finished.lints);
                self.finished = Some((**finished).clone());
            }
            _ => {}
        }
    }

    /// Returns true if a rate replaces the one that is shown. For a learner, a rate stays for two seconds. For an audience, it stays until the
    /// next one is measured from twice as many steps, or from fewer, because the measurement began again. `at_ms` is 0 for a reader without
    /// a clock.
    fn replaces_rate(&self, new: &Throughput, at_ms: u64) -> bool {
        let Some(shown) = &self.throughput else {
            return true;
        };
        if self.for_audience {
            let steps = shown.step_ms.n;
            return !(steps..2 * steps).contains(&new.step_ms.n);
        }
        at_ms == 0 || at_ms.saturating_sub(self.throughput_ms) >= SETTLED_MS
    }

    /// Shows the latest rate.
    fn show_newer(&mut self) {
        self.throughput = self.newer.take().or(self.throughput.take());
    }

    /// Returns the highest known peak in FLOP/s for the products of this run, and the load of other programs while it was measured. Shares
    /// refer to this peak; the throughput names the peak that was known at its time.
    pub fn peak_flops(&self) -> Option<(f64, Option<f64>)> {
        let run = &self.description;
        let device_peak = run
            .peaks
            .as_deref()
            .and_then(|peaks| bounding(peaks, run.matrix_cores))
            .map(|peaks| (peaks.flops.best, peaks.flops.load));
        let throughput_peak = self
            .throughput
            .as_ref()
            .and_then(|rate| Some((rate.peak_flops?, rate.peak_load)));
        // Of equal peaks, `max_by` returns the last: that of the throughput.
        [device_peak, throughput_peak]
            .into_iter()
            .flatten()
            .max_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn add_step(&mut self, step: &Step, at_ms: u64) {
        self.update_ledger(step, at_ms);
        if let Some(loss) = step.loss {
            self.loss.push(step.step, loss.0);
            if self.own.is_none() {
                self.curve.push(step.step, loss);
            }
        }
        // Another program may not report the length of a step.
        if !step.profiled && step.ms > 0.0 {
            self.step_ms.push(step.step, step.ms);
            self.last_phases = step.phases.or(self.last_phases);
        }
        self.last = Some(step.clone());
    }

    /// Shows a step in the ledger if the step before was shown long enough to be read, or if only the new one has clocks. A step without
    /// clocks never replaces one that has them.
    fn update_ledger(&mut self, step: &Step, at_ms: u64) {
        let Some(phases) = step.phases.filter(|phases| phases.step > 0.0) else {
            return;
        };
        let replaces = self.ledger.is_none_or(|shown| {
            let was_readable = at_ms.saturating_sub(shown.at_ms) >= HOLD_MS;
            match (shown.clocks, step.clocks) {
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (None, None) | (Some(_), Some(_)) => was_readable,
            }
        });
        if replaces {
            self.ledger = Some(StepReading {
                step: step.step,
                phases,
                clocks: step.clocks,
                at_ms,
            });
        }
    }

    /// Returns the step and the value of the latest loss before another run trained the weights further.
    pub fn own_loss(&self) -> Option<(u64, f64)> {
        match &self.own {
            Some(own) => Some((own.step, own.loss)),
            None => self.loss.last(),
        }
    }

    /// Returns the latest gradient audit before another run trained the weights further.
    pub fn own_gradients(&self) -> Option<&Gradients> {
        self.own
            .as_ref()
            .and_then(|own| own.gradients.as_ref())
            .or(self.gradients.as_ref())
    }

    /// Returns true if another run trained the weights further since this run began.
    pub fn was_left(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the number of steps that the run made by itself, counted from step 0 of its weights.
    pub fn steps(&self) -> u64 {
        self.own_loss()
            .map_or(0, |(step, _)| step.saturating_add(1))
    }

    /// Returns the loss before any update; `None` if the run did not begin at step 0.
    pub fn first_loss(&self) -> Option<f64> {
        match self.loss.first()? {
            (0, loss) => Some(loss),
            _ => None,
        }
    }

    /// Returns the typical phases, or the phases of the last measured step if there are no typical ones yet.
    pub fn phases(&self) -> Option<PhaseTimes> {
        self.throughput
            .as_ref()
            .and_then(|rate| rate.phases)
            .or(self.last_phases)
    }

    /// Returns the three clocks of a step, and true if it is the step that the ledger shows. Recordings of older versions have only the clocks of
    /// the evidence. A step without a device time gets that of the evidence, which is the latest profile's.
    pub fn clocks(&self) -> Option<(StepClocks, bool)> {
        let evidence_clocks = self.evidence.as_ref().and_then(|evidence| evidence.clocks);
        let Some(ledger_clocks) = self.ledger.and_then(|ledger| ledger.clocks) else {
            return Some((evidence_clocks?, false));
        };
        let clocks = StepClocks {
            device: ledger_clocks.device.or_else(|| evidence_clocks?.device),
            ..ledger_clocks
        };
        Some((clocks, true))
    }

    /// Returns the latest profile, in which the time of each row is the median over all kept profiles.
    pub fn typical(&self) -> Option<StepProfile> {
        Some(typical(self.kernels.as_ref()?, self.profiles.iter()))
    }

    /// Returns true if the time of a row swings: the middle half of its profiles spans more than a quarter of the median.
    pub fn swings(&self, row: &KernelRow) -> bool {
        let times = sorted(&times_of(self.profiles.iter(), row));
        if times.len() < 4 {
            return false;
        }
        let spread = quantile(&times, 0.75) - quantile(&times, 0.25);
        spread > 0.25 * quantile(&times, 0.5)
    }

    /// Returns true if the times that are shown end at a device sync.
    pub fn synced(&self) -> bool {
        self.last.as_ref().is_none_or(|step| step.synced)
    }

    /// Returns the summary of the run, or of the run so far; `None` before the first step, and for a run of another program.
    pub fn summary(&self) -> Option<Finished> {
        if let Some(finished) = &self.finished {
            // The engine's first loss is the first one since the run last went on, which may have been in mid-run.
            let since_start = (finished.first_step, finished.loss_first.0);
            let (first_step, first) = self.loss.first().unwrap_or(since_start);
            let mut summary = Finished {
                loss_first: Num(first),
                first_step,
                ..finished.clone()
            };
            // The loss after another run trained the weights does not belong to this run.
            if self.was_left() {
                let own = self.summed_up(finished.ln_vocab);
                summary.loss_last = own.loss_last;
                summary.grad = own.grad;
            }
            return Some(summary);
        }
        let ln_vocab = self.description.ln_vocab?;
        self.loss.first().map(|_| self.summed_up(ln_vocab))
    }

    /// Returns the summary of the run so far. `ln_vocab` is the loss of a model that knows nothing, in nats.
    pub fn summed_up(&self, ln_vocab: f64) -> Finished {
        let run = &self.description;
        let throughput = self
            .throughput
            .as_ref()
            .filter(|throughput| throughput.step_ms.n > 0);
        let (first_step, first) = self.loss.first().unwrap_or((0, f64::NAN));
        Finished {
            stage: run.stage,
            variant: run.name.clone(),
            slot: run.slot,
            config: run.hash.clone().unwrap_or_default(),
            device: run.device.clone().unwrap_or_default(),
            steps: self
                .last
                .as_ref()
                .map_or(0, |step| step.step.saturating_add(1)),
            loss_first: Num(first),
            first_step,
            loss_last: Num(self.own_loss().map_or(f64::NAN, |(_, loss)| loss)),
            ln_vocab,
            entropy: run.entropy,
            samples_per_s: throughput.map(|rate| rate.samples_per_s),
            tokens_per_s: throughput.map(|rate| rate.tokens_per_s),
            enqueue_samples_per_s: throughput.and_then(|rate| rate.enqueue_samples_per_s),
            step_ms: throughput.map(|rate| rate.step_ms),
            phases_ms: self.phases(),
            clock: throughput
                .map(|rate| rate.clock.clone())
                .unwrap_or_default(),
            state: throughput.map(|rate| rate.state).unwrap_or_default(),
            grad: self
                .own_gradients()
                .map(GradSummary::from)
                .unwrap_or_default(),
            kernels: self.kernel_summary(),
            memory: self.memory.clone().unwrap_or_default(),
            evidence: self.evidence.clone().map(|evidence| Evidence {
                clocks: self.clocks().map(|(clocks, _)| clocks),
                ..evidence
            }),
            lints: self.lints.clone(),
            request: run.request,
            ..Finished::default()
        }
    }

    fn kernel_summary(&self) -> KernelSummary {
        let Some(kernels) = self.typical() else {
            return KernelSummary {
                reason: Some("no step was profiled".to_owned()),
                ..KernelSummary::default()
            };
        };
        let peaks = self.description.peaks.as_deref();
        KernelSummary {
            launches_per_step: kernels.launches,
            unique: kernels.unique,
            device_ms: kernels.device_ms,
            coverage: kernels.coverage,
            top: kernels.rows.iter().map(|row| top(row, peaks)).collect(),
            // The times of a single profile are no medians.
            profiles: match self.profiles.len() {
                0 | 1 => 0,
                several => several as u32,
            },
            discarded: self.profiles.iter().map(|profile| profile.discarded).sum(),
            reason: kernels.reason,
        }
    }
}
