//! What a key, a message and a tick do in each mode.

use super::{Mode, Replay};
use crate::app::source::{FromEngine, ReplayControl};
use crate::app::{Action, App, Effect};
use protocol::config::RunConfig;

impl App {
    /// What an action means in the mode; false where it means what it means everywhere.
    pub(in crate::app) fn act_in_mode(&mut self, action: Action) -> bool {
        let recording = self.mode.recording_mut();
        if let Some(control) = recording.and_then(|it| it.update(action)) {
            self.effects.push(Effect::Replay(control));
            return true;
        }
        let open = self.mode.exercise();
        match self.mode {
            Mode::Stage | Mode::Replay(_) => {
                if self.stage().is_none() {
                    return false;
                }
                let presented = self.presenter.update(action, &self.lesson, &self.mode);
                self.carry_out(presented)
                    || self.in_lesson(|lesson, context| lesson.update(action, context))
            }
            Mode::Exercise(_) | Mode::Watching { .. } => {
                self.in_exercise(open, |it, context| it.update(action, context))
            }
            Mode::Mystery(_) => self.in_mystery(|it, _| it.update(action)),
            Mode::Free => false,
        }
    }

    /// What the engine says, or the recording of the whole session in its place.
    pub(in crate::app) fn hear_engine(&mut self, report: FromEngine) {
        let Mode::Watching { engine_gone, .. } = &mut self.mode else {
            return self.hear(report);
        };
        // While a recorded run is watched, the engine does not concern what is seen.
        self.view.revision -= 1;
        *engine_gone |= matches!(report, FromEngine::Gone { .. } | FromEngine::Silent);
        if report == FromEngine::Silent {
            self.effects.push(Effect::Kill);
        }
    }

    /// The learner saved the file of a stage's knobs. It has nothing to do with a mystery.
    pub(in crate::app) fn file_saved(&mut self, config: Result<Box<RunConfig>, String>) {
        match (&self.mode, &mut self.presenter.presentation) {
            (Mode::Mystery(_), _) => {}
            (_, Some(presentation)) => presentation.saved = Some(config),
            (_, None) => {
                let follows = self.bench.take_saved_file(config);
                self.carry_out(follows);
            }
        }
    }

    /// Time passed since the last tick.
    pub(in crate::app) fn tick_in_mode(&mut self, before_ms: u64) {
        match self.mode {
            Mode::Replay(_) | Mode::Watching { .. } => {}
            Mode::Mystery(ref mut mystery) => {
                mystery.note_time(self.clock.now_ms);
                self.pause_when_idle(before_ms);
            }
            Mode::Stage | Mode::Exercise(_) | Mode::Free => self.pause_when_idle(before_ms),
        }
    }
}

impl Replay {
    /// Carries out an action on the recording that is shown; `None` for any other action.
    fn update(&mut self, action: Action) -> Option<ReplayControl> {
        let faster = match action {
            Action::ReplayFaster => 2.0,
            Action::ReplaySlower => 0.5,
            Action::MarkB => return Some(ReplayControl::MarkB),
            Action::ReplayStep => {
                self.paused = true;
                return Some(ReplayControl::Step);
            }
            Action::Pause => {
                self.paused = !self.paused;
                return Some(match self.paused {
                    true => ReplayControl::Pause,
                    false => ReplayControl::Resume,
                });
            }
            _ => return None,
        };
        self.speed = (self.speed * faster).clamp(0.125, 64.0);
        Some(ReplayControl::Speed(self.speed))
    }
}
