//! Drives an engine through one command, from its start to its answer.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{EngineEnd, EngineHandle, EngineMessage};
use crate::{Command, Event, Failed};

/// How often it is asked whether the command is still wanted.
const TICK: Duration = Duration::from_millis(50);

/// What is wanted of a command in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    GoOn,
    /// The run is to end and to send its summary.
    Stop,
    /// The engine is to end at once.
    Kill,
}

/// How a command ended.
#[derive(Debug)]
pub enum Outcome {
    /// With its answer, which was heard.
    Answered,
    /// The engine could not do it, and goes on.
    Failed(Failed),
    /// The engine is gone.
    Over(EngineEnd),
}

impl Outcome {
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
    /// Begins a command and waits until it has its answer, or `wish` wants its end. `hear` gets whatever the engine says meanwhile, the answer
    /// included.
    ///
    /// # Errors
    /// Those of `hear`; the command goes on then.
    pub fn drive(
        &mut self,
        command: Command,
        wish: impl Fn() -> Wish,
        mut hear: impl FnMut(&EngineMessage) -> Result<()>,
    ) -> Result<Outcome> {
        self.begin(command);
        loop {
            match wish() {
                Wish::Stop if self.watch.as_ref().is_some_and(|it| it.stopped.is_none()) => {
                    self.send(Command::Stop);
                }
                Wish::GoOn | Wish::Stop => {}
                Wish::Kill => {
                    self.kill();
                    return Ok(Outcome::Over(EngineEnd::Killed));
                }
            }
            let Some(heard) = self.next(TICK) else {
                match self.is_over() {
                    true => return Ok(Outcome::Over(EngineEnd::Killed)),
                    false => continue,
                }
            };
            hear(&heard)?;
            match heard {
                EngineMessage::Over(end) => return Ok(Outcome::Over(end)),
                EngineMessage::Line(line, _) if self.watch.is_none() => {
                    return Ok(match line.event {
                        Event::Failed(failed) => Outcome::Failed(failed),
                        _ => Outcome::Answered,
                    });
                }
                _ => {}
            }
        }
    }
}
