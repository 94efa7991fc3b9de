//! The state of the run, with request and confirmation kept apart, and what each of the two slots has shown so far.
//! It reads events and decides nothing.

use std::collections::VecDeque;

use super::series::Series;
use protocol::config::RunConfig;
use protocol::stats::robust::{quantile, sorted};
use protocol::stats::roofline::{self, better};
use protocol::stats::typical::{times_of, typical};
use protocol::*;

/// Where the run is. A request (`Pausing`) is not its confirmation (`Paused`).
#[derive(Clone, Debug, Default, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum RunState {
    /// Nothing was requested yet.
    #[default]
    Idle,
    /// Requested; the engine has not answered.
    Starting,
    /// The engine opens the device, compiles kernels or warms up; no step has come.
    #[strum(serialize = "warming up")]
    Warming,
    Running,
    Pausing,
    Paused,
    Resuming,
    Finished,
    /// The engine could not do it, and says why.
    Failed {
        kind: FailedKind,
        reason: String,
    },
    /// The engine has ended.
    #[strum(serialize = "engine gone")]
    EngineGone {
        reason: String,
    },
}

impl RunState {
    /// Whether steps are coming or about to.
    pub fn is_active(&self) -> bool {
        !matches!(
            self,
            Self::Idle | Self::Finished | Self::Failed { .. } | Self::EngineGone { .. }
        )
    }

    /// Whether it is paused, or about to be.
    pub fn is_paused(&self) -> bool {
        matches!(self, Self::Paused | Self::Pausing)
    }

    /// Whether steps are made, or the device gets ready for them.
    pub fn is_moving(&self) -> bool {
        matches!(self, Self::Running | Self::Warming | Self::Resuming)
    }

    /// Whether the engine is gone, or failed on its own: it may have lost its device and is replaced before the next command.
    pub fn broke_off(&self) -> bool {
        match self {
            Self::EngineGone { .. } => true,
            Self::Failed { kind, .. } => *kind == FailedKind::Internal,
            _ => false,
        }
    }
}

/// Most profiles kept of one run.
const PROFILES: usize = 16;
/// How long the ledger stays at one step, so that it can be read.
const HOLD_MS: u64 = 1000;

/// One step, and what its clocks said: every line of a ledger is of this step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReading {
    pub step: u64,
    pub phases: PhaseTimes,
    /// None in recordings of older versions.
    pub clocks: Option<StepClocks>,
    /// When it was first shown.
    at_ms: u64,
}

/// What one slot has shown.
#[derive(Clone, Debug, Default)]
pub struct SlotRun {
    pub started: Option<Started>,
    pub loss: Series,
    /// Unprofiled step times in milliseconds.
    pub step_ms: Series,
    pub last: Option<Step>,
    pub throughput: Option<Throughput>,
    pub kernels: Option<StepProfile>,
    /// The latest profiles of this configuration, oldest first.
    pub profiles: VecDeque<StepProfile>,
    /// The step that the ledger shows.
    pub ledger: Option<StepReading>,
    pub gradients: Option<Gradients>,
    pub evidence: Option<Evidence>,
    pub memory: Option<Memory>,
    pub lints: Vec<Lint>,
    pub finished: Option<Finished>,
    /// The curve is made of a comparison's steps: no run of its own was here.
    pub of_pairs: bool,
    /// Which start its weights come from. A run that went on with another's weights has that one's.
    pub(super) weights: u32,
    /// The slot whose weights it went on with, where it did not begin at step 0.
    pub went_on_from: Option<Slot>,
    /// Its last step and loss before another run trained its weights further; what it showed since is of weights that both trained.
    pub left: Option<(u64, f64)>,
    /// What pairs measured of it.
    pub pair: Option<Pair>,
    pub began_ms: u64,
}

impl SlotRun {
    /// `broken`, `fixed`, `custom`; empty when nothing ran here.
    pub fn variant(&self) -> &str {
        self.started
            .as_ref()
            .map_or("", |started| started.run.variant.as_str())
    }

    /// The slot it ran in.
    pub fn slot(&self) -> Option<Slot> {
        self.started.as_ref().map(|started| started.run.slot)
    }

