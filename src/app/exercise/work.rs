//! The learner's actions in the open exercise: hints, the solution, answers and a fresh start. Answers and hints are saved.

use super::{Checking, Context, ExerciseState, Exercises};
use crate::app::lane_view::LaneMove;
use crate::app::learner::LearnerState;
use crate::app::part::{FollowUp, FollowUps, Place};
use crate::app::{Action, App, Confirm, Effect, Overlay};
use crate::course::exercise::Detective;
use crate::course::save_file::{StageProgress, StageState, letter};
use crate::course::{Exercise, Question};
use crate::judge::{CriterionResult, met};

impl App {
    /// Returns the open exercise.
    pub fn exercise(&self) -> Option<&Exercise> {
        self.lesson.course.exercises.get(self.mode.exercise()?)
    }

    /// Returns the state of the open exercise.
    pub(in crate::app) fn open_state(&self) -> Option<&ExerciseState> {
        self.exercise.state(self.exercise()?)
    }

    /// Returns the question that waits for an answer, from the open exercise or from the stage.
    pub fn question(&self) -> Option<&Question> {
        let learner = &self.lesson.learner;
        match self.exercise() {
            Some(exercise) => self.open_state()?.question(exercise, learner),
            None => Some(learner.question(self.stage()?)?.1),
        }
    }

    /// Returns true if the learner still has to find the fault of the run on the screen: in a mystery that has not ended, and in a
    /// recording until the fault was named correctly once or wrongly twice.
    pub fn is_unsolved(&self) -> bool {
        if let Some(mystery) = self.mode.mystery() {
            return mystery.end.is_none();
        }
        match self.open_state().zip(self.detective()) {
            Some((state, detective)) => state.is_unsolved(detective),
            None => self
                .mode
                .recording()
                .is_some_and(|recording| recording.unsolved),
        }
    }

    /// Returns the task of the open exercise if it is about a recorded run.
    pub fn detective(&self) -> Option<&Detective> {
        self.exercise()?.detective()
    }

    /// Returns the check in progress of the open exercise.
    pub fn checking(&self) -> Option<&Checking> {
        self.open_state()?.checking.as_ref()
    }

    /// Returns the name of the file of the open exercise to edit next, and the line of its fault (from 1) if that is known. This is the
    /// file in which the last check found a fault, else the first file.
    pub fn exercise_file(&self) -> Option<(String, Option<u32>)> {
        let results = self.open_state()?.checked_files();
        let Some(wrong) = results
            .iter()
            .find(|result| result.error.is_some() || result.fault.is_some())
        else {
            return Some((self.exercise()?.files().first()?.name.clone(), None));
        };
        let line = wrong.error.as_ref().map(|error| error.line);
        Some((wrong.name.clone(), line.filter(|line| *line > 0)))
    }
}

impl Context<'_> {
    /// Marks the exercise as passed by these criteria. `figure` is the measured figure that the list shows; an earlier one stays.
    pub(super) fn pass(&self, criteria: &[CriterionResult], figure: Option<String>) -> FollowUps {
        let before = self.progress();
        let mut progress = before.clone();
        progress.found = progress.found.or(figure);
        progress.state = StageState::Passed;
        let mut follows = FollowUps::new();
        if before.state != StageState::Passed {
            let label = self.exercise.label();
            follows.push(FollowUp::Tell(format!("{label} passed: {}", met(criteria))));
        }
        if progress != before {
            follows.push(FollowUp::keep(&self.exercise.id, progress));
        }
        follows
    }
}

impl Exercises {
    /// Carries out an action that the open exercise handles itself. `None` for any other action.
    pub(in crate::app) fn update(
        &mut self,
        action: Action,
        context: &Context,
    ) -> Option<FollowUps> {
        let exercise = context.exercise;
        let state = self.state_mut(exercise);
        let in_lanes = context.view.overlay == Some(Overlay::Lanes);
        let go_to = |at| vec![FollowUp::Go(Place::Exercise(at))];
        Some(match action {
            Action::NextStage => go_to(context.at + 1),
            Action::PreviousStage => go_to(context.at.checked_sub(1)?),
            Action::Answer(choice) => state.answer_question(choice, context),
            Action::Hint => {
                state.text_first = true;
                vec![FollowUp::ShowText, FollowUp::NextHint(exercise.id.clone())]
            }
            Action::Solution if state.solved(exercise, context.learner) => {
                vec![FollowUp::View(Action::Open(Overlay::Solution))]
            }
            Action::Solution => vec![FollowUp::Confirm(Confirm::ShowSolution)],
            Action::Pair => state.measure(context),
            Action::Knobs => {
                let text = "Now running this exercise's configuration as a free run; \
                            the list of stages leads back";
                let run = Place::Free(Box::new(exercise.configs()?.config.clone()));
                vec![FollowUp::Go(run), FollowUp::tell(text)]
            }
            Action::PickOther(by) => state.pick_other(by, context),
            Action::PickThis => Vec::from_iter(state.pick_this(context)),
            Action::StopMeasuring => state.stop_measuring(),
            Action::Lanes(to) => self.move_lanes(to, context),
            Action::ScrollToTop if in_lanes => self.move_lanes(LaneMove::Step(i32::MIN), context),
            Action::ScrollToEnd if in_lanes => self.move_lanes(LaneMove::Step(i32::MAX), context),
            _ => return None,
        })
    }
}

