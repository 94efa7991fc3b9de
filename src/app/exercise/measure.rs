//! A config exercise on the screen: its answers are chosen word by word, then its runs are measured. The stage's run pauses
//! meanwhile and goes on afterwards. Nothing is measured before the learner said what they expect.

use super::measuring::{AnswerChoice, AnswerFile, Measurement, Measuring};
use crate::app::devices::GpuWarmUp;
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

    /// Whether a GPU warms up beside the run.
    pub fn warms_up(&self) -> bool {
        matches!(self.devices.gpu_warm_up, GpuWarmUp::Warming { .. })
    }

    /// The question of the open exercise that can be answered with keys now.
    pub fn picking(&self) -> Option<AnswerChoice> {
        let configs = self.configs()?;
        let state = self.exercise.of(self.exercise()?)?;
        let asks = state.measuring.is_none()
            && matches!(state.answer, AnswerFile::Open(_))
            && self.question().is_none();
        asks.then(|| state.draft.next(configs)).flatten()
    }

    /// Marks the next or previous word.
    pub(in crate::app) fn pick_other(&mut self, exercise: &Exercise, by: i32) {
        if let Some(choice) = self.picking() {
            let last = choice.words.len() - 1;
            let to = choice.at.saturating_add_signed(by as isize).min(last);
            self.exercise.of_mut(exercise).draft.at = to;
        }
    }

    /// Takes the marked word; with the last one the answer is written to the learner's file, which is what is judged.
    pub(in crate::app) fn pick_this(&mut self, exercise: &Exercise) {
        let Some(configs) = exercise.configs() else {
            return;
        };
        let draft = &mut self.exercise.of_mut(exercise).draft;
        draft.take(configs);
        if draft.next(configs).is_none() {
            self.effects.push(Effect::WriteAnswers {
                exercise: exercise.id.clone(),
                answers: draft.answers.clone(),
            });
        }
    }

    /// Measures the open exercise; its answers are there.
    pub(in crate::app) fn measure(&mut self, exercise: &Exercise) {
        self.show_text();
        let state = self.exercise.of_mut(exercise);
        state.measuring = Some(Measuring {
            since_ms: self.clock.now_ms,
            ..Measuring::default()
        });
        self.begin_measurement()
    }

    /// Begins a measurement that waits, as soon as the stage's run is paused.
    pub(in crate::app) fn begin_measurement(&mut self) {
        // A GPU that warms up takes cores from whatever is measured beside it.
        if self.measuring().is_none_or(|it| it.begun) || self.warms_up() {
            return;
        }
        self.with_exercise(|app, exercise| {
            app.hold_run(exercise);
            // A run that is starting, or pairs, are ended first.
            if app.bench.run.state.is_active() && app.bench.run.state != RunState::Paused {
                return;
            }
            if let Some(it) = &mut app.exercise.of_mut(exercise).measuring {
                (it.begun, it.since_ms) = (true, app.clock.now_ms);
            }
            app.effects.push(Effect::Measure {
                exercise: exercise.id.clone(),
                device: app.devices.using.clone(),
            });
        });
    }

    /// Cancels the measurement in progress, because the learner asked for it or changed the answers.
    pub(in crate::app) fn stop_measuring(&mut self, exercise: &Exercise) {
        if self.measuring().is_none() {
            return;
        }
        self.tell(
            "The measurement was stopped; the stage's run goes on",
            false,
        );
        self.effects.push(Effect::StopMeasuring);
        self.after_work(exercise);
    }

    /// Takes in what the learner's file says. Saving one in which everything is answered begins the measurement.
    pub(super) fn answered(&mut self, exercise: &Exercise, answer: AnswerFile, saved: bool) {
        let open = self.exercise().is_some_and(|it| it.id == exercise.id);
        let state = self.exercise.of_mut(exercise);
        let same = state.answer == answer;
        // What was measured belongs to the answers before it.
        if !same {
            state.measured = None;
        }
        let given = matches!(answer, AnswerFile::Given(_));
        state.answer = answer;
        state.draft = Default::default();
        let busy = state.measuring.is_some();
        if !open || !saved || busy && same {
            return;
        }
        self.stop_measuring(exercise);
        if given {
            self.measure(exercise);
        }
    }

    /// A measurement has ended.
    pub(super) fn measured(&mut self, exercise: &Exercise, measured: Measurement) {
        let passed = measured.passed;
        self.after_work(exercise);
        self.exercise.of_mut(exercise).measured = Some(measured);
        if passed {
            self.pass(exercise);
        }
    }
}
