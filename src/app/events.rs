//! Updates the state from the engine's events. Events of a run that was replaced are dropped until the new run answers.

use std::sync::Arc;

use super::bench::Asked;
use super::bounds::sanitize;
use super::busy;
use super::devices::GpuWarmUp;
use super::estimate::points;
use super::figures::figures;
use super::log::LogLevel;
use super::source::FromEngine;
use super::{App, Effect, Mode, RunState};
use crate::course::Stage;
use crate::course::check::Starter;
use crate::course::placeholder::number;
use crate::course::save_file::{Prediction, StageState};
use crate::judge::stage::{StageFacts, evaluate};
use protocol::story::RunStory;
use protocol::*;

impl App {
    /// Takes a report of the engine.
    pub(super) fn hear(&mut self, report: FromEngine) {
        match report {
            FromEngine::Line(line) => self.event(line.event),
            FromEngine::Stray(text) => self.devices.log.add(LogLevel::Stray, &text),
            FromEngine::Malformed { line, why } => {
                self.devices.log.malformed += 1;
                self.devices
                    .log
                    .add(LogLevel::Warning, &format!("Not an event ({why}): {line}"));
                if self.devices.log.malformed == 1 {
                    self.tell(
                        "The engine sent a line that is not an event; the log has it",
                        true,
                    );
                }
            }
            FromEngine::Gone { reason } => self.gone(&reason),
            FromEngine::Silent => {
                self.gone(
                    "Its heartbeat stopped: it hangs, or the connection to its machine was lost",
                );
                self.effects.push(Effect::Kill);
            }
        }
    }

    /// Takes a report of the engine while a recorded run is watched, which it does not concern.
    pub(super) fn hear_beside(&mut self, report: &FromEngine) {
        self.view.revision -= 1;
        if let (Mode::Watching { engine_gone, .. }, FromEngine::Gone { .. } | FromEngine::Silent) =
            (&mut self.mode, report)
        {
            *engine_gone = true;
        }
        if *report == FromEngine::Silent {
            self.effects.push(Effect::Kill);
        }
    }

    /// The engine has ended. What it showed stays.
    pub(super) fn gone(&mut self, reason: &str) {
        if !self.mode.is_live() {
            self.bench.run.state = RunState::Finished;
            self.tell("The recording ends here", false);
            return;
        }
        self.devices.load = None;
        self.devices
            .log
            .add(LogLevel::Error, &format!("The engine is gone: {reason}"));
        if !matches!(self.bench.run.state, RunState::EngineGone { .. }) {
            self.bench.run.state = RunState::EngineGone {
                reason: crate::sanitize::bounded(reason, 1000),
            };
        }
        self.end_pairs();
        self.bench.pending.asked = Asked::Nothing;
        if let GpuWarmUp::Warming { .. } | GpuWarmUp::Ready { .. } = self.devices.gpu_warm_up {
            self.devices.gpu_warm_up = GpuWarmUp::None;
        }
    }

