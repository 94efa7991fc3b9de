//! The bench: A and B, what their runs show, and what was asked of the engine.
//!
//! The engine answers late, and in the order of the requests. Each request has a number and its answer names it, so that an answer to an older
//! request changes nothing that is pending. An answer without a number, from an older engine, is one to the latest request; a recording answers
//! no request. What was asked last is one value, [`Pending`]; nothing else notes what is awaited.

use super::comparison::{Comparison, KnobChange};
use super::devices::Devices;
use super::run::{RequestedRun, RunState};
use protocol::config::{Matmul, Precision, Preset, RunConfig};
use protocol::{Command, Event, Failed, FailedKind, Pair, RunSpec, Slot, Started};

/// A and B, and the run that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Bench {
    /// A and B, and the knobs between them.
    pub comparison: Comparison,
    pub run: RequestedRun,
    pub pending: Pending,
    /// Model size for every stage, instead of the stage's own.
    pub preset: Option<Preset>,
}

/// What was asked for and is not there yet.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// The number of the latest request, from 1.
    pub request: u64,
    pub asked: Asked,
    /// The change of B that no run has confirmed: it is taken back where the engine refuses it.
    pub change: Option<KnobChange>,
    /// When B runs with its latest changes, in milliseconds since the program began; until then more changes may come.
    pub due_ms: Option<u64>,
    /// The engine was replaced because it did not answer, and no step has come since.
    pub replaced: bool,
    /// It was asked while steps were made: the one in progress ends before the engine hears of it.
    pub interrupts: bool,
}

/// What the latest request asked for, as far as the engine has not done it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Asked {
    /// It is done: the run that was asked for goes on or has ended.
    #[default]
    Nothing,
    /// A run from its first step. Until it starts, events are about older runs. `before` goes on where the engine refuses the start.
    Start { before: Option<RunSpec> },
    /// Other knobs from the next step boundary on; the run in progress goes on until then.
    Change,
    /// A and B in turns, until their verdict. Until both sides have begun, events are about older runs.
    Pairs { to_begin: Vec<RunSpec> },
    /// No run: events are about one that was left.
    Leave,
}

impl Bench {
    /// Compares another A and B from now on. A change of the old B is no longer tried.
    pub(super) fn compare(&mut self, comparison: Comparison) {
        self.comparison = comparison;
        self.pending.change = None;
    }

    /// Gives B another configuration as a whole: the learner's file, an attempt, or the solution.
    pub(super) fn set_b(&mut self, config: RunConfig, solved: bool) {
        self.comparison.set_b(config, solved);
        self.pending.change = None;
    }

    /// Whether A and B are measured in turns, or are about to be.
    pub fn pairing(&self) -> bool {
        matches!(self.pending.asked, Asked::Pairs { .. })
    }

    /// Whether the knobs change at the next step.
    pub fn switching(&self) -> bool {
        self.pending.asked == Asked::Change
    }

    /// Whether events are about the run, or the pairs, that were asked for last.
    pub fn is_current(&self) -> bool {
        match &self.pending.asked {
            Asked::Nothing | Asked::Change => true,
            Asked::Pairs { to_begin } => to_begin.is_empty(),
            Asked::Start { .. } | Asked::Leave => false,
        }
    }

    /// Whether an answer with this number is one to the latest request.
    fn is_latest(&self, request: u64) -> bool {
        request == 0 || request == self.pending.request
    }

    /// Notes what is asked for, and numbers it.
    fn ask(&mut self, asked: Asked, now_ms: u64) -> u64 {
        if asked != Asked::Change {
            // A GPU may compile kernels before its first step, which is no step.
            let shown = self.run.shown();
            let steps = shown.last.is_some() || shown.description.on_cpu();
            let steps = steps && self.run.state.is_active() && self.is_current();
            self.pending.interrupts = steps || self.leaves_a_step();
            let run = &mut self.run;
            (run.state, run.asked_ms, run.compiling) = (RunState::Starting, now_ms, None);
        }
        self.pending.asked = asked;
        self.pending.request += 1;
        self.pending.request
    }

    /// Asks for a run from its first step, in the place of what is in progress.
    pub(super) fn start(&mut self, run: RunSpec, devices: &Devices, now_ms: u64) -> Command {
        let before = self.run.wanted.replace(run.clone());
        let before = before.filter(|_| self.is_current());
        self.run.active = run.slot;
        Command::Start {
            request: self.ask(Asked::Start { before }, now_ms),
            device: devices.using.clone(),
            run,
        }
    }

    /// Asks the run in progress to go on with the knobs of this one.
    pub(super) fn change(&mut self, run: RunSpec, now_ms: u64) -> Command {
        self.run.wanted = Some(run.clone());
        let request = self.ask(Asked::Change, now_ms);
        Command::Apply { run, request }
    }

    /// Asks for these two in turns, at most so many times; 0: as often as the pace allows.
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

    /// Ends the run in progress; later events about it are ignored.
    pub(super) fn leave(&mut self, now_ms: u64) -> Command {
        self.ask(Asked::Leave, now_ms);
        (self.run.wanted, self.run.state) = (None, RunState::Finished);
        self.pending.due_ms = None;
        Command::Stop
    }

    /// Pauses the run that makes steps, or lets the paused one go on. Pairs do not wait.
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

