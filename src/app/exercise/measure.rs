//! Measuring a config exercise on the screen: the stage's run stands still meanwhile, and goes on afterwards. Nothing is
//! measured before the learner said what they expect.

use std::sync::Arc;

use super::measuring::{Answer, Measured, Measuring};
use crate::app::devices::FirstLight;
use crate::app::{App, Effect, RunState};
use crate::course::Exercise;
use crate::course::exercise::Configs;
use crate::course::progress::State;

impl App {
    /// The open exercise's configurations.
    pub fn configs(&self) -> Option<&Configs> {
        self.exercise()?.configs()
    }

    /// The measurement of the open exercise that is in progress.
    pub fn measuring(&self) -> Option<&Measuring> {
        self.exercises.desk(self.exercise()?)?.measuring.as_ref()
    }

    /// Whether a GPU warms up beside the run.
    pub fn warms_up(&self) -> bool {
        matches!(self.devices.first_light, FirstLight::Warming { .. })
    }

    /// Says that an action has to wait, if it has: the run stands still for a measurement.
    pub(in crate::app) fn held(&mut self) -> bool {
        let held = self.measuring().is_some();
        if held {
            let said = "The stage's run waits until the exercise is measured";
            self.tell(said, false);
        }
        held
    }

    /// Measures the open exercise, once its answers are there.
    pub(in crate::app) fn measure(&mut self) -> Vec<Effect> {
        if self.measuring().is_some() || self.configs().is_none() {
            return Vec::new();
        }
        self.show_text();
        let now = self.now_ms;
        let course = Arc::clone(&self.course);
        let Some(exercise) = self.exercises.open.and_then(|at| course.exercises.get(at)) else {
            return Vec::new();
        };
        let desk = self.exercises.desk_mut(exercise);
        if !matches!(desk.answer, Answer::Given(_)) {
            self.tell("Say what you expect first; then it is measured", false);
            return Vec::new();
        }
        desk.measuring = Some(Measuring {
            since_ms: now,
            ..Measuring::default()
        });
        self.go_on_measuring()
    }

    /// Begins a measurement that waits, as soon as the stage's run stands still.
    pub(in crate::app) fn go_on_measuring(&mut self) -> Vec<Effect> {
        if self.measuring().is_none_or(|it| it.begun) {
            return Vec::new();
        }
        // A GPU that warms up takes cores from whatever is measured beside it.
        if self.warms_up() {
            return Vec::new();
        }
        let course = Arc::clone(&self.course);
        let Some(exercise) = self.exercises.open.and_then(|at| course.exercises.get(at)) else {
            return Vec::new();
        };
        match self.run.state {
            RunState::Running | RunState::Warming | RunState::Resuming if !self.run.pairing => {
                let effects = self.pause();
                if let Some(it) = &mut self.exercises.desk_mut(exercise).measuring {
                    it.paused = true;
                }
                effects
            }
            // A run that begins, or pairs, come to an end first.
            _ if self.run.state.is_active() && self.run.state != RunState::Paused => Vec::new(),
            _ => {
                let now = self.now_ms;
                if let Some(it) = &mut self.exercises.desk_mut(exercise).measuring {
                    (it.begun, it.since_ms) = (true, now);
                }
                vec![Effect::Measure {
                    exercise: exercise.id.clone(),
                    device: self.devices.using.clone(),
                }]
            }
        }
    }

    /// Gives the measurement in progress up, at the learner's wish.
    pub(in crate::app) fn stop_measuring(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let open = self.exercises.open.and_then(|at| course.exercises.get(at));
        let Some(exercise) = open.filter(|_| self.measuring().is_some()) else {
            return Vec::new();
        };
        self.tell("Not measured to the end; the stage's run goes on", false);
        let mut effects = vec![Effect::StopMeasuring];
        effects.extend(self.after_measuring(exercise));
        effects
    }

    /// The measurement is over, in whatever way: the stage's run goes on where it was stopped for it.
    pub(super) fn after_measuring(&mut self, exercise: &Exercise) -> Vec<Effect> {
        let measuring = self.exercises.desk_mut(exercise).measuring.take();
        let waits = matches!(self.run.state, RunState::Paused | RunState::Pausing);
        if measuring.is_some_and(|it| it.paused) && waits {
            return self.pause();
        }
        Vec::new()
    }

    /// What the learner's file says; saving one in which everything is answered begins the measurement.
    pub(super) fn answered(
        &mut self,
        exercise: &Exercise,
        answer: Answer,
        saved: bool,
    ) -> Vec<Effect> {
        let open = self.exercise().is_some_and(|it| it.id == exercise.id);
        let desk = self.exercises.desk_mut(exercise);
        let same = desk.answer == answer;
        // What was measured belongs to what was said before it.
        if !same {
            desk.measured = None;
        }
        desk.answer = answer;
        desk.draft.clear();
        if !open || !saved {
            return Vec::new();
        }
        let mut effects = Vec::new();
        if self.measuring().is_some() {
            if same {
                return effects;
            }
            effects.extend(self.stop_measuring());
        }
        if let Answer::Given(_) = self.exercises.desk_mut(exercise).answer {
            effects.extend(self.measure());
        }
        effects
    }

    /// A measurement came to its end.
    pub(super) fn measured(&mut self, exercise: &Exercise, measured: Measured) -> Vec<Effect> {
        let passed = measured.passed;
        let mut effects = self.after_measuring(exercise);
        self.exercises.desk_mut(exercise).measured = Some(measured);
        if !passed {
            return effects;
        }
        let known = self.study.progress.stages.entry(exercise.id.clone());
        let known = known.or_default();
        if known.state != State::Passed {
            known.state = State::Passed;
            let text = format!("{} passed: every check holds", exercise.label());
            self.tell(&text, false);
            effects.push(self.save_exercise(exercise));
        }
        effects
    }
}
