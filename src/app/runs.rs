//! Requests for runs: start, toggle, pair, pause. Each function sends commands and notes which answers are awaited.

use std::sync::Arc;

use super::comparison::Comparison;
use super::pages::LessonPage;
use super::{App, Effect, Mode, RequestedRun, RunState};
use crate::course::Stage;
use protocol::config::{Matmul, Precision, Preset, RunConfig};
use protocol::{Command, RunSpec, Slot};

/// The run of a stage's variant as shipped: `broken` goes to slot A, anything else, the solution, to B.
pub fn spec(stage: &Stage, variant: &str, preset: Option<Preset>) -> RunSpec {
    let mut comparison = Comparison::of_stage(stage, preset);
    if variant == "broken" {
        return comparison.run_a();
    }
    comparison.set_b(solution(stage, preset), true);
    comparison.run_b()
}

/// The stage's solution, at another preset if one is given.
pub(super) fn solution(stage: &Stage, preset: Option<Preset>) -> RunConfig {
    stage.fixed_at(preset.unwrap_or(stage.fixed.preset))
}

impl App {
    /// Goes to a stage and starts it as the learner finds it.
    pub(super) fn enter(&mut self, at: usize) {
        let course = Arc::clone(&self.lesson.course);
        let Some(stage) = course.stages.get(at) else {
            return self.probe_devices();
        };
        self.lesson.study.enter(at, stage);
        self.view.to_top();
        self.view.lesson_page = LessonPage::of(&self.lesson.study, stage);
        (self.view.confirm, self.view.third) = (None, None);
        // A notice about the previous stage would cover the first hint at what to do in this one.
        if self.bench.run.wanted.is_some() {
            self.view.notice = None;
        }
        if !self.mode.is_live() {
            return;
        }
        self.bench.comparison = Comparison::of_stage(stage, self.bench.preset);
        self.view.knobs = false;
        self.begin_with_a();
        self.effects.push(Effect::SaveCurrent {
            stage: stage.id.clone(),
        });
    }

    /// Runs a configuration without a stage.
    pub(super) fn run_free(&mut self, config: RunConfig) {
        self.leave_exercise();
        (self.mode, self.presenter.presentation) = (Mode::Free, None);
        (self.lesson.study.pair, self.lesson.study.report) = (None, None);
        self.bench.comparison = Comparison::free(config);
        self.begin_with_a();
        self.open_knobs();
    }

    /// Starts A of a comparison that replaces another one. After the first run of all, asks for the devices.
    pub(super) fn begin_with_a(&mut self) {
        let first = self.bench.run.wanted.is_none();
        self.bench.run.forget();
        self.start(self.bench.comparison.run_a());
        if first {
            self.probe_devices();
        }
    }

    /// Asks which devices there are; done once, after the first run was requested.
    pub(super) fn probe_devices(&mut self) {
        if self.mode.is_live() {
            self.send(Command::Probe);
        }
    }

    pub(super) fn send(&mut self, command: Command) {
        self.effects.push(Effect::Send(command));
    }

    /// Keeps what was done in a stage or an exercise.
    pub(super) fn save(&mut self, id: &str) {
        self.effects.push(Effect::SaveStage {
            stage: id.to_owned(),
            progress: Box::new(self.lesson.study.progress.stage(id)),
        });
    }

    /// Starts a run, replacing the one in progress. An engine that is gone or hangs is replaced first.
    pub(super) fn start(&mut self, run: RunSpec) {
        self.renew_engine();
        self.end_pairs();
        self.show_present_b();
        self.bench.run.before = self
            .bench
            .run
            .wanted
            .take()
            .filter(|_| self.bench.run.is_current());
        self.await_runs(vec![run.clone()]);
        self.bench.run.active = run.slot;
        self.bench.run.wanted = Some(run.clone());
        let device = self.devices.using.clone();
        self.send(Command::Start {
            device,
            run,
            request: 0,
        });
    }

    /// Where A and B are compared, B shows nothing of another configuration than its present one.
    pub(super) fn show_present_b(&mut self) {
        if self.mode.compares() {
            self.bench.run.show_b(&self.bench.comparison.config_b);
        }
    }

    /// Ends pairs in progress. They do not count; earlier pairs of this B do.
    pub(super) fn end_pairs(&mut self) {
        if std::mem::take(&mut self.bench.run.pairing) {
            self.lesson.study.pair = self
                .bench
                .run
                .pair_of(&self.bench.comparison.config_b)
                .cloned();
        }
    }

    /// Notes that these runs were asked for: until they start, events belong to older ones.
    pub(super) fn await_runs(&mut self, runs: Vec<RunSpec>) {
        self.bench.run.pending = runs;
        self.bench.run.switching = None;
        (self.bench.run.pairing, self.bench.run.left) = (false, false);
        self.bench.run.compiling = None;
        self.bench.run.asked_ms = self.clock.now_ms;
        self.bench.run.state = RunState::Starting;
    }

