//! The runner drives an engine that carries out one task after the other. The runner starts the engine for the first task, records its stream
//! if a file was named, and sends `stop` on ctrl-c.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use super::machine;
use crate::out::{Exit, ExitError, notice, usage};
use crate::record::RecordingWriter;
use protocol::config::RunConfig;
use protocol::handle::driver_noise::harmless;
use protocol::handle::{
    CommandEnd, EngineCommand, EngineEnd, EngineHandle, EngineLimits, EngineMessage, Interruption,
};
use protocol::{Command, Event, Finished, Hello, Pair, RunSpec, Slot, StreamLine};

/// The time that an engine may take to end once it is no longer needed. It may still be writing its caches.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A task for an engine.
#[derive(Clone, Debug)]
pub enum EngineTask {
    Run(RunSpec),
    /// A comparison whose ratio is the time of `a` divided by the time of `b`. With 0 `pairs` the comparison ends when the verdict is clear.
    Pair {
        a: RunSpec,
        b: RunSpec,
        pairs: u32,
    },
}

impl EngineTask {
    /// Makes the task of a run that belongs to no stage.
    pub fn run(variant: &str, config: &RunConfig, steps: u64) -> Self {
        Self::Run(RunSpec {
            steps: Some(steps),
            ..RunSpec::new(variant, config)
        })
    }

    /// Makes the task of a comparison of two named configurations that belong to no stage.
    pub fn pair(a: (&str, &RunConfig), b: (&str, &RunConfig), pairs: u32) -> Self {
        Self::Pair {
            a: RunSpec::new(a.0, a.1),
            b: RunSpec {
                slot: Slot::B,
                ..RunSpec::new(b.0, b.1)
            },
            pairs,
        }
    }

    /// Labels the task with the number of the stage it belongs to.
    #[must_use]
    pub fn of_stage(mut self, number: u32) -> Self {
        match &mut self {
            Self::Run(run) => run.stage = number,
            Self::Pair { a, b, .. } => {
                a.stage = number;
                b.stage = number;
            }
        }
        self
    }

    /// Returns the configurations that are in memory together.
    pub fn configs(&self) -> Vec<&RunConfig> {
        match self {
            Self::Run(run) => vec![&run.config],
            Self::Pair { a, b, .. } => vec![&a.config, &b.config],
        }
    }

    fn command(&self, device: &str) -> Command {
        match self.clone() {
            Self::Run(run) => Command::Start {
                device: device.to_owned(),
                run,
                request: 0,
            },
            Self::Pair { a, b, pairs } => Command::Pair {
                device: device.to_owned(),
                stage: if a.stage == b.stage { a.stage } else { 0 },
                a,
                b,
                pairs,
                request: 0,
            },
        }
    }
}

/// The result of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskResult {
    /// The summary. `None` if the engine was interrupted before it sent one.
    pub finished: Option<Finished>,
    /// The last result of a comparison. `None` for a run.
    pub pair: Option<Pair>,
    /// The seconds from the engine's start to its first loss.
    pub first_loss_s: Option<f64>,
    pub interrupted: bool,
}

impl TaskResult {
    /// Keeps what a line of the stream adds to the result.
    fn on_line(&mut self, line: &StreamLine) {
        match &line.event {
            Event::Step(_) => {
                self.first_loss_s.get_or_insert(line.t);
            }
            Event::Pair(pair) => self.pair = Some(pair.clone()),
            Event::Finished(finished) => {
                self.pair = finished.pair.clone().or(self.pair.take());
                self.finished = Some((**finished).clone());
            }
            _ => {}
        }
    }
}

/// A function that shows a sentence about the engine.
pub type NoticeHandler = Box<dyn FnMut(&str) + Send>;

/// The driver of an engine.
pub struct Runner {
    command: EngineCommand,
    /// The running engine. `None` before the first task and after a restart.
    engine: Option<EngineHandle>,
    recorder: Option<RecordingWriter>,
    interrupted: Arc<AtomicBool>,
    /// The way in which an interrupted engine ends: at once, or after its summary.
    interruption: Interruption,
    notify: NoticeHandler,
    /// The last line that the engine wrote outside its stream.
    last_stray: Option<String>,
    /// The greeting of the latest engine.
    hello: Option<Hello>,
    pub limits: EngineLimits,
}

/// Returns the engine command that `--engine` names, or this program's own.
pub fn engine_command(named: Option<&str>) -> Result<EngineCommand> {
    match named {
        None => EngineCommand::own(),
        Some(line) => EngineCommand::parse(line).map_err(|why| usage(format!("--engine: {why}"))),
    }
}

