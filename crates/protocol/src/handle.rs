//! The parent's handle on an engine. It starts the child, does the handshake, turns its lines into messages, notices when the engine falls
//! silent or ends, and replaces and reaps it. It knows the protocol and no screen, and it never opens a device.
//!
//! [`EngineHandle::next`] waits at most for a given time, so that a screen can ask at every frame. [`EngineHandle::drive`] waits until a
//! command has its answer, and watches the engine until then. It ends an engine that falls silent, whose device makes no progress, that
//! makes no further step, or that does not stop; [`EngineEnd`] is the reason. After [`EngineHandle::send`] alone, the
//! caller has to watch the engine.

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

use event::{could_print_reason, describe_end, newer_protocol, protocol_zero};
use pipes::{FromPipe, Pipes, printable};
use watch::ProgressWatch;

/// The number of unreadable lines in a row after which the engine is ended.
const MAX_UNREADABLE: u32 = 100;

/// The age of output from which it is not taken as the reason of an engine's end.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The time to wait for the rest of stderr after an engine exited. A process that it started may hold stderr open.
const STDERR_WAIT: Duration = Duration::from_millis(200);

/// The time limits of an engine. Tests shorten them. The limits of a command apply only while it is driven.
#[derive(Clone, Copy, Debug)]
pub struct EngineLimits {
    /// The time until the engine's `hello`.
    pub hello: Duration,
    /// The longest time between two bytes of the engine's lines, heartbeats included. Then [`EngineMessage::Silent`] reports the silence.
    pub silence: Duration,
    /// The time in which the engine has to end by itself after `quit`, or after closing its output.
    pub shutdown: Duration,
    /// The further time that an engine on this machine may stay silent during a command after the silence was reported, because the machine
    /// may be busy. For an engine behind a connection it is `silence`, if that is less.
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

/// The state of the conversation with an engine.
#[derive(Debug)]
enum HandleState {
    /// The engine's `hello` has not come yet.
    Greeting { since: Instant },
    /// Lines come. `silent` is the time at which a silence was reported that still lasts.
    Talking { silent: Option<Instant> },
    /// The engine has closed its output and has not exited yet. `drained` is true when all of its stderr has been read.
    Closing { since: Instant, drained: bool },
    /// The engine is gone.
    Over,
}

/// A running engine, or one that ended.
#[derive(Debug)]
pub struct EngineHandle {
    command: EngineCommand,
    limits: EngineLimits,
    child: Child,
    pipes: Pipes,
    state: HandleState,
    /// The commands that wait until the handshake is done.
    waiting: Vec<Command>,
    hello: Option<Hello>,
    /// The time at which the last line came, or at which waiting for one began.
    last_line: Instant,
    /// The time at which the caller last asked for a message.
    last_asked: Instant,
    /// The time at which the work on the engine's device last made progress, or at which the driven command was sent.
    progress: Instant,
    /// The number of unreadable lines in a row.
    unreadable: u32,
    first_unreadable: Option<String>,
    /// The last line on stderr, and its time.
    last_stray: Option<(Instant, String)>,
    /// Something that the system lacks, according to the log.
    lack: Option<&'static str>,
    /// True if recordings leave out the configuration of the current run.
    sealed: bool,
    /// The number of lines that came from this process.
    lines: u64,
    /// A message that `next` returns before all others.
    ready: Option<EngineMessage>,
    /// The driven command that has no answer yet.
    watch: Option<ProgressWatch>,
}

impl EngineHandle {
    /// Starts the engine and begins the handshake. Commands may be sent at once; they wait until it is done.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn start(command: EngineCommand, limits: EngineLimits) -> Result<Self> {
        let now = Instant::now();
        let (child, pipes) = pipes::launch(&command)?;
        Ok(Self {
            command,
            limits,
            child,
            pipes,
            state: HandleState::Greeting { since: now },
            waiting: Vec::new(),
            hello: None,
            last_line: now,
            last_asked: now,
            progress: now,
            unreadable: 0,
            first_unreadable: None,
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

    /// Returns the time since the work on the engine's device made progress, as far as the engine reported it. Heartbeats do not count.
    pub fn idle(&self) -> Duration {
        self.progress.elapsed()
    }

    /// Returns true if nothing more can come without a `renew`.
    pub fn is_over(&self) -> bool {
        matches!(self.state, HandleState::Over)
    }

    /// Returns the process id of the child, or of the wrapper that runs it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command, or keeps it until the handshake is done. An engine that is gone gets nothing.
    pub fn send(&mut self, command: Command) {
        if let HandleState::Greeting { .. } = self.state {
            self.waiting.push(command);
        } else if let Some(outbox) = &self.pipes.outbox {
            // A full queue means that the engine stopped reading; it is stopped only if its heartbeat stops too.
            let _ = outbox.try_send(command);
        }
    }

    /// Returns the next message, and waits for it at most `wait`; `None` if none came.
    pub fn next(&mut self, wait: Duration) -> Option<EngineMessage> {
        if let Some(message) = self.ready.take() {
            return Some(message);
        }
        let began = Instant::now();
        // While this program was suspended, the engine was not silent.
        if began.duration_since(self.last_asked) > self.limits.silence / 2 {
            self.last_line = began;
            self.progress = began;
            if let HandleState::Greeting { since } = &mut self.state {
                *since = began;
            }
            if let Some(watch) = &mut self.watch {
                watch.last_progress = began;
            }
        }
        if let Some(message) = self.check_watch() {
            return Some(message);
        }
        loop {
            if self.is_over() {
                return None;
            }
            let remaining = wait.saturating_sub(began.elapsed());
            let piece = self.receive(remaining.min(self.until_deadline()));
            self.last_asked = Instant::now();
            // Other output does not put the deadline of the greeting off.
            if let HandleState::Greeting { since } = self.state
                && since.elapsed() >= self.limits.hello
                && piece.is_some()
            {
                return self.check_deadlines();
            }
            let message = match piece {
                Some(FromPipe::Text(text)) => self.on_line(text),
                Some(FromPipe::TooLong) => {
                    self.lines += 1;
                    let limit = MAX_LINE / (1024 * 1024);
                    self.on_unreadable("…".to_owned(), format!("longer than {limit} MiB"))
                }
                Some(FromPipe::Stray(text)) if event::is_trace(&text) => None,
                Some(FromPipe::Stray(text)) => {
                    if harmless(&text).is_none() {
                        self.last_stray = Some((Instant::now(), text.clone()));
                    }
                    Some(EngineMessage::Stray(text))
                }
                Some(FromPipe::Closed) => {
                    self.state = HandleState::Closing {
                        since: Instant::now(),
                        drained: false,
                    };
                    None
                }
                None => self.check_deadlines(),
            };
            if message.is_some() {
                return message;
            }
            if began.elapsed() >= wait {
                return None;
            }
        }
    }

    /// Ends the engine at once and reaps it. `next` then returns [`EngineEnd::Killed`].
    pub fn kill(&mut self) {
        if !self.is_over() {
            self.end(Duration::ZERO);
            self.ready = Some(EngineMessage::Over(EngineEnd::Killed));
        }
    }

    /// Replaces the engine by a new one that its command starts. Unread output of the old one is dropped.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn renew(&mut self) -> Result<()> {
        self.end(Duration::ZERO);
        *self = Self::start(self.command.clone(), self.limits)?;
        Ok(())
    }

    /// Returns what comes from the engine's pipes next; `None` if nothing comes within `wait`. After the engine closed its output, it waits
    /// only for a moment: no message announces the exit status, so the caller has to look for it again and again.
    fn receive(&mut self, wait: Duration) -> Option<FromPipe> {
        let tick = Duration::from_millis(5);
        let wait_now = match self.state {
            HandleState::Closing { .. } => wait.min(tick),
            _ => wait,
        };
        match self.pipes.inbox.recv_timeout(wait_now) {
            Ok(piece) => Some(piece),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let HandleState::Closing { drained, .. } = &mut self.state else {
                    return Some(FromPipe::Closed);
                };
                if *drained {
                    std::thread::sleep(wait.min(tick));
                }
                *drained = true;
                None
            }
        }
    }

