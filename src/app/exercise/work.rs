//! What the learner does in the open exercise, and what of it is kept: hints, the solution, answers, a fresh start.

use super::{Checking, ExerciseContext, ExerciseState, Exercises};
use crate::app::lane_view::LaneMove;
use crate::app::part::{Follow, Place};
use crate::app::study::Study;
use crate::app::{Action, App, Confirm, Effect, Overlay};
use crate::course::exercise::Detective;
use crate::course::save_file::{StageProgress, StageState, letter};
use crate::course::{Exercise, Question};

impl App {
    /// The open exercise.
    pub fn exercise(&self) -> Option<&Exercise> {
        self.lesson.course.exercises.get(self.mode.exercise()?)
    }

    /// The question that waits for an answer: the stage's, or that of the open exercise.
    pub fn question(&self) -> Option<&Question> {
        match self.exercise() {
            Some(exercise) => self.exercise.question(exercise, &self.lesson.study),
            None => Some(self.lesson.study.question(self.stage()?)?.1),
        }
    }

    /// Whether the fault of the run on the screen is still to be found: a mystery in progress, or a recording whose fault was neither
    /// named rightly nor wrongly twice.
    pub fn is_unsolved(&self) -> bool {
        if let Some(mystery) = self.mystery() {
            return mystery.end.is_none();
        }
        match self.exercise().zip(self.detective()) {
            Some((exercise, detective)) => self.exercise.is_unsolved(exercise, detective),
            None => self.recording().is_some_and(|it| it.unsolved),
        }
    }

    /// The recorded run that is looked at.
    pub fn detective(&self) -> Option<&Detective> {
        self.exercise()?.detective()
    }

    /// The check of the open exercise that is in progress.
    pub fn checking(&self) -> Option<&Checking> {
        self.exercise.of(self.exercise()?)?.checking.as_ref()
    }

    /// The file of the open exercise to look at next, and the line: where the last check found something.
    pub fn exercise_file(&self) -> Option<(String, Option<u32>)> {
        let exercise = self.exercise()?;
        let state = self.exercise.of(exercise);
        let mut results = state.map_or(&[][..], |state| state.checked_files()).iter();
        let wrong = results.find(|result| result.error.is_some() || result.fault.is_some());
        let line = wrong
            .and_then(|result| result.error.as_ref())
            .map(|error| error.line)
            .filter(|line| *line > 0);
        match wrong {
            Some(result) => Some((result.name.clone(), line)),
            None => Some((exercise.files().first()?.name.clone(), None)),
        }
    }
}

impl ExerciseContext<'_> {
    /// The exercise is passed, and this figure was found, unless one was before.
    pub(super) fn pass(&self, exercise: &Exercise, found: Option<String>) -> Vec<Follow> {
        let before = self.progress(exercise);
        let mut known = before.clone();
        known.found = known.found.or(found);
        known.state = StageState::Passed;
        let mut follows = Vec::new();
        if before.state != StageState::Passed {
            let text = format!("{} passed: every check is met", exercise.label());
            follows.push(Follow::tell(text));
        }
        if known != before {
            follows.push(Follow::keep(&exercise.id, known));
        }
        follows
    }
}

impl Exercises {
    /// Whether the solution of an exercise may be shown without asking.
    fn solved(&self, exercise: &Exercise, study: &Study) -> bool {
        let shown = self.of(exercise).is_some_and(|state| state.solution);
        shown || study.progress.stage(&exercise.id).state == StageState::Passed
    }

    /// Whether an exercise's runs were measured or its kernels passed, in this session or an earlier one. Then its quiz is asked.
    pub fn looked_at(&self, exercise: &Exercise, study: &Study) -> bool {
        let state = self.of(exercise);
        let found = state.and_then(|state| state.measured.as_ref());
        let here = found.is_some_and(|found| found.failed.is_none());
        let busy = state.is_some_and(|state| state.measuring.is_some());
        !busy && (here || self.solved(exercise, study))
    }

