//! A config exercise on the screen. The learner first chooses the answers word by word; then the runs are measured. The stage's run
//! pauses during the measurement. Nothing is measured before the learner has answered what they expect.

use super::measuring::{AnswerChoice, AnswerFile, Measurement, Measuring};
use super::{Context, ExerciseState};
use crate::app::learner::LearnerState;
use crate::app::part::{FollowUp, FollowUps};
use crate::app::{App, Effect, RunState};
use crate::course::Exercise;
use crate::course::exercise::Configs;

impl App {
    /// Returns the configurations of the open exercise. `None` if it is no config exercise.
    pub fn configs(&self) -> Option<&Configs> {
        self.exercise()?.configs()
    }

    /// Returns the measurement in progress of the open exercise.
    pub fn measuring(&self) -> Option<&Measuring> {
        self.open_state()?.measuring.as_ref()
    }

    /// Returns the question of the open exercise that keys can answer now.
    pub fn picking(&self) -> Option<AnswerChoice> {
        let state = self.open_state()?;
        state.picking(self.exercise()?, &self.lesson.learner)
    }
}

impl ExerciseState {
    /// Returns the question of a config exercise that keys can answer now. `None` while it is measured, once everything is answered,
    /// and while a quiz question is open.
    pub(super) fn picking(
        &self,
        exercise: &Exercise,
        learner: &LearnerState,
    ) -> Option<AnswerChoice> {
        let configs = exercise.configs()?;
        let can_answer = self.measuring.is_none()
            && matches!(self.answer, AnswerFile::Open(_))
            && self.question(exercise, learner).is_none();
        can_answer.then(|| self.draft.next(configs)).flatten()
    }

    /// Marks the next or previous word.
    pub(super) fn pick_other(&mut self, by: i32, context: &Context) -> FollowUps {
        if let Some(choice) = self.picking(context.exercise, context.learner) {
            self.draft.at = choice.after(by);
        }
        Vec::new()
    }

    /// Takes the marked word. After the last word, returns the effect that writes the answers to the learner's file, which is judged.
    pub(super) fn pick_this(&mut self, context: &Context) -> Option<FollowUp> {
        let configs = context.exercise.configs()?;
        self.draft.take(configs);
        let complete = self.draft.next(configs).is_none();
        complete.then(|| {
            FollowUp::Effect(Effect::WriteAnswers {
                exercise: context.exercise.id.clone(),
                answers: self.draft.answers.clone(),
            })
        })
    }

    /// Requests a measurement of the open exercise, whose answers are complete. `begin_measurement` starts it.
    pub(super) fn measure(&mut self, context: &Context) -> FollowUps {
        self.measuring = Some(Measuring {
            since_ms: context.now_ms,
            ..Measuring::default()
        });
        vec![FollowUp::ShowText]
    }

    /// Begins a requested measurement as soon as the stage's run is paused.
    pub(super) fn begin_measurement(&mut self, context: &Context) -> FollowUps {
        let Some(measuring) = &mut self.measuring else {
            return Vec::new();
        };
        // A GPU that warms up takes processor cores away from the measurement.
        if measuring.begun || context.devices.warms_up() {
            return Vec::new();
        }
        let state = &context.bench.run.state;
        if state.is_active() && *state != RunState::Paused {
            return Vec::new();
        }
        measuring.begun = true;
        measuring.since_ms = context.now_ms;
        vec![FollowUp::Effect(Effect::Measure {
            exercise: context.exercise.id.clone(),
            device: context.devices.using.clone(),
        })]
    }

    /// Cancels the measurement in progress, because the learner asked for it or changed the answers.
    pub(super) fn stop_measuring(&mut self) -> FollowUps {
        if self.measuring.take().is_none() {
            return Vec::new();
        }
        vec![
            FollowUp::tell("The measurement was stopped; the stage's run goes on"),
            FollowUp::Effect(Effect::StopMeasuring),
        ]
    }

    /// Takes the content of the learner's answer file. Saving a file with all answers begins the measurement.
    pub(super) fn on_answers(
        &mut self,
        answer: AnswerFile,
        saved: bool,
        context: &Context,
    ) -> FollowUps {
        let is_changed = self.answer != answer;
        // The last measurement was compared with the old answers.
        if is_changed {
            self.measured = None;
        }
        let is_complete = matches!(answer, AnswerFile::Given(_));
        self.answer = answer;
        self.draft = Default::default();
        let goes_on = self.measuring.is_some() && !is_changed;
        if !context.is_open || !saved || goes_on {
            return Vec::new();
        }
        let mut follows = self.stop_measuring();
        if is_complete {
            follows.extend(self.measure(context));
        }
        follows
    }

    /// Takes the result of a measurement. If it passed, the exercise is passed.
    pub(super) fn on_measured(&mut self, result: Measurement, context: &Context) -> FollowUps {
        self.measuring = None;
        let follows = if result.passed {
            context.pass(&result.lines, None)
        } else {
            Vec::new()
        };
        self.measured = Some(result);
        follows
    }
}
