//! What each action does to the course and the run, and which effects it has. The mode decides first (`act_in_mode`); what it leaves
//! is done here. Actions that only change what is shown are in `look.rs`.

use std::sync::Arc;

use super::estimate::RangeSteps;
use super::message::{Action, Effect};
use super::mode::{AudienceScreen, Mode};
use super::mystery::{MysteryEnd, next_level, unsolved};
use super::pages::LessonPage;
use super::view::{AfterSkip, Confirm, Overlay, ScreenSize};
use super::{App, RunState};
use crate::course::Stage;
use crate::panel::Panel;
use protocol::Command;
use protocol::config::RunConfig;

impl App {
    /// Carries out an action.
    pub(super) fn act(&mut self, action: Action) {
        self.clock.touched_ms = self.clock.now_ms;
        self.view
            .notice
            .take_if(|notice| notice.until_ms == u64::MAX);
        if self.act_in_room(action) || self.act_in_presentation(action) {
            return;
        }
        let moves_the_run = matches!(
            action,
            Action::Pause | Action::Restart | Action::Profile | Action::SwitchDevice
        );
        if moves_the_run && self.waits_for_measurement() {
            return;
        }
        if self.can_edit() && self.act_on_knobs(action) {
            return;
        }
        if !self.act_in_mode(action) {
            self.act_anywhere(action);
        }
        self.note_looks();
    }

    fn act_anywhere(&mut self, action: Action) {
        match action {
            Action::Quit => self.effects.push(Effect::Quit),
            Action::AskQuit => self.view.confirm = Some(Confirm::Quit),
            Action::Suspend => {
                // The engine pauses while the program is suspended.
                let live = self.mode.is_live();
                let runs =
                    live && self.bench.run.state == RunState::Running && !self.bench.pairing();
                if runs {
                    self.send(Command::Pause);
                }
                self.effects.push(Effect::Suspend);
                if runs {
                    self.send(Command::Resume);
                }
            }
            Action::Report => self.effects.push(Effect::WriteReport(Box::new(
                self.lesson.study.progress.clone(),
            ))),
            Action::Stage(number) => match self.place_of_number(number) {
                Some(at) => self.leave_for(at),
                None => self.tell(&format!("There is no stage {number}"), true),
            },
            Action::Reset => self.view.confirm = Some(Confirm::Reset),
            Action::No => self.view.confirm = None,
            Action::Yes => self.confirmed(),
            Action::OpenEditor => self.open_editor(),
            Action::Pause => self.pause(),
            Action::Restart => self.restart(),
            // Without a stage there is nothing to predict.
            Action::Toggle => self.after_skip(AfterSkip::Toggle),
            Action::Pair => self.after_skip(AfterSkip::Pair),
            Action::NextStage | Action::PreviousStage => self.leave_for(self.lesson.study.at),
            Action::Profile if self.bench.run.state.is_active() => {
                self.tell("The next step is profiled", false);
                self.send(Command::Profile { request: 0 });
            }
            Action::SwitchDevice => {
                if let Some(select) = self.devices.offer().map(str::to_owned) {
                    self.use_device(&select);
                }
            }
            Action::InF32 => {
                if let Some(config) = self.bench.in_f32() {
                    self.run_free(config);
                    self.tell("The same in f32, as a free run; the list leads back", false);
                }
            }
            Action::Choose => self.choose(self.view.selected),
            Action::ChooseLine(line) => self.choose(line),
            _ => self.look(action),
        }
    }

    /// Carries out an action that a stage handles itself, live or recorded; false for all others.
    pub(super) fn act_in_stage(&mut self, stage: &Stage, action: Action) -> bool {
        match action {
            Action::NextStage => self.go_by(1),
            Action::PreviousStage => self.go_by(-1),
            // In a presentation the room votes; the presenter's keys answer nothing.
            Action::Answer(_) if self.presenter.presentation.is_some() => {}
            Action::Answer(choice) => self.answer(stage, choice),
            Action::Question => self.show_question(stage),
            Action::RangeShift(by) => self.set_range(by, RangeSteps::shift),
            Action::RangeWiden(by) => self.set_range(by, RangeSteps::widen),
            Action::RangeKeep => {
                if self.lesson.study.range.is_none() && self.lesson.study.estimate(stage).is_some()
                {
                    self.tell("No range yet: the arrow keys place one on the scale", false);
                } else if self.lesson.study.keep_range(stage) {
                    self.open_page(LessonPage::Evidence);
                    self.save(&stage.id);
                }
            }
            Action::Hint => self.hint(stage),
            Action::Solution => self.solution(self.lesson.study.solution),
            Action::Toggle => self.unless_unpredicted(stage, AfterSkip::Toggle),
            Action::Pair => self.unless_unpredicted(stage, AfterSkip::Pair),
            Action::Present => self.present(0),
            Action::PresentFrom(start) => self.present_from(start),
            Action::BlankScreen => self.cover_screen(AudienceScreen::Blank),
            Action::FreezeScreen => self.cover_screen(AudienceScreen::Frozen),
            Action::NextBeat => self.beat_by(1),
            Action::PreviousBeat => self.beat_by(-1),
            Action::NextPointer => self.next_pointer(stage),
            Action::Locate => self.locate(stage),
            _ => return false,
        }
        true
    }

