//! Updates the state from the engine's events. After a run was replaced, its events are dropped until the new run starts.

use std::sync::Arc;

use super::bench::Asked;
use super::bounds::sanitize;
use super::figures::{set_loss_of_check, truth};
use super::log::LogLevel;
use super::source::FromEngine;
use super::{App, Effect, Overlay, RunState};
use protocol::*;

impl App {
    /// Handles a report of the engine, or of a recording.
    pub(super) fn on_report(&mut self, report: FromEngine) {
        match report {
            FromEngine::Line(line) => self.on_event(line.event),
            FromEngine::Stray(text) => self.devices.log.add(LogLevel::Stray, &text),
            FromEngine::Malformed { line, why } => {
                let follows = self.devices.on_malformed(&line, &why);
                self.carry_out(follows);
            }
            FromEngine::Gone { reason } => self.on_engine_gone(&reason),
            FromEngine::Silent => {
                self.on_engine_gone(
                    "Its heartbeat stopped: it hangs, or the connection to its machine was lost",
                );
                self.effects.push(Effect::Kill);
            }
        }
    }

    /// Handles the end of the engine, or of a recording. The figures that it sent stay on the screen.
    pub(super) fn on_engine_gone(&mut self, reason: &str) {
        if !self.mode.is_live() {
            self.bench.run.state = RunState::Finished;
            let text = if self.mode.watches() {
                format!("The training is over: {reason}")
            } else {
                "The recording ends here".to_owned()
            };
            self.tell(&text, false);
            return;
        }
        self.devices.on_engine_gone(reason);
        if !matches!(self.bench.run.state, RunState::EngineGone { .. }) {
            self.bench.run.state = RunState::EngineGone {
                reason: crate::sanitize::bounded(reason, 1000),
            };
        }
        self.end_pairs();
        self.bench.pending.asked = Asked::Nothing;
    }

    fn on_event(&mut self, raw: Event) {
        self.bench.on_progress(&raw, self.clock.now_ms);
        let event = sanitize(raw);
        if let Some(started) = event.begins_run() {
            return self.on_started(started, &event);
        }
        if let Event::Run(run) = &event {
            return self.on_foreign_run(run.slot, &event);
        }
        let follows = self.devices.on_event(&event, &self.bench);
        if self.carry_out(follows) {
            return;
        }
        match event {
            Event::Calibrated { .. } | Event::Ranks { .. } => {
                self.bench.run.story.on_event(&event, self.clock.now_ms);
            }
            Event::Compiling { kernels, latest } => self.bench.on_compiling(kernels, latest),
            Event::KernelUsed {
                exercise, why_not, ..
            } => {
                let at = self.lesson.place_of_exercise(&exercise);
                self.in_exercise(at, |exercises, context| {
                    exercises
                        .state_mut(context.exercise)
                        .on_kernel_used(why_not, context)
                });
            }
            Event::Step(_) => {
                let hidden = self.bench.pairing() && self.mode.mystery().is_some();
                self.bench.on_step(&event, hidden, self.clock.now_ms);
            }
            Event::Finished(ref finished) => self.on_finished(finished, &event),
            Event::Failed(failed) => self.on_failed(failed),
            Event::Pair(ref pair) => self.on_pair(pair, &event),
            Event::Paused { .. } => {
                let state = &mut self.bench.run.state;
                if *state == RunState::Pausing {
                    *state = RunState::Paused;
                }
            }
            Event::Resumed { .. } => {
                if matches!(self.bench.run.state, RunState::Resuming | RunState::Paused) {
                    self.bench.run.state = RunState::Running;
                }
            }
            _ => self.on_figure(&event),
        }
    }

    /// Shows figures of one slot, and judges them if the slot is the one that the stage's criteria apply to.
    fn on_figure(&mut self, event: &Event) {
        if let Some(slot) = event.slot()
            && self.bench.is_current()
        {
            self.bench.run.story.on_event(event, self.clock.now_ms);
            if slot == self.bench.judged(self.mode.compares()) {
                self.judge();
            }
        }
    }

