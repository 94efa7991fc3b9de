//! The bench holds A and B, what their runs show, and the latest request to the engine.
//!
//! The engine answers late, and in the order of the requests. Each request has a number, and its answer names that number, so that an answer
//! to an older request changes nothing that is pending. An answer without a number comes from an older engine and belongs to the latest
//! request; a recording answers no request. [`Pending`] holds the latest request; no other field says what is awaited.

use super::comparison::{Comparison, KnobChange};
use super::devices::Devices;
use super::run::{RequestedRun, RunState};
use protocol::config::{Matmul, Precision, Preset, RunConfig};
use protocol::{Command, Event, Failed, FailedKind, Pair, RunSpec, Slot, Started};

/// A and B, the requested run, and the request that the engine has not answered yet.
#[derive(Clone, Debug, Default)]
pub struct Bench {
    /// A and B, and the knobs between them.
    pub comparison: Comparison,
    pub run: RequestedRun,
    pub pending: Pending,
    /// The model size for every stage. `None` leaves each stage its own size.
    pub preset: Option<Preset>,
}

/// The latest request, as far as the engine has not confirmed it.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// The number of the latest request, from 1.
    pub request: u64,
    pub asked: Asked,
    /// The change of B that no run has confirmed. It is undone if the engine refuses it.
    pub change: Option<KnobChange>,
    /// The time at which B starts with its latest changes, in milliseconds since the program began. `None` if B has no new changes.
    pub due_ms: Option<u64>,
    /// The engine was replaced because it did not answer, and no step has come since.
    pub replaced: bool,
    /// The request came while the engine made a step. The engine reads it only after that step.
    pub interrupts: bool,
}

/// The kind of the latest request, until the engine has done it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Asked {
    /// Nothing is awaited: the requested run is in progress or has ended.
    #[default]
    Nothing,
    /// A run from its first step. Until it starts, events belong to older runs. If the engine refuses it, the run `before` continues.
    Start { before: Option<RunSpec> },
    /// Other knobs for the run in progress, from the next step on.
    Change,
    /// A and B in turns, until their verdict. Until both sides have begun, events belong to older runs.
    Pairs { to_begin: Vec<RunSpec> },
    /// The end of the run. Later events belong to it and are ignored.
    Leave,
}

/// The state after the engine has refused a request.
pub(super) struct AfterRefusal {
    /// The engine still trains an earlier run, which is shown again.
    pub run_goes_on: bool,
    /// B is as it was before the change that was refused.
    pub change_undone: bool,
}

impl Bench {
    /// Replaces A and B. A pending change of the old B is forgotten.
    pub(super) fn compare(&mut self, comparison: Comparison) {
        self.comparison = comparison;
        self.pending.change = None;
    }

    /// Replaces B's whole configuration by the learner's file, an attempt, or the solution (`solved`).
    pub(super) fn set_b(&mut self, config: RunConfig, solved: bool) {
        self.comparison.set_b(config, solved);
        self.pending.change = None;
    }

    /// Returns true if A and B are measured in turns, or are about to be.
    pub fn pairing(&self) -> bool {
        matches!(self.pending.asked, Asked::Pairs { .. })
    }

    /// Returns true if the knobs change at the next step.
    pub fn switching(&self) -> bool {
        self.pending.asked == Asked::Change
    }

    /// Returns true if events belong to the run, or to the pairs, of the latest request.
    pub fn is_current(&self) -> bool {
        match &self.pending.asked {
            Asked::Nothing | Asked::Change => true,
            Asked::Pairs { to_begin } => to_begin.is_empty(),
            Asked::Start { .. } | Asked::Leave => false,
        }
    }

    /// Returns true if an answer with this number belongs to the latest request.
    fn is_latest(&self, request: u64) -> bool {
        request == 0 || request == self.pending.request
    }

    /// Makes a new request the latest one and returns its number.
    fn ask(&mut self, asked: Asked, now_ms: u64) -> u64 {
        if asked != Asked::Change {
            // A GPU may compile kernels before its first step; that does not count as a step.
            let shown = self.run.shown();
            let has_stepped = shown.last.is_some() || shown.description.on_cpu();
            let in_step = has_stepped && self.run.state.is_active() && self.is_current();
            self.pending.interrupts = in_step || self.interrupts_step();
            self.run.state = RunState::Starting;
            self.run.asked_ms = now_ms;
            self.run.compiling = None;
        }
        self.pending.asked = asked;
        self.pending.request += 1;
        self.pending.request
    }

