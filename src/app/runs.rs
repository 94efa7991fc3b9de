//! Requests for runs: start, toggle, pair, pause. Each function sends commands to the engine; `Bench::pending` holds the awaited answer.

use std::sync::Arc;

use super::bench::Asked;
use super::comparison::Comparison;
use super::pages::LessonPage;
use super::part::FollowUp;
use super::{App, Effect, Mode, RunState};
use crate::course::save_file::ProgressChange;
use protocol::config::RunConfig;
use protocol::{Command, RunSpec, Slot};

/// The notice that another run has replaced the pairs.
pub(super) const PAIRS_ENDED: &str = "The pairs ended without a verdict; T measures them again";

impl App {
    /// Goes to the stage at index `at` and starts it as the learner finds it.
    pub(super) fn enter(&mut self, at: usize) {
        let course = Arc::clone(&self.lesson.course);
        let Some(stage) = course.stages.get(at) else {
            return self.probe_devices();
        };
        self.lesson.learner.enter(at, stage);
        self.view.to_top();
        self.view.lesson_page = LessonPage::to_resume(&self.lesson.learner, stage);
        self.view.confirm = None;
        self.view.third = None;
        // A notice about the previous stage would cover the first hint at what to do in this one.
        if self.bench.run.wanted.is_some() {
            self.view.notice = None;
        }
        if !self.mode.is_live() {
            return;
        }
        let comparison = Comparison::of_stage(stage, self.bench.preset);
        self.bench.compare(comparison);
        self.view.knobs = false;
        self.begin_with_a();
        let current = ProgressChange::Current(stage.id.clone());
        self.effects.push(Effect::Save(current));
    }

    /// Runs a configuration without a stage.
    pub(super) fn run_free(&mut self, config: RunConfig) {
        self.leave_exercise();
        self.end_presentation();
        self.mode = Mode::Free;
        self.lesson.learner.forget_results();
        self.bench.compare(Comparison::free(config));
        self.begin_with_a();
        self.view.open_knobs();
    }

    /// Starts A of a comparison that replaces another one. After the first run of the session, asks for the devices.
    pub(super) fn begin_with_a(&mut self) {
        let is_first = self.bench.run.wanted.is_none();
        self.bench.run.story.forget();
        self.bench.pending.due_ms = None;
        self.end_pairs();
        self.start(self.bench.comparison.run_a());
        if is_first {
            self.probe_devices();
        }
    }

    /// Asks the engine for the list of devices. This is done once, after the first run was requested.
    pub(super) fn probe_devices(&mut self) {
        if self.mode.is_live() {
            self.send(Command::Probe);
        }
    }

    pub(super) fn send(&mut self, command: Command) {
        self.effects.push(Effect::Send(command));
    }

    /// Starts a run instead of the one in progress. An engine that has ended or hangs is replaced first.
    pub(super) fn start(&mut self, run: RunSpec) {
        self.renew_engine();
        if self.end_pairs() && self.presenter.presentation.is_none() {
            self.tell(PAIRS_ENDED, true);
        }
        self.show_present_b();
        let command = self.bench.start(run, &self.devices, self.clock.now_ms);
        self.send(command);
    }

    /// Hides earlier configurations of B while A and B are compared. At a beat of A, hides all of B.
    pub(super) fn show_present_b(&mut self) {
        let hides_b = self.beat().is_some_and(|beat| beat.variant == Slot::A);
        if self.mode.compares() {
            let present = &self.bench.comparison.config_b;
            let story = &mut self.bench.run.story;
            story.show_b(|run| !hides_b && run.description.has(present));
        }
    }

    /// Ends pairs in progress without a verdict, and returns true if there were any. The result of earlier pairs of this B is shown again.
    pub(super) fn end_pairs(&mut self) -> bool {
        let ended = self.bench.pairing();
        if ended {
            self.bench.pending.asked = Asked::Nothing;
            self.lesson.learner.pair = self.bench.pairs_of_b();
        }
        ended
    }

    /// Changes the knobs of the run at the next step if the parameters can stay, else restarts it from its seed.
    pub(super) fn change_to(&mut self, run: RunSpec) {
        if self.bench.hangs(self.clock.now_ms) || !self.bench.can_change_to(&run) {
            return self.start(run);
        }
        let command = self.bench.change(run, self.clock.now_ms);
        self.send(command);
        if self.bench.run.state.is_paused() {
            self.bench.run.state = RunState::Resuming;
            self.send(Command::Resume);
        }
    }

    /// Switches from A to B, or back. If B equals A, opens the knobs instead.
    pub(super) fn toggle(&mut self) {
        if self.open_knobs_if_b_equals_a() {
            return;
        }
        self.bench.pending.due_ms = None;
        self.cancel_verdict();
        let slot = self.bench.other_side();
        if slot == Slot::B {
            self.lesson.mark_fix_tried(&self.mode);
        }
        self.change_to(self.bench.comparison.run_of(slot));
    }

    /// Measures A and B in pairs until the verdict is clear. If B equals A, opens the knobs instead.
    pub(super) fn pair(&mut self) {
        if self.mode.plays_mystery() {
            return self.ask_for_verdict();
        }
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.paired_with_good = false;
        }
        if self.open_knobs_if_b_equals_a() {
            return;
        }
        self.bench.pending.due_ms = None;
        self.renew_engine();
        self.show_present_b();
        self.lesson.learner.pair = None;
        self.lesson.mark_fix_tried(&self.mode);
        let comparison = &self.bench.comparison;
        let pairs = FollowUp::Pairs([comparison.run_a(), comparison.run_b()]);
        self.carry_out(vec![pairs]);
    }

    /// Repeats the requested run, or the pairs, from the beginning.
    pub(super) fn restart(&mut self) {
        if self.beat().is_some() {
            return self.measure_beat_again();
        }
        if self.bench.pairing() {
            return self.pair();
        }
        // The learner's last request was the B whose changes still wait.
        if self.bench.pending.due_ms.take().is_some() {
            self.cancel_verdict();
            return self.start(self.bench.comparison.run_now());
        }
        match self.bench.run.wanted.clone() {
            Some(run) => self.start(run),
            None if self.can_edit() => self.start(self.bench.comparison.run_a()),
            None => self.enter(self.lesson.learner.at),
        }
    }

    /// Pauses the run, or resumes it.
    pub(super) fn pause(&mut self) {
        self.effects.extend(self.bench.pause().map(Effect::Send));
    }

    /// Moves the run to another device. All earlier figures are cleared, because figures of two devices cannot be compared.
    pub(super) fn use_device(&mut self, select: &str) {
        self.devices.switch_to(select);
        self.bench.run.story.forget();
        self.lesson.learner.pair = None;
        self.presenter.forget_kept(|_| true);
        self.restart()
    }
}
