//! Carries out the actions that change several parts at once. `may.rs` has checked before that the action is possible. The mode
//! comes first (`act_in_mode`); this file handles the other actions. Actions that only change the view are in `view_actions.rs`.

use std::sync::Arc;

use super::guide::leaving;
use super::message::{Action, Effect};
use super::mode::Mode;
use super::mystery::{MysteryEnd, next_level, unsolved};
use super::pages::LessonPage;
use super::view::{AfterSkip, Confirm, Overlay, ScreenSize};
use super::{App, RunState};
use crate::panel::Panel;
use protocol::Command;
use protocol::config::RunConfig;

impl App {
    /// Carries out an action, or tells the learner why it is not possible now.
    pub(super) fn act(&mut self, action: Action) {
        self.clock.touched_ms = self.clock.now_ms;
        self.view
            .notice
            .take_if(|notice| notice.until_ms == u64::MAX);
        if let Err(refusal) = self.may(action) {
            self.carry_out(refusal.notice());
            return;
        }
        if self.in_class(|member, app| member.update(action, app)) {
            return;
        }
        let follows = self.devices.update(action, &self.view);
        if self.carry_out(follows) {
            return;
        }
        if action == Action::Solution && self.view.overlay == Some(Overlay::Skipped) {
            self.view.fault_shown = true;
            self.view.overlay_scroll = 0;
            return;
        }
        if self.can_edit() && self.act_on_knobs(action) {
            return;
        }
        if !self.act_in_mode(action) {
            self.act_anywhere(action);
        }
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.count_opened_panel(&self.view);
        }
    }

    fn act_anywhere(&mut self, action: Action) {
        match action {
            Action::Quit => self.effects.push(Effect::Quit),
            Action::AskQuit => self.view.confirm = Some(Confirm::Quit),
            Action::Suspend => {
                // The engine pauses while the program is suspended.
                let is_running = self.bench.run.state == RunState::Running;
                let pauses = self.mode.is_live() && is_running && !self.bench.pairing();
                if pauses {
                    self.send(Command::Pause);
                }
                self.effects.push(Effect::Suspend);
                if pauses {
                    self.send(Command::Resume);
                }
            }
            Action::Report => {
                let learner = self.presenter.own_learner(&self.lesson.learner);
                let progress = Box::new(learner.progress.clone());
                self.effects.push(Effect::WriteReport(progress));
            }
            Action::Stage(number) => {
                if let Some(at) = self.lesson.place_of_number(number) {
                    self.leave_for(at);
                }
            }
            Action::Reset => self.view.confirm = Some(Confirm::Reset),
            Action::No => self.view.confirm = None,
            Action::Yes => self.confirmed(),
            Action::OpenEditor => {
                if let Some((id, file, line)) = self.file_to_edit() {
                    let stage = id.to_owned();
                    self.effects.push(Effect::OpenEditor { stage, file, line });
                }
            }
            Action::OpenProfile => {
                if let Some(file) = self.shown_run().trace_file() {
                    self.effects.push(Effect::OpenProfile {
                        file,
                        theme: self.view.theme,
                        markers: self.view.markers,
                    });
                }
            }
            Action::Pause => self.pause(),
            Action::Restart => self.restart(),
            Action::Toggle => self.after_prediction(AfterSkip::Toggle),
            Action::Pair if self.mode.plays_mystery() => self.ask_for_verdict(),
            Action::Pair => self.after_prediction(AfterSkip::Pair),
            Action::LeaveExercise => self.leave_exercise(),
            Action::NextStage | Action::PreviousStage => self.leave_for(self.lesson.learner.at),
            Action::Profile => {
                self.tell("The next step is profiled", false);
                self.send(Command::Profile { request: 0 });
            }
            Action::InF32 => {
                if let Some(config) = self.bench.in_f32() {
                    self.run_free(config);
                    let text = "Now running this stage in f32, outside the course; \
                                the list of stages leads back";
                    self.tell(text, false);
                }
            }
            Action::Choose => self.choose(self.view.selected),
            Action::ChooseLine(line) => self.choose(line),
            _ => self.act_on_view(action),
        }
    }

    /// Returns the file that the editor opens: the id of its exercise or stage, its name, and the line of a fault (from 1). `None`
    /// where there is no file to edit.
    pub(super) fn file_to_edit(&self) -> Option<(&str, String, Option<u32>)> {
        if let Some(exercise) = self.exercise() {
            let (file, line) = self.exercise_file()?;
            return Some((&exercise.id, file, line));
        }
        let stage = self.stage()?;
        Some((&stage.id, stage.file.name.clone(), None))
    }

    /// Does what the learner has just confirmed with yes.
    fn confirmed(&mut self) {
        match self.view.confirm.take() {
            Some(Confirm::SkipPrediction(then)) => {
                self.in_lesson(|lesson, stage, _| lesson.skip_prediction(stage));
                self.after_skip(then);
            }
            Some(Confirm::SkipLocating) => {
                self.in_lesson(|lesson, stage, _| lesson.skip_locating(stage));
            }
            Some(Confirm::ShowSolution) => self.show_solution(),
            Some(Confirm::Reset) if self.mode.is_exercise() => {
                let id = self.exercise().map(|exercise| exercise.id.clone());
                let before = id.and_then(|id| self.lesson.learner.progress.stages.remove(&id));
                self.in_open_exercise(|exercise, context| exercise.reset(before, context));
            }
            Some(Confirm::Reset) => {
                self.in_lesson(|lesson, stage, _| lesson.reset(stage));
                self.enter(self.lesson.learner.at);
            }
            Some(Confirm::Leave { to }) => self.go_to(to),
            Some(Confirm::LeaveMystery { to }) => self.enter_from_mystery(to),
            Some(Confirm::Quit) => self.effects.push(Effect::Quit),
            Some(Confirm::GiveUp) => {
                self.in_mystery(|mystery, context| {
                    mystery.finish(MysteryEnd::GivenUp, context.now_ms)
                });
            }
            None => {}
        }
    }

    /// Shows the solution and saves that it was shown.
    fn show_solution(&mut self) {
        self.act_on_view(Action::Open(Overlay::Solution));
        let course = Arc::clone(&self.lesson.course);
        let exercise = self.mode.exercise();
        let id = match exercise.and_then(|at| course.exercises.get(at)) {
            Some(exercise) => {
                self.exercise.state_mut(exercise).solution = true;
                &exercise.id
            }
            None => {
                self.lesson.learner.solution = true;
                &course.stages[self.lesson.learner.at].id
            }
        };
        self.lesson.learner.progress_mut(id).solution_shown = true;
        self.effects.push(self.lesson.saved(id));
    }

    /// Goes to another stage. Asks for confirmation first if the present one is not finished.
    pub(super) fn leave_for(&mut self, to: usize) {
        if self.mode.mystery().is_some() {
            self.leave_mystery(to);
        } else if to != self.lesson.learner.at && leaving(self).is_some() {
            self.view.confirm = Some(Confirm::Leave { to });
        } else {
            self.go_to(to);
        }
    }

    /// Goes to the stage at index `at`, in a presentation to its first beat.
    pub(super) fn go_to(&mut self, at: usize) {
        self.view.overlay = None;
        self.leave_exercise();
        if self.beat().is_some() {
            return self.show_beat(at, 0);
        }
        if at == self.lesson.learner.at && self.stage().is_some() {
            return;
        }
        if matches!(self.mode, Mode::Free | Mode::Mystery(_)) {
            self.mode = Mode::Stage;
        }
        self.view.focus = Some(Panel::Lesson);
        self.view.expanded = false;
        self.view.lesson_open = false;
        let skipped = self.lesson.mark_skipped(at, &self.mode);
        let skips_stages = self.carry_out(skipped);
        self.enter(at);
        if skips_stages {
            self.catch_up();
        }
    }

    /// Shows B or lets the learner change it. Asks for confirmation first while the stage's prediction is open.
    pub(super) fn after_prediction(&mut self, then: AfterSkip) {
        let is_open = |stage| !self.lesson.learner.predicted(stage);
        if self.keeps_progress() && self.stage().is_some_and(is_open) {
            self.view.confirm = Some(Confirm::SkipPrediction(then));
        } else {
            self.after_skip(then);
        }
    }

    /// Carries out what the learner asked for before the prediction was skipped.
    pub(super) fn after_skip(&mut self, then: AfterSkip) {
        // A lesson that covers the panels is closed, so that the result can be seen.
        if std::mem::take(&mut self.view.lesson_open) {
            self.view.focus = Some(Panel::Loss);
        }
        match then {
            AfterSkip::Toggle => self.toggle(),
            AfterSkip::Pair => {
                // The knobs are closed as well: pairs are shown in the panels that they cover.
                if self.view.screen_size() == ScreenSize::Compact
                    && std::mem::take(&mut self.view.knobs)
                {
                    self.view.focus = Some(Panel::Loss);
                }
                self.pair();
            }
            AfterSkip::Knobs => return self.view.open_knobs(),
        }
        if let Some(stage) = self.lesson.stage(&self.mode) {
            let page = self.lesson.opened(stage, LessonPage::Result);
            self.carry_out(Vec::from_iter(page));
        }
    }

    /// Goes to this line of the list of the course: its stages, its exercises, a free run, and a mystery.
    fn choose_in_course(&mut self, line: usize) {
        let exercises = self.lesson.course.exercises.len();
        match line.checked_sub(self.lesson.course.stages.len()) {
            None => self.leave_for(line),
            Some(index) if index < exercises => self.open_exercise(index),
            Some(index) if index == exercises => {
                let preset = self.bench.preset.unwrap_or_default();
                self.run_free(RunConfig::preset(preset));
            }
            Some(_) => {
                let level = next_level(&self.lesson.learner.progress);
                let seed = unsolved(&self.lesson.learner.progress, level);
                self.run_mystery(seed, level);
            }
        }
    }

    /// Takes this line of the open list.
    pub(super) fn choose(&mut self, line: usize) {
        match self.view.overlay {
            Some(Overlay::Stages) if self.mode.mystery().is_some() => self.leave_mystery(line),
            Some(Overlay::Stages) => self.choose_in_course(line),
            Some(Overlay::Skipped) => {
                if let Some(at) = self.lesson.skipped_stages().get(line).copied() {
                    self.leave_for(at);
                }
            }
            Some(Overlay::Attempts) => {
                self.view.overlay = None;
                let follows = self.bench.back_to_attempt(line);
                self.carry_out(follows);
            }
            _ => {}
        }
    }
}
