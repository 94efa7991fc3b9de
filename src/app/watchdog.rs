//! The watchdog replaces an engine whose device hangs. The engine's heartbeat shows that its process is alive; figures and progress show
//! that its device works.
//!
//! If a command has no answer within its limit, the engine is replaced. The limit counts from the device's last progress: 120 s for a start,
//! 30 s for any other command. A start that interrupts a long step has only 8 s, so that the learner can leave a step that does not end.

use super::bench::Bench;
use super::{App, Effect, RunState};
use protocol::Event;

/// A device silent for longer than this is reported, and the next run gets a new engine.
const SILENT_MS: u64 = 8_000;
/// The limit of silence while kernels are compiled. One kernel may take half a minute.
const SILENT_COMPILING_MS: u64 = 60_000;
/// A silence shorter than this many steps of the run is not reported.
const STEPS: f64 = 3.0;
/// A run without a step for this long gets a new engine when it is restarted, even if its device makes progress.
const NO_STEP_S: u64 = 30;
/// The limit of silence while a command other than a start waits for its answer.
const ANSWER_MS: u64 = 30_000;
/// The limit of silence while a start waits for its answer. Opening a device and compiling take long.
const START_MS: u64 = 120_000;
/// A gap between two ticks longer than this means that the program was suspended.
const AWAY_MS: u64 = 3_000;

impl Bench {
    /// Takes the time of the device's last progress, if the event reports it. Times are in milliseconds since the program began.
    pub(super) fn on_progress(&mut self, event: &Event, now_ms: u64) {
        if let Some(ago_s) = event.progress_s() {
            let ago_ms = (ago_s.max(0.0) * 1e3) as u64;
            let progress_ms = now_ms.saturating_sub(ago_ms);
            self.run.progress_ms = self.run.progress_ms.max(progress_ms);
        }
    }

    /// Returns the time of the last step, in milliseconds. 0 before the first step.
    fn last_step_ms(&self) -> f64 {
        self.run.shown().step_ms.last().map_or(0.0, |(_, ms)| ms)
    }

    /// Returns the seconds without a step if the run should have made steps since.
    fn stalled_s(&self, now_ms: u64) -> Option<u64> {
        let since = now_ms.saturating_sub(self.run.step_ms);
        let is_unusual = since > 5_000 && since as f64 > 10.0 * self.last_step_ms();
        (is_unusual && self.run.state == RunState::Running).then_some(since / 1000)
    }

    /// Returns the milliseconds without progress of the device. `None` while it has nothing to do.
    fn silent_ms(&self, now_ms: u64) -> Option<u64> {
        let works = self.run.state.is_active() && self.run.state != RunState::Paused;
        let since = self.run.progress_ms.max(self.run.asked_ms);
        works.then(|| now_ms.saturating_sub(since))
    }

    /// Returns true if the engine hangs and has to be replaced before the next command.
    pub(super) fn hangs(&self, now_ms: u64) -> bool {
        self.stalled_s(now_ms)
            .is_some_and(|seconds| seconds >= NO_STEP_S)
            || self.device_silent_s(now_ms).is_some()
    }

    /// Returns the seconds of silence if a command has no answer within its limit. This is called at every tick; the time in which the
    /// program was suspended does not count as silence.
    fn overdue_s(&mut self, before_ms: u64, now_ms: u64) -> Option<u64> {
        if now_ms.saturating_sub(before_ms) > AWAY_MS || self.run.state == RunState::Paused {
            self.run.progress_ms = now_ms;
        }
        let (silent, limit) = self.silent_ms(now_ms).zip(self.answer_limit_ms())?;
        if silent < limit {
            return None;
        }
        self.device_silent_s(now_ms)
    }

    /// Returns the seconds without progress of the device if they are unusually many.
    fn device_silent_s(&self, now_ms: u64) -> Option<u64> {
        let silent = self.silent_ms(now_ms)?;
        let limit = match (&self.run.state, &self.run.compiling) {
            (RunState::Warming, Some(_)) => SILENT_COMPILING_MS,
            _ => SILENT_MS,
        };
        let exceeds_steps = silent as f64 > STEPS * self.last_step_ms();
        let is_unusual = silent >= limit && (exceeds_steps || self.interrupts_step());
        is_unusual.then_some(silent / 1000)
    }

    /// Returns true if the learner has requested something else since the step in progress began.
    pub(super) fn interrupts_step(&self) -> bool {
        self.pending.interrupts && !self.is_current() && self.run.progress_ms <= self.run.asked_ms
    }

    /// Returns how long the device may be silent before the engine is replaced, in milliseconds. `None` if no command waits for its answer.
    fn answer_limit_ms(&self) -> Option<u64> {
        match self.run.state {
            RunState::Starting if self.interrupts_step() => Some(SILENT_MS),
            RunState::Starting => Some(START_MS),
            RunState::Pausing | RunState::Resuming => Some(ANSWER_MS),
            _ => (self.switching() || !self.is_current()).then_some(ANSWER_MS),
        }
    }
}

impl App {
    /// Returns the seconds without a step if the live run should have made steps since.
    pub fn stalled_s(&self) -> Option<u64> {
        if !self.mode.is_live() {
            return None;
        }
        self.bench.stalled_s(self.clock.now_ms)
    }

    /// Returns the seconds without progress of the run's device if they are unusually many. The engine's heartbeat continues.
    pub fn device_silent_s(&self) -> Option<u64> {
        if !self.mode.is_live() {
            return None;
        }
        self.bench.device_silent_s(self.clock.now_ms)
    }

    /// Replaces the engine, once, if a command has no answer within its limit. `before_ms` is the time of the last tick.
    pub(super) fn replace_silent_engine(&mut self, before_ms: u64) {
        let overdue = self.bench.overdue_s(before_ms, self.clock.now_ms);
        let Some(seconds) = overdue else {
            return;
        };
        if !self.mode.is_live() {
            return;
        }
        if std::mem::replace(&mut self.bench.pending.replaced, true) {
            self.on_engine_gone(&format!(
                "it was replaced, but the new one's device has not answered for {seconds} s either"
            ));
            return self.effects.push(Effect::Kill);
        }
        let text = if self.bench.interrupts_step() {
            format!(
                "A step did not end in {seconds} s: a new engine starts the run that you asked for"
            )
        } else {
            format!("The device did not answer for {seconds} s: a new engine restarts the run")
        };
        self.restart();
        self.tell(&text, true);
    }

    /// Replaces an engine that has ended or hangs. A learner's kernel that was in the model when it hung is not used again.
    pub(super) fn renew_engine(&mut self) {
        let hangs = self.bench.hangs(self.clock.now_ms);
        if hangs {
            self.in_open_exercise(|exercise, _| exercise.distrust_kernel());
        }
        if hangs || self.bench.run.state.broke_off() {
            self.effects.push(Effect::Restart);
            self.bench.run.state = RunState::Idle;
            // The new engine is not in the middle of a step.
            self.bench.pending.interrupts = false;
        }
    }
}
