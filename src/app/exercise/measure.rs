//! A config exercise on the screen: its answers are chosen word by word, then its runs are measured. The stage's run pauses
//! meanwhile and goes on afterwards. Nothing is measured before the learner said what they expect.

use super::measuring::{AnswerChoice, AnswerFile, Measurement, Measuring};
use super::{Context, ExerciseState};
use crate::app::part::{Follow, Follows};
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
        self.open_state()?.measuring.as_ref()
    }

    /// The question of the open exercise that can be answered with keys now.
    pub fn picking(&self) -> Option<AnswerChoice> {
        let state = self.open_state()?;
        state.picking(self.exercise()?, &self.lesson.study)
    }
}

impl ExerciseState {
    /// The question of a config exercise that can be answered with keys now.
    pub(super) fn picking(&self, exercise: &Exercise, study: &Study) -> Option<AnswerChoice> {
        let configs = exercise.configs()?;
        let asks = self.measuring.is_none()
            && matches!(self.answer, AnswerFile::Open(_))
            && self.question(exercise, study).is_none();
        asks.then(|| self.draft.next(configs)).flatten()
    }

    /// Marks the next or previous word.
    pub(super) fn pick_other(&mut self, by: i32, context: &Context) -> Follows {
        if let Some(choice) = self.picking(context.exercise, context.study) {
            self.draft.at = choice.after(by);
        }
        Vec::new()
    }

    /// Takes the marked word; with the last one the answer is written to the learner's file, which is what is judged.
    pub(super) fn pick_this(&mut self, context: &Context) -> Option<Follow> {
        let configs = context.exercise.configs()?;
        self.draft.take(configs);
        let whole = self.draft.next(configs).is_none();
        whole.then(|| {
            Follow::Effect(Effect::WriteAnswers {
                exercise: context.exercise.id.clone(),
                answers: self.draft.answers.clone(),
            })
        })
    }

    /// Measures the open exercise; its answers are there.
    pub(super) fn measure(&mut self, context: &Context) -> Follows {
        self.measuring = Some(Measuring {
            since_ms: context.now_ms,
            ..Measuring::default()
        });
        vec![Follow::ShowText]
    }

    /// Begins a measurement that waits, as soon as the stage's run is paused.
    pub(super) fn begin_measurement(&mut self, context: &Context) -> Follows {
        let waits = |measuring: &Measuring| !measuring.begun;
        // A GPU that warms up takes cores from whatever is measured beside it.
        if !self.measuring.as_ref().is_some_and(waits) || context.devices.warms_up() {
            return Vec::new();
        }
        let run = &context.bench.run;
        // A run that is starting, or pairs, are ended first.
        if run.state.is_active() && run.state != RunState::Paused {
            return Vec::new();
        }
        if let Some(measuring) = &mut self.measuring {
            (measuring.begun, measuring.since_ms) = (true, context.now_ms);
        }
        vec![Follow::Effect(Effect::Measure {
            exercise: context.exercise.id.clone(),
            device: context.devices.using.clone(),
        })]
    }

    /// Cancels the measurement in progress, because the learner asked for it or changed the answers.
    pub(super) fn stop_measuring(&mut self) -> Follows {
        if self.measuring.is_none() {
            return Vec::new();
        }
        let text = "The measurement was stopped; the stage's run goes on";
        self.measuring = None;
        vec![Follow::tell(text), Follow::Effect(Effect::StopMeasuring)]
    }

    /// Takes in what the learner's file says. Saving one in which everything is answered begins the measurement.
    pub(super) fn answered(
        &mut self,
        answer: AnswerFile,
        saved: bool,
        context: &Context,
    ) -> Follows {
        let same = self.answer == answer;
        // What was measured belongs to the answers before it.
        if !same {
            self.measured = None;
        }
        let given = matches!(answer, AnswerFile::Given(_));
        self.answer = answer;
        self.draft = Default::default();
        let busy = self.measuring.is_some();
        if !context.is_open || !saved || busy && same {
            return Vec::new();
        }
        let mut follows = self.stop_measuring();
        if given {
            follows.extend(self.measure(context));
        }
        follows
    }

    /// A measurement has ended.
    pub(super) fn measured(&mut self, found: Measurement, context: &Context) -> Follows {
        self.measuring = None;
        let follows = match found.passed {
            true => context.pass(&found.lines, None),
            false => Vec::new(),
        };
        self.measured = Some(found);
        follows
    }
}