    fn event(&mut self, event: Event) {
        self.bench.note_progress(&event, self.clock.now_ms);
        let event = sanitize(event);
        if let Some(started) = event.begins_run() {
            return self.started(started, &event);
        }
        match event {
            Event::Heartbeat { .. } => self.view.revision -= 1,
            Event::Load(load) => {
                if !busy::changes(self.devices.load.as_ref(), &load) {
                    self.view.revision -= 1;
                }
                self.devices.load = Some(load);
            }
            Event::Hello(hello) => {
                self.devices.log.add(
                    LogLevel::Info,
                    &format!(
                        "Engine {} on {}, {} cores",
                        hello.version, hello.os, hello.cores
                    ),
                );
            }
            Event::Log(log) => {
                let level = match log.level.as_str() {
                    "error" => LogLevel::Error,
                    "warn" => LogLevel::Warning,
                    _ => LogLevel::Info,
                };
                self.devices.log.add(level, &log.text);
            }
            Event::Devices { devices } => {
                if let Some(device) = self.devices.take_probed(devices) {
                    self.send(Command::Open { device });
                }
            }
            Event::DeviceReady { device } => {
                if self.bench.run.shown().description.device.as_ref() != Some(&device) {
                    self.devices.note_opened(device);
                }
            }
            Event::Calibrated { .. } => self.bench.run.story.hear(&event, self.clock.now_ms),
            Event::Compiling { kernels, latest } => self.compiling(kernels, latest),
            Event::KernelUsed {
                exercise, why_not, ..
            } => {
                let at = self.lesson.place_of_exercise(&exercise);
                self.in_exercise(at, |it, context| {
                    it.of_mut(context.exercise).kernel_used(why_not, context)
                });
            }
            Event::Step(_) => self.stepped(&event),
            Event::Finished(ref finished) => self.finished(finished, &event),
            Event::Failed(failed) => self.failed(failed),
            Event::Pair(ref pair) => self.paired(pair, &event),
            Event::Paused { .. } => {
                if self.bench.run.state == RunState::Pausing {
                    self.bench.run.state = RunState::Paused;
                }
            }
            Event::Resumed { .. } => {
                if matches!(self.bench.run.state, RunState::Resuming | RunState::Paused) {
                    self.bench.run.state = RunState::Running;
                }
            }
            _ => self.figure(&event),
        }
    }

    /// Figures of one slot.
    fn figure(&mut self, event: &Event) {
        let current = self.bench.is_current();
        let shown = current && !self.unsettles(event);
        let Some(slot) = event.slot().filter(|_| shown) else {
            return;
        };
        self.bench.run.story.hear(event, self.clock.now_ms);
        if slot == self.judged() {
            self.judge();
        }
    }

    fn compiling(&mut self, kernels: u32, latest: String) {
        // The CPU compiles nothing, so these are kernels of the GPU that warms up beside the run.
        if let GpuWarmUp::Warming {
            kernels: so_far, ..
        } = &mut self.devices.gpu_warm_up
        {
            *so_far = kernels;
            return;
        }
        self.bench.run.compiling = Some((kernels, latest));
        if self.bench.run.state == RunState::Starting {
            self.bench.run.state = RunState::Warming;
        }
    }

