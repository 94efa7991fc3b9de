//! The parent's handle on an engine: starts the child, does the handshake, turns its lines into messages, notices when it falls silent or
//! ends, replaces and reaps it. It knows the protocol and no screen; it never opens a device.
//!
//! [`EngineHandle::next`] waits no longer than it is told to, so that a screen can ask at every frame. [`EngineHandle::drive`] waits until a
//! command has its answer, and watches the engine until then: one that falls silent, whose device makes no progress, that comes no further or
//! does not stop is ended, and [`EngineEnd`] says which of these it was. Whoever only sends a command watches for themselves.

mod command;
mod drive;
pub mod driver_noise;
mod event;
mod lack;
mod pipes;
mod watch;

use std::process::Child;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::handle::driver_noise::harmless;
use crate::{Command, Event, FailedKind, Hello, PROTOCOL, StreamLine, read};

pub use command::{EngineCommand, split_words};
pub use drive::{CommandEnd, Interruption};
pub use event::{EngineEnd, EngineMessage};
pub use lack::lack;
pub use pipes::MAX_LINE;

use event::{describe, newer, nothing_spoken, told_why};
use pipes::{FromPipe, Pipes, printable};
use watch::ProgressWatch;

/// After this many lines in a row that are not of the protocol, the engine is stopped.
const MAX_NONSENSE: u32 = 100;

/// Output older than this is not taken as the reason of an engine's end.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The time to wait for the rest of stderr after an engine exited. A process that it started may hold stderr open.
const STDERR_WAIT: Duration = Duration::from_millis(200);

/// The time limits of an engine. Tests shorten them. The limits of a command apply only while it is driven.
#[derive(Clone, Copy, Debug)]
pub struct EngineLimits {
    /// Until the engine's `hello`.
    pub hello: Duration,
    /// Between two bytes of its lines, heartbeats included. Then [`EngineMessage::Silent`] says so.
    pub silence: Duration,
    /// To end by itself after `quit`, or after closing its output.
    pub shutdown: Duration,
    /// How much longer a command's engine on this machine may stay silent: a busy machine is waited for. One behind a connection is
    /// waited for as long again as until the notice, if that is less.
    pub patience: Duration,
    /// The time for which the device may make no progress on a command while the engine is alive.
    pub device: Duration,
    /// The time for which a command may make no progress at all. [`EngineMessage::Slow`] comes before it is over.
    pub task: Duration,
    /// The time that a run may take to send its summary after it was asked to stop.
    pub stop: Duration,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(10),
            silence: Duration::from_secs(5),
            shutdown: Duration::from_millis(400),
            patience: Duration::from_secs(30),
            device: Duration::from_secs(120),
            task: Duration::from_secs(600),
            stop: Duration::from_secs(10),
        }
    }
}

#[derive(Debug)]
enum HandleState {
    Greeting {
        since: Instant,
    },
    /// Since when it was said that nothing comes, if nothing does.
    Talking {
        silent: Option<Instant>,
    },
    /// Its output is closed; its exit status is still to come.
    Closing {
        since: Instant,
        drained: bool,
    },
    Over,
}

/// A running engine, or one that ended.
#[derive(Debug)]
pub struct EngineHandle {
    command: EngineCommand,
    limits: EngineLimits,
    child: Child,
    pipes: Pipes,
    phase: HandleState,
    /// Commands given before the handshake was done.
    waiting: Vec<Command>,
    hello: Option<Hello>,
    /// The time at which the last line came, or at which waiting for one began.
    last_line: Instant,
    last_look: Instant,
    /// The time at which the work on the engine's device last made progress, or at which the driven command was sent.
    progress: Instant,
    nonsense: u32,
    first_nonsense: Option<String>,
    /// The last line on stderr, and its time.
    last_stray: Option<(Instant, String)>,
    /// Something that the system lacks, according to the log.
    lack: Option<&'static str>,
    /// True if recordings leave out the configuration of the current run.
    sealed: bool,
    /// Lines that came from this process.
    lines: u64,
    ready: Option<EngineMessage>,
    /// The command that has no answer yet, where one is driven.
    watch: Option<ProgressWatch>,
}