    /// The question of an exercise that waits for an answer.
    pub(super) fn question<'a>(
        &self,
        exercise: &'a Exercise,
        study: &Study,
    ) -> Option<&'a Question> {
        match exercise.detective() {
            Some(detective) => {
                let open = self.is_unsolved(exercise, detective);
                open.then_some(&detective.question)
            }
            None => {
                let answered = study.progress.stage(&exercise.id).answers.len();
                let question = exercise.quiz.get(answered);
                question.filter(|_| self.looked_at(exercise, study))
            }
        }
    }

    /// Whether the fault of a recorded run was neither named rightly nor wrongly twice.
    fn is_unsolved(&self, exercise: &Exercise, detective: &Detective) -> bool {
        let state = self.of(exercise);
        let given = state.map_or(&[][..], |state| &state.quiz);
        given.len() < 2 && given.last() != Some(&detective.question.answer)
    }

    /// Carries out an action that the open exercise handles itself.
    pub(in crate::app) fn update(
        &mut self,
        action: Action,
        context: &ExerciseContext,
    ) -> Option<Vec<Follow>> {
        let exercise = context.open?;
        let study = &context.lesson.study;
        let in_lanes = context.view.overlay == Some(Overlay::Lanes);
        Some(match action {
            Action::Answer(choice) => self.answer(exercise, choice, context),
            Action::Hint => {
                self.of_mut(exercise).text_first = true;
                vec![Follow::ShowText, Follow::NextHint(exercise.id.clone())]
            }
            Action::Solution if self.solved(exercise, study) => {
                vec![Follow::Look(Action::Open(Overlay::Solution))]
            }
            Action::Solution => vec![Follow::Confirm(Confirm::ShowSolution)],
            Action::Pair if exercise.configs().is_some() => self.measure(exercise, context.now_ms),
            Action::Toggle | Action::Pair => {
                vec![Follow::tell(
                    "That belongs to the stage; go back to it first",
                )]
            }
            Action::Knobs => self.open_knobs(exercise, context),
            Action::PickOther(by) => {
                self.pick_other(exercise, by, study);
                Vec::new()
            }
            Action::PickThis => self.pick_this(exercise, study),
            Action::StopMeasuring => self.stop_measuring(exercise),
            Action::Lanes(to) => self.move_lanes(to, exercise),
            Action::ScrollToTop if in_lanes => self.move_lanes(LaneMove::Step(i32::MIN), exercise),
            Action::ScrollToEnd if in_lanes => self.move_lanes(LaneMove::Step(i32::MAX), exercise),
            // The stage's text is not on the screen.
            Action::Question
            | Action::RangeShift(_)
            | Action::RangeWiden(_)
            | Action::RangeKeep
            | Action::NextPointer
            | Action::Locate
            | Action::Present
            | Action::PresentFrom(_)
            | Action::BlankScreen
            | Action::FreezeScreen
            | Action::NextBeat
            | Action::PreviousBeat => Vec::new(),
            _ => return None,
        })
    }

    /// Runs the configuration of an exercise as a free run, once the learner's answer was judged: before that, the knobs would
    /// measure what is to be predicted.
    fn open_knobs(&self, exercise: &Exercise, context: &ExerciseContext) -> Vec<Follow> {
        let state = self.of(exercise);
        let measured = state.is_some_and(|state| state.measured.is_some());
        let judged = measured || context.progress(exercise).state == StageState::Passed;
        let text = match exercise.configs() {
            None if exercise.recording().is_some() => "A recorded run cannot be changed",
            None => "This exercise is solved in its file; it has no knobs",
            Some(_) if !judged => {
                "The knobs open after your answer was measured; before, they would give it away"
            }
            Some(_) if state.is_some_and(|state| state.measuring.is_some()) => {
                "The stage's run waits until the exercise is measured"
            }
            Some(configs) => {
                let text = "This exercise's configuration, as a free run; the list leads back";
                let run = Place::Free(Box::new(configs.config.clone()));
                return vec![Follow::Go(run), Follow::tell(text)];
            }
        };
        vec![Follow::tell(text)]
    }

    /// Answers the open question of an exercise.
    fn answer(
        &mut self,
        exercise: &Exercise,
        choice: usize,
        context: &ExerciseContext,
    ) -> Vec<Follow> {
        let question = self.question(exercise, &context.lesson.study);
        let asked = |it: &&Question| choice < it.choices.len() && context.view.lesson_visible();
        let Some(question) = question.filter(asked) else {
            return Vec::new();
        };
        let right = choice == question.answer;
        let mut known = context.progress(exercise);
        let (at, said) = if exercise.detective().is_some() {
            let given = &mut self.of_mut(exercise).quiz;
            given.push(choice);
            let passed = known.note_finding(choice, right);
            let late = "Right, but not on the first try: this counts as seen, not as passed";
            (given.len() - 1, (right && !passed).then(|| late.to_owned()))
        } else {
            known.answers.push(choice);
            let said = if right {
                "Right.".to_owned()
            } else {
                format!("Wrong: the answer is {}.", letter(question.answer))
            };
            (known.answers.len() - 1, Some(said))
        };
        if right && !known.quiz.contains(&at) {
            known.quiz.push(at);
        }
        let said = said.map(Follow::tell).into_iter();
        said.chain([Follow::keep(&exercise.id, known)]).collect()
    }

    /// The exercise was left.
    pub(super) fn left(&mut self, exercise: &Exercise) -> Vec<Follow> {
        let mut follows = Vec::from_iter(self.take_out(exercise));
        self.of_mut(exercise).draft = Default::default();
        if !exercise.files().is_empty() {
            follows.push(Follow::Effect(Effect::LeaveExercise));
        }
        follows.extend(self.after_work(exercise));
        follows
    }

    /// Forgets what was done in the open exercise, whose progress was this, and puts its files back.
    pub(in crate::app) fn reset(
        &mut self,
        known: Option<StageProgress>,
        context: &ExerciseContext,
    ) -> Option<Vec<Follow>> {
        let exercise = context.open?;
        let mut follows = Vec::from_iter(self.take_out(exercise));
        follows.extend(self.after_work(exercise));
        let state = self.of_mut(exercise);
        *state = ExerciseState {
            files: std::mem::take(&mut state.files),
            text_first: state.text_first,
            ..ExerciseState::default()
        };
        follows.push(Follow::Effect(Effect::ResetExercise {
            exercise: exercise.id.clone(),
            device: context.devices.for_kernels().to_owned(),
        }));
        let left = known.and_then(|known| known.after_reset());
        follows.extend(left.map(|left| Follow::keep(&exercise.id, left)));
        Some(follows)
    }
}
