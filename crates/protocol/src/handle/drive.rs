//! Drives an engine through one command until its answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{EngineEnd, EngineHandle, EngineMessage, ProgressWatch};
use crate::{Command, Event, Failed};

/// The time between two checks of the flag that interrupts a command.
const TICK: Duration = Duration::from_millis(50);

/// A way to interrupt a command in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The run ends and sends its summary.
    Stop,
    /// The engine ends at once.
    Kill,
}

/// The end of a command.
#[derive(Debug)]
pub enum CommandEnd {
    /// The answer came.
    Answered,
    /// The engine could not carry out the command, and goes on.
    Failed(Failed),
    /// The engine is gone.
    Over(EngineEnd),
}

impl CommandEnd {
    /// Succeeds if the command was answered.
    ///
    /// # Errors
    /// Says why there was no answer.
    pub fn answered(self) -> Result<()> {
        match self {
            Self::Answered => Ok(()),
            Self::Failed(failed) => bail!("{}", failed.reason),
            Self::Over(end) => bail!("{end}"),
        }
    }
}

impl EngineHandle {
    /// Sends a command and waits for its answer. `on_message` is called with all messages of the engine, including the answer. `interrupt` has a
    /// flag that becomes true when the command is no longer wanted, and the way to interrupt it then.
    ///
    /// # Errors
    /// Returns the first error of `on_message`. The command then goes on.
    pub fn drive(
        &mut self,
        command: Command,
        interrupt: Option<(&AtomicBool, Interruption)>,
        mut on_message: impl FnMut(&EngineMessage) -> Result<()>,
    ) -> Result<CommandEnd> {
        self.send(command.clone());
        self.progress = Instant::now();
        self.watch = Some(ProgressWatch::begin(command));
        let mut stopped: Option<Instant> = None;
        loop {
            let interruption = interrupt
                .filter(|(flag, _)| flag.load(Ordering::Relaxed))
                .map(|(_, interruption)| interruption);
            match (interruption, stopped) {
                (Some(Interruption::Kill), _) => {
                    self.kill();
                    return Ok(CommandEnd::Over(EngineEnd::Killed));
                }
                (Some(Interruption::Stop), None) => {
                    self.send(Command::Stop);
                    stopped = Some(Instant::now());
                }
                (_, Some(since)) if since.elapsed() > self.limits.stop => {
                    self.kill();
                    return Ok(CommandEnd::Over(EngineEnd::NotStopped));
                }
                _ => {}
            }
            let Some(message) = self.next(TICK) else {
                if self.is_over() {
                    return Ok(CommandEnd::Over(EngineEnd::Killed));
                }
                continue;
            };
            on_message(&message)?;
            match message {
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