/// Returns true if the exercise was passed, in this session or an earlier one.
fn has_passed(exercise: &Exercise, learner: &LearnerState) -> bool {
    learner.progress.stage(&exercise.id).state == StageState::Passed
}

impl ExerciseState {
    /// Returns true if the solution may be shown without a confirmation.
    fn solved(&self, exercise: &Exercise, learner: &LearnerState) -> bool {
        self.solution || has_passed(exercise, learner)
    }

    /// Returns true once the quiz is asked: after the runs were measured or the kernels passed, in this session or an earlier one.
    pub fn asks_quiz(&self, exercise: &Exercise, learner: &LearnerState) -> bool {
        let is_measured = self
            .measured
            .as_ref()
            .is_some_and(|result| result.failed.is_none());
        self.measuring.is_none() && (is_measured || self.solved(exercise, learner))
    }

    /// Returns the question that waits for an answer.
    pub(super) fn question<'a>(
        &self,
        exercise: &'a Exercise,
        learner: &LearnerState,
    ) -> Option<&'a Question> {
        if let Some(detective) = exercise.detective() {
            return self.is_unsolved(detective).then_some(&detective.question);
        }
        if !self.asks_quiz(exercise, learner) {
            return None;
        }
        let answered = learner.progress.stage(&exercise.id).answers.len();
        exercise.quiz.get(answered)
    }

    /// Returns true until the fault of a recorded run was named correctly once or wrongly twice.
    fn is_unsolved(&self, detective: &Detective) -> bool {
        self.quiz.len() < 2 && self.quiz.last() != Some(&detective.question.answer)
    }

    /// Returns true if the learner's answer to a config exercise was judged, in this session or an earlier one.
    pub(in crate::app) fn is_judged(&self, exercise: &Exercise, learner: &LearnerState) -> bool {
        self.measured.is_some() || has_passed(exercise, learner)
    }

    /// Answers the open question.
    fn answer_question(&mut self, choice: usize, context: &Context) -> FollowUps {
        let Some(question) = self.question(context.exercise, context.learner) else {
            return Vec::new();
        };
        let right = choice == question.answer;
        let mut progress = context.progress();
        let mut follows = FollowUps::new();
        let answered = if context.exercise.detective().is_some() {
            self.quiz.push(choice);
            let passed = progress.record_answer(choice, right);
            if right && !passed {
                let text = "Right, but not on the first try: this counts as seen, not as passed";
                follows.push(FollowUp::tell(text));
            }
            self.quiz.len() - 1
        } else {
            progress.answers.push(choice);
            follows.push(if right {
                FollowUp::tell("Right.")
            } else {
                FollowUp::Tell(format!("Wrong: the answer is {}.", letter(question.answer)))
            });
            progress.answers.len() - 1
        };
        if right && !progress.quiz.contains(&answered) {
            progress.quiz.push(answered);
        }
        follows.push(FollowUp::keep(&context.exercise.id, progress));
        follows
    }

    /// Ends the work in progress as the learner leaves the exercise.
    pub(super) fn leave(&mut self, context: &Context) -> FollowUps {
        let has_files = !context.exercise.files().is_empty();
        let leave = has_files.then_some(FollowUp::Effect(Effect::LeaveExercise));
        self.draft = Default::default();
        self.checking = None;
        self.measuring = None;
        let follows = [self.take_out(), leave, self.pause_or_resume(context)];
        follows.into_iter().flatten().collect()
    }

    /// Forgets the learner's work in the exercise and puts its files back. `before` is the progress saved so far.
    pub(in crate::app) fn reset(
        &mut self,
        before: Option<StageProgress>,
        context: &Context,
    ) -> FollowUps {
        let id = &context.exercise.id;
        let reset = FollowUp::Effect(Effect::ResetExercise {
            exercise: id.clone(),
            device: context.devices.for_kernels().to_owned(),
        });
        let keep = before
            .and_then(|progress| progress.after_reset())
            .map(|progress| FollowUp::keep(id, progress));
        let follows = [self.take_out(), Some(reset), keep];
        *self = Self {
            files: std::mem::take(&mut self.files),
            text_first: self.text_first,
            holds_run: self.holds_run,
            ..Self::default()
        };
        follows.into_iter().flatten().collect()
    }
}