    /// Requests a run from its first step, instead of the one in progress.
    pub(super) fn start(&mut self, run: RunSpec, devices: &Devices, now_ms: u64) -> Command {
        let last = self.run.wanted.replace(run.clone());
        let before = if self.is_current() { last } else { None };
        self.run.active = run.slot;
        Command::Start {
            request: self.ask(Asked::Start { before }, now_ms),
            device: devices.using.clone(),
            run,
        }
    }

    /// Requests that the run in progress continues with the knobs of `run`.
    pub(super) fn change(&mut self, run: RunSpec, now_ms: u64) -> Command {
        self.run.wanted = Some(run.clone());
        let request = self.ask(Asked::Change, now_ms);
        Command::Apply { run, request }
    }

    /// Requests that these two are measured in turns, at most `pairs` times. 0 sets no limit of its own.
    pub(super) fn pair(
        &mut self,
        sides: [RunSpec; 2],
        pairs: u32,
        devices: &Devices,
        now_ms: u64,
    ) -> Command {
        let to_begin = sides.to_vec();
        let [a, b] = sides;
        Command::Pair {
            request: self.ask(Asked::Pairs { to_begin }, now_ms),
            device: devices.using.clone(),
            stage: self.comparison.stage,
            a,
            b,
            pairs,
        }
    }

    /// Ends the run in progress. Later events about it are ignored.
    pub(super) fn leave(&mut self, now_ms: u64) -> Command {
        self.ask(Asked::Leave, now_ms);
        self.run.wanted = None;
        self.run.state = RunState::Finished;
        self.pending.due_ms = None;
        Command::Stop
    }

    /// Pauses the run, or resumes it if it is paused. `None` during pairs, which cannot be paused, and if there is no such run.
    pub(super) fn pause(&mut self) -> Option<Command> {
        if self.pairing() {
            return None;
        }
        let (state, command) = match &self.run.state {
            state if state.is_moving() => (RunState::Pausing, Command::Pause),
            state if state.is_paused() => (RunState::Resuming, Command::Resume),
            _ => return None,
        };
        self.run.state = state;
        Some(command)
    }

    /// Takes the run off the bench while a recorded run is shown there. Returns the command for the engine, and the run with true if it
    /// made steps and has to be resumed later. A run that is starting, and pairs, cannot wait: they are ended, and no run is returned.
    pub(super) fn hold(&mut self) -> (Option<Command>, Option<(RequestedRun, bool)>) {
        use RunState::{EngineGone, Paused, Pausing, Starting};
        let asked = std::mem::take(&mut self.pending.asked);
        let mut run = std::mem::take(&mut self.run);
        let settled = matches!(asked, Asked::Nothing | Asked::Leave);
        if !settled || matches!(run.state, Starting | EngineGone { .. }) {
            return (Some(Command::Stop), None);
        }
        let moves = run.state.is_moving();
        if moves || run.state == Pausing {
            run.state = Paused;
        }
        (moves.then_some(Command::Pause), Some((run, moves)))
    }

    /// Puts a run from `hold` back on the bench, and resumes it if `resumes` is true. Returns the command for the engine.
    pub(super) fn put_back(&mut self, run: RequestedRun, resumes: bool) -> Option<Command> {
        self.run = run;
        self.pending.asked = Asked::Nothing;
        if resumes { self.pause() } else { None }
    }

    /// Returns the slot that the criteria are applied to: B, or A while both are compared and B equals A.
    pub(super) fn judged(&self, compares: bool) -> Slot {
        if compares && self.comparison.b_equals_a() {
            Slot::A
        } else {
            Slot::B
        }
    }

    /// Handles the progress of compiling: the number of kernels so far, and the name of the latest one.
    pub(super) fn on_compiling(&mut self, kernels: u32, latest: String) {
        self.run.compiling = Some((kernels, latest));
        if self.run.state == RunState::Starting {
            self.run.state = RunState::Warming;
        }
    }

    /// Handles a step of the run. If `hidden`, its figures are not shown to the learner.
    pub(super) fn on_step(&mut self, event: &Event, hidden: bool, now_ms: u64) {
        if !self.is_current() {
            return;
        }
        use RunState::{Failed, Finished, Starting, Warming};
        let run = &mut self.run;
        if matches!(run.state, Starting | Warming | Finished | Failed { .. }) {
            run.state = RunState::Running;
        }
        run.step_ms = now_ms;
        self.pending.replaced = false;
        if !hidden {
            run.story.on_event(event, now_ms);
        }
    }