    /// Handles the start of a run, live or recorded.
    fn on_started(&mut self, started: &Started, event: &Event) {
        self.follow_recording(started.run.stage);
        let recorded = !self.mode.is_live();
        if recorded {
            self.bench.on_recorded_start(started.paired);
        } else if !self.bench.on_start(started) {
            return;
        }
        let slot = started.run.slot;
        let paired = started.paired;
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.on_start(started, self.clock.now_ms);
        }
        // In a mystery learners would compare their B with the known-good configuration.
        if !(paired && self.mode.mystery().is_some()) {
            self.bench.run.story.on_event(event, self.clock.now_ms);
        }
        if !paired {
            self.bench.run.active = slot;
        }
        if slot == Slot::A && !paired {
            if self.bench.comparison.b_equals_a() {
                self.show_present_b();
            }
            self.explain_start_of_a();
        }
        self.bench.run.compiling = None;
        if slot == Slot::B && !self.bench.switching() && self.bench.pending.due_ms.is_none() {
            self.bench.pending.change = None;
        }
        if recorded || self.bench.run.state == RunState::Starting {
            self.bench.run.state = RunState::Warming;
        }
        // Both sides of a comparison use the kernels of the previous run.
        if !paired {
            self.in_open_exercise(|exercise, context| exercise.use_kernel(context));
        }
        if slot == self.bench.judged(self.mode.compares()) {
            self.judge();
        }
    }

    /// Tells the learner what happened to the earlier figures of A, now that A has started.
    fn explain_start_of_a(&mut self) {
        // A warning stays, for example that pairs have ended.
        let notice = self.view.notice.as_ref();
        let is_warned = notice.is_some_and(|notice| notice.warning);
        if is_warned || !self.has_card(Overlay::Attempts) {
            return;
        }
        let run = &self.bench.run;
        if run.slot(Slot::A).was_left() {
            let text = "A goes on with the weights that B trained; \
                        the lesson keeps the figures that A had before";
            self.tell(text, false);
        } else if let Some(longer) = run.longer_a() {
            let steps = longer.steps();
            let text = format!("A restarted; its run of {steps} steps stays in the chart");
            self.tell(&text, false);
        }
    }

    /// Handles the start of a run of another program.
    fn on_foreign_run(&mut self, slot: Slot, event: &Event) {
        self.bench.on_recorded_start(false);
        if slot == Slot::B && self.bench.run.active == Slot::A {
            self.tell("B begins here, beside what A showed before", false);
        }
        self.bench.run.story.on_event(event, self.clock.now_ms);
        self.bench.run.active = slot;
        self.bench.run.state = RunState::Warming;
    }

    /// Enters the stage that the recording is about, given by its number. Does nothing for a live run.
    fn follow_recording(&mut self, number: u32) {
        if let Some(at) = self.lesson.place_of_number(number)
            && at != self.lesson.learner.at
            && !self.mode.is_live()
        {
            let course = Arc::clone(&self.lesson.course);
            self.lesson.learner.enter(at, &course.stages[at]);
            self.bench.run.story.forget();
        }
    }

    /// Handles the end of a run or of pairs. A run that ended because a figure is not finite is reported as diverged.
    fn on_finished(&mut self, finished: &Finished, event: &Event) {
        if !self.bench.is_current() {
            return;
        }
        let is_single_run = finished.pair.is_none();
        let why = finished.ended.as_deref();
        if let Some(place) = why.and_then(|why| why.strip_prefix("not-finite: ")) {
            // The place names the tensor and the step.
            let (tensor, step) = place.rsplit_once(" at step ").unwrap_or((place, "?"));
            let side = self.side_name(finished.slot);
            let consequence = if is_single_run {
                format!("{tensor} is not finite")
            } else {
                "there is no ratio".to_owned()
            };
            let text = format!("{side} diverged at step {step}: {consequence}");
            self.tell(&text, true);
            self.cancel_verdict();
        }
        // If B has changed during these pairs, they restart with the present B. The end of a single run does not end pairs.
        if self.bench.pairing() && (is_single_run || self.bench.pending.due_ms.is_some()) {
            return;
        }
        let changes = self.bench.switching();
        if why.is_some() {
            self.end_pairs();
        }
        self.bench.pending.asked = Asked::Nothing;
        self.bench.run.state = RunState::Finished;
        // The summary of a paired comparison is about no single run.
        if is_single_run {
            self.bench.run.story.on_event(event, self.clock.now_ms);
            self.in_mystery(|mystery, context| mystery.judge_run(finished, context));
        }
        // The run ended before it took the change, so the latest request starts as a new run.
        if changes && let Some(run) = self.bench.run.wanted.clone() {
            self.start(run);
        }
    }

    /// Returns the name of a slot in messages to the learner.
    fn side_name(&self, slot: Slot) -> &'static str {
        match slot {
            Slot::A => "A",
            Slot::B if self.presenter.presentation.is_some() => "B",
            Slot::B => "Your B",
        }
    }

    /// Handles a failed or refused request.
    fn on_failed(&mut self, failed: Failed) {
        if !self.bench.concerns(&failed) {
            return;
        }
        self.cancel_verdict();
        self.end_pairs();
        let after = self.bench.on_refusal(&failed);
        if after.change_undone {
            let write = self.bench.write_b();
            self.carry_out(Vec::from_iter(write));
        }
        if !after.run_goes_on && !after.change_undone {
            let Failed { kind, reason, .. } = failed;
            self.bench.run.state = RunState::Failed { kind, reason };
            return;
        }
        // With the knobs open, the row of the undone change already shows the reason.
        if !(after.change_undone && self.knobs_open()) {
            self.tell(&failed.reason, true);
        }
        if !after.run_goes_on {
            self.start(self.bench.comparison.run_now());
        }
    }

    /// Handles a result of pairs, on the way or at their end.
    fn on_pair(&mut self, pair: &Pair, event: &Event) {
        if !self.mode.is_live() {
            self.bench.on_recorded_start(true);
        } else if !self.bench.accepts_pair(pair) {
            return;
        }
        let done = pair.done;
        if !self.mode.pairs_with_good() {
            self.bench.run.story.on_event(event, self.clock.now_ms);
        }
        self.lesson.learner.pair = Some(pair.clone());
        if done && let Some(place) = self.reading().place_of_result() {
            self.tell(&format!("The pairs are done{place}"), false);
        }
        self.judge();
        if done {
            self.bench.pending.asked = Asked::Nothing;
            self.bench.run.state = RunState::Finished;
            self.in_mystery(|mystery, context| mystery.judge_pairs(context));
        } else if matches!(self.bench.run.state, RunState::Starting | RunState::Warming) {
            self.bench.run.state = RunState::Running;
        }
    }

    /// Compares the measurements with the stage's criteria.
    pub(super) fn judge(&mut self) {
        let Some(stage) = self.stage() else {
            return;
        };
        if self.presenter.presentation.is_some() || !self.lesson.learner.tried(stage) {
            return;
        }
        // Late figures of a B that was changed since are not about the present one.
        let compares = self.mode.compares();
        let shown = self.bench.run.slot(self.bench.judged(compares));
        let mut config = None;
        let mut finished = None;
        if !compares || shown.description.has(&self.bench.comparison.config_b) {
            config = shown.description.config.clone();
            finished = shown.summary();
        }
        if let Some(run) = &mut finished {
            set_loss_of_check(stage, run, shown);
        }
        let truth = truth(self, stage);
        self.in_lesson(|lesson, stage, context| {
            lesson.judge(stage, config.as_ref(), finished.as_ref(), truth, context)
        });
    }
}
