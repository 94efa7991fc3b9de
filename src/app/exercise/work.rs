//! What the learner does in the open exercise, and what of it is kept: hints, the solution, answers, a fresh start.

use super::{Checking, Context, ExerciseState, Exercises};
use crate::app::lane_view::LaneMove;
use crate::app::part::{Follow, Follows, Place};
use crate::app::study::Study;
use crate::app::{Action, App, Confirm, Effect, Overlay};
use crate::course::exercise::Detective;
use crate::course::save_file::{StageProgress, StageState, letter};
use crate::course::{Exercise, Question};
use crate::judge::{CriterionResult, met};

impl App {
    /// The open exercise.
    pub fn exercise(&self) -> Option<&Exercise> {
        self.lesson.course.exercises.get(self.mode.exercise()?)
    }

    /// What is known of the open exercise.
    pub(in crate::app) fn open_state(&self) -> Option<&ExerciseState> {
        self.exercise.of(self.exercise()?)
    }

    /// The question that waits for an answer: the stage's, or that of the open exercise.
    pub fn question(&self) -> Option<&Question> {
        let study = &self.lesson.study;
        match self.exercise() {
            Some(exercise) => self.open_state()?.question(exercise, study),
            None => Some(study.question(self.stage()?)?.1),
        }
    }

    /// Whether the fault of the run on the screen is still to be found: a mystery in progress, or a recording whose fault was neither
    /// named rightly nor wrongly twice.
    pub fn is_unsolved(&self) -> bool {
        if let Some(mystery) = self.mode.mystery() {
            return mystery.end.is_none();
        }
        match self.open_state().zip(self.detective()) {
            Some((state, detective)) => state.is_unsolved(detective),
            None => self.mode.recording().is_some_and(|it| it.unsolved),
        }
    }

    /// The recorded run that is looked at.
    pub fn detective(&self) -> Option<&Detective> {
        self.exercise()?.detective()
    }

    /// The check of the open exercise that is in progress.
    pub fn checking(&self) -> Option<&Checking> {
        self.open_state()?.checking.as_ref()
    }

    /// The file of the open exercise to look at next, and the line: where the last check found something.
    pub fn exercise_file(&self) -> Option<(String, Option<u32>)> {
        let mut results = self.open_state()?.checked_files().iter();
        let wrong = results.find(|result| result.error.is_some() || result.fault.is_some());
        let Some(wrong) = wrong else {
            return Some((self.exercise()?.files().first()?.name.clone(), None));
        };
        let line = wrong.error.as_ref().map(|error| error.line);
        Some((wrong.name.clone(), line.filter(|line| *line > 0)))
    }
}

impl Context<'_> {
    /// The exercise is passed by these criteria, and this figure was found, unless one was before.
    pub(super) fn pass(&self, criteria: &[CriterionResult], found: Option<String>) -> Follows {
        let before = self.progress();
        let mut known = before.clone();
        known.found = known.found.or(found);
        known.state = StageState::Passed;
        let text = format!("{} passed: {}", self.exercise.label(), met(criteria));
        let said = (before.state != StageState::Passed).then_some(Follow::Tell(text));
        let kept = (known != before).then(|| Follow::keep(&self.exercise.id, known));
        said.into_iter().chain(kept).collect()
    }
}

