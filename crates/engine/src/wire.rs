//! The engine's input and output. One thread writes events, so that a slow reader cannot stall a timed step. A second one sends heartbeats. A third
//! one reads commands, and ends the process at the end of the input. Whatever a driver prints goes to stderr.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::texts;
use protocol::machine::LoadMeter;
use protocol::{Command, Event, Failed, FailedKind, LogMessage, StreamLine, read};
use tiny_llama::ops::device_progress;

/// The time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// The number of events that may wait for a slow reader. If as many wait, further figures of an endless run are left out.
const MAX_WAITING: usize = 64;

/// The bytes that the pipe to the reader holds. The pipe is small, because a slow reader must read all of it before the answer to its next command.
#[cfg(target_os = "linux")]
const PIPE: usize = 4096;

/// Sends events to the thread that writes them. It is cheap to clone for other threads.
#[derive(Clone)]
pub(crate) struct EventSender {
    sender: Sender<Option<Event>>,
    /// Events that were not written yet.
    waiting: Arc<AtomicUsize>,
    /// The number of waiting events that belong to a run that is over, whose figures are no longer needed.
    outdated: Arc<AtomicUsize>,
    /// True if the run is endless: a later figure then replaces each one that is left out.
    endless: Arc<AtomicBool>,
}

impl EventSender {
    /// Returns a sender, and a receiver of its events. `None` ends the writer.
    pub(crate) fn new() -> (Self, Receiver<Option<Event>>) {
        let (sender, events) = channel();
        let outlet = Self {
            sender,
            waiting: Arc::default(),
            outdated: Arc::default(),
            endless: Arc::default(),
        };
        (outlet, events)
    }

    /// Queues an event. If the reader is gone the event is lost; the end of the input will end the process.
    pub(crate) fn send(&self, event: Event) {
        let reader_is_slow = self.waiting.load(Ordering::Relaxed) >= MAX_WAITING;
        if reader_is_slow && self.endless.load(Ordering::Relaxed) && is_figure(&event) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.sender.send(Some(event));
    }

    /// Queues a line of the log.
    pub(crate) fn log(&self, level: &str, text: String) {
        self.send(Event::Log(LogMessage {
            level: level.to_owned(),
            text,
        }));
    }

    /// Begins a run. If the run before it was endless, its figures that still wait are left out.
    pub(crate) fn begin_run(&self, endless: bool) {
        if self.endless.swap(endless, Ordering::Relaxed) {
            let waiting = self.waiting.load(Ordering::Relaxed);
            self.outdated.store(waiting, Ordering::Relaxed);
        }
    }

    /// Counts an event as taken off the queue, and returns true if it is still to be written.
    fn is_still_wanted(&self, event: &Event) -> bool {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let one_less = |count: usize| count.checked_sub(1);
        let outdated = self
            .outdated
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok();
        !outdated || !is_figure(event)
    }

    /// Waits until the writer has written all queued events and ended.
    pub(crate) fn close(self, writer: JoinHandle<()>) {
        let _ = self.sender.send(None);
        let _ = writer.join();
    }
}

/// Takes over stdin and stdout. Returns a sender for events, a receiver of commands, and the thread that writes.
///
/// # Errors
/// Fails when stdout could not be duplicated or a thread could not be started.
pub(crate) fn open() -> Result<(EventSender, Receiver<Command>, JoinHandle<()>)> {
    let output = own_stdout().context("Failed to set the real standard output aside")?;
    let began = Instant::now();
    let (outlet, events) = EventSender::new();
    let outlet_of_writer = outlet.clone();
    let writer = Builder::new()
        .name("writer".into())
        .spawn(move || write(output, &events, &outlet_of_writer, began))?;

    let heart = outlet.clone();
    Builder::new().name("heartbeat".into()).spawn(move || {
        let mut meter = LoadMeter::start();
        for beat in 1_u64.. {
            std::thread::sleep(HEARTBEAT);
            let since_progress = device_progress::DEVICE.since();
            heart.send(Event::Heartbeat {
                device_s: since_progress.map(|waited| waited.as_secs_f64()),
            });
            if beat.is_multiple_of(2)
                && let Some(load) = meter.window()
            {
                heart.send(Event::Load(load));
            }
        }
    })?;

    route_logs(outlet.clone());

    let (to_session, commands) = channel();
    let errors = outlet.clone();
    Builder::new().name("reader".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if line.trim().is_empty() {
                continue;
            }
            match read::<Command>(&line) {
                Ok(command) => {
                    if to_session.send(command).is_err() {
                        break;
                    }
                }
                Err(why) => errors.send(Event::Failed(Failed {
                    kind: FailedKind::Usage,
                    reason: format!("not a command: {why}"),
                    request: read::<RequestNumber>(&line).map_or(0, |line| line.request),
                })),
            }
        }
        // The reader is gone. The main thread may be inside a kernel that never returns, and there is nothing to save.
        std::process::exit(0);
    })?;
    Ok((outlet, commands, writer))
}