    /// Returns the time for which nothing has come from the engine.
    fn silence(&self) -> Duration {
        let last_byte = self.pipes.last_byte().unwrap_or(self.last_line);
        last_byte.max(self.last_line).elapsed()
    }

    /// Returns the time left until the engine counts as silent or late.
    fn until_deadline(&self) -> Duration {
        match self.state {
            HandleState::Greeting { since } => self.limits.hello.saturating_sub(since.elapsed()),
            HandleState::Talking { silent: None } => {
                self.limits.silence.saturating_sub(self.silence())
            }
            _ => Duration::MAX,
        }
    }

    /// Returns a message if the engine is late with its greeting, has fallen silent, or has ended; `None` while all is well.
    fn check_deadlines(&mut self) -> Option<EngineMessage> {
        match self.state {
            HandleState::Greeting { since } if since.elapsed() >= self.limits.hello => {
                let seconds = self.limits.hello.as_secs_f64();
                let output = self.first_unreadable.as_deref().map_or_else(
                    || "it printed nothing".to_owned(),
                    |line| format!("its first line was `{line}`"),
                );
                let command = self.command.to_string();
                Some(self.refuse(format!(
                    "`{command}` did not greet within {seconds} s ({output}); \
                     an engine must run `perflings engine` and print nothing before it"
                )))
            }
            HandleState::Talking { silent: None } if self.silence() >= self.limits.silence => {
                let silent = Some(Instant::now());
                self.state = HandleState::Talking { silent };
                Some(EngineMessage::Silent(self.silence()))
            }
            HandleState::Closing { since, drained } => match self.child.try_wait() {
                // Its last output may still be on its way.
                Ok(Some(_)) if !drained && since.elapsed() < STDERR_WAIT => None,
                Ok(Some(status)) => {
                    let how = describe_end(status);
                    Some(self.ended(&how, could_print_reason(status)))
                }
                Ok(None) if since.elapsed() < self.limits.shutdown => None,
                _ => Some(self.ended("closed its output and was stopped", true)),
            },
            _ => None,
        }
    }

