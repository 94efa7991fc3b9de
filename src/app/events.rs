//! Updates the state from the engine's events. Events of a run that was replaced are dropped until the new run answers.

use std::sync::Arc;

use super::bench::Asked;
use super::bounds::sanitize;
use super::figures::{count_loss_of, truth};
use super::log::LogLevel;
use super::source::FromEngine;
use super::{App, Effect, Overlay, RunState};
use protocol::story::RunStory;
use protocol::*;

impl App {
    /// Takes a report of the engine.
    pub(super) fn hear(&mut self, report: FromEngine) {
        match report {
            FromEngine::Line(line) => self.event(line.event),
            FromEngine::Stray(text) => self.devices.log.add(LogLevel::Stray, &text),
            FromEngine::Malformed { line, why } => {
                let follows = self.devices.hear_malformed(&line, &why);
                self.carry_out(follows);
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

    /// The engine has ended. What it showed stays.
    pub(super) fn gone(&mut self, reason: &str) {
        if !self.mode.is_live() {
            self.bench.run.state = RunState::Finished;
            let text = match self.mode.watches() {
                true => format!("The training is over: {reason}"),
                false => "The recording ends here".to_owned(),
            };
            self.tell(&text, false);
            return;
        }
        self.devices.engine_gone(reason);
        if !matches!(self.bench.run.state, RunState::EngineGone { .. }) {
            self.bench.run.state = RunState::EngineGone {
                reason: crate::sanitize::bounded(reason, 1000),
            };
        }
        self.end_pairs();
        self.bench.pending.asked = Asked::Nothing;
    }

    fn event(&mut self, event: Event) {
        self.bench.note_progress(&event, self.clock.now_ms);
        let event = sanitize(event);
        if let Some(started) = event.begins_run() {
            return self.started(started, &event);
        }
        if let Event::Run(run) = &event {
            return self.foreign_run(run.slot, &event);
        }
        let follows = self.devices.hear(&event, &self.bench);
        if self.carry_out(follows) {
            return;
        }
        match event {
            Event::Calibrated { .. } | Event::Ranks { .. } => {
                self.bench.run.story.hear(&event, self.clock.now_ms);
            }
            Event::Compiling { kernels, latest } => self.bench.compiling(kernels, latest),
            Event::KernelUsed {
                exercise, why_not, ..
            } => {
                let at = self.lesson.place_of_exercise(&exercise);
                self.in_exercise(at, |it, context| {
                    it.of_mut(context.exercise).kernel_used(why_not, context)
                });
            }
            Event::Step(_) => {
                let hidden = self.bench.pairing() && self.mode.mystery().is_some();
                self.bench.stepped(&event, hidden, self.clock.now_ms);
            }
            Event::Finished(ref finished) => self.finished(finished, &event),
            Event::Failed(failed) => self.failed(failed),
            Event::Pair(ref pair) => self.paired(pair, &event),
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
            _ => self.figure(&event),
        }
    }

    /// Figures of one slot.
    fn figure(&mut self, event: &Event) {
        let current = self.bench.is_current();
        let Some(slot) = event.slot().filter(|_| current) else {
            return;
        };
        self.bench.run.story.hear(event, self.clock.now_ms);
        if slot == self.bench.judged(self.mode.compares()) {
            self.judge();
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
        // In a mystery learners would compare their B with the known-good configuration.
        if !(paired && self.mode.mystery().is_some()) {
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
            let tells = self.has_card(Overlay::Attempts) && !warned;
            let run = &self.bench.run;
            let longer = run.longer_a().map(RunStory::steps);
            let text = if run.slot(Slot::A).was_left() {
                let own = "the lesson keeps the figures that A had before";
                Some(format!("A goes on with the weights that B trained; {own}"))
            } else {
                longer.map(|steps| {
                    format!("A begins again; its run of {steps} steps stays behind it")
                })
            };
            if let Some(text) = text.filter(|_| tells) {
                self.tell(&text, false);
            }
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
            self.in_open_exercise(|it, context| it.use_kernel(context));
        }
        if slot == self.bench.judged(self.mode.compares()) {
            self.judge();
        }
    }

    /// A run of another program begins.
    fn foreign_run(&mut self, slot: Slot, event: &Event) {
        self.bench.replays(false);
        if slot == Slot::B && self.bench.run.active == Slot::A {
            self.tell("B begins here, beside what A showed before", false);
        }
        self.bench.run.story.hear(event, self.clock.now_ms);
        self.bench.run.active = slot;
        self.bench.run.state = RunState::Warming;
    }

    /// A recording says which stage it is about.
    fn follow_recording(&mut self, number: u32) {
        let course = Arc::clone(&self.lesson.course);
        let at = self.lesson.place_of_number(number);
        let at = at.filter(|at| *at != self.lesson.study.at);
        if let (Some(at), false) = (at, self.mode.is_live()) {
            self.lesson.study.enter(at, &course.stages[at]);
            self.bench.run.story.forget();
        }
    }

    fn finished(&mut self, finished: &Finished, event: &Event) {
        if !self.bench.is_current() {
            return;
        }
        let of_run = finished.pair.is_none();
        let why = finished.ended.as_deref();
        if let Some(first) = why.and_then(|why| why.strip_prefix("not-finite: ")) {
            // It names the tensor and the step.
            let (tensor, step) = first.rsplit_once(" at step ").unwrap_or((first, "?"));
            let side = self.side(finished.slot);
            let consequence = match of_run {
                true => format!("{tensor} is not finite"),
                false => "there is no ratio".to_owned(),
            };
            let text = format!("{side} diverged at step {step}: {consequence}");
            self.tell(&text, true);
            self.cancel_verdict();
        }
        // B has changed during these pairs: they start again with the present B. A run does not end them either.
        if self.bench.pairing() && (of_run || self.bench.pending.due_ms.is_some()) {
            return;
        }
        let changes = self.bench.switching();
        if why.is_some() {
            self.end_pairs();
        }
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

    /// Whose run it is, as the learner is told.
    fn side(&self, slot: Slot) -> &'static str {
        match slot {
            Slot::A => "A",
            Slot::B if self.presenter.presentation.is_some() => "B",
            Slot::B => "Your B",
        }
    }

    fn failed(&mut self, failed: Failed) {
        if !self.bench.concerns(&failed) {
            return;
        }
        self.cancel_verdict();
        self.end_pairs();
        let (goes_on, undone) = self.bench.take_back(&failed);
        if undone {
            self.carry_out(vec![self.bench.write_b()]);
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
        if let Some(place) = self.reading().place_of_result().filter(|_| done) {
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

    /// Compares the measurements with the stage's criteria.
    pub(super) fn judge(&mut self) {
        let Some(stage) = self.stage().filter(|stage| {
            self.presenter.presentation.is_none() && self.lesson.study.tried(stage)
        }) else {
            return;
        };
        // Late figures of a B that was changed since say nothing about the present one.
        let compares = self.mode.compares();
        let present = &self.bench.comparison.config_b;
        let b = self.bench.run.slot(self.bench.judged(compares));
        let b = Some(b).filter(|it| !compares || it.description.has(present));
        let config = b.and_then(|it| it.description.config.clone());
        let mut finished = b.and_then(RunStory::summary);
        if let (Some(run), Some(b)) = (&mut finished, b) {
            count_loss_of(stage, run, b);
        }
        let truth = truth(self, stage);
        self.in_lesson(|lesson, context| {
            lesson.judge(config.as_ref(), finished.as_ref(), truth, context)
        });
    }
}
