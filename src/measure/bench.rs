//! Single runs and paired comparisons to their end, in one engine at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::drive::{Drive, Ending, Flow, Say};
use super::machine;
use crate::config::RunConfig;
use crate::engine::client::EngineCommand;
use crate::protocol::{Command, Event, Finished, Pair, RunSpec, Slot};

/// Runs and compares configurations on one device.
pub struct Bench {
    drive: Drive,
    device: String,
    own: bool,
    /// Hears every event of the runs.
    heard: Box<dyn FnMut(&Event)>,
}

impl Bench {
    pub fn new(command: EngineCommand, device: &str) -> Result<Self> {
        let own = command.is_own();
        Ok(Self {
            drive: Drive::new(command, None)?,
            device: device.to_owned(),
            own,
            heard: Box::new(|_| {}),
        })
    }

    /// A bench behind a screen: `given_up` ends its engine, `say` takes notices, `heard` hears every event.
    pub fn behind(
        command: EngineCommand,
        device: &str,
        given_up: Arc<AtomicBool>,
        say: Say,
        heard: Box<dyn FnMut(&Event)>,
    ) -> Result<Self> {
        let own = command.is_own();
        Ok(Self {
            drive: Drive::behind(command, given_up, say)?,
            device: device.to_owned(),
            own,
            heard,
        })
    }

    /// One run to its end; none when interrupted.
    pub fn run(&mut self, stage: u32, config: &RunConfig, steps: u64) -> Result<Option<Finished>> {
        self.fits(&[config])?;
        let run = spec(stage, config, Slot::A, Some(steps));
        let mut found = None;
        let ending = self.drive.converse(
            Command::Start {
                device: self.device.clone(),
                run,
            },
            |line, _| {
                (self.heard)(&line.event);
                if let Event::Finished(finished) = &line.event {
                    found = Some((**finished).clone());
                    return Ok(Flow::Done);
                }
                Ok(Flow::Go)
            },
        )?;
        Ok(found.filter(|_| ending == Ending::Done))
    }

    /// One paired comparison to its end; none when interrupted.
    pub fn pair(&mut self, stage: u32, a: &RunConfig, b: &RunConfig) -> Result<Option<Pair>> {
        self.fits(&[a, b])?;
        let command = Command::Pair {
            device: self.device.clone(),
            stage,
            a: spec(stage, a, Slot::A, None),
            b: spec(stage, b, Slot::B, None),
            pairs: 0,
        };
        let mut found = None;
        let ending = self.drive.converse(command, |line, _| {
            (self.heard)(&line.event);
            match &line.event {
                Event::Pair(pair) => found = Some(pair.clone()),
                Event::Finished(finished) => {
                    found = finished.pair.clone().or(found.take());
                    return Ok(Flow::Done);
                }
                _ => {}
            }
            Ok(Flow::Go)
        })?;
        Ok(found.filter(|_| ending == Ending::Done))
    }

    /// The next run begins with an engine of its own.
    pub fn fresh(&mut self) {
        self.drive.part();
    }

    fn fits(&self, configs: &[&RunConfig]) -> Result<()> {
        if self.own {
            machine::check_memory(&self.device, configs)
        } else {
            Ok(())
        }
    }
}

fn spec(stage: u32, config: &RunConfig, slot: Slot, steps: Option<u64>) -> RunSpec {
    RunSpec {
        stage,
        variant: "custom".to_owned(),
        slot,
        config: config.clone(),
        steps,
    }
}