    fn started(&mut self, started: &Started, event: &Event) {
        self.follow_recording(started.run.stage);
        let recorded = !self.mode.is_live();
        if recorded {
            self.bench.replays(started.paired);
        } else if !self.bench.follows(started) {
            return;
        }
        let (slot, paired) = (started.run.slot, started.paired);
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.note_start(started, self.clock.now_ms);
        }
        if !(paired && self.hides_pairs()) {
            self.bench.run.story.hear(event, self.clock.now_ms);
        }
        if !paired {
            self.bench.run.active = slot;
        }
        if slot == Slot::A && !paired {
            if self.bench.comparison.same() {
                self.show_present_b();
            }
            // A warning, as that pairs have ended, stays.
            let warned = self.view.notice.as_ref().is_some_and(|it| it.warning);
            let tells = self.has_attempts() && !warned;
            let longer = self.bench.run.longer_a().filter(|_| tells);
            if let Some(steps) = longer.map(RunStory::steps) {
                let text = format!("A begins again; its run of {steps} steps stays behind it");
                self.tell(&text, false);
            }
        }
        self.bench.run.compiling = None;
        if slot == Slot::B && !self.bench.switching() && self.bench.pending.due_ms.is_none() {
            self.bench.comparison.confirm();
        }
        if recorded || self.bench.run.state == RunState::Starting {
            self.bench.run.state = RunState::Warming;
        }
        // Both sides of a comparison use the kernels of the previous run.
        if !paired {
            self.in_open_exercise(|it, _| it.use_kernel());
        }
        if slot == self.judged() {
            self.judge();
        }
    }

    /// A recording says which stage it is about.
    fn follow_recording(&mut self, number: u32) {
        let course = Arc::clone(&self.lesson.course);
        let at = self.place_of_number(number);
        let at = at.filter(|at| *at != self.lesson.study.at);
        if let (Some(at), false) = (at, self.mode.is_live()) {
            self.lesson.study.enter(at, &course.stages[at]);
            self.bench.run.story.forget();
        }
    }

    /// Whether sides of pairs are not shown: learners would compare their B with the known-good configuration.
    fn hides_pairs(&self) -> bool {
        matches!(self.mode, Mode::Mystery(_))
    }

    fn stepped(&mut self, event: &Event) {
        if !self.bench.is_current() {
            return;
        }
        if matches!(
            self.bench.run.state,
            RunState::Starting | RunState::Warming | RunState::Finished | RunState::Failed { .. }
        ) {
            self.bench.run.state = RunState::Running;
        }
        self.bench.run.step_ms = self.clock.now_ms;
        self.bench.pending.replaced = false;
        if !(self.bench.pairing() && self.hides_pairs()) {
            self.bench.run.story.hear(event, self.clock.now_ms);
        }
    }

    fn finished(&mut self, finished: &Finished, event: &Event) {
        if !self.bench.is_current() {
            return;
        }
        if let Some(why) = &finished.ended
            && why.starts_with("not-finite")
        {
            // The reason names the tensor and the step.
            self.tell(&format!("The run stopped: {why}"), true);
        }
        let of_run = finished.pair.is_none();
        // B has changed during these pairs: they start again with the present B. A run does not end them either.
        if self.bench.pairing() && (of_run || self.bench.pending.due_ms.is_some()) {
            return;
        }
        let changes = self.bench.switching();
        self.bench.pending.asked = Asked::Nothing;
        self.bench.run.state = RunState::Finished;
        // The summary of a paired comparison is about no single run.
        if of_run {
            self.bench.run.story.hear(event, self.clock.now_ms);
            self.in_mystery(|it, context| it.judge_run(finished, context));
        }
        // It ended before it took the change: what was asked for last starts.
        if let Some(run) = self.bench.run.wanted.clone().filter(|_| changes) {
            self.start(run);
        }
    }

    fn failed(&mut self, failed: Failed) {
        self.devices.log.add(LogLevel::Error, &failed.reason);
        if let GpuWarmUp::Warming { .. } = self.devices.gpu_warm_up
            && failed.kind == FailedKind::Device
            && failed.request == 0
            && self.bench.run.state.is_active()
        {
            self.tell(
                "The GPU could not be opened; the run stays on the CPU, the log says why",
                true,
            );
            self.devices.gpu_warm_up = GpuWarmUp::Failed {
                reason: failed.reason,
            };
            return;
        }
        if !self.bench.concerns(&failed) {
            return;
        }
        self.cancel_verdict();
        self.end_pairs();
        let (goes_on, undone) = self.bench.take_back(&failed);
        if undone {
            self.write_b();
        }
        if !(goes_on || undone) {
            let Failed { kind, reason, .. } = failed;
            self.bench.run.state = RunState::Failed { kind, reason };
            return;
        }
        // The row of a change that was taken back gives the reason as well.
        if !(undone && self.knobs_open()) {
            self.tell(&failed.reason, true);
        }
        if !goes_on {
            self.start(self.bench.comparison.run_now());
        }
    }

    fn paired(&mut self, pair: &Pair, event: &Event) {
        if !self.mode.is_live() {
            self.bench.replays(true);
        } else if !self.bench.counts(pair) {
            return;
        }
        let done = pair.done;
        if !self.mode.pairs_with_good() {
            self.bench.run.story.hear(event, self.clock.now_ms);
        }
        self.lesson.study.pair = Some(pair.clone());
        if let Some(place) = self.place_of_result().filter(|_| done) {
            self.tell(&format!("The pairs are done{place}"), false);
        }
        self.judge();
        if done {
            self.bench.pending.asked = Asked::Nothing;
            self.bench.run.state = RunState::Finished;
            self.in_mystery(|it, context| it.judge_pairs(context));
        } else if matches!(self.bench.run.state, RunState::Starting | RunState::Warming) {
            self.bench.run.state = RunState::Running;
        }
    }

    /// The slot that the criteria are about: B, or A while B is the same.
    fn judged(&self) -> Slot {
        let same = self.mode.compares() && self.bench.comparison.same();
        if same { Slot::A } else { Slot::B }
    }

    /// Compares the measurements with the stage's criteria. Once passed, a stage stays passed.
    pub(super) fn judge(&mut self) {
        if self.presenter.presentation.is_none() {
            self.with_stage(Self::judge_stage);
        }
    }

    fn judge_stage(&mut self, stage: &Stage) {
        if !self.lesson.study.tried(stage) {
            return;
        }
        // Late figures of a B that was changed since say nothing about the present one.
        let present = &self.bench.comparison.config_b;
        let b = self.bench.run.slot(self.judged());
        let b = Some(b).filter(|it| !self.mode.compares() || it.description.has(present));
        let config = b.and_then(|it| it.description.config.as_ref());
        let mut finished = b.and_then(RunStory::summary);
        // The loss that counts is that of the step at which the stage's checks end, as in a run without a screen.
        let counts = stage.steps.saturating_sub(1);
        if let (Some(run), Some(loss)) = (&mut finished, b.and_then(|it| it.loss.at(counts))) {
            run.loss_last = loss.into();
        }
        let measured = StageFacts {
            config,
            finished: finished.as_ref(),
            pair: self.lesson.study.pair.as_ref().filter(|pair| pair.done),
            quiz_right: self.lesson.study.quiz_right(stage),
        };
        let report = evaluate(stage, measured);
        let passed = report.passed() && config.is_some() && !stage.checks.is_empty();
        let ratio = measured
            .pair
            .and_then(|pair| Some([pair.ratio, pair.low?, pair.high?]));
        let key = stage.checks.iter().find(|it| it.starter == Starter::Fails);
        let mut lines = report.lines.iter();
        let found = lines.find(|line| key.is_some_and(|key| key.name == line.name));
        let found = found.map(|line| line.measured.clone());
        let truth = self.truth(stage);
        self.lesson.study.report = Some(report);
        let known = self.lesson.study.of_mut(&stage.id);
        let before = known.clone();
        // The first measurement that passes the checks is the one that judges the range.
        if passed {
            known.measured = known
                .measured
                .or(truth.filter(|_| known.estimate.is_some()));
            known.ratio = known.ratio.or(ratio);
            known.found = known.found.take().or(found);
        }
        let newly = passed && known.state != StageState::Passed;
        if newly {
            known.state = StageState::Passed;
        }
        let changed = *known != before;
        if newly {
            let outside = stage.estimate.as_ref().is_some_and(|of| {
                let judged = known.estimate.zip(known.measured);
                judged.is_some_and(|(range, truth)| points(of, range, truth) == 0)
            });
            let predicted = match known.prediction {
                Some(Prediction::Choice { right: true, .. }) if outside => {
                    "; your answer was right, your range does not hold the figure"
                }
                Some(Prediction::Choice { right: true, .. }) => ", and your prediction was right",
                Some(Prediction::Choice { .. }) => "; your prediction was different",
                _ => "",
            };
            let (number, place) = (stage.number, self.place_of_result().unwrap_or_default());
            let text =
                format!("Stage {number} passed: every required check is met{predicted}{place}");
            self.tell(&text, false);
        }
        if changed {
            self.save(&stage.id);
        }
    }

    /// A knob other than the one that the stage is about in which the measured pairs differ: their ratio does not answer the stage's
    /// question.
    pub fn beside(&self, stage: &Stage) -> Option<&str> {
        let [about] = &stage.varies[..] else {
            return None;
        };
        let pairs = self.lesson.study.pair.as_ref().filter(|pair| pair.done)?;
        let other = pairs.differs.iter().find(|path| *path != about);
        other.map(String::as_str)
    }

    /// The figure that the stage's estimate is about, once it is measured.
    pub fn truth(&self, stage: &Stage) -> Option<f64> {
        let of = &stage.estimate.as_ref()?.of;
        let pairs = self.lesson.study.pair.as_ref().filter(|pair| pair.done);
        if of.starts_with("pair.") && (pairs.is_none() || self.beside(stage).is_some()) {
            return None;
        }
        number(of, &figures(self)?).filter(|value| value.is_finite())
    }
}
