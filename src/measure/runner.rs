//! An engine that measures one job after the other. It is started when the first job needs it, its stream is recorded
//! where that was asked for, and ctrl-c becomes `stop`.

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

/// How long an engine may take to end when it is no longer needed; it may still be writing its caches.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);

/// What an engine is asked to do.
#[derive(Clone, Debug)]
pub enum EngineTask {
    Run(RunSpec),
    /// Time of `a` over time of `b`. With 0 `pairs` it goes on until the verdict is clear.
    Pair {
        a: RunSpec,
        b: RunSpec,
        pairs: u32,
    },
}

impl EngineTask {
    /// A run that belongs to no stage.
    pub fn run(variant: &str, config: &RunConfig, steps: u64) -> Self {
        Self::Run(RunSpec {
            steps: Some(steps),
            ..RunSpec::new(variant, config)
        })
    }

    /// A comparison of two variants, each with its name, that belong to no stage.
    pub fn pair(a: (&str, &RunConfig), b: (&str, &RunConfig), pairs: u32) -> Self {
        let (a, b) = (RunSpec::new(a.0, a.1), RunSpec::new(b.0, b.1));
        let b = RunSpec { slot: Slot::B, ..b };
        Self::Pair { a, b, pairs }
    }

    /// The same as part of a stage.
    #[must_use]
    pub fn of_stage(mut self, number: u32) -> Self {
        match &mut self {
            Self::Run(run) => run.stage = number,
            Self::Pair { a, b, .. } => (a.stage, b.stage) = (number, number),
        }
        self
    }

    /// The configurations that are in memory together.
    pub fn configs(&self) -> Vec<&RunConfig> {
        match self {
            Self::Run(run) => vec![&run.config],
            Self::Pair { a, b, .. } => vec![&a.config, &b.config],
        }
    }

    fn command(&self, device: &str) -> Command {
        let device = device.to_owned();
        match self.clone() {
            Self::Run(run) => Command::Start {
                device,
                run,
                request: 0,
            },
            Self::Pair { a, b, pairs } => Command::Pair {
                device,
                stage: if a.stage == b.stage { a.stage } else { 0 },
                a,
                b,
                pairs,
                request: 0,
            },
        }
    }
}

/// What came of one piece of work.
#[derive(Clone, Debug, Default)]
pub struct TaskResult {
    /// The summary; none where an interrupted engine did not send it.
    pub finished: Option<Finished>,
    /// The comparison, as far as it came.
    pub pair: Option<Pair>,
    /// Seconds from the engine's start to its first loss.
    pub first_loss_s: Option<f64>,
    pub interrupted: bool,
}

impl TaskResult {
    fn note(&mut self, line: &StreamLine) {
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

/// Takes a notice: something about the engine that is worth a sentence.
pub type NoticeHandler = Box<dyn FnMut(&str) + Send>;

pub struct Runner {
    command: EngineCommand,
    engine: Option<EngineHandle>,
    recorder: Option<RecordingWriter>,
    interrupted: Arc<AtomicBool>,
    /// What an interruption wants.
    interruption: Interruption,
    notify: NoticeHandler,
    /// What was written beside the stream last.
    last_stray: Option<String>,
    hello: Option<Hello>,
    /// How long the engine may take.
    pub limits: EngineLimits,
}

/// The engine command that `--engine` names, or this program's own.
pub fn engine_command(named: Option<&str>) -> Result<EngineCommand> {
    match named {
        None => EngineCommand::own(),
        Some(line) => EngineCommand::parse(line).map_err(|why| usage(format!("--engine: {why}"))),
    }
}

impl Runner {
    /// For a command: ctrl-c asks the engine to stop, notices go to stderr, the stream into the file `record`.
    pub fn new(command: EngineCommand, record: Option<&Path>) -> Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second one ends the process as usual; the engine follows when its input closes.
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

    /// For a screen: `stop` ends the engine at once, and notices go to `notify`.
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

    /// What the engine said of itself, once one was started.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Whether someone asked to end.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Refuses work that does not fit into the memory of this machine, where the engine runs on it.
    pub fn check_memory(&self, device: &str, work: &EngineTask) -> Result<()> {
        if self.command.is_own() {
            machine::check_memory(device, &work.configs())
        } else {
            Ok(())
        }
    }

    /// Lets the engine end in its own time: the next work begins with a fresh one.
    pub fn restart(&mut self) {
        if let Some(mut engine) = self.engine.take()
            && self.interruption == Interruption::Kill
            && self.interrupted()
        {
            engine.kill();
        }
    }

    /// Does one piece of work and hands every line of the stream to `hear`, as an event and as text.
    ///
    /// Errors are [`ExitError`]s where the engine refused the work, the device is not here, or the engine broke.
    pub fn measure(
        &mut self,
        device: &str,
        work: &EngineTask,
        mut hear: impl FnMut(&StreamLine, &str) -> Result<()>,
    ) -> Result<TaskResult> {
        self.check_memory(device, work)?;
        let mut found = TaskResult::default();
        if self.interrupted() {
            found.interrupted = true;
            return Ok(found);
        }
        let mut engine = match self.engine.take().filter(|engine| !engine.is_over()) {
            Some(engine) => engine,
            None => EngineHandle::start(self.command.clone(), self.limits)
                .map_err(|error| usage(format!("{error:#}")))?,
        };
        let interrupted = Arc::clone(&self.interrupted);
        let unless = Some((&*interrupted, self.interruption));
        let outcome = engine.drive(work.command(device), unless, |heard| {
            if let EngineMessage::Line(line, text) = heard {
                if let Some(recorder) = &mut self.recorder {
                    recorder.add(line, text)?;
                }
                hear(line, text)?;
                found.note(line);
            }
            self.tell(heard);
            Ok(())
        });
        self.hello = engine.hello().cloned().or(self.hello.take());
        self.engine = Some(engine);
        found.interrupted = self.interrupted();
        match outcome? {
            CommandEnd::Answered | CommandEnd::Over(EngineEnd::Killed) => {}
            CommandEnd::Over(end @ EngineEnd::NotStopped) => (self.notify)(&end.to_string()),
            CommandEnd::Failed(failed) => {
                self.save()?;
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
        self.save()?;
        Ok(found)
    }

    fn save(&mut self) -> Result<()> {
        if let Some(recorder) = self.recorder.take() {
            (self.notify)(&recorder.finish()?.to_string());
        }
        Ok(())
    }

    /// Tells what is worth a sentence.
    fn tell(&mut self, heard: &EngineMessage) {
        match heard {
            // Drivers repeat themselves, once for each adapter they look at. `doctor` lists the lines that are known to mean
            // nothing, with the reason.
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
