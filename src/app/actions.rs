//! What each action does to the course and the run, and which effects it has: first what an open exercise or the stage makes of
//! it, then what it means everywhere. Actions that only change what is seen are in `look.rs`.

use std::sync::Arc;

use super::App;
use super::message::{Action, Effect};
use super::mode::Mode;
use super::pages::Page;
use super::source::ReplayControl;
use super::view::{AfterSkip, Confirm, Overlay, Room};
use crate::course::{Exercise, Stage};
use crate::panel::Panel;
use crate::protocol::Command;

impl App {
    /// Does what the learner asked for.
    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        let moves_the_run = matches!(
            action,
            Action::Pause | Action::Restart | Action::Profile | Action::SwitchDevice
        );
        if moves_the_run && self.waits_for_measurement() {
            return Vec::new();
        }
        let course = Arc::clone(&self.course);
        let stage = course.stages.get(self.study.at);
        let exercise = self.mode.exercise();
        let done = match exercise.and_then(|open| course.exercises.get(open.at)) {
            Some(exercise) => self.act_in_exercise(exercise, action),
            None => stage.and_then(|stage| self.act_in_stage(stage, action)),
        };
        if let Some(effects) = done {
            return effects;
        }
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Report => return vec![Effect::WriteReport],
            Action::Stage(number) => {
                let of_number = |stage: &Stage| stage.number == number;
                match self.course.stages.iter().position(of_number) {
                    Some(at) => return self.leave_for(at),
                    None => self.tell(&format!("There is no stage {number}"), true),
                }
            }
            Action::Reset => self.view.confirm = Some(Confirm::Reset),
            Action::No => self.view.confirm = None,
            Action::Yes => return self.confirmed(),
            Action::OpenEditor => return self.open_editor(),
            Action::Pause => return self.pause(),
            Action::Restart if self.recording().is_none() => return self.restart(),
            Action::Profile if self.recording().is_none() && self.run.state.is_active() => {
                self.tell("The next step is profiled", false);
                return vec![Effect::Send(Command::Profile)];
            }
            Action::SwitchDevice => {
                if let Some(select) = self.devices.offer().map(str::to_owned) {
                    return self.use_device(&select);
                }
            }
            Action::ReplayStep => {
                if let Some(recording) = self.mode.recording_mut() {
                    recording.paused = true;
                    return vec![Effect::Replay(ReplayControl::Step)];
                }
            }
            Action::ReplayFaster => return self.replay_speed(2.0),
            Action::ReplaySlower => return self.replay_speed(0.5),
            Action::Choose => return self.choose(self.view.selected),
            Action::ChooseLine(line) => return self.choose(line),
            _ => self.look(action),
        }
        Vec::new()
    }

    /// What an action means in an exercise; none where it means there what it means everywhere.
    fn act_in_exercise(&mut self, exercise: &Exercise, action: Action) -> Option<Vec<Effect>> {
        Some(match action {
            Action::NextStage => self.exercise_by(1),
            Action::PreviousStage => self.exercise_by(-1),
            Action::Answer(choice) => self.exercise_answer(exercise, choice),
            Action::Hint => self.exercise_hint(exercise),
            Action::Solution => self.solution(self.solved(exercise)),
            Action::Pair if exercise.configs().is_some() => self.measure(exercise),
            Action::Toggle | Action::Pair => {
                self.tell("That belongs to the stage; go back to it first", false);
                Vec::new()
            }
            Action::PickOther(by) => {
                self.pick_other(exercise, by);
                Vec::new()
            }
            Action::PickThis => self.pick_this(exercise),
            Action::StopMeasuring => self.stop_measuring(exercise),
            Action::LeaveExercise => self.leave_exercise(),
            // The stage's text is not on the screen.
            Action::GuessShift(_)
            | Action::GuessWiden(_)
            | Action::GuessKeep
            | Action::NextPointer
            | Action::Present
            | Action::NextBeat
            | Action::PreviousBeat => Vec::new(),
            _ => return None,
        })
    }

    /// What an action means in a stage, whether its run is live or recorded.
    fn act_in_stage(&mut self, stage: &Stage, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::NextStage => return Some(self.go_by(1)),
            Action::PreviousStage => return Some(self.go_by(-1)),
            Action::Answer(choice) => return Some(self.answer(stage, choice)),
            Action::GuessShift(by) => self.study.guess.shift(by),
            Action::GuessWiden(by) => self.study.guess.widen(by),
            Action::GuessKeep => {
                if self.study.keep_guess(stage) {
                    self.open_page(Page::Evidence);
                    return Some(vec![self.save(&stage.id)]);
                }
            }
            Action::Hint => return Some(self.hint(stage)),
            Action::Solution => return Some(self.solution(self.study.solution)),
            Action::Toggle => return Some(self.unless_unpredicted(stage, AfterSkip::Toggle)),
            Action::Pair => return Some(self.unless_unpredicted(stage, AfterSkip::Pair)),
            Action::Present => return Some(self.present()),
            Action::NextBeat => return Some(self.next_beat()),
            Action::PreviousBeat => return Some(self.previous_beat()),
            Action::NextPointer => self.next_pointer(stage),
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Opens the file of the exercise or the stage in the learner's editor.
    fn open_editor(&mut self) -> Vec<Effect> {
        let (id, found) = match (self.exercise(), self.stage()) {
            (Some(exercise), _) => (&exercise.id, self.exercise_file()),
            (None, Some(stage)) => {
                let file = stage.files.first();
                (&stage.id, file.map(|file| (file.name.clone(), None)))
            }
            (None, None) => return Vec::new(),
        };
        let Some((file, line)) = found else {
            self.tell("There is no file to edit here", false);
            return Vec::new();
        };
        vec![Effect::OpenEditor {
            stage: id.clone(),
            file,
            line,
        }]
    }

    /// The learner says yes to the open question.
    fn confirmed(&mut self) -> Vec<Effect> {
        match self.view.confirm.take() {
            Some(Confirm::SkipPrediction(then)) => {
                let mut effects = self.skip_prediction();
                effects.extend(self.after_skip(then));
                effects
            }
            Some(Confirm::ShowSolution) => self.show_solution(),
            Some(Confirm::Reset) if self.exercise().is_some() => {
                self.with_exercise(Self::exercise_reset)
            }
            Some(Confirm::Reset) => self.with_stage(|app, stage| {
                app.study.forget(stage);
                let mut effects = vec![Effect::ResetStage {
                    stage: stage.id.clone(),
                }];
                effects.extend(app.enter(app.study.at));
                effects
            }),
            Some(Confirm::Leave { to }) => self.go_to(to),
            None => Vec::new(),
        }
    }

    /// Shows the solution for the first time, which is remembered.
    fn show_solution(&mut self) -> Vec<Effect> {
        self.look(Action::Open(Overlay::Solution));
        let id = if self.exercise().is_some() {
            self.with_exercise(|app, exercise| {
                app.exercises.of_mut(exercise).solution = true;
                exercise.id.clone()
            })
        } else {
            self.study.solution = true;
            self.with_stage(|_, stage| stage.id.clone())
        };
        self.study.of_mut(&id).solution_shown = true;
        vec![self.save(&id)]
    }

    pub(super) fn skip_prediction(&mut self) -> Vec<Effect> {
        self.with_stage(|app, stage| {
            app.study.skip(stage);
            vec![app.save(&stage.id)]
        })
    }

    /// The stage or exercise so many places on; where there is none, that is said.
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

    fn go_by(&mut self, by: isize) -> Vec<Effect> {
        let to = self.neighbour(self.study.at, by, self.course.stages.len(), "stage");
        to.map_or_else(Vec::new, |to| self.leave_for(to))
    }

    pub(super) fn go_to(&mut self, at: usize) -> Vec<Effect> {
        self.view.overlay = None;
        let mut effects = self.leave_exercise();
        if at == self.study.at {
            return effects;
        }
        self.view.focus = Some(Panel::Lesson);
        (self.view.expanded, self.view.lesson_open) = (false, false);
        effects.extend(self.mark_skipped(at));
        effects.extend(self.enter(at));
        self.look_at_beat(true);
        effects
    }

    fn answer(&mut self, stage: &Stage, choice: usize) -> Vec<Effect> {
        let Some((quiz, _)) = self.study.question(stage) else {
            return Vec::new();
        };
        if !self.view.lesson_visible() {
            self.tell("Read the question first: it is in the lesson", false);
            return Vec::new();
        }
        if !self.asked_here() || self.study.answer(stage, choice).is_none() {
            return Vec::new();
        }
        // The prediction's verdict waits for a measurement; a question of the quiz is answered at once, and its page says
        // whether it was right, and why.
        if quiz.is_some() {
            self.open_page(Page::Quiz);
        } else {
            self.open_page(Page::Start);
            self.open_page(Page::Evidence);
        }
        vec![self.save(&stage.id)]
    }

    fn hint(&mut self, stage: &Stage) -> Vec<Effect> {
        if matches!(self.mode, Mode::Replay(_)) {
            return Vec::new();
        }
        let effects = self.next_hint(&stage.id);
        if !effects.is_empty() {
            self.show_lesson();
            self.open_page(Page::Start);
        }
        effects
    }

    /// Shows one more hint of what is open.
    pub(super) fn next_hint(&mut self, id: &str) -> Vec<Effect> {
        let (shown, of) = self.hints();
        if shown >= of {
            self.tell("All hints are shown", false);
            return Vec::new();
        }
        self.study.of_mut(id).hints += 1;
        vec![self.save(id)]
    }

    pub(super) fn show_lesson(&mut self) {
        if self.view.room() == Room::Compact {
            (self.view.lesson_open, self.view.expanded) = (true, false);
        }
        self.view.focus = Some(Panel::Lesson);
    }

    /// Shows the solution; where it was not shown before, it is asked first whether to.
    fn solution(&mut self, shown_before: bool) -> Vec<Effect> {
        if shown_before {
            self.look(Action::Open(Overlay::Solution));
        } else {
            self.view.confirm = Some(Confirm::ShowSolution);
        }
        Vec::new()
    }

    /// Toggling and pairing are allowed at any time; before the prediction they ask once.
    fn unless_unpredicted(&mut self, stage: &Stage, then: AfterSkip) -> Vec<Effect> {
        if self.recording().is_some() {
            self.tell("This is a recording: nothing can be changed in it", false);
            return Vec::new();
        }
        if !self.study.predicted(stage) {
            self.view.confirm = Some(Confirm::SkipPrediction(then));
            return Vec::new();
        }
        self.after_skip(then)
    }

    pub(super) fn after_skip(&mut self, then: AfterSkip) -> Vec<Effect> {
        // Where the lesson lies over the panels, it gives way: something is about to be seen.
        if std::mem::take(&mut self.view.lesson_open) {
            self.view.focus = Some(Panel::Loss);
        }
        let effects = match then {
            AfterSkip::Toggle => self.toggle(),
            AfterSkip::Pair => self.pair(),
        };
        self.open_page(Page::Result);
        effects
    }

    fn replay_speed(&mut self, factor: f64) -> Vec<Effect> {
        let Some(recording) = self.mode.recording_mut() else {
            return Vec::new();
        };
        recording.speed = (recording.speed * factor).clamp(0.125, 64.0);
        vec![Effect::Replay(ReplayControl::Speed(recording.speed))]
    }

    /// Takes a line of the open list.
    fn choose(&mut self, line: usize) -> Vec<Effect> {
        match self.view.overlay {
            Some(Overlay::Stages) => match line.checked_sub(self.course.stages.len()) {
                None => self.leave_for(line),
                Some(at) => self.open_exercise(at),
            },
            Some(Overlay::Devices) => {
                let Some(info) = self.devices.known.get(line) else {
                    return Vec::new();
                };
                let select = info.select.clone();
                self.view.overlay = None;
                if select == self.devices.using
                    || self.recording().is_some()
                    || self.waits_for_measurement()
                {
                    return Vec::new();
                }
                self.use_device(&select)
            }
            _ => Vec::new(),
        }
    }
}