    /// Whether it is of the configuration that begins now, on the same device.
    pub(super) fn is_of(&self, started: &Started) -> bool {
        self.started.as_ref().is_some_and(|it| {
            it.config == started.config
                && it.device == started.device
                && (it.run.stage, it.run.slot) == (started.run.stage, started.run.slot)
        })
    }

    /// Whether both are of one configuration.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        other.started.as_ref().is_some_and(|it| self.is_of(it))
    }

    /// Whether it ran this configuration in this slot.
    pub(super) fn ran(&self, slot: Slot, config: &RunConfig) -> bool {
        let run = self.started.as_ref().map(|it| &it.run);
        run.is_some_and(|run| run.slot == slot && run.config == *config)
    }

    /// Its latest loss of weights that no other run has trained since it began, with the step.
    pub fn own_loss(&self) -> Option<(u64, f64)> {
        self.left.or(self.loss.last())
    }

    /// Steps that it made by itself, counted from step 0 of its weights.
    pub(super) fn steps(&self) -> u64 {
        self.own_loss().map_or(0, |(step, _)| step + 1)
    }

    /// The loss before any update, where it began at step 0.
    pub fn first_loss(&self) -> Option<f64> {
        let first = self.loss.first().filter(|(step, _)| *step == 0);
        first.map(|(_, loss)| loss)
    }

    /// Its run begins or goes on. Summary, ledger and lints are measured again; the rest is of this configuration.
    pub(super) fn begin(&mut self, started: Started) {
        (self.finished, self.ledger) = (None, None);
        self.lints.clear();
        self.started = Some(started);
    }

    /// Notes a step.
    pub fn note_step(&mut self, step: Step, now_ms: u64) {
        self.update_ledger(&step, now_ms);
        self.loss.push(step.step, step.loss.0);
        if !step.profiled {
            self.step_ms.push(step.step, step.ms);
        }
        self.last = Some(step);
    }

    /// Shows a step in the ledger, if the one before was shown long enough to be read.
    fn update_ledger(&mut self, step: &Step, now_ms: u64) {
        let Some(phases) = step.phases.filter(|phases| phases.step > 0.0) else {
            return;
        };
        let fresh = self.ledger.is_none_or(|it| {
            // A step without clocks does not replace one that has them.
            let as_full = step.clocks.is_some() || it.clocks.is_none();
            let fuller = step.clocks.is_some() && it.clocks.is_none();
            fuller || as_full && now_ms.saturating_sub(it.at_ms) >= HOLD_MS
        });
        if fresh {
            self.ledger = Some(StepReading {
                step: step.step,
                phases,
                clocks: step.clocks,
                at_ms: now_ms,
            });
        }
    }

    /// Notes a figure: the latest replaces the one before.
    pub fn note_figure(&mut self, event: Event) {
        match event {
            Event::Throughput(it) => self.throughput = Some(it),
            Event::Kernels(it) => {
                if it.reason.is_none() {
                    if self.profiles.len() == PROFILES {
                        self.profiles.pop_front();
                    }
                    self.profiles.push_back(it.clone());
                }
                self.kernels = Some(it);
            }
            Event::Gradients(it) => self.gradients = Some(it),
            // Its figures are of the first look. A later one, after a toggle, would change what the lesson quotes.
            Event::Evidence(it) => match &mut self.evidence {
                Some(seen) => seen.clocks = it.clocks.or(seen.clocks),
                None => self.evidence = Some(it),
            },
            Event::Memory(it) => self.memory = Some(it),
            Event::Lints { lints, .. } => self.lints = lints,
            _ => {}
        }
    }

    /// Phases to show: medians once there are some, else those of the last step.
    pub fn phases(&self) -> Option<PhaseTimes> {
        let median = self.throughput.as_ref().and_then(|t| t.phases);
        median.or_else(|| self.last.as_ref().and_then(|step| step.phases))
    }

    /// Three clocks, and whether they are of the step that the ledger shows: recordings of older versions have only those that came
    /// with the evidence. Where a step has no device time, that of the latest profile is used.
    pub fn clocks(&self) -> Option<(StepClocks, bool)> {
        let seen = self.evidence.as_ref().and_then(|it| it.clocks);
        match self.ledger.and_then(|it| it.clocks) {
            Some(read) => {
                let device = read.device.or_else(|| seen?.device);
                Some((StepClocks { device, ..read }, true))
            }
            None => Some((seen?, false)),
        }
    }

    /// The latest profile, each row's time the median over the profiles at hand.
    pub fn typical(&self) -> Option<StepProfile> {
        Some(typical(self.kernels.as_ref()?, self.profiles.iter()))
    }

    /// Whether a row's time swings: the middle half of its profiles spans more than a quarter of the median.
    pub fn swings(&self, row: &KernelRow) -> bool {
        let times = sorted(&times_of(self.profiles.iter(), row));
        if times.len() < 4 {
            return false;
        }
        let spread = quantile(&times, 0.75) - quantile(&times, 0.25);
        spread > 0.25 * quantile(&times, 0.5)
    }

    /// Whether the times that are shown end at a device sync.
    pub fn synced(&self) -> bool {
        self.last.as_ref().is_none_or(|step| step.synced)
    }

    /// The latest loss, finite or not.
    pub fn latest_loss(&self) -> Option<f64> {
        self.loss.last().map(|(_, loss)| loss)
    }
}