impl Runner {
    /// Makes the runner of a command: ctrl-c asks the engine to stop, notices go to stderr, and the stream goes into the file `record`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if the system allows no handler for ctrl-c.
    pub fn new(command: EngineCommand, record: Option<&Path>) -> Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second signal ends this process. The engine then ends because its input closes.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
                .context("Failed to watch for ctrl-c")?;
        }
        let recorder = record
            .map(RecordingWriter::create)
            .transpose()
            .map_err(|error| usage(format!("--record: {error:#}")))?;
        Ok(Self {
            recorder,
            interruption: Interruption::Stop,
            ..Self::in_background(command, interrupted, Box::new(notice))
        })
    }

    /// Makes the runner of a screen: setting `stop` ends the engine at once, and notices go to `notify`.
    pub fn in_background(
        command: EngineCommand,
        stop: Arc<AtomicBool>,
        notify: NoticeHandler,
    ) -> Self {
        Self {
            command,
            engine: None,
            recorder: None,
            interrupted: stop,
            interruption: Interruption::Kill,
            notify,
            last_stray: None,
            hello: None,
            limits: EngineLimits {
                shutdown: QUIT_TIMEOUT,
                ..EngineLimits::default()
            },
        }
    }

    /// Returns the greeting of the engine. `None` before the first engine has sent it.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Returns true if the user or the screen asked to stop.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Returns an error if the task does not fit into the memory of this machine. An engine elsewhere is not checked.
    pub fn check_memory(&self, device: &str, work: &EngineTask) -> Result<()> {
        if self.command.is_own() {
            machine::check_memory(device, &work.configs())
        } else {
            Ok(())
        }
    }

    /// Drops the engine, so that the next task begins with a fresh one. The engine ends in its own time, or at once if the screen has stopped the
    /// work.
    pub fn restart(&mut self) {
        if let Some(mut engine) = self.engine.take()
            && self.interruption == Interruption::Kill
            && self.interrupted()
        {
            engine.kill();
        }
    }

    /// Carries out one task and calls `on_line` with every line of the stream, parsed and as it was written.
    ///
    /// # Errors
    /// Returns an [`ExitError`] if the engine refused the task, if the device is missing, or if the engine broke; and errors of `on_line`.
    pub fn measure(
        &mut self,
        device: &str,
        work: &EngineTask,
        mut on_line: impl FnMut(&StreamLine, &str) -> Result<()>,
    ) -> Result<TaskResult> {
        self.check_memory(device, work)?;
        let mut result = TaskResult::default();
        if self.interrupted() {
            result.interrupted = true;
            return Ok(result);
        }
        let mut engine = match self.engine.take().filter(|engine| !engine.is_over()) {
            Some(engine) => engine,
            None => EngineHandle::start(self.command.clone(), self.limits)
                .map_err(|error| usage(format!("{error:#}")))?,
        };
        let interrupted = Arc::clone(&self.interrupted);
        let interruption = Some((&*interrupted, self.interruption));
        let outcome = engine.drive(work.command(device), interruption, |message| {
            if let EngineMessage::Line(line, text) = message {
                if let Some(recorder) = &mut self.recorder {
                    recorder.add(line, text)?;
                }
                on_line(line, text)?;
                result.on_line(line);
            }
            self.notify_of(message);
            Ok(())
        });
        self.hello = engine.hello().cloned().or(self.hello.take());
        self.engine = Some(engine);
        result.interrupted = self.interrupted();
        match outcome? {
            CommandEnd::Answered | CommandEnd::Over(EngineEnd::Killed) => {}
            CommandEnd::Over(end @ EngineEnd::NotStopped) => (self.notify)(&end.to_string()),
            CommandEnd::Failed(failed) => {
                self.finish_recording()?;
                return Err(ExitError::from(&failed).into());
            }
            CommandEnd::Over(end) => {
                let exit = match end {
                    EngineEnd::Refused(_) => Exit::Usage,
                    _ => Exit::Failed,
                };
                let text = end.to_string();
                return Err(ExitError { exit, text }.into());
            }
        }
        self.finish_recording()?;
        Ok(result)
    }

    /// Completes the recording, if there is one, and shows its name.
    fn finish_recording(&mut self) -> Result<()> {
        if let Some(recorder) = self.recorder.take() {
            (self.notify)(&recorder.finish()?.to_string());
        }
        Ok(())
    }

    /// Shows a sentence about a message that is no line of the stream.
    fn notify_of(&mut self, message: &EngineMessage) {
        match message {
            // Drivers repeat a line for each adapter. `doctor` explains the lines that are known to be harmless.
            EngineMessage::Stray(text) => {
                if self.last_stray.as_ref() != Some(text) && harmless(text).is_none() {
                    (self.notify)(&format!("engine: {text}"));
                }
                self.last_stray = Some(text.clone());
            }
            EngineMessage::Malformed { line, why } => (self.notify)(&format!(
                "the engine wrote a line that is not an event ({why}): {line}"
            )),
            EngineMessage::Silent(after) => (self.notify)(&format!(
                "nothing from the engine for {:.0} s; waiting",
                after.as_secs_f64()
            )),
            EngineMessage::Slow { seconds, limit_s } => (self.notify)(&format!(
                "no step for {seconds} s; after {limit_s} s the engine is given up"
            )),
            EngineMessage::Line(..) | EngineMessage::Over(_) => {}
        }
    }
}
