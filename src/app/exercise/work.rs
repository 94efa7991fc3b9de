//! What the learner does in the open exercise, and what of it is kept: hints, the solution, answers, a fresh start.

use std::sync::Arc;

use crate::app::figures::letter;
use crate::app::{App, Effect};
use crate::course::exercise::Body;
use crate::course::progress::{Prediction, State};
use crate::course::{Course, Exercise};

impl App {
    /// Shows the next hint of the open exercise.
    pub(in crate::app) fn exercise_hint(&mut self) -> Vec<Effect> {
        self.show_text();
        self.changed(|exercise, app| {
            if app.exercises.hints as usize >= exercise.hints.len() {
                app.tell("All hints are shown", false);
                return false;
            }
            app.exercises.hints += 1;
            app.exercises.text_first = true;
            let shown = app.exercises.hints;
            let known = app.study.progress.stages.entry(exercise.id.clone());
            let known = known.or_default();
            known.hints = known.hints.max(shown);
            true
        })
    }

    /// The solution is shown before the exercise was passed: that is remembered.
    pub(in crate::app) fn exercise_solution(&mut self) -> Vec<Effect> {
        self.changed(|exercise, app| {
            app.exercises.desk_mut(exercise).solution = true;
            let known = app.study.progress.stages.entry(exercise.id.clone());
            known.or_default().solution_shown = true;
            true
        })
    }

    /// Answers the open question of an exercise.
    pub(in crate::app) fn exercise_answer(&mut self, choice: usize) -> Vec<Effect> {
        let Some(question) = self.question() else {
            return Vec::new();
        };
        if choice >= question.choices.len() || !self.view.lesson_visible() {
            return Vec::new();
        }
        let right = choice == question.answer;
        if self.detective().is_none() {
            let text = match right {
                true => "Right.".to_owned(),
                false => format!("Not so: it is {}.", letter(question.answer)),
            };
            self.tell(&text, false);
        }
        self.changed(|exercise, app| {
            let desk = app.exercises.desk_mut(exercise);
            let at = desk.quiz.len();
            desk.quiz.push(choice);
            let known = app.study.progress.stages.entry(exercise.id.clone());
            let known = known.or_default();
            if right && !known.quiz.contains(&at) {
                known.quiz.push(at);
            }
            if matches!(exercise.body, Body::Detective(_)) {
                known
                    .prediction
                    .get_or_insert(Prediction::Choice { choice, right });
                if right {
                    known.state = State::Passed;
                }
                return true;
            }
            true
        })
    }

    /// Forgets what was done in the open exercise and puts its files back.
    pub(in crate::app) fn exercise_reset(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(exercise) = self.exercises.open.and_then(|at| course.exercises.get(at)) else {
            return Vec::new();
        };
        let mut effects = self.take_out(exercise);
        effects.extend(self.after_measuring(exercise));
        let files = std::mem::take(self.exercises.desk_mut(exercise)).files;
        self.exercises.desk_mut(exercise).files = files;
        self.study.progress.stages.remove(&exercise.id);
        self.exercises.hints = 0;
        effects.push(Effect::ResetExercise {
            exercise: exercise.id.clone(),
            device: self.devices.for_kernels().to_owned(),
        });
        effects
    }

    /// Changes what is known of the open exercise, and keeps it where `change` says so.
    fn changed(&mut self, change: impl FnOnce(&Exercise, &mut Self) -> bool) -> Vec<Effect> {
        let course: Arc<Course> = Arc::clone(&self.course);
        let open = self.exercises.open;
        match open.and_then(|at| course.exercises.get(at)) {
            Some(exercise) if change(exercise, self) => vec![self.save_exercise(exercise)],
            _ => Vec::new(),
        }
    }

    pub(super) fn save_exercise(&self, exercise: &Exercise) -> Effect {
        Effect::SaveStage {
            stage: exercise.id.clone(),
            progress: Box::new(self.exercise_progress(exercise)),
        }
    }
}