    /// Opens the file of the exercise or the stage in the learner's editor.
    fn open_editor(&mut self) {
        let (id, found) = match (self.exercise(), self.stage()) {
            (Some(exercise), _) => (&exercise.id, self.exercise_file()),
            (None, Some(stage)) => {
                let file = stage.files.first();
                (&stage.id, file.map(|file| (file.name.clone(), None)))
            }
            (None, None) => return,
        };
        let Some((file, line)) = found else {
            self.tell("There is no file to edit here", false);
            return;
        };
        self.effects.push(Effect::OpenEditor {
            stage: id.clone(),
            file,
            line,
        });
    }

    /// The learner answered the confirmation with yes.
    fn confirmed(&mut self) {
        match self.view.confirm.take() {
            Some(Confirm::SkipPrediction(then)) => {
                self.with_stage(|app, stage| {
                    app.lesson.study.skip(stage);
                    app.save(&stage.id);
                });
                self.after_skip(then);
            }
            Some(Confirm::SkipLocating) => {
                self.with_stage(|app, stage| {
                    app.lesson.study.of_mut(&stage.id).located = Some(false);
                    app.save(&stage.id);
                    app.next_pointer(stage);
                });
            }
            Some(Confirm::ShowSolution) => self.show_solution(),
            Some(Confirm::Reset) if self.mode.is_exercise() => {
                self.with_exercise(Self::exercise_reset);
            }
            Some(Confirm::Reset) => {
                self.with_stage(|app, stage| {
                    app.lesson.study.forget(stage);
                    app.effects.push(Effect::ResetStage {
                        stage: stage.id.clone(),
                    });
                    app.enter(app.lesson.study.at);
                });
            }
            Some(Confirm::Leave { to }) => self.go_to(to),
            Some(Confirm::LeaveMystery { to }) => self.enter_from_mystery(to),
            Some(Confirm::Quit) => self.effects.push(Effect::Quit),
            Some(Confirm::GiveUp) => self.end_mystery(MysteryEnd::GivenUp),
            None => {}
        }
    }

    /// Shows the solution and notes in the progress that it was shown.
    fn show_solution(&mut self) {
        self.look(Action::Open(Overlay::Solution));
        let course = Arc::clone(&self.lesson.course);
        let exercise = self.mode.exercise();
        let id = match exercise.and_then(|open| course.exercises.get(open.at)) {
            Some(exercise) => {
                self.exercise.of_mut(exercise).solution = true;
                &exercise.id
            }
            None => {
                self.lesson.study.solution = true;
                &course.stages[self.lesson.study.at].id
            }
        };
        self.lesson.study.of_mut(id).solution_shown = true;
        self.save(id);
    }

    /// The stage or exercise `by` places from `at`; tells the learner where there is none.
    pub(super) fn neighbour(
        &mut self,
        at: usize,
        by: isize,
        of: usize,
        what: &str,
    ) -> Option<usize> {
        let to = at.checked_add_signed(by).filter(|to| *to < of);
        if to.is_none() {
            let end = if by > 0 { "last" } else { "first" };
            self.tell(&format!("This is the {end} {what}"), false);
        }
        to
    }

    fn go_by(&mut self, by: isize) {
        let (at, of) = (self.lesson.study.at, self.lesson.course.stages.len());
        if by > 0 && at + 1 == of {
            return self.look(Action::Open(Overlay::Summary));
        }
        if let Some(to) = self.neighbour(at, by, of, "stage") {
            self.leave_for(to);
        }
    }

    pub(super) fn go_to(&mut self, at: usize) {
        self.view.overlay = None;
        self.leave_exercise();
        if self.beat().is_some() {
            return self.show_beat(at, 0);
        }
        if at == self.lesson.study.at && self.stage().is_some() {
            return;
        }
        if matches!(self.mode, Mode::Free | Mode::Mystery(_)) {
            self.mode = Mode::Stage;
        }
        self.view.focus = Some(Panel::Lesson);
        (self.view.expanded, self.view.lesson_open) = (false, false);
        let late = self.mark_skipped(at);
        self.enter(at);
        if late {
            self.catch_up();
        }
    }

