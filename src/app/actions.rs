//! What each action on the course and the run does to the state, and which effects it has.
//! Actions that only change what is seen are in `look.rs`.

use std::sync::Arc;

use super::message::{AfterSkip, Confirm};
use super::pages::Page;
use super::source::ReplayControl;
use super::view::Room;
use super::{Action, App, Effect, Overlay, Panel};

impl App {
    /// Does what the learner asked for.
    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        let moves_the_run = matches!(
            action,
            Action::Pause | Action::Restart | Action::Profile | Action::SwitchDevice
        );
        if moves_the_run && self.held() {
            return Vec::new();
        }
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Stage(number) => return self.go_to_number(number),
            Action::NextStage | Action::PreviousStage if self.exercises.open.is_some() => {
                return self.exercise_by(if action == Action::NextStage { 1 } else { -1 });
            }
            Action::NextStage => return self.go_by(1),
            Action::PreviousStage => return self.go_by(-1),
            Action::Answer(choice) if self.exercises.open.is_some() => {
                return self.exercise_answer(choice);
            }
            Action::Answer(choice) => return self.answer(choice),
            Action::GuessShift(by) => self.study.guess.shift(by),
            Action::GuessWiden(by) => self.study.guess.widen(by),
            Action::GuessKeep => return self.keep_guess(),
            Action::Hint if self.exercises.open.is_some() => return self.exercise_hint(),
            Action::Hint => return self.hint(),
            Action::Solution => return self.solution(),
            Action::Reset => self.view.confirm = Some(Confirm::Reset),
            Action::Pair if self.configs().is_some() => return self.measure(),
            Action::PickOther(by) => self.pick_other(by),
            Action::PickThis => return self.pick_this(),
            Action::StopMeasuring => return self.stop_measuring(),
            Action::Toggle | Action::Pair if self.exercises.open.is_some() => {
                self.tell("That belongs to the stage; go back to it first", false);
            }
            Action::LeaveExercise => return self.leave_exercise(),
            Action::Present => return self.present(),
            Action::NextBeat => return self.next_beat(),
            Action::PreviousBeat => return self.previous_beat(),
            Action::NextPointer => return self.next_pointer(),
            Action::Toggle => return self.unless_unpredicted(AfterSkip::Toggle),
            Action::Pair => return self.unless_unpredicted(AfterSkip::Pair),
            Action::Pause => return self.pause(),
            Action::Restart => return self.restart_or_not(),
            Action::Profile => return self.profile(),
            Action::SwitchDevice => {
                if let Some(select) = self.devices.offer().map(str::to_owned) {
                    return self.use_device(&select);
                }
            }
            Action::ReplayStep => return self.replay(ReplayControl::Step),
            Action::ReplayFaster => return self.replay_speed(2.0),
            Action::ReplaySlower => return self.replay_speed(0.5),
            Action::OpenEditor => return self.open_editor(),
            Action::Report => return vec![Effect::WriteReport],
            Action::Yes => return self.confirmed(),
            Action::No => self.view.confirm = None,
            Action::Choose => return self.choose(self.view.selected),
            Action::ChooseLine(line) => return self.choose(line),
            _ => self.look(action),
        }
        Vec::new()
    }

    fn go_to_number(&mut self, number: u32) -> Vec<Effect> {
        match self
            .course
            .stages
            .iter()
            .position(|stage| stage.number == number)
        {
            Some(at) => self.leave_for(at),
            None => {
                self.tell(&format!("There is no stage {number}"), true);
                Vec::new()
            }
        }
    }

    fn go_by(&mut self, by: isize) -> Vec<Effect> {
        match self.study.at.checked_add_signed(by) {
            Some(at) if at < self.course.stages.len() => self.leave_for(at),
            Some(_) => {
                self.tell("This is the last stage", false);
                Vec::new()
            }
            None => {
                self.tell("This is the first stage", false);
                Vec::new()
            }
        }
    }

    pub(super) fn go_to(&mut self, at: usize) -> Vec<Effect> {
        self.view.overlay = None;
        let mut effects = self.leave_exercise();
        if at == self.study.at {
            return effects;
        }
        self.view.focus = Some(Panel::Lesson);
        (self.view.expanded, self.view.lesson_open) = (false, false);
        effects.extend(self.jump_over(at));
        effects.extend(self.enter(at));
        effects
    }

    fn answer(&mut self, choice: usize) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(stage) = course.stages.get(self.study.at) else {
            return Vec::new();
        };
        if self.study.question(stage).is_none() {
            return Vec::new();
        }
        if !self.view.lesson_visible() {
            self.tell("Read the question first: it is in the lesson", false);
            return Vec::new();
        }
        if !self.asked_here() {
            return Vec::new();
        }
        // The prediction's verdict waits for a measurement; a question of the quiz is answered at once.
        let quizzed = self
            .study
            .question(stage)
            .is_some_and(|(quiz, _)| quiz.is_some());
        if self.study.answer(stage, choice).is_none() {
            return Vec::new();
        }
        if quizzed {
            // The page says whether it was right, and why.
            self.open_page(Page::Quiz);
        } else {
            self.open_page(Page::Start);
            self.open_page(Page::Evidence);
        }
        vec![self.save(stage)]
    }

    fn keep_guess(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(stage) = course.stages.get(self.study.at) else {
            return Vec::new();
        };
        if self.study.keep_guess(stage) {
            self.open_page(Page::Evidence);
            vec![self.save(stage)]
        } else {
            Vec::new()
        }
    }

    fn hint(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(stage) = course
            .stages
            .get(self.study.at)
            .filter(|_| self.recording.is_none())
        else {
            return Vec::new();
        };
        if self.study.hints as usize >= stage.hints.len() {
            self.tell("All hints are shown", false);
            return Vec::new();
        }
        self.study.hints += 1;
        let hints = self.study.hints;
        let known = self.study.of_mut(stage);
        known.hints = known.hints.max(hints);
        self.show_lesson();
        self.open_page(Page::Start);
        vec![self.save(stage)]
    }

    pub(super) fn show_lesson(&mut self) {
        if self.view.room() == Room::Compact {
            (self.view.lesson_open, self.view.expanded) = (true, false);
        }
        self.view.focus = Some(Panel::Lesson);
    }

    fn solution(&mut self) -> Vec<Effect> {
        let open = match self.exercise() {
            Some(exercise) => self.solved(exercise),
            None => self.study.solution,
        };
        if open {
            self.look(Action::Open(Overlay::Solution));
        } else {
            self.view.confirm = Some(Confirm::ShowSolution);
        }
        Vec::new()
    }

    /// Toggling and pairing are allowed at any time; before the prediction they ask once.
    fn unless_unpredicted(&mut self, then: AfterSkip) -> Vec<Effect> {
        if self.recording.is_some() {
            self.tell("This is a recording: nothing can be changed in it", false);
            return Vec::new();
        }
        if self
            .stage()
            .is_some_and(|stage| !self.study.predicted(stage))
        {
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

    fn confirmed(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let (Some(confirm), Some(stage)) =
            (self.view.confirm.take(), course.stages.get(self.study.at))
        else {
            return Vec::new();
        };
        match confirm {
            Confirm::ShowSolution if self.exercises.open.is_some() => {
                self.look(Action::Open(Overlay::Solution));
                self.exercise_solution()
            }
            Confirm::Reset if self.exercises.open.is_some() => self.exercise_reset(),
            Confirm::SkipPrediction(then) => {
                self.study.skip(stage);
                let mut effects = vec![self.save(stage)];
                effects.extend(self.after_skip(then));
                effects
            }
            Confirm::ShowSolution => {
                self.study.solution = true;
                self.study.of_mut(stage).solution_shown = true;
                self.look(Action::Open(Overlay::Solution));
                vec![self.save(stage)]
            }
            Confirm::Leave { to } => self.go_to(to),
            Confirm::Reset => {
                self.study.forget(stage);
                let mut effects = vec![Effect::ResetStage {
                    stage: stage.id.clone(),
                }];
                effects.extend(self.enter(self.study.at));
                effects
            }
        }
    }

    fn restart_or_not(&mut self) -> Vec<Effect> {
        if self.recording.is_some() {
            return Vec::new();
        }
        self.restart()
    }

    fn profile(&mut self) -> Vec<Effect> {
        if self.recording.is_some() || !self.run.state.is_active() {
            return Vec::new();
        }
        self.tell("The next step is profiled", false);
        vec![Effect::Send(crate::protocol::Command::Profile)]
    }

    fn replay(&mut self, control: ReplayControl) -> Vec<Effect> {
        match &mut self.recording {
            Some(recording) => {
                recording.paused |= control == ReplayControl::Step;
                vec![Effect::Replay(control)]
            }
            None => Vec::new(),
        }
    }

    fn replay_speed(&mut self, factor: f64) -> Vec<Effect> {
        match &mut self.recording {
            Some(recording) => {
                recording.speed = (recording.speed * factor).clamp(0.125, 64.0);
                vec![Effect::Replay(ReplayControl::Speed(recording.speed))]
            }
            None => Vec::new(),
        }
    }

    fn open_editor(&mut self) -> Vec<Effect> {
        if let Some(exercise) = self.exercise() {
            let Some((file, line)) = self.exercise_file() else {
                self.tell("This exercise has no file to edit", false);
                return Vec::new();
            };
            return vec![Effect::OpenEditor {
                stage: exercise.id.clone(),
                file,
                line,
            }];
        }
        let Some(stage) = self.stage() else {
            return Vec::new();
        };
        match stage.files.first() {
            Some(file) => vec![Effect::OpenEditor {
                stage: stage.id.clone(),
                file: file.name.clone(),
                line: None,
            }],
            None => {
                self.tell("This stage has no file to edit", false);
                Vec::new()
            }
        }
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
                if select == self.devices.using || self.recording.is_some() || self.held() {
                    return Vec::new();
                }
                self.use_device(&select)
            }
            _ => Vec::new(),
        }
    }
}
