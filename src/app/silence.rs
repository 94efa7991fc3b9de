//! Detects silence: of the engine, whose heartbeat shows that its process is alive, and of the device, whose figures and progress show
//! that the work continues. An engine whose device hangs is replaced.
//!
//! A command that has no answer within its limit, counted from the device's last progress, gets a new process: 120 s for a start, 30 s for
//! everything else. What was asked in place of a run whose step does not end waits for 8 s only: a long step can be left.

use super::bench::Bench;
use super::{App, Effect, RunState};
use protocol::Event;

/// Silence of the device from which on it is reported, and a new run gets a new engine.
const SILENT_MS: u64 = 8_000;
/// The same while kernels are compiled: one of them may take half a minute.
const SILENT_COMPILING_MS: u64 = 60_000;
/// A silence shorter than this many steps of the run is not reported.
const STEPS: f64 = 3.0;
/// A run without a step for this long gets a new engine when it is restarted, even if its device makes progress.
const NO_STEP_S: u64 = 30;
/// How long the device may be silent while a command waits for its answer; opening a device and compiling take longer.
const ANSWER_MS: u64 = 30_000;
const START_MS: u64 = 120_000;
/// Ticks further apart than this mean that the program was suspended.
const AWAY_MS: u64 = 3_000;

impl Bench {
    /// Notes when the device last made progress. Times are in milliseconds since the program began.
    pub(super) fn note_progress(&mut self, event: &Event, now_ms: u64) {
        let ago_ms = event.progress_s().map(|ago| (ago.max(0.0) * 1e3) as u64);
        let at_ms = ago_ms.map_or(0, |ago_ms| now_ms.saturating_sub(ago_ms));
        self.run.progress_ms = self.run.progress_ms.max(at_ms);
    }

    fn usual_ms(&self) -> f64 {
        self.run.shown().step_ms.last().map_or(0.0, |(_, ms)| ms)
    }

    fn stalled_s(&self, now_ms: u64) -> Option<u64> {
        let since = now_ms.saturating_sub(self.run.step_ms);
        let odd = since > 5_000 && since as f64 > 10.0 * self.usual_ms();
        (odd && self.run.state == RunState::Running).then_some(since / 1000)
    }

    /// Milliseconds without progress of the device that works.
    fn silent_ms(&self, now_ms: u64) -> Option<u64> {
        let works = self.run.state.is_active() && self.run.state != RunState::Paused;
        let since = self.run.progress_ms.max(self.run.asked_ms);
        works.then(|| now_ms.saturating_sub(since))
    }

    /// Whether the engine hangs and has to be replaced before the next command.
    pub(super) fn hangs(&self, now_ms: u64) -> bool {
        let no_step = self.stalled_s(now_ms).is_some_and(|it| it >= NO_STEP_S);
        no_step || self.device_silent_s(now_ms).is_some()
    }

    /// At every tick: seconds of silence, where a command is not answered within its limit. Time in which the program was suspended does not count
    /// as silence.
    fn overdue_s(&mut self, before_ms: u64, now_ms: u64) -> Option<u64> {
        if now_ms.saturating_sub(before_ms) > AWAY_MS || self.run.state == RunState::Paused {
            self.run.progress_ms = now_ms;
        }
        let (silent, limit) = self.silent_ms(now_ms).zip(self.answer_limit_ms())?;
        let seconds = self.device_silent_s(now_ms);
        seconds.filter(|_| silent >= limit)
    }

    fn device_silent_s(&self, now_ms: u64) -> Option<u64> {
        let silent = self.silent_ms(now_ms)?;
        let limit = match (&self.run.state, &self.run.compiling) {
            (RunState::Warming, Some(_)) => SILENT_COMPILING_MS,
            _ => SILENT_MS,
        };
        let long = silent as f64 > STEPS * self.usual_ms() || self.leaves_a_step();
        let odd = silent >= limit && long;
        odd.then_some(silent / 1000)
    }

    /// Whether something else was asked for since the step in progress began.
    pub(super) fn leaves_a_step(&self) -> bool {
        self.pending.interrupts && !self.is_current() && self.run.progress_ms <= self.run.asked_ms
    }

    /// How long the device may be silent before the engine is replaced; `None` while no command waits for its answer.
    fn answer_limit_ms(&self) -> Option<u64> {
        match self.run.state {
            RunState::Starting if self.leaves_a_step() => Some(SILENT_MS),
            RunState::Starting => Some(START_MS),
            RunState::Pausing | RunState::Resuming => Some(ANSWER_MS),
            _ => (self.switching() || !self.is_current()).then_some(ANSWER_MS),
        }
    }
}

impl App {
    /// Seconds without a step in a run that should have them, once it is worth reporting.
    pub fn stalled_s(&self) -> Option<u64> {
        let stalled = self.bench.stalled_s(self.clock.now_ms);
        stalled.filter(|_| self.mode.is_live())
    }

    /// Seconds without progress of the run's device, once it is worth reporting. The engine's heartbeat continues.
    pub fn device_silent_s(&self) -> Option<u64> {
        let silent = self.bench.device_silent_s(self.clock.now_ms);
        silent.filter(|_| self.mode.is_live())
    }

    /// At every tick: replaces the engine, once, if a command is not answered within its limit.
    pub(super) fn watch_silence(&mut self, before_ms: u64) {
        let overdue = self.bench.overdue_s(before_ms, self.clock.now_ms);
        let Some(seconds) = overdue.filter(|_| self.mode.is_live()) else {
            return;
        };
        if std::mem::replace(&mut self.bench.pending.replaced, true) {
            self.gone(&format!(
                "it was replaced, but the new one's device has not answered for {seconds} s either"
            ));
            return self.effects.push(Effect::Kill);
        }
        let said = match self.bench.leaves_a_step() {
            true => {
                format!("A step did not end in {seconds} s: a new engine begins what you asked for")
            }
            false => {
                format!("The device did not answer for {seconds} s: a new engine restarts the run")
            }
        };
        self.restart();
        self.tell(&said, true);
    }

    /// Replaces the engine where it is gone or hangs. A learner's kernel that was in the model is not put into the new one.
    pub(super) fn renew_engine(&mut self) {
        let hangs = self.bench.hangs(self.clock.now_ms);
        if hangs {
            self.in_open_exercise(|it, _| it.distrust_kernel());
        }
        if hangs || self.bench.run.state.broke_off() {
            self.effects.push(Effect::Restart);
            // The new one makes no step that could be left.
            (self.bench.run.state, self.bench.pending.interrupts) = (RunState::Idle, false);
        }
    }
}