    fn set_range(&mut self, by: i32, change: impl FnOnce(&mut RangeSteps, i32)) {
        let before = self.lesson.study.range;
        self.lesson.study.set_range(by, change);
        if self.lesson.study.range == before {
            self.tell("The range goes no further that way", false);
        }
    }

    fn answer(&mut self, stage: &Stage, choice: usize) {
        let Some((quiz, _)) = self.lesson.study.question(stage) else {
            return;
        };
        if !self.view.lesson_visible() {
            self.tell("Read the question first; it is in the lesson", false);
            return;
        }
        let answered = match self.asked_here() {
            true => self.lesson.study.answer(stage, choice),
            false => None,
        };
        if answered.is_none() {
            return;
        }
        // The prediction's verdict waits for a measurement; a question of the quiz is answered at once, and its page says
        // whether it was right, and why.
        if quiz.is_some() {
            self.open_page(LessonPage::Quiz);
        } else {
            self.open_page(LessonPage::Start);
            self.open_page(LessonPage::Evidence);
        }
        self.save(&stage.id);
    }

    fn hint(&mut self, stage: &Stage) {
        if self.mode.is_replay() {
            return;
        }
        // The second and third hints nearly give the answer to the prediction.
        if !self.lesson.study.predicted(stage) && self.hints().0 > 0 {
            return self.tell(
                "The next hint comes once you have answered the question",
                false,
            );
        }
        if self.next_hint(&stage.id) {
            self.show_lesson();
            self.open_page(LessonPage::Start);
        }
    }

    /// Shows one more hint for the stage or exercise `id`, if there is one.
    pub(super) fn next_hint(&mut self, id: &str) -> bool {
        let (shown, of) = self.hints();
        if shown < of {
            self.lesson.study.of_mut(id).hints += 1;
            self.save(id);
        } else {
            self.tell("All hints are shown", false);
        }
        shown < of
    }

    pub(super) fn show_lesson(&mut self) {
        if self.view.screen_size() == ScreenSize::Compact {
            (self.view.lesson_open, self.view.expanded) = (true, false);
        }
        (self.view.focus, self.view.knobs) = (Some(Panel::Lesson), false);
    }

    /// Shows the solution; the first time, asks for confirmation.
    pub(super) fn solution(&mut self, shown_before: bool) {
        if shown_before {
            self.look(Action::Open(Overlay::Solution));
        } else {
            self.view.confirm = Some(Confirm::ShowSolution);
        }
    }

    /// Toggling and pairing are always allowed; before the prediction they ask for confirmation.
    fn unless_unpredicted(&mut self, stage: &Stage, then: AfterSkip) {
        if self.keeps_progress() && !self.lesson.study.predicted(stage) {
            self.view.confirm = Some(Confirm::SkipPrediction(then));
        } else {
            self.after_skip(then);
        }
    }

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
            AfterSkip::Knobs => return self.open_knobs(),
        }
        self.open_page(LessonPage::Result);
    }

    /// Chooses a line of the open list.
    pub(super) fn choose(&mut self, line: usize) {
        match self.view.overlay {
            Some(Overlay::Stages) => match line.checked_sub(self.lesson.course.stages.len()) {
                None => self.leave_for(line),
                Some(at) if at < self.lesson.course.exercises.len() => self.open_exercise(at),
                Some(at) if at > self.lesson.course.exercises.len() => {
                    let level = next_level(&self.lesson.study.progress);
                    let seed = unsolved(&self.lesson.study.progress, level);
                    self.run_mystery(seed, level);
                }
                Some(_) => {
                    let preset = self.bench.preset.unwrap_or_default();
                    self.run_free(RunConfig::preset(preset));
                }
            },
            Some(Overlay::Skipped) => {
                if let Some(at) = self.skipped_stages().get(line).copied() {
                    self.leave_for(at);
                }
            }
            Some(Overlay::Attempts) => self.back_to_attempt(line),
            Some(Overlay::Devices) => {
                let Some(info) = self.devices.known.get(line) else {
                    return;
                };
                let select = info.select.clone();
                self.view.overlay = None;
                let other = select != self.devices.using && self.mode.is_live();
                if other && !self.waits_for_measurement() {
                    self.use_device(&select);
                }
            }
            _ => {}
        }
    }
}
