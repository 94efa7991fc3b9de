//! Which of two has gone silent: the engine's heartbeat says that its process is alive, its figures and its device's progress that
//! the work goes on. A device that hangs is replaced with its engine.

use super::exercise::InModel;
use super::{App, Effect, RunState};
use crate::protocol::Event;

/// Silence of the device that is worth a word; a new run begins with a new engine from here on.
const SILENT_MS: u64 = 8_000;
/// So many of the run's own steps are no silence yet.
const STEPS: f64 = 3.0;
/// A run without a step for so long is not asked to begin anew, although its device goes on.
const NO_STEP_S: u64 = 30;
/// How long the device may be silent while a command waits for its answer; to open a device and to compile takes longer.
const ANSWER_MS: u64 = 30_000;
const START_MS: u64 = 120_000;
/// The screen did not look for this long: it was suspended.
const AWAY_MS: u64 = 3_000;

impl App {
    /// Notes when the device last got on.
    pub(super) fn note_progress(&mut self, event: &Event) {
        if let Some(ago) = event.progress_s() {
            let at = self.now_ms.saturating_sub((ago.max(0.0) * 1e3) as u64);
            self.run.progress_ms = self.run.progress_ms.max(at);
        }
    }

    /// Seconds without a step in a run that should have them, once that is worth a word.
    pub fn stalled_s(&self) -> Option<u64> {
        let since = self.now_ms.saturating_sub(self.run.step_ms);
        let odd = since > 5_000 && since as f64 > 10.0 * self.usual_ms();
        (odd && self.run.state == RunState::Running && self.mode.is_live()).then_some(since / 1000)
    }

    /// Seconds in which the device of a run has not got on, once that is worth a word. The engine's heartbeat goes on.
    pub fn device_silent_s(&self) -> Option<u64> {
        let silent = self.silent_ms()?;
        let odd = silent >= SILENT_MS && silent as f64 > STEPS * self.usual_ms();
        odd.then_some(silent / 1000)
    }

    /// Whether this engine is not worth another command.
    pub(super) fn engine_hangs(&self) -> bool {
        let no_step = self.stalled_s().is_some_and(|seconds| seconds >= NO_STEP_S);
        no_step || self.device_silent_s().is_some()
    }

    fn usual_ms(&self) -> f64 {
        self.run.shown().step_ms.last().map_or(0.0, |(_, ms)| ms)
    }

    fn silent_ms(&self) -> Option<u64> {
        let run = &self.run;
        let works = run.state.is_active() && run.state != RunState::Paused;
        let since = run.progress_ms.max(run.asked_ms);
        (works && self.mode.is_live()).then(|| self.now_ms.saturating_sub(since))
    }

    /// Looked after at every tick: a command that is not answered within its limit replaces the engine, once. A screen that did
    /// not look must not take its own absence for silence.
    pub(super) fn watch_silence(&mut self, before_ms: u64) {
        let away = self.now_ms.saturating_sub(before_ms) > AWAY_MS;
        if away || self.run.state == RunState::Paused {
            self.run.progress_ms = self.now_ms;
        }
        let limit = match self.run.state {
            RunState::Starting => START_MS,
            RunState::Pausing | RunState::Resuming => ANSWER_MS,
            _ if self.run.switching.is_some() || !self.run.pending.is_empty() => ANSWER_MS,
            _ => return,
        };
        let overdue = self.silent_ms().is_some_and(|silent| silent >= limit);
        let Some(seconds) = self.device_silent_s().filter(|_| overdue) else {
            return;
        };
        if std::mem::replace(&mut self.run.replaced, true) {
            self.gone(&format!(
                "it was replaced, and the device of the new one has not answered for {seconds} s either"
            ));
            return self.effects.push(Effect::Kill);
        }
        self.restart();
        self.tell(
            &format!("The device did not answer for {seconds} s: a new engine begins the run anew"),
            true,
        );
    }

    /// A new engine where the old one is gone or hangs. A learner's kernel that computed meanwhile does not go along.
    pub(super) fn renew_engine(&mut self) {
        let hangs = self.engine_hangs();
        if hangs {
            self.with_exercise(|app, exercise| {
                let state = app.exercises.of_mut(exercise);
                if matches!(state.in_model, InModel::Asked | InModel::Since(_)) {
                    state.distrust(
                        "the run stopped answering while it computed; save it to check it again",
                    );
                }
            });
        }
        if hangs || self.run.state.broke_off() {
            self.effects.push(Effect::Restart);
        }
    }
}
