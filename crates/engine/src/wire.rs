//! The two ends of the stream. One thread writes, so that a slow reader cannot stall a timed step; another sends heartbeats; a third reads
//! commands and ends the process when the input ends. Whatever a driver prints goes to stderr.

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
use tiny_llama::ops::compile_progress;

/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Figures that wait for a slow reader: of an endless run, later ones are left out.
const MAX_WAITING: usize = 64;

/// Bytes in the pipe to a slow reader: what is written there comes before the answer to its next command.
#[cfg(target_os = "linux")]
const PIPE: usize = 4096;

/// Where events go; cheap to clone for other threads.
#[derive(Clone)]
pub(crate) struct EventSender {
    sender: Sender<Option<Event>>,
    /// Events that were not written yet.
    waiting: Arc<AtomicUsize>,
    /// How many of these are about a run that is over, whose figures are no longer needed.
    outdated: Arc<AtomicUsize>,
    /// Whether the run is endless, so that no figure of it is the last.
    endless: Arc<AtomicBool>,
}

impl EventSender {
    /// Queues an event; a reader that is gone is not an error here, the input's end will say so.
    pub(crate) fn send(&self, event: Event) {
        let late = self.waiting.load(Ordering::Relaxed) >= MAX_WAITING;
        if late && self.endless.load(Ordering::Relaxed) && is_figure(&event) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.sender.send(Some(event));
    }

    /// Queues a line of the log.
    pub(crate) fn log(&self, level: &str, text: String) {
        let level = level.to_owned();
        self.send(Event::Log(LogMessage { level, text }));
    }

    /// Tells whether the run that begins is endless. Figures of an endless one before it that still wait are left out.
    pub(crate) fn expect(&self, endless: bool) {
        if self.endless.swap(endless, Ordering::Relaxed) {
            let waiting = self.waiting.load(Ordering::Relaxed);
            self.outdated.store(waiting, Ordering::Relaxed);
        }
    }

    /// Whether an event that has waited is still to be written.
    fn wants(&self, event: &Event) -> bool {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let one_less = |n: usize| n.checked_sub(1);
        let outdated = self
            .outdated
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        outdated.is_err() || !is_figure(event)
    }

    /// Writes what is queued and ends.
    pub(crate) fn close(self, writer: JoinHandle<()>) {
        let _ = self.sender.send(None);
        let _ = writer.join();
    }
}

/// Takes over stdin and stdout: where events go, commands as they come, and the thread that writes.
pub(crate) fn open() -> Result<(EventSender, Receiver<Command>, JoinHandle<()>)> {
    let output = own_stdout().context("Failed to set the real standard output aside")?;
    let began = Instant::now();
    let (sender, events) = channel::<Option<Event>>();
    let outlet = EventSender {
        sender,
        waiting: Arc::default(),
        outdated: Arc::default(),
        endless: Arc::default(),
    };
    let counted = outlet.clone();
    let writer = Builder::new()
        .name("writer".into())
        .spawn(move || write(output, &events, &counted, began))?;

    let heart = outlet.clone();
    Builder::new().name("heartbeat".into()).spawn(move || {
        let mut meter = LoadMeter::start();
        for beat in 1_u64.. {
            std::thread::sleep(HEARTBEAT);
            let device_s = compile_progress::DEVICE.since().map(|it| it.as_secs_f64());
            heart.send(Event::Heartbeat { device_s });
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

/// What a line that is no command still tells: its number.
#[derive(Deserialize)]
struct RequestNumber {
    request: u64,
}

/// What the next one of its kind replaces. An answer that is waited for has no next one.
fn is_figure(event: &Event) -> bool {
    let replaced = matches!(
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
    replaced && event.request() == 0
}

fn write(
    mut output: impl Write,
    events: &Receiver<Option<Event>>,
    counted: &EventSender,
    began: Instant,
) {
    while let Ok(Some(event)) = events.recv() {
        if !counted.wants(&event) {
            continue;
        }
        let line = StreamLine {
            t: (began.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            event,
        };
        let Ok(text) = serde_json::to_string(&line) else {
            continue;
        };
        let line = format!("{text}\n");
        if output.write_all(line.as_bytes()).is_err() || output.flush().is_err() {
            return;
        }
    }
}

/// The real stdout, after pointing file descriptor 1 at stderr: drivers and libraries print where they like.
#[cfg(unix)]
fn own_stdout() -> Result<std::fs::File> {
    let real = rustix::io::dup(std::io::stdout())?;
    // Refused where it is no pipe.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&real, PIPE);
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(real.into())
}

#[cfg(not(unix))]
fn own_stdout() -> Result<std::io::Stdout> {
    Ok(std::io::stdout())
}

struct Logs(EventSender);

impl log::Log for Logs {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::Level::Warn || metadata.target() == texts::TARGET
    }

    fn log(&self, record: &log::Record) {
        if record.target() == texts::TARGET {
            let text = texts::read(&record.args().to_string());
            return text.map_or((), |text| self.0.send(Event::CompiledKernel(text)));
        }
        // naga and wgpu describe what they support at length; only what went wrong is of interest.
        if self.enabled(record.metadata()) {
            let text = format!("{}: {}", record.target(), record.args());
            let level = record.level().as_str().to_lowercase();
            self.0.log(&level, text.chars().take(2000).collect());
        }
    }

    fn flush(&self) {}
}

/// Warnings of libraries and the text of any panic become events.
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
impl EventSender {
    /// A sender without a writer, and what it sends.
    pub(crate) fn to_a_test() -> (Self, Receiver<Option<Event>>) {
        let (sender, events) = channel();
        let outlet = Self {
            sender,
            waiting: Arc::default(),
            outdated: Arc::default(),
            endless: Arc::default(),
        };
        (outlet, events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_slow_gets_fewer_figures_of_an_endless_run_and_all_the_rest() {
        let (outlet, events) = EventSender::to_a_test();
        let sent = |endless: bool| {
            outlet.expect(endless);
            outlet.waiting.store(0, Ordering::Relaxed);
            for _ in 0..1000 {
                outlet.send(Event::Heartbeat { device_s: None });
            }
            outlet.send(Event::Failed(Failed::default()));
            events.try_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(sent(false).len(), 1001);
        let few = sent(true);
        assert_eq!(few.len(), MAX_WAITING + 1);
        assert!(matches!(few.last(), Some(Event::Failed(_))));
        // Another run begins before they were written.
        outlet.expect(true);
        let wanted = |event: &&Event| outlet.wants(event);
        let (old, new) = (
            few.iter().filter(wanted).count(),
            Event::Heartbeat { device_s: None },
        );
        assert!(old == 1 && outlet.wants(&new), "{old}");
    }
}
