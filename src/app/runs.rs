//! Asking for runs: start, toggle, pair, pause. Each function turns a wish into commands and notes what is awaited.

use std::sync::Arc;

use super::pages::Page;
use super::{App, Effect, Run, RunState, SlotRun};
use crate::app::source::ReplayControl;
use crate::config::{Preset, RunConfig};
use crate::course::Stage;
use crate::protocol::{Command, RunSpec, Slot};

/// The run of a stage's variant: `broken` goes to slot A, anything else to B.
pub fn spec(stage: &Stage, variant: &str, preset: Option<Preset>) -> RunSpec {
    let (slot, config) = match (variant, preset) {
        ("broken", Some(preset)) => (Slot::A, stage.broken_at(preset)),
        ("broken", None) => (Slot::A, stage.broken.clone()),
        (_, Some(preset)) => (Slot::B, stage.fixed_at(preset)),
        (_, None) => (Slot::B, stage.fixed.clone()),
    };
    of_stage(stage, variant, slot, config)
}

fn of_stage(stage: &Stage, variant: &str, slot: Slot, config: RunConfig) -> RunSpec {
    RunSpec {
        stage: stage.number,
        variant: variant.to_owned(),
        slot,
        config,
        steps: None,
    }
}

impl App {
    /// Goes to a stage and starts it as the learner finds it.
    pub(super) fn enter(&mut self, at: usize) {
        let course = Arc::clone(&self.course);
        let Some(stage) = course.stages.get(at) else {
            return self.first_contact();
        };
        self.study.enter(at, stage);
        self.view.scroll.clear();
        self.view.lesson_page = Page::of(&self.study, stage);
        (self.view.confirm, self.view.third) = (None, None);
        // A sentence about the stage before would stand where this one's first move is told.
        if self.run.wanted.is_some() {
            self.notice = None;
        }
        if self.recording().is_some() {
            return;
        }
        let first = self.run.wanted.is_none();
        self.run.slots = [SlotRun::default(), SlotRun::default()];
        self.start(spec(stage, "broken", self.preset));
        if first {
            self.first_contact();
        }
        self.effects.push(Effect::SaveCurrent {
            stage: stage.id.clone(),
        });
    }

    /// Asks once what devices there are, after the first run is on its way.
    fn first_contact(&mut self) {
        if self.recording().is_none() {
            self.send(Command::Probe);
        }
    }

    pub(super) fn send(&mut self, command: Command) {
        self.effects.push(Effect::Send(command));
    }

    /// Keeps what was done in a stage or an exercise.
    pub(super) fn save(&mut self, id: &str) {
        self.effects.push(Effect::SaveStage {
            stage: id.to_owned(),
            progress: Box::new(self.study.progress.stage(id)),
        });
    }

    /// Starts a run, replacing the one in progress. A dead engine is replaced first.
    pub(super) fn start(&mut self, run: RunSpec) {
        self.restart_if_gone();
        self.expect(vec![run.clone()]);
        self.run.active = run.slot;
        self.run.wanted = Some(run.clone());
        let device = self.devices.using.clone();
        self.send(Command::Start { device, run });
    }

    fn restart_if_gone(&mut self) {
        if let RunState::EngineGone { .. } = self.run.state {
            self.effects.push(Effect::Restart);
        }
    }

    fn expect(&mut self, runs: Vec<RunSpec>) {
        self.run.pending = runs;
        self.run.switching = None;
        self.run.pairing = false;
        self.run.compiling = None;
        self.run.asked_ms = self.now_ms;
        self.run.state = RunState::Starting;
    }

    /// Moves a run to other knobs: at a step boundary where the parameters can stay, else from the same start.
    fn change_to(&mut self, run: RunSpec) {
        let live = matches!(
            self.run.state,
            RunState::Running
                | RunState::Warming
                | RunState::Pausing
                | RunState::Paused
                | RunState::Resuming
        );
        let same_weights = self.run.shown().started.as_ref().is_some_and(|now| {
            now.run.stage == run.stage && now.run.config.keeps_parameters(&run.config)
        });
        if !(live && same_weights && self.run.pending.is_empty() && !self.run.pairing) {
            return self.start(run);
        }
        self.run.switching = Some(run.clone());
        self.run.wanted = Some(run.clone());
        self.send(Command::Apply { run });
        if matches!(self.run.state, RunState::Paused | RunState::Pausing) {
            self.run.state = RunState::Resuming;
            self.send(Command::Resume);
        }
    }

    /// From broken to fixed, and back.
    pub(super) fn toggle(&mut self) {
        let is_broken = |run: &RunSpec| run.variant == "broken";
        let to_fixed = self.run.wanted.as_ref().is_none_or(is_broken);
        self.with_stage(|app, stage| {
            if to_fixed {
                app.study.tries(stage);
            }
            let variant = if to_fixed { "fixed" } else { "broken" };
            app.change_to(spec(stage, variant, app.preset));
        });
    }

    /// Runs broken and fixed in pairs, until the verdict is clear.
    pub(super) fn pair(&mut self) {
        self.with_stage(|app, stage| {
            app.restart_if_gone();
            let [a, b] = ["broken", "fixed"].map(|variant| spec(stage, variant, app.preset));
            app.expect(vec![a.clone(), b.clone()]);
            // What both have shown so far stays: pairs measure times, the lesson is about the rest.
            app.run.pairing = true;
            app.study.pair = None;
            app.study.tries(stage);
            app.send(Command::Pair {
                device: app.devices.using.clone(),
                stage: stage.number,
                a,
                b,
                pairs: 0,
            });
        });
    }

    /// The same run again, from its first step.
    pub(super) fn restart(&mut self) {
        if self.run.pairing {
            return self.pair();
        }
        match self.run.wanted.clone() {
            Some(run) => self.start(run),
            None => self.enter(self.study.at),
        }
    }

    pub(super) fn pause(&mut self) {
        if let Some(recording) = self.mode.recording_mut() {
            recording.paused = !recording.paused;
            let control = if recording.paused {
                ReplayControl::Pause
            } else {
                ReplayControl::Resume
            };
            self.effects.push(Effect::Replay(control));
            return;
        }
        if self.run.pairing {
            return;
        }
        let (state, command) = match self.run.state {
            RunState::Running | RunState::Warming | RunState::Resuming => {
                (RunState::Pausing, Command::Pause)
            }
            RunState::Paused | RunState::Pausing => (RunState::Resuming, Command::Resume),
            _ => return,
        };
        self.run.state = state;
        self.send(command);
    }

    /// Moves to another device; figures of two devices are not compared, so the ghost goes.
    pub(super) fn use_device(&mut self, select: &str) {
        self.devices.switch_to(select);
        self.run.slots = [SlotRun::default(), SlotRun::default()];
        self.study.pair = None;
        self.restart()
    }

    /// The learner's own configuration was saved: it runs in slot B, beside the stage as it was found.
    pub(super) fn saved(&mut self, config: Result<Box<RunConfig>, String>) {
        match config {
            Err(what) => self.tell(&what, true),
            Ok(config) => self.with_stage(|app, stage| {
                if *config != stage.broken && !app.waits_for_measurement() {
                    app.study.tries(stage);
                    app.change_to(of_stage(stage, "custom", Slot::B, *config));
                }
            }),
        }
    }
}

impl Run {
    /// Whether an event of this slot belongs to a run that is still wanted.
    pub(super) fn is_current(&self) -> bool {
        self.pending.is_empty()
    }
}
