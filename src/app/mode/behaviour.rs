//! What a key, a message and a tick do in each mode.

use super::Mode;
use crate::app::source::{FromEngine, ReplayControl};
use crate::app::{Action, App, Effect};
use protocol::config::RunConfig;

impl App {
    /// What an action means in the mode; false where it means what it means everywhere.
    pub(in crate::app) fn act_in_mode(&mut self, action: Action) -> bool {
        if self.act_on_recording(action) {
            return true;
        }
        let done = match self.mode {
            Mode::Stage | Mode::Replay(_) => {
                self.with_stage(|app, stage| app.act_in_stage(stage, action))
            }
            Mode::Exercise(_) | Mode::Watching { .. } => {
                match action {
                    Action::NextStage => self.exercise_by(1),
                    Action::PreviousStage => self.exercise_by(-1),
                    Action::LeaveExercise => self.leave_exercise(),
                    _ => {
                        let open = self.mode.exercise();
                        return self.in_exercise(open, |it, context| it.update(action, context));
                    }
                }
                Some(true)
            }
            Mode::Mystery(_) => Some(self.act_in_mystery(action)),
            Mode::Free => None,
        };
        done.unwrap_or(false)
    }

    /// Carries out an action on the recording that is shown; false where there is none, and for all other actions.
    fn act_on_recording(&mut self, action: Action) -> bool {
        let Some(recording) = self.mode.recording_mut() else {
            return false;
        };
        let mut at_speed = |factor: f64| {
            recording.speed = (recording.speed * factor).clamp(0.125, 64.0);
            ReplayControl::Speed(recording.speed)
        };
        let control = match action {
            Action::ReplayFaster => at_speed(2.0),
            Action::ReplaySlower => at_speed(0.5),
            Action::ReplayStep => {
                recording.paused = true;
                ReplayControl::Step
            }
            Action::Pause => {
                recording.paused = !recording.paused;
                match recording.paused {
                    true => ReplayControl::Pause,
                    false => ReplayControl::Resume,
                }
            }
            _ => return false,
        };
        self.effects.push(Effect::Replay(control));
        true
    }

    /// What the engine says, or the recording of the whole session in its place.
    pub(in crate::app) fn hear_engine(&mut self, report: FromEngine) {
        match self.mode {
            Mode::Watching { .. } => self.hear_beside(&report),
            _ => self.hear(report),
        }
    }

    /// What the recording of an exercise says. It may have been left meanwhile.
    pub(in crate::app) fn hear_recording(&mut self, report: FromEngine) {
        if let Mode::Watching { .. } = self.mode {
            self.hear(report);
        }
    }

    /// The learner saved the file of a stage's knobs. It has nothing to do with a mystery.
    pub(in crate::app) fn file_saved(&mut self, config: Result<Box<RunConfig>, String>) {
        match (&self.mode, &mut self.presenter.presentation) {
            (Mode::Mystery(_), _) => {}
            (_, Some(presentation)) => presentation.saved = Some(config),
            (_, None) => self.take_saved_file(config),
        }
    }

    /// Time passed since the last tick.
    pub(in crate::app) fn tick_in_mode(&mut self, before_ms: u64) {
        match self.mode {
            Mode::Replay(_) | Mode::Watching { .. } => {}
            Mode::Mystery(_) => {
                self.note_tried();
                self.pause_when_idle(before_ms);
            }
            Mode::Stage | Mode::Exercise(_) | Mode::Free => self.pause_when_idle(before_ms),
        }
    }
}