    /// Reads a line of the engine's stdout.
    fn on_line(&mut self, mut text: String) -> Option<EngineMessage> {
        self.lines += 1;
        let mut line = match read::<StreamLine>(&text) {
            Ok(line) => line,
            Err(why) => return self.on_other_protocol(&text, why),
        };
        self.sealed = line.event.begins_sealed().unwrap_or(self.sealed);
        if self.sealed && line.event.names_configuration() {
            text = line.covered_text();
        }
        self.unreadable = 0;
        self.last_line = Instant::now();
        if let Some(seconds) = line.event.progress_s() {
            let ago = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            if let Some(progress) = self.last_line.checked_sub(ago) {
                self.progress = self.progress.max(progress);
            }
        }
        // The log names the library's source line that missed something, which does not help a learner.
        if let Event::Log(log) = &mut line.event
            && let Some(lack) = lack(&log.text)
        {
            log.text = lack.to_owned();
            self.lack = Some(lack);
        }
        self.watch.take_if(|watch| watch.on_event(&line.event));
        match (&mut self.state, &line.event) {
            (HandleState::Greeting { .. }, Event::Hello(hello)) => {
                if hello.protocol == 0 {
                    return Some(self.refuse(protocol_zero(&hello.version)));
                }
                if hello.protocol > PROTOCOL {
                    return Some(self.refuse(newer_protocol(hello.protocol, &hello.version)));
                }
                self.hello = Some(hello.clone());
                self.state = HandleState::Talking { silent: None };
                for command in std::mem::take(&mut self.waiting) {
                    self.send(command);
                }
            }
            (HandleState::Greeting { .. }, Event::Failed(failed))
                if failed.kind == FailedKind::Usage =>
            {
                let reason = &failed.reason;
                return Some(self.refuse(format!("the engine refused the handshake: {reason}")));
            }
            (HandleState::Talking { silent }, _) => *silent = None,
            _ => {}
        }
        Some(EngineMessage::Line(Box::new(line), text))
    }