/// The number of a command, which may be readable in a line that is not a valid command.
#[derive(Deserialize)]
struct RequestNumber {
    request: u64,
}

/// Returns true if the next event of its kind replaces this one. An answer to a command is not replaced.
fn is_figure(event: &Event) -> bool {
    let is_repeated = matches!(
        event,
        Event::Heartbeat { .. }
            | Event::Step(_)
            | Event::Throughput(_)
            | Event::Kernels(_)
            | Event::Gradients(_)
            | Event::Evidence(_)
            | Event::Memory(_)
            | Event::Load(_)
    );
    is_repeated && event.request() == 0
}

/// Writes events as JSON lines until the queue is closed or the reader is gone.
fn write(
    mut output: impl Write,
    events: &Receiver<Option<Event>>,
    outlet: &EventSender,
    began: Instant,
) {
    while let Ok(Some(event)) = events.recv() {
        if !outlet.is_still_wanted(&event) {
            continue;
        }
        let line = StreamLine {
            t: (began.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            event,
        };
        let Ok(mut text) = serde_json::to_string(&line) else {
            continue;
        };
        text.push('\n');
        if output.write_all(text.as_bytes()).is_err() || output.flush().is_err() {
            return;
        }
    }
}

/// Returns the real stdout, and points file descriptor 1 at stderr, because drivers and libraries print to it.
#[cfg(unix)]
fn own_stdout() -> Result<std::fs::File> {
    let real = rustix::io::dup(std::io::stdout())?;
    // This fails if stdout is not a pipe.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&real, PIPE);
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(real.into())
}

#[cfg(not(unix))]
fn own_stdout() -> Result<std::io::Stdout> {
    Ok(std::io::stdout())
}

/// The logger that sends messages of libraries as events.
struct Logs(EventSender);

impl log::Log for Logs {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::Level::Warn || metadata.target() == texts::TARGET
    }

    fn log(&self, record: &log::Record) {
        if record.target() == texts::TARGET {
            if let Some(kernel) = texts::read(&record.args().to_string()) {
                self.0.send(Event::CompiledKernel(kernel));
            }
            return;
        }
        // naga and wgpu describe at length what they support; only warnings and errors are sent.
        if self.enabled(record.metadata()) {
            let text = format!("{}: {}", record.target(), record.args());
            let level = record.level().as_str().to_lowercase();
            self.0.log(&level, text.chars().take(2000).collect());
        }
    }

    fn flush(&self) {}
}

/// Turns the warnings of libraries and the text of any panic into events.
fn route_logs(outlet: EventSender) {
    let for_panics = outlet.clone();
    if log::set_logger(Box::leak(Box::new(Logs(outlet)))).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        for_panics.log("error", format!("panic in thread {name}: {info}"));
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_slow_gets_fewer_figures_of_an_endless_run_and_all_the_rest() {
        let (outlet, events) = EventSender::new();
        let written = |endless: bool| {
            outlet.begin_run(endless);
            outlet.waiting.store(0, Ordering::Relaxed);
            for _ in 0..1000 {
                outlet.send(Event::Heartbeat { device_s: None });
            }
            outlet.send(Event::Failed(Failed::default()));
            events.try_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(written(false).len(), 1001);
        let few = written(true);
        assert_eq!(few.len(), MAX_WAITING + 1);
        assert!(matches!(few.last(), Some(Event::Failed(_))));
    }

    #[test]
    fn figures_of_an_endless_run_that_still_wait_are_left_out_once_another_run_begins() {
        let (outlet, _events) = EventSender::new();
        outlet.begin_run(true);
        for _ in 0..10 {
            outlet.send(Event::Heartbeat { device_s: None });
        }
        outlet.begin_run(true);
        let heartbeat = Event::Heartbeat { device_s: None };
        for _ in 0..10 {
            assert!(!outlet.is_still_wanted(&heartbeat));
        }
        outlet.send(Event::Heartbeat { device_s: None });
        assert!(outlet.is_still_wanted(&heartbeat));
    }

    #[test]
    fn an_answer_of_an_endless_run_is_written_after_another_run_began() {
        let (outlet, _events) = EventSender::new();
        outlet.begin_run(true);
        outlet.send(Event::Failed(Failed::default()));
        outlet.begin_run(true);
        assert!(outlet.is_still_wanted(&Event::Failed(Failed::default())));
    }
}
