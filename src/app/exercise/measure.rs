//! A config exercise on the screen: its answers are chosen word by word, then its runs are measured. The stage's run pauses
//! meanwhile and goes on afterwards. Nothing is measured before the learner said what they expect.

use super::measuring::{AnswerChoice, AnswerFile, Measurement, Measuring};
use super::{ExerciseContext, Exercises};
use crate::app::part::Follow;
use crate::app::study::Study;
use crate::app::{App, Effect, RunState};
use crate::course::Exercise;
use crate::course::exercise::Configs;

impl App {
    /// The open exercise's configurations.
    pub fn configs(&self) -> Option<&Configs> {
        self.exercise()?.configs()
    }

    /// The measurement of the open exercise that is in progress.
    pub fn measuring(&self) -> Option<&Measuring> {
        self.exercise.of(self.exercise()?)?.measuring.as_ref()
    }

    /// The question of the open exercise that can be answered with keys now.
    pub fn picking(&self) -> Option<AnswerChoice> {
        self.exercise.picking(self.exercise()?, &self.lesson.study)
    }

    /// Whether an action has to wait because the stage's run is paused for a measurement; tells the learner so.
    pub(in crate::app) fn waits_for_measurement(&mut self) -> bool {
        let waits = self.measuring().is_some();
        if waits {
            let text = "The stage's run waits until the exercise is measured";
            self.tell(text, false);
        }
        waits
    }
}

impl Exercises {
    /// The question of a config exercise that can be answered with keys now.
    pub(super) fn picking(&self, exercise: &Exercise, study: &Study) -> Option<AnswerChoice> {
        let configs = exercise.configs()?;
        let state = self.of(exercise)?;
        let asks = state.measuring.is_none()
            && matches!(state.answer, AnswerFile::Open(_))
            && self.question(exercise, study).is_none();
        asks.then(|| state.draft.next(configs)).flatten()
    }

    /// Marks the next or previous word.
    pub(super) fn pick_other(&mut self, exercise: &Exercise, by: i32, study: &Study) {
        if let Some(choice) = self.picking(exercise, study) {
            self.of_mut(exercise).draft.at = choice.after(by);
        }
    }

    /// Takes the marked word; with the last one the answer is written to the learner's file, which is what is judged.
    pub(super) fn pick_this(&mut self, exercise: &Exercise, study: &Study) -> Vec<Follow> {
        let asked = self.picking(exercise, study).is_some();
        let Some(configs) = exercise.configs().filter(|_| asked) else {
            return Vec::new();
        };
        let draft = &mut self.of_mut(exercise).draft;
        draft.take(configs);
        if draft.next(configs).is_some() {
            return Vec::new();
        }
        vec![Follow::Effect(Effect::WriteAnswers {
            exercise: exercise.id.clone(),
            answers: draft.answers.clone(),
        })]
    }

    /// Measures the open exercise, once its answers are there.
    pub(super) fn measure(&mut self, exercise: &Exercise, now_ms: u64) -> Vec<Follow> {
        let state = self.of_mut(exercise);
        if state.measuring.is_some() {
            return Vec::new();
        }
        if !matches!(state.answer, AnswerFile::Given(_)) {
            let text = "Say what you expect first; then the runs are measured";
            return vec![Follow::ShowText, Follow::tell(text)];
        }
        state.measuring = Some(Measuring {
            since_ms: now_ms,
            ..Measuring::default()
        });
        vec![Follow::ShowText]
    }

    /// Begins the measurement of the open exercise that waits, as soon as the stage's run is paused.
    pub(in crate::app) fn begin_measurement(&mut self, context: &ExerciseContext) -> Vec<Follow> {
        let mut follows = Vec::new();
        // A GPU that warms up takes cores from whatever is measured beside it.
        let Some(exercise) = context.open.filter(|_| !context.devices.warms_up()) else {
            return follows;
        };
        let state = self.of(exercise);
        let measuring = state.and_then(|state| state.measuring.as_ref());
        if measuring.is_none_or(|measuring| measuring.begun) {
            return follows;
        }
        follows.extend(self.hold_run(exercise, context));
        // A run that is starting, or pairs, are ended first.
        let run = &context.bench.run;
        if run.state.is_active() && run.state != RunState::Paused {
            return follows;
        }
        self.of_mut(exercise).measuring = Some(Measuring {
            begun: true,
            since_ms: context.now_ms,
            ..Measuring::default()
        });
        follows.push(Follow::Effect(Effect::Measure {
            exercise: exercise.id.clone(),
            device: context.devices.using.clone(),
        }));
        follows
    }

    /// Cancels the measurement in progress, because the learner asked for it or changed the answers.
    pub(super) fn stop_measuring(&mut self, exercise: &Exercise) -> Vec<Follow> {
        let mut follows = Vec::new();
        if self.of_mut(exercise).measuring.is_some() {
            let text = "The measurement was stopped; the stage's run goes on";
            follows.push(Follow::tell(text));
            follows.push(Follow::Effect(Effect::StopMeasuring));
            follows.extend(self.after_work(exercise));
        }
        follows
    }

    /// Takes in what the learner's file says. Saving one in which everything is answered begins the measurement.
    pub(super) fn answered(
        &mut self,
        exercise: &Exercise,
        answer: AnswerFile,
        saved: bool,
        context: &ExerciseContext,
    ) -> Vec<Follow> {
        let state = self.of_mut(exercise);
        let same = state.answer == answer;
        // What was measured belongs to the answers before it.
        if !same {
            state.measured = None;
        }
        let given = matches!(answer, AnswerFile::Given(_));
        state.answer = answer;
        state.draft = Default::default();
        let busy = state.measuring.is_some();
        if !context.is_open(exercise) || !saved || busy && same {
            return Vec::new();
        }
        let mut follows = self.stop_measuring(exercise);
        if given {
            follows.extend(self.measure(exercise, context.now_ms));
        }
        follows
    }

    /// A measurement has ended.
    pub(super) fn measured(
        &mut self,
        exercise: &Exercise,
        measured: Measurement,
        context: &ExerciseContext,
    ) -> Vec<Follow> {
        let passed = measured.passed;
        let mut follows = Vec::from_iter(self.after_work(exercise));
        self.of_mut(exercise).measured = Some(measured);
        if passed {
            follows.extend(context.pass(exercise, None));
        }
        follows
    }
}
