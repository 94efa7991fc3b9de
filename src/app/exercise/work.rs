//! What the learner does in the open exercise, and what of it is kept: hints, the solution, answers, a fresh start.

use super::Checking;
use crate::app::{Action, App, Effect};
use crate::course::exercise::Detective;
use crate::course::save_file::{StageState, letter};
use crate::course::{Exercise, Question};
use protocol::KernelResult;

impl App {
    /// The open exercise.
    pub fn exercise(&self) -> Option<&Exercise> {
        self.lesson.course.exercises.get(self.mode.exercise()?.at)
    }

    /// Whether its solution may be shown without asking.
    pub fn solved(&self, exercise: &Exercise) -> bool {
        let shown = self
            .exercise
            .of(exercise)
            .is_some_and(|state| state.solution);
        shown || self.lesson.study.progress.stage(&exercise.id).state == StageState::Passed
    }

    /// Whether an exercise's runs were measured or its kernels passed, in this session or an earlier one. Then its quiz is asked.
    pub fn looked_at(&self, exercise: &Exercise) -> bool {
        let state = self.exercise.of(exercise);
        let found = state.and_then(|state| state.measured.as_ref());
        let here = found.is_some_and(|found| found.failed.is_none());
        let busy = state.is_some_and(|state| state.measuring.is_some());
        !busy && (here || self.solved(exercise))
    }

    /// The question that waits for an answer: the stage's, or that of the open exercise.
    pub fn question(&self) -> Option<&Question> {
        let Some(exercise) = self.exercise() else {
            let (_, question) = self.lesson.study.question(self.stage()?)?;
            return Some(question);
        };
        match exercise.detective() {
            Some(detective) => self.is_unsolved().then_some(&detective.question),
            None => {
                let quiz = exercise.quiz.get(self.questions_done(exercise));
                quiz.filter(|_| self.looked_at(exercise))
            }
        }
    }

    /// How many questions of an exercise were answered.
    fn questions_done(&self, exercise: &Exercise) -> usize {
        self.lesson.study.progress.stage(&exercise.id).answers.len()
    }

    /// Whether the fault of the run on the screen is still to be found: a mystery in progress, or a recording whose fault was neither
    /// named rightly nor wrongly twice.
    pub fn is_unsolved(&self) -> bool {
        if let Some(mystery) = self.mystery() {
            return mystery.end.is_none();
        }
        let Some((exercise, detective)) = self.exercise().zip(self.detective()) else {
            return self.recording().is_some_and(|it| it.unsolved);
        };
        let state = self.exercise.of(exercise);
        let given = state.map_or(&[][..], |state| &state.quiz);
        given.len() < 2 && given.last() != Some(&detective.question.answer)
    }

    /// The recorded run that is looked at.
    pub fn detective(&self) -> Option<&Detective> {
        self.exercise()?.detective()
    }

    /// The check of the open exercise that is in progress.
    pub fn checking(&self) -> Option<&Checking> {
        self.exercise.of(self.exercise()?)?.checking.as_ref()
    }

    /// What the last check found in each file of an exercise.
    pub(in crate::app) fn checked_files(&self, exercise: &Exercise) -> &[KernelResult] {
        let state = self.exercise.of(exercise);
        let report = state.and_then(|state| state.report.as_ref());
        report.map_or(&[], |report| &report.facts.files)
    }

    /// The file of the open exercise to look at next, and the line: where the last check found something.
    pub fn exercise_file(&self) -> Option<(String, Option<u32>)> {
        let exercise = self.exercise()?;
        let mut results = self.checked_files(exercise).iter();
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

    /// Carries out an action that an exercise handles itself; false for all others.
    pub(in crate::app) fn act_in_exercise(&mut self, exercise: &Exercise, action: Action) -> bool {
        match action {
            Action::NextStage => self.exercise_by(1),
            Action::PreviousStage => self.exercise_by(-1),
            Action::Answer(choice) => self.exercise_answer(exercise, choice),
            Action::Hint => self.exercise_hint(exercise),
            Action::Solution => self.solution(self.solved(exercise)),
            Action::Pair => self.measure(exercise),
            Action::Knobs => self.knobs_of_exercise(),
            Action::PickOther(by) => self.pick_other(exercise, by),
            Action::PickThis => self.pick_this(exercise),
            Action::StopMeasuring => self.stop_measuring(exercise),
            Action::LeaveExercise => self.leave_exercise(),
            _ => return false,
        }
        true
    }

    /// Shows the next hint of the open exercise.
    fn exercise_hint(&mut self, exercise: &Exercise) {
        self.show_text();
        if let Some(open) = self.mode.exercise_mut() {
            open.text_first = true;
        }
        self.next_hint(&exercise.id);
    }

    /// Answers the open question of an exercise.
    fn exercise_answer(&mut self, exercise: &Exercise, choice: usize) {
        let Some(question) = self.question() else {
            return;
        };
        let (answer, right) = (question.answer, choice == question.answer);
        let known = self.lesson.study.of_mut(&exercise.id);
        let (at, said) = if exercise.detective().is_some() {
            let given = &mut self.exercise.of_mut(exercise).quiz;
            given.push(choice);
            let passed = known.note_finding(choice, right);
            let late = "Right, but not on the first try: this counts as seen, not as passed";
            (given.len() - 1, (right && !passed).then(|| late.to_owned()))
        } else {
            known.answers.push(choice);
            let said = match right {
                true => "Right.".to_owned(),
                false => format!("Wrong: the answer is {}.", letter(answer)),
            };
            (known.answers.len() - 1, Some(said))
        };
        if right && !known.quiz.contains(&at) {
            known.quiz.push(at);
        }
        if let Some(said) = said {
            self.tell(&said, false);
        }
        self.save(&exercise.id);
    }

    /// Forgets what was done in the open exercise and puts its files back.
    pub(in crate::app) fn exercise_reset(&mut self, exercise: &Exercise) {
        self.take_out(exercise);
        self.after_work(exercise);
        let state = self.exercise.of_mut(exercise);
        let files = std::mem::take(state).files;
        state.files = files;
        let known = self.lesson.study.progress.stages.remove(&exercise.id);
        self.effects.push(Effect::ResetExercise {
            exercise: exercise.id.clone(),
            device: self.devices.for_kernels().to_owned(),
        });
        if let Some(left) = known.and_then(|known| known.after_reset()) {
            *self.lesson.study.of_mut(&exercise.id) = left;
            self.save(&exercise.id);
        }
    }

    /// The exercise is passed; nothing where it was before.
    pub(super) fn pass(&mut self, exercise: &Exercise) {
        let known = self.lesson.study.of_mut(&exercise.id);
        if std::mem::replace(&mut known.state, StageState::Passed) != StageState::Passed {
            let text = format!("{} passed: every check is met", exercise.label());
            self.tell(&text, false);
            self.save(&exercise.id);
        }
    }
}