    /// Returns true if the run in progress can take the knobs of `run` at its next step, because its parameters can stay.
    pub(super) fn can_change_to(&self, run: &RunSpec) -> bool {
        let has_begun = self.run.state.is_active() && self.run.state != RunState::Starting;
        let now = &self.run.shown().description;
        let keeps_weights = now.config.as_ref().is_some_and(|config| {
            let restarts = self
                .comparison
                .restarts_because_hidden(now.slot != run.slot);
            now.stage == run.stage && config.keeps_parameters(&run.config) && !restarts
        });
        has_begun && keeps_weights && matches!(self.pending.asked, Asked::Nothing | Asked::Change)
    }

    /// Handles the start of a run of the live engine. Returns true if events of this run are shown. Only the answer to the latest request
    /// ends what is pending.
    pub(super) fn on_start(&mut self, started: &Started) -> bool {
        let latest = self.is_latest(started.request);
        match &mut self.pending.asked {
            Asked::Pairs { to_begin } if latest && started.paired => {
                to_begin.retain(|side| side.slot != started.run.slot);
                true
            }
            Asked::Pairs { .. } | Asked::Leave => false,
            Asked::Start { .. } if started.paired => false,
            asked if latest => {
                *asked = Asked::Nothing;
                true
            }
            // After several changes in a row the engine reports one start for each of them.
            asked => *asked == Asked::Change,
        }
    }

    /// Handles the start of a recorded run, or of recorded pairs if `paired`.
    pub(super) fn on_recorded_start(&mut self, paired: bool) {
        self.pending.asked = if paired {
            Asked::Pairs { to_begin: vec![] }
        } else {
            Asked::Nothing
        };
    }

    /// Returns true if a result of pairs belongs to the present A and B. It does not if B was changed meanwhile.
    pub(super) fn accepts_pair(&self, pair: &Pair) -> bool {
        let is_unchanged = self.is_current() && self.pending.due_ms.is_none();
        self.pairing() && is_unchanged && self.is_latest(pair.request)
    }

    /// Returns true if a failure belongs to the latest request or to the run in progress.
    pub(super) fn concerns(&self, failed: &Failed) -> bool {
        let latest = self.is_latest(failed.request);
        match self.pending.asked {
            Asked::Leave => false,
            // An internal failure ends the run that was to change.
            Asked::Change => latest || failed.kind == FailedKind::Internal,
            // After a first failure the engine also reports that it cannot do later requests. The first reason stays.
            Asked::Nothing => latest && !matches!(self.run.state, RunState::Failed { .. }),
            Asked::Start { .. } | Asked::Pairs { .. } => latest,
        }
    }

    /// Handles the engine's refusal of the latest request: undoes the change of B that was tried, and shows the run that the engine still
    /// trains.
    pub(super) fn on_refusal(&mut self, failed: &Failed) -> AfterRefusal {
        let wanted = self.run.wanted.as_ref();
        let mut change_undone = false;
        if wanted.is_some_and(|run| run.slot == Slot::B)
            && let Some(change) = self.pending.change.take()
        {
            self.comparison.undo(change, &failed.reason);
            change_undone = true;
        }
        let run = &mut self.run;
        let goes_on = match std::mem::take(&mut self.pending.asked) {
            Asked::Start { before } if failed.kind == FailedKind::Refused => {
                before.inspect(|_| run.state = RunState::Running)
            }
            // A run that broke off does not go on.
            Asked::Change if run.state.is_active() && failed.kind != FailedKind::Internal => {
                run.shown().description.spec()
            }
            _ => None,
        };
        let run_goes_on = goes_on.is_some();
        if let Some(goes_on) = goes_on {
            run.active = goes_on.slot;
            run.wanted = Some(goes_on);
        }
        AfterRefusal {
            run_goes_on,
            change_undone,
        }
    }

    /// Returns the slot that a toggle switches to: A if the present B was requested last, else B.
    pub(super) fn other_side(&self) -> Slot {
        let b = &self.comparison.config_b;
        let wanted = self.run.wanted.as_ref();
        let b_is_shown = wanted.is_some_and(|run| run.slot == Slot::B && run.config == *b);
        if b_is_shown { Slot::A } else { Slot::B }
    }

    /// Returns the result of pairs with the present B.
    pub(super) fn pairs_of_b(&self) -> Option<Pair> {
        self.run.pair_of(&self.comparison.config_b).cloned()
    }

    /// Returns the configuration, changed to plain f32, of a run that failed on matrix cores, which may be the reason. `None` for any other run.
    pub fn in_f32(&self) -> Option<RunConfig> {
        let mut config = self.run.wanted.as_ref()?.config.clone();
        config.train.precision = Precision::F32;
        if config.model.matmul == Matmul::Split {
            config.model.matmul = Matmul::Own;
        }
        let used_matrix_cores = self.run.shown().description.matrix_cores;
        (self.run.state.broke_off() && used_matrix_cores).then_some(config)
    }
}