    /// Handles a line that is no event of this protocol. The greeting of a newer protocol may have any shape, but it names its number.
    fn on_other_protocol(&mut self, text: &str, why: String) -> Option<EngineMessage> {
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
            && value["event"] == "hello"
            && let Some(number) = value["protocol"].as_u64()
            && number > u64::from(PROTOCOL)
        {
            let version = value["version"].as_str().unwrap_or("unknown");
            let protocol = u32::try_from(number).unwrap_or(u32::MAX);
            return Some(self.refuse(newer_protocol(protocol, version)));
        }
        self.on_unreadable(printable(text, 200), why)
    }

    /// Counts an unreadable line. An engine that sends many of them in a row is refused.
    fn on_unreadable(&mut self, line: String, why: String) -> Option<EngineMessage> {
        self.unreadable += 1;
        let why = format!("line {}: {why}", self.lines);
        let first = self.first_unreadable.get_or_insert_with(|| line.clone());
        if self.unreadable < MAX_UNREADABLE {
            return Some(EngineMessage::Malformed { line, why });
        }
        let text = format!(
            "`{}` does not speak the engine's protocol; its first unreadable line was `{first}`",
            self.command
        );
        Some(self.refuse(text))
    }

    /// Ends the engine, and returns the message that it is refused.
    fn refuse(&mut self, text: String) -> EngineMessage {
        self.end(Duration::ZERO);
        EngineMessage::Over(EngineEnd::Refused(text))
    }

    /// Returns the message about an engine that ended. Its last output counts as the reason only if `could_print_reason` is true.
    fn ended(&mut self, how: &str, could_print_reason: bool) -> EngineMessage {
        let greeted = self.hello.is_some();
        let mut text = if greeted {
            format!("the engine {how}")
        } else {
            format!("`{}` {how} before its greeting", self.command)
        };
        let stray = match &self.last_stray {
            // Output of a driver from long before has nothing to do with the end.
            Some((time, line)) if !greeted || time.elapsed() < LAST_WORDS => Some(line),
            _ => None,
        };
        let last_output = if could_print_reason { stray } else { None };
        if let Some(line) = last_output.or(self.first_unreadable.as_ref()) {
            text.push_str(&format!("; its last output was `{line}`"));
        }
        let logged_lack = if could_print_reason { self.lack } else { None };
        if let Some(lack) = lack(&text).or(logged_lack)
            && !text.contains(lack)
        {
            text.push_str(&format!(" ({lack})"));
        }
        self.end(Duration::ZERO);
        EngineMessage::Over(if greeted {
            EngineEnd::Ended(text)
        } else {
            EngineEnd::Refused(text)
        })
    }

    /// Closes the engine's input, waits at most `wait` for its end, then kills its whole process group and reaps it.
    fn end(&mut self, wait: Duration) {
        let was_over = self.is_over();
        self.state = HandleState::Over;
        self.watch = None;
        if was_over {
            return;
        }
        if let Some(outbox) = self.pipes.outbox.take() {
            let _ = outbox.try_send(Command::Quit);
        }
        // The inbox disconnects when both pipes have closed, so waiting for the end needs no polling.
        let end_by = Instant::now() + wait;
        let remaining = || end_by.saturating_duration_since(Instant::now());
        while self.pipes.inbox.recv_timeout(remaining()).is_ok() {}
        command::kill_group(&mut self.child);
        // A process that is stuck in a driver cannot be reaped; the screen must not hang with it.
        let reap_by = Instant::now() + Duration::from_secs(1);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < reap_by {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.end(self.limits.shutdown);
    }
}
