//! Carries out keys, messages and ticks in each mode.

use super::{Mode, Replay};
use crate::app::source::{FromEngine, ReplayControl};
use crate::app::{Action, App, Effect};
use protocol::config::RunConfig;

impl App {
    /// Carries out an action that the mode handles. Returns false for an action with the same meaning in all modes.
    pub(in crate::app) fn act_in_mode(&mut self, action: Action) -> bool {
        if let Mode::Watching { recording, .. } | Mode::Replay(recording) = &mut self.mode
            && let Some(control) = recording.update(action)
        {
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
                    || self
                        .in_lesson(|lesson, stage, context| lesson.update(action, stage, context))
            }
            Mode::Exercise(_) | Mode::Watching { .. } => {
                self.in_exercise(open, |exercises, context| exercises.update(action, context))
            }
            Mode::Mystery(_) => self.in_mystery(|mystery, _| mystery.update(action)),
            Mode::Free => false,
        }
    }

    /// Handles a report of the engine, or of the recording that the whole session shows.
    pub(in crate::app) fn on_engine_report(&mut self, report: FromEngine) {
        let Mode::Watching { engine_gone, .. } = &mut self.mode else {
            return self.on_report(report);
        };
        // While a recorded run is on the screen, reports of the engine change nothing there.
        self.view.revision -= 1;
        *engine_gone |= matches!(report, FromEngine::Gone { .. } | FromEngine::Silent);
        if report == FromEngine::Silent {
            self.effects.push(Effect::Kill);
        }
    }

    /// Handles the learner's saved configuration file. It has no effect during a mystery, and waits for the end of a presentation.
    pub(in crate::app) fn on_file_saved(&mut self, config: Result<Box<RunConfig>, String>) {
        match (&self.mode, &mut self.presenter.presentation) {
            (Mode::Mystery(_), _) => {}
            (_, Some(presentation)) => presentation.saved = Some(config),
            (_, None) => {
                let follows = self.bench.on_file_saved(config);
                self.carry_out(follows);
            }
        }
    }

    /// Handles a tick. `before_ms` is the time of the last one.
    pub(in crate::app) fn tick_in_mode(&mut self, before_ms: u64) {
        match self.mode {
            Mode::Replay(_) | Mode::Watching { .. } => {}
            Mode::Mystery(ref mut mystery) => {
                mystery.on_tick(self.clock.now_ms);
                self.pause_when_idle(before_ms);
            }
            Mode::Stage | Mode::Exercise(_) | Mode::Free => self.pause_when_idle(before_ms),
        }
    }
}

impl Replay {
    /// Carries out an action on the recording. `None` for any other action.
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
                return Some(if self.paused {
                    ReplayControl::Pause
                } else {
                    ReplayControl::Resume
                });
            }
            _ => return None,
        };
        self.speed = (self.speed * faster).clamp(0.125, 64.0);
        Some(ReplayControl::Speed(self.speed))
    }
}