    /// Takes the run off the bench while a recorded one is shown there. It is paused until then, and goes on later if it made steps (true). A run that
    /// is starting, or pairs, cannot wait: they are ended. Returns also what the engine is told.
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

    /// Puts a run that was held on the bench again, and lets it go on if it `resumes`; returns what the engine is told.
    pub(super) fn take_up(&mut self, run: RequestedRun, resumes: bool) -> Option<Command> {
        (self.run, self.pending.asked) = (run, Asked::Nothing);
        if resumes { self.pause() } else { None }
    }

    /// The slot that the criteria are about: B, or A while both are compared and B is the same.
    pub(super) fn judged(&self, compares: bool) -> Slot {
        let same = compares && self.comparison.same();
        if same { Slot::A } else { Slot::B }
    }

    /// The engine compiles the kernels of the run.
    pub(super) fn compiling(&mut self, kernels: u32, latest: String) {
        self.run.compiling = Some((kernels, latest));
        if self.run.state == RunState::Starting {
            self.run.state = RunState::Warming;
        }
    }

    /// A step was made; `hidden` if what it shows is not for the learner.
    pub(super) fn stepped(&mut self, event: &Event, hidden: bool, now_ms: u64) {
        if !self.is_current() {
            return;
        }
        let run = &mut self.run;
        if matches!(run.state, RunState::Starting | RunState::Warming)
            || matches!(run.state, RunState::Finished | RunState::Failed { .. })
        {
            run.state = RunState::Running;
        }
        run.step_ms = now_ms;
        self.pending.replaced = false;
        if !hidden {
            run.story.hear(event, now_ms);
        }
    }

    /// Whether the run in progress can take the knobs of this one at a step boundary: its parameters can stay.
    pub(super) fn can_change_to(&self, run: &RunSpec) -> bool {
        let live = self.run.state.is_active() && self.run.state != RunState::Starting;
        let now = &self.run.shown().description;
        let same_weights = now.config.as_ref().is_some_and(|config| {
            let begins_again = self.comparison.begins_again(now.slot != run.slot);
            now.stage == run.stage && config.keeps_parameters(&run.config) && !begins_again
        });
        live && same_weights && matches!(self.pending.asked, Asked::Nothing | Asked::Change)
    }

    /// A run of a live engine has begun; returns whether the bench follows it. Only the answer to the latest request settles what is pending.
    pub(super) fn follows(&mut self, started: &Started) -> bool {
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
            // The run takes earlier changes on the way to the latest.
            asked => *asked == Asked::Change,
        }
    }

    /// A recorded run begins, or recorded pairs.
    pub(super) fn replays(&mut self, paired: bool) {
        let pairs = Asked::Pairs { to_begin: vec![] };
        self.pending.asked = if paired { pairs } else { Asked::Nothing };
    }

    /// Whether a result of pairs is about the present A and B. Pairs of a B that was changed meanwhile say nothing about it.
    pub(super) fn counts(&self, pair: &Pair) -> bool {
        let present = self.is_current() && self.pending.due_ms.is_none();
        self.pairing() && present && self.is_latest(pair.request)
    }

    /// Whether a failure is about what was asked for last, or about the run in progress.
    pub(super) fn concerns(&self, failed: &Failed) -> bool {
        let latest = self.is_latest(failed.request);
        match self.pending.asked {
            Asked::Leave => false,
            // The run that is to change has broken off.
            Asked::Change => latest || failed.kind == FailedKind::Internal,
            // It failed before, and what it was asked since cannot be done.
            Asked::Nothing => latest && !matches!(self.run.state, RunState::Failed { .. }),
            Asked::Start { .. } | Asked::Pairs { .. } => latest,
        }
    }

    /// The engine cannot do what was asked for last. A change of B that was tried is taken back, and the run that the engine still trains is shown
    /// again; returns whether there is such a run, and whether there was such a change.
    pub(super) fn take_back(&mut self, failed: &Failed) -> (bool, bool) {
        let wanted = self.run.wanted.as_ref();
        let tried = wanted.is_some_and(|run| run.slot == Slot::B);
        let change = self.pending.change.take_if(|_| tried);
        let undone = change.is_some();
        if let Some(change) = change {
            self.comparison.take_back(change, &failed.reason);
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
        let Some(goes_on) = goes_on else {
            return (false, undone);
        };
        run.active = goes_on.slot;
        run.wanted = Some(goes_on);
        (true, undone)
    }

    /// The side that a toggle goes to. A B that was changed since it was asked for counts as another one.
    pub(super) fn other_side(&self) -> Slot {
        let b = &self.comparison.config_b;
        let wanted = self.run.wanted.as_ref();
        let to_a = wanted.is_some_and(|run| run.slot == Slot::B && run.config == *b);
        if to_a { Slot::A } else { Slot::B }
    }

    /// The result of pairs with the present B.
    pub(super) fn pairs_of_b(&self) -> Option<Pair> {
        self.run.pair_of(&self.comparison.config_b).cloned()
    }

    /// In plain f32, the configuration of a run that broke off while it computed on matrix cores: they may be why.
    pub fn in_f32(&self) -> Option<RunConfig> {
        let mut config = self.run.wanted.as_ref()?.config.clone();
        config.train.precision = Precision::F32;
        if config.model.matmul == Matmul::Split {
            config.model.matmul = Matmul::Own;
        }
        let on_cores = self.run.shown().description.matrix_cores;
        (self.run.state.broke_off() && on_cores).then_some(config)
    }
}
