//! A conversation with an engine without a screen: one command, its lines to the caller, its end as an exit code.
//! It records when asked to and turns ctrl-c into `stop`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::drivers::harmless;
use crate::engine::client::{Client, EngineCommand, Heard, Limits, Over};
use crate::out::{Exit, Stop, notice, usage};
use crate::protocol::{Command, Event, Line};
use crate::record::Recorder;

/// After this silence beyond the first notice the engine is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a stopped run may take to send its summary.
const STOPPING: Duration = Duration::from_secs(10);

/// How long an engine may take to end when it is no longer needed; it may still be writing its caches.
const PARTING: Duration = Duration::from_secs(5);

/// What the caller thinks of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Go,
    Done,
}

/// How a conversation ended, where it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Done,
    Interrupted,
}

/// An engine and what surrounds it.
pub struct Drive {
    client: Client,
    recorder: Option<Recorder>,
    interrupted: Arc<AtomicBool>,
    /// An interruption ends the engine instead of asking it to stop.
    at_once: bool,
    say: Say,
}

/// Who hears what is worth a sentence.
pub type Say = Box<dyn FnMut(&str) + Send>;

/// The engine command that `--engine` names, or this program's own.
pub fn engine_command(named: Option<&str>) -> Result<EngineCommand> {
    match named {
        None => EngineCommand::own(),
        Some(line) => EngineCommand::parse(line).map_err(|why| usage(format!("--engine: {why}"))),
    }
}

fn spawn(command: EngineCommand) -> Result<Client> {
    let limits = Limits {
        farewell: Duration::from_secs(2),
        ..Limits::default()
    };
    Client::spawn_within(command, limits).map_err(|error| usage(format!("{error:#}")))
}

impl Drive {
    /// Starts the engine. Ctrl-c asks it to stop; notices go to stderr.
    pub fn new(command: EngineCommand, record: Option<&Path>) -> Result<Self> {
        let recorder = record
            .map(Recorder::create)
            .transpose()
            .map_err(|error| usage(format!("--record: {error:#}")))?;
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second one ends the process as usual; the engine follows when its input closes.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
                .context("Failed to watch for ctrl-c")?;
        }
        Ok(Self {
            client: spawn(command)?,
            recorder,
            interrupted,
            at_once: false,
            say: Box::new(notice),
        })
    }

    /// Starts the engine behind a screen: `given_up` ends it at once, and notices go to `say`.
    pub fn behind(command: EngineCommand, given_up: Arc<AtomicBool>, say: Say) -> Result<Self> {
        Ok(Self {
            client: spawn(command)?,
            recorder: None,
            interrupted: given_up,
            at_once: true,
            say,
        })
    }

    /// Sends `command` and hands every line to `hear` until it says that it is done.
    pub fn converse(
        &mut self,
        command: Command,
        mut hear: impl FnMut(&Line, &str) -> Result<Flow>,
    ) -> Result<Ending> {
        if self.client.is_over() {
            self.client.renew()?;
        }
        self.client.send(command);
        let mut silent_since: Option<Instant> = None;
        let mut stopping: Option<Instant> = None;
        let mut last_stray = None;
        loop {
            if self.at_once && self.interrupted() {
                self.client.kill();
                return Ok(Ending::Interrupted);
            }
            if stopping.is_none() && self.interrupted() {
                stopping = Some(Instant::now());
                self.client.send(Command::Stop);
            }
            if stopping.is_some_and(|since| since.elapsed() > STOPPING) {
                (self.say)("the engine did not stop in time; it was ended");
                return Ok(Ending::Interrupted);
            }
            if silent_since.is_some_and(|since| since.elapsed() > PATIENCE) {
                return Err(Stop {
                    exit: Exit::Failed,
                    text: "the engine stays silent; it was ended".to_owned(),
                }
                .into());
            }
            match self.client.next(Duration::from_millis(50)) {
                None | Some(Heard::Awake) => {}
                Some(Heard::Line(line, text)) => {
                    silent_since = None;
                    self.record(&line, &text)?;
                    let flow = hear(&line, &text)?;
                    if let Event::Failed(failed) = &line.event {
                        self.save()?;
                        return Err(Stop::from(failed).into());
                    }
                    if flow == Flow::Done {
                        self.save()?;
                        return Ok(if stopping.is_some() {
                            Ending::Interrupted
                        } else {
                            Ending::Done
                        });
                    }
                }
                Some(Heard::Stray(text)) => {
                    // Drivers repeat themselves, once for each adapter they look at.
                    // What is known to mean nothing stands in `doctor`, with its reason.
                    if last_stray.as_ref() != Some(&text) && harmless(&text).is_none() {
                        (self.say)(&format!("engine: {text}"));
                    }
                    last_stray = Some(text);
                }
                Some(Heard::Malformed { line, why }) => (self.say)(&format!(
                    "the engine wrote a line that is no event ({why}): {line}"
                )),
                Some(Heard::Silent(after)) => {
                    (self.say)(&format!(
                        "nothing from the engine for {:.0} s; waiting",
                        after.as_secs_f64()
                    ));
                    silent_since = Some(Instant::now());
                }
                Some(Heard::Over(over)) => {
                    let exit = if matches!(over, Over::Refused(_)) {
                        Exit::Usage
                    } else {
                        Exit::Failed
                    };
                    return Err(Stop {
                        exit,
                        text: over.reason().to_owned(),
                    }
                    .into());
                }
            }
        }
    }

    /// Whether someone asked to end.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Lets the engine end in its own time, so that the next conversation is with a fresh one.
    pub fn part(&mut self) {
        self.client.send(Command::Quit);
        let since = Instant::now();
        let hurried = |it: &Self| it.at_once && it.interrupted();
        while !self.client.is_over() && since.elapsed() < PARTING && !hurried(self) {
            self.client.next(Duration::from_millis(20));
        }
        self.client.kill();
    }

    fn record(&mut self, line: &Line, text: &str) -> Result<()> {
        match &mut self.recorder {
            Some(recorder) => recorder.add(line, text),
            None => Ok(()),
        }
    }

    fn save(&mut self) -> Result<()> {
        if let Some(recorder) = self.recorder.take() {
            let path = recorder.finish()?;
            notice(&format!("recorded in {}", path.display()));
        }
        Ok(())
    }
}