/// The run that was asked for, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct RequestedRun {
    pub state: RunState,
    /// What A and B show.
    pub slots: [SlotRun; 2],
    /// Attempts that neither shows now, the oldest first.
    pub(crate) earlier: Vec<SlotRun>,
    /// Starts from step 0 so far.
    pub(crate) starts: u32,
    /// The slot that runs; the other keeps what it showed.
    pub active: Slot,
    /// The last run that was asked for.
    pub wanted: Option<RunSpec>,
    /// The one before it, which may go on where the last cannot be.
    pub(crate) before: Option<RunSpec>,
    /// Asked for and not confirmed: until then, events belong to an older run and are dropped.
    pub pending: Vec<RunSpec>,
    /// Knobs that change at the next step boundary; the run in progress goes on until then.
    pub switching: Option<RunSpec>,
    pub pairing: bool,
    /// What the engine says until the next start is about a run that was left.
    pub(crate) left: bool,
    /// Kernels compiled so far, and the latest.
    pub compiling: Option<(u32, String)>,
    /// When the run was asked for.
    pub asked_ms: u64,
    /// When the last step came.
    pub step_ms: u64,
    /// When the device last made progress, as far as the engine reported.
    pub progress_ms: u64,
    /// The engine was replaced because it did not answer, and no step has come since.
    pub replaced: bool,
}

impl RequestedRun {
    /// What a slot has shown.
    pub fn slot(&self, slot: Slot) -> &SlotRun {
        &self.slots[slot as usize]
    }

    /// What the running slot has shown.
    pub fn shown(&self) -> &SlotRun {
        self.slot(self.active)
    }

    /// The other slot, if anything ran there.
    pub fn other(&self) -> Option<&SlotRun> {
        let other = &self.slots[1 - self.active as usize];
        other.started.is_some().then_some(other)
    }

    /// Peaks that the engine measured after a run's first loss.
    pub(super) fn note_peaks(&mut self, device: &Device, roof: &Roof) {
        let runs = self.slots.iter_mut().filter_map(|it| it.started.as_mut());
        runs.for_each(|run| roofline::note_peaks(run, device, roof));
    }

    /// Both slots are shown against the best peaks that are known of their device.
    pub(super) fn share_peaks(&mut self) {
        let [Some(a), Some(b)] = self.slots.each_mut().map(|slot| slot.started.as_mut()) else {
            return;
        };
        if let (Some(of_a), Some(of_b)) = (&mut a.roof, &mut b.roof)
            && a.device == b.device
        {
            **of_a = better(of_a.as_ref().clone(), of_b.as_ref().clone());
            of_b.clone_from(of_a);
        }
    }

    /// The loss of step 0, before any update, of the weights that train now: a run that went on with another's weights has
    /// that one's.
    pub fn first_loss(&self) -> Option<f64> {
        let weights = self.shown().weights;
        let others = self.slots.iter().chain(&self.earlier);
        let mut same = others.filter(|it| it.weights == weights && !it.of_pairs);
        let own = self.shown().first_loss();
        own.or_else(|| same.find_map(SlotRun::first_loss))
    }
}