impl Exercises {
    /// Carries out an action that the open exercise handles itself.
    pub(in crate::app) fn update(&mut self, action: Action, context: &Context) -> Option<Follows> {
        let exercise = context.exercise;
        let state = self.of_mut(exercise);
        let in_lanes = context.view.overlay == Some(Overlay::Lanes);
        let to = |at| vec![Follow::Go(Place::Exercise(at))];
        Some(match action {
            Action::NextStage => to(context.at + 1),
            Action::PreviousStage => to(context.at.checked_sub(1)?),
            Action::Answer(choice) => state.answer_question(choice, context),
            Action::Hint => {
                state.text_first = true;
                vec![Follow::ShowText, Follow::NextHint(exercise.id.clone())]
            }
            Action::Solution if state.solved(exercise, context.study) => {
                vec![Follow::Look(Action::Open(Overlay::Solution))]
            }
            Action::Solution => vec![Follow::Confirm(Confirm::ShowSolution)],
            Action::Pair => state.measure(context),
            Action::Knobs => {
                let text = "This exercise's configuration, as a free run; the list leads back";
                let run = Place::Free(Box::new(exercise.configs()?.config.clone()));
                vec![Follow::Go(run), Follow::tell(text)]
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

impl ExerciseState {
    /// Whether the solution may be shown without asking.
    fn solved(&self, exercise: &Exercise, study: &Study) -> bool {
        self.solution || study.progress.stage(&exercise.id).state == StageState::Passed
    }

    /// Whether the runs were measured or the kernels passed, in this session or an earlier one. Then the quiz is asked.
    pub fn looked_at(&self, exercise: &Exercise, study: &Study) -> bool {
        let found = self.measured.as_ref();
        let here = found.is_some_and(|found| found.failed.is_none());
        self.measuring.is_none() && (here || self.solved(exercise, study))
    }

    /// The question that waits for an answer.
    pub(super) fn question<'a>(&self, of: &'a Exercise, study: &Study) -> Option<&'a Question> {
        if let Some(detective) = of.detective() {
            return self.is_unsolved(detective).then_some(&detective.question);
        }
        let question = of.quiz.get(study.progress.stage(&of.id).answers.len());
        question.filter(|_| self.looked_at(of, study))
    }

    /// Whether the fault of a recorded run was neither named rightly nor wrongly twice.
    fn is_unsolved(&self, detective: &Detective) -> bool {
        self.quiz.len() < 2 && self.quiz.last() != Some(&detective.question.answer)
    }

    /// Whether the learner's answer to a config exercise was judged, in this session or an earlier one.
    pub(in crate::app) fn is_judged(&self, exercise: &Exercise, study: &Study) -> bool {
        let passed = study.progress.stage(&exercise.id).state == StageState::Passed;
        self.measured.is_some() || passed
    }

    /// Answers the open question.
    fn answer_question(&mut self, choice: usize, context: &Context) -> Follows {
        let Some(question) = self.question(context.exercise, context.study) else {
            return Vec::new();
        };
        let right = choice == question.answer;
        let mut known = context.progress();
        let (at, said) = if context.exercise.detective().is_some() {
            self.quiz.push(choice);
            let passed = known.note_finding(choice, right);
            let late = "Right, but not on the first try: this counts as seen, not as passed";
            let said = (right && !passed).then(|| late.to_owned());
            (self.quiz.len() - 1, said)
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
        said.chain([Follow::keep(&context.exercise.id, known)])
            .collect()
    }

    /// The exercise was left.
    pub(super) fn left(&mut self, context: &Context) -> Follows {
        let files = !context.exercise.files().is_empty();
        let leave = files.then_some(Follow::Effect(Effect::LeaveExercise));
        self.draft = Default::default();
        (self.checking, self.measuring) = (None, None);
        let follows = [self.take_out(), leave, self.rest(context)];
        follows.into_iter().flatten().collect()
    }

    /// Forgets what was done in the exercise, whose progress was this, and puts its files back.
    pub(in crate::app) fn reset(
        &mut self,
        was: Option<StageProgress>,
        context: &Context,
    ) -> Follows {
        let id = &context.exercise.id;
        let reset = Follow::Effect(Effect::ResetExercise {
            exercise: id.clone(),
            device: context.devices.for_kernels().to_owned(),
        });
        let left = was.and_then(|was| was.after_reset());
        let left = left.map(|left| Follow::keep(id, left));
        let follows = [self.take_out(), Some(reset), left];
        *self = Self {
            files: std::mem::take(&mut self.files),
            text_first: self.text_first,
            holds_run: self.holds_run,
            ..Self::default()
        };
        follows.into_iter().flatten().collect()
    }
}