impl EngineHandle {
    /// Starts the engine and begins the handshake. Commands may be sent at once; they wait until it is done.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(command: EngineCommand, limits: EngineLimits) -> Result<Self> {
        let now = Instant::now();
        let (child, pipes) = pipes::launch(&command)?;
        Ok(Self {
            command,
            limits,
            child,
            pipes,
            phase: HandleState::Greeting { since: now },
            waiting: Vec::new(),
            hello: None,
            last_line: now,
            last_look: now,
            progress: now,
            nonsense: 0,
            first_nonsense: None,
            last_stray: None,
            lack: None,
            sealed: false,
            lines: 0,
            ready: None,
            watch: None,
        })
    }

    /// Returns the engine's greeting; `None` before it came.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Returns the time since the work on its device made progress, as far as the engine reported it. Heartbeats do not count.
    pub fn idle(&self) -> Duration {
        self.progress.elapsed()
    }

    /// Returns true if nothing more can come without a `renew`.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, HandleState::Over)
    }

    /// Returns the process id of the child, or of the wrapper that runs it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command; before the handshake it is kept and sent after it. An engine that is gone gets nothing.
    pub fn send(&mut self, command: Command) {
        if let HandleState::Greeting { .. } = self.phase {
            self.waiting.push(command);
        } else if let Some(outbox) = &self.pipes.outbox {
            // A full queue means that the engine stopped reading; its heartbeat decides whether it is stopped.
            let _ = outbox.try_send(command);
        }
    }

    /// Returns the next message, and waits for it at most `wait`; `None` if none came.
    pub fn next(&mut self, wait: Duration) -> Option<EngineMessage> {
        if let Some(heard) = self.ready.take() {
            return Some(heard);
        }
        let began = Instant::now();
        // While this program was suspended, the engine was not silent.
        if began.duration_since(self.last_look) > self.limits.silence / 2 {
            (self.last_line, self.progress) = (began, began);
            if let HandleState::Greeting { since } = &mut self.phase {
                *since = began;
            }
            if let Some(watch) = &mut self.watch {
                watch.further = began;
            }
        }
        if let Some(heard) = self.check_watch() {
            return Some(heard);
        }
        loop {
            if self.is_over() {
                return None;
            }
            let left = wait.saturating_sub(began.elapsed());
            let piece = self.receive(left.min(self.until_deadline()));
            self.last_look = Instant::now();
            // However much it prints meanwhile.
            if let HandleState::Greeting { since } = self.phase
                && since.elapsed() >= self.limits.hello
                && piece.is_some()
            {
                return self.check_deadlines();
            }
            let heard = match piece {
                Some(FromPipe::Text(text)) => self.hear(text),
                Some(FromPipe::TooLong) => {
                    self.lines += 1;
                    let limit = MAX_LINE / (1024 * 1024);
                    self.nonsense("…".to_owned(), format!("longer than {limit} MiB"))
                }
                Some(FromPipe::Stray(text)) if event::is_trace(&text) => None,
                Some(FromPipe::Stray(text)) => {
                    if harmless(&text).is_none() {
                        self.last_stray = Some((Instant::now(), text.clone()));
                    }
                    Some(EngineMessage::Stray(text))
                }
                Some(FromPipe::Closed) => {
                    self.phase = HandleState::Closing {
                        since: Instant::now(),
                        drained: false,
                    };
                    None
                }
                None => self.check_deadlines(),
            };
            if heard.is_some() {
                return heard;
            }
            if began.elapsed() >= wait {
                return None;
            }
        }
    }

    /// Ends the engine at once and reaps it. `next` says `EngineEnd` after it.
    pub fn kill(&mut self) {
        if !self.is_over() {
            self.end(Duration::ZERO);
            self.ready = Some(EngineMessage::Over(EngineEnd::Killed));
        }
    }

    /// Replaces the engine by a new one of the same command. Unread output of the old one is dropped.
    pub fn renew(&mut self) -> Result<()> {
        self.end(Duration::ZERO);
        *self = Self::start(self.command.clone(), self.limits)?;
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Option<FromPipe> {
        let closing = matches!(self.phase, HandleState::Closing { .. });
        // After its output was closed only stderr can bring more; its exit status cannot be waited for.
        let tick = Duration::from_millis(5);
        let wait_now = if closing { wait.min(tick) } else { wait };
        let found = self.pipes.inbox.recv_timeout(wait_now);
        match (found, &mut self.phase) {
            (Ok(piece), _) => Some(piece),
            (Err(RecvTimeoutError::Timeout), _) => None,
            (Err(RecvTimeoutError::Disconnected), HandleState::Closing { drained, .. }) => {
                if *drained {
                    std::thread::sleep(wait.min(tick));
                }
                *drained = true;
                None
            }
            (Err(RecvTimeoutError::Disconnected), _) => Some(FromPipe::Closed),
        }
    }

    /// Returns the time for which nothing has come from the engine.
    fn silent(&self) -> Duration {
        let byte = self.pipes.last_byte().unwrap_or(self.last_line);
        byte.max(self.last_line).elapsed()
    }

    /// Returns the time left until the engine counts as silent or late.
    fn until_deadline(&self) -> Duration {
        match self.phase {
            HandleState::Greeting { since } => self.limits.hello.saturating_sub(since.elapsed()),
            HandleState::Talking { silent: None } => {
                self.limits.silence.saturating_sub(self.silent())
            }
            _ => Duration::MAX,
        }
    }

    fn check_deadlines(&mut self) -> Option<EngineMessage> {
        match self.phase {
            HandleState::Greeting { since } if since.elapsed() >= self.limits.hello => {
                let seconds = self.limits.hello.as_secs_f64();
                let said = self.first_nonsense.as_deref().map_or_else(
                    || "it printed nothing".to_owned(),
                    |line| format!("its first line was `{line}`"),
                );
                let command = self.command.to_string();
                Some(self.refuse(format!(
                    "`{command}` did not greet within {seconds} s ({said}); an engine must run `perflings engine` and print nothing before it"
                )))
            }
            HandleState::Talking { silent: None } if self.silent() >= self.limits.silence => {
                let silent = Some(Instant::now());
                self.phase = HandleState::Talking { silent };
                Some(EngineMessage::Silent(self.silent()))
            }
            HandleState::Closing { since, drained } => match self.child.try_wait() {
                // Its last output may still be on its way.
                Ok(Some(_)) if !drained && since.elapsed() < STDERR_WAIT => None,
                Ok(Some(status)) => Some(self.ended(describe(status), told_why(status))),
                Ok(None) if since.elapsed() < self.limits.shutdown => None,
                _ => Some(self.ended("closed its output and was stopped".to_owned(), true)),
            },
            _ => None,
        }
    }

    fn hear(&mut self, text: String) -> Option<EngineMessage> {
        self.lines += 1;
        let mut line = match read::<StreamLine>(&text) {
            Ok(line) => line,
            Err(why) => return self.hear_unknown(&text, why),
        };
        self.sealed = line.event.begins_sealed().unwrap_or(self.sealed);
        let text = if self.sealed && line.event.names_configuration() {
            covered(&line)
        } else {
            text
        };
        self.nonsense = 0;
        self.last_line = Instant::now();
        if let Some(ago) = line.event.progress_s() {
            let ago = Duration::try_from_secs_f64(ago).unwrap_or_default();
            let at = self.last_line.checked_sub(ago);
            self.progress = self.progress.max(at.unwrap_or(self.progress));
        }
        // Where in which library it was missed helps nobody.
        if let Event::Log(log) = &mut line.event
            && let Some(lack) = lack(&log.text)
        {
            log.text = lack.to_owned();
            self.lack = Some(lack);
        }
        self.watch.take_if(|watch| watch.is_answered(&line.event));
        match (&mut self.phase, &line.event) {
            (HandleState::Greeting { .. }, Event::Hello(hello)) => {
                if hello.protocol == 0 {
                    return Some(self.refuse(nothing_spoken(&hello.version)));
                }
                if hello.protocol > PROTOCOL {
                    let text = newer(hello.protocol, &hello.version);
                    return Some(self.refuse(text));
                }
                self.hello = Some(hello.clone());
                self.phase = HandleState::Talking { silent: None };
                for command in std::mem::take(&mut self.waiting) {
                    self.send(command);
                }
            }
            (HandleState::Greeting { .. }, Event::Failed(failed))
                if failed.kind == FailedKind::Usage =>
            {
                let text = format!("the engine refused the handshake: {}", failed.reason);
                return Some(self.refuse(text));
            }
            (HandleState::Talking { silent }, _) => *silent = None,
            _ => {}
        }
        Some(EngineMessage::Line(Box::new(line), text))
    }

    /// A line that is no event of this protocol: perhaps the greeting of a newer one, whatever its shape.
    fn hear_unknown(&mut self, text: &str, why: String) -> Option<EngineMessage> {
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
            && value["event"] == "hello"
            && let Some(protocol) = value["protocol"]
                .as_u64()
                .filter(|p| *p > u64::from(PROTOCOL))
        {
            let version = value["version"].as_str().unwrap_or("unknown").to_owned();
            let text = newer(u32::try_from(protocol).unwrap_or(u32::MAX), &version);
            return Some(self.refuse(text));
        }
        self.nonsense(printable(text, 200), why)
    }

    fn nonsense(&mut self, line: String, why: String) -> Option<EngineMessage> {
        self.nonsense += 1;
        let why = format!("line {}: {why}", self.lines);
        self.first_nonsense.get_or_insert_with(|| line.clone());
        if self.nonsense < MAX_NONSENSE {
            return Some(EngineMessage::Malformed { line, why });
        }
        let command = self.command.to_string();
        let first = self.first_nonsense.clone().unwrap_or(line);
        Some(self.refuse(format!("`{command}` does not speak the engine's protocol; its first unreadable line was `{first}`")))
    }

    fn refuse(&mut self, text: String) -> EngineMessage {
        self.end(Duration::ZERO);
        EngineMessage::Over(EngineEnd::Refused(text))
    }

    /// `told`: what it said last may be why.
    fn ended(&mut self, how: String, told: bool) -> EngineMessage {
        let greeted = self.hello.is_some();
        let mut text = match greeted {
            true => format!("the engine {how}"),
            false => format!("`{}` {how} before its greeting", self.command),
        };
        // Output of a driver from long before has nothing to do with its end.
        let stray = self.last_stray.as_ref();
        let stray = stray.filter(|(at, _)| !greeted || at.elapsed() < LAST_WORDS);
        let stray = stray.map(|(_, said)| said).filter(|_| told);
        if let Some(said) = stray.or(self.first_nonsense.as_ref()) {
            text.push_str(&format!("; its last output was `{said}`"));
        }
        let lack = lack(&text).or(self.lack.filter(|_| told));
        if let Some(lack) = lack.filter(|lack| !text.contains(lack)) {
            text.push_str(&format!(" ({lack})"));
        }
        self.end(Duration::ZERO);
        EngineMessage::Over(match greeted {
            true => EngineEnd::Ended(text),
            false => EngineEnd::Refused(text),
        })
    }

    /// Closes the engine's input, gives it so long to end, kills its whole process group, reaps it.
    fn end(&mut self, wait: Duration) {
        let was_over = self.is_over();
        (self.phase, self.watch) = (HandleState::Over, None);
        if was_over {
            return;
        }
        if let Some(outbox) = self.pipes.outbox.take() {
            let _ = outbox.try_send(Command::Quit);
        }
        let until = Instant::now() + wait;
        // Both readers end when both pipes close: waiting for that needs no polling.
        let left = || until.saturating_duration_since(Instant::now());
        while self.pipes.inbox.recv_timeout(left()).is_ok() {}
        command::kill_group(&mut self.child);
        // A process that is stuck in a driver cannot be reaped; the screen must not hang with it.
        let until = Instant::now() + Duration::from_secs(1);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The text of a sealed run's line as a recording and `--json` have it.
fn covered(line: &StreamLine) -> String {
    let (t, event) = (line.t, line.event.clone().covered());
    serde_json::to_string(&StreamLine { t, event }).unwrap_or_default()
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.end(self.limits.shutdown);
    }
}