    /// Changes the knobs of a run: at a step boundary where the parameters can stay, else with a restart from the same seed.
    pub(super) fn change_to(&mut self, run: RunSpec) {
        let live = self.bench.run.state.is_active() && self.bench.run.state != RunState::Starting;
        let now = &self.bench.run.shown().description;
        let same_weights = now.config.as_ref().is_some_and(|config| {
            let begins_again = self.bench.comparison.begins_again(now.slot != run.slot);
            let keeps = config.keeps_parameters(&run.config);
            now.stage == run.stage && keeps && !begins_again
        });
        if !(live
            && same_weights
            && !self.engine_hangs()
            && self.bench.run.pending.is_empty()
            && !self.bench.run.pairing)
        {
            return self.start(run);
        }
        self.bench.run.switching = Some(run.clone());
        self.bench.run.wanted = Some(run.clone());
        self.send(Command::Apply { run, request: 0 });
        if self.bench.run.state.is_paused() {
            self.bench.run.state = RunState::Resuming;
            self.send(Command::Resume);
        }
    }

    /// Switches from A to B, and back. While both are the same, opens the knobs instead.
    pub(super) fn toggle(&mut self) {
        if self.open_knobs_if_same() {
            return;
        }
        self.bench.comparison.due_ms = None;
        self.cancel_verdict();
        // A B that the learner has changed since counts as another one.
        let mine =
            |run: &RunSpec| run.slot == Slot::B && run.config == self.bench.comparison.config_b;
        let to_b = !self.bench.run.wanted.as_ref().is_some_and(mine);
        if to_b {
            self.with_stage(|app, stage| app.lesson.study.note_fix_tried(stage));
        }
        let slot = if to_b { Slot::B } else { Slot::A };
        self.change_to(self.bench.comparison.run_of(slot));
    }

    /// Runs A and B in pairs, until the verdict is clear.
    pub(super) fn pair(&mut self) {
        if self.mode.plays_mystery() {
            return self.ask_for_verdict();
        }
        self.note_pairs_with_a();
        if self.open_knobs_if_same() {
            return;
        }
        self.bench.comparison.due_ms = None;
        self.renew_engine();
        self.show_present_b();
        let (a, b) = (self.bench.comparison.run_a(), self.bench.comparison.run_b());
        self.lesson.study.pair = None;
        self.with_stage(|app, stage| app.lesson.study.note_fix_tried(stage));
        self.run_pairs(a, b);
    }

    /// Runs these two in turns. What both have shown so far stays: pairs measure times, the lesson is about the rest.
    pub(super) fn run_pairs(&mut self, a: RunSpec, b: RunSpec) {
        self.await_runs(vec![a.clone(), b.clone()]);
        self.bench.run.pairing = true;
        self.send(Command::Pair {
            device: self.devices.using.clone(),
            stage: self.bench.comparison.stage,
            a,
            b,
            pairs: 0,
            request: 0,
        });
    }

    /// The same run again, from its first step.
    pub(super) fn restart(&mut self) {
        if self.beat().is_some() {
            return self.measure_beat_again();
        }
        if self.bench.run.pairing {
            return self.pair();
        }
        match self.bench.run.wanted.clone() {
            Some(run) => self.start(run),
            None if self.can_edit() => self.start(self.bench.comparison.run_a()),
            None => self.enter(self.lesson.study.at),
        }
    }

    /// In plain f32, the configuration of a run that broke off while it computed on matrix cores: they may be why.
    pub fn in_f32(&self) -> Option<RunConfig> {
        let mut config = self.bench.run.wanted.as_ref()?.config.clone();
        config.train.precision = Precision::F32;
        if config.model.matmul == Matmul::Split {
            config.model.matmul = Matmul::Own;
        }
        let on_cores = self.bench.run.shown().description.matrix_cores;
        (self.bench.run.state.broke_off() && on_cores).then_some(config)
    }

    pub(super) fn pause(&mut self) {
        if self.bench.run.pairing {
            return;
        }
        let (state, command) = match &self.bench.run.state {
            state if state.is_moving() => (RunState::Pausing, Command::Pause),
            state if state.is_paused() => (RunState::Resuming, Command::Resume),
            _ => return,
        };
        self.bench.run.state = state;
        self.send(command);
    }

    /// Moves to another device. Figures of two devices are not compared, so the other slot is cleared.
    pub(super) fn use_device(&mut self, select: &str) {
        self.devices.switch_to(select);
        self.bench.run.forget();
        self.lesson.study.pair = None;
        if let Some(presentation) = &mut self.presenter.presentation {
            presentation.kept.clear();
        }
        self.restart()
    }
}

impl RequestedRun {
    /// Whether an event of this slot belongs to a run that is still wanted.
    pub(super) fn is_current(&self) -> bool {
        self.pending.is_empty() && !self.left
    }
}
