//! Drives an engine through one command, from its start to its answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{EngineEnd, EngineHandle, EngineMessage, Watch};
use crate::{Command, Event, Failed};

/// How often it is asked whether the command is still wanted.
const TICK: Duration = Duration::from_millis(50);

/// How a command in progress is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The run is to end and to send its summary.
    Stop,
    /// The engine is to end at once.
    Kill,
}

/// How a command ended.
#[derive(Debug)]
pub enum CommandEnd {
    /// With its answer, which was heard.
    Answered,
    /// The engine could not do it, and goes on.
    Failed(Failed),
    /// The engine is gone.
    Over(EngineEnd),
}

impl CommandEnd {
    /// # Errors
    /// Why there was no answer.
    pub fn answered(self) -> Result<()> {
        match self {
            Self::Answered => Ok(()),
            Self::Failed(failed) => bail!("{}", failed.reason),
            Self::Over(end) => bail!("{end}"),
        }
    }
}

impl EngineHandle {
    /// Sends a command and waits until it has its answer. `hear` gets whatever the engine says meanwhile, the answer included. `unless`: a
    /// flag that says that the command is not wanted any more, and what is wanted then.
    ///
    /// # Errors
    /// Those of `hear`; the command goes on then.
    pub fn drive(
        &mut self,
        command: Command,
        unless: Option<(&AtomicBool, Interruption)>,
        mut hear: impl FnMut(&EngineMessage) -> Result<()>,
    ) -> Result<CommandEnd> {
        self.send(command.clone());
        (self.progress, self.watch) = (Instant::now(), Some(Watch::begin(command)));
        let mut stopped: Option<Instant> = None;
        loop {
            let given_up = unless.filter(|(flag, _)| flag.load(Ordering::Relaxed));
            match (given_up, stopped) {
                (Some((_, Interruption::Kill)), _) => {
                    self.kill();
                    return Ok(CommandEnd::Over(EngineEnd::Killed));
                }
                (Some((_, Interruption::Stop)), None) => {
                    self.send(Command::Stop);
                    stopped = Some(Instant::now());
                }
                (_, Some(since)) if since.elapsed() > self.limits.stop => {
                    self.kill();
                    return Ok(CommandEnd::Over(EngineEnd::NotStopped));
                }
                _ => {}
            }
            let Some(heard) = self.next(TICK) else {
                match self.is_over() {
                    true => return Ok(CommandEnd::Over(EngineEnd::Killed)),
                    false => continue,
                }
            };
            hear(&heard)?;
            match heard {
                EngineMessage::Over(end) => return Ok(CommandEnd::Over(end)),
                EngineMessage::Line(line, _) if self.watch.is_none() => {
                    return Ok(match line.event {
                        Event::Failed(failed) => CommandEnd::Failed(failed),
                        _ => CommandEnd::Answered,
                    });
                }
                _ => {}
            }
        }
    }
}
