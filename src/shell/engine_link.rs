//! The live source of the screen: an engine that trains, and at the beginning a second engine, which warms up a GPU until the learner moves
//! the run there. The source also writes the recording of the session.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread::Builder;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::app::source::{EventSource, FromEngine};
use crate::measure::background_job::BackgroundJob;
use crate::record::{FinishedRecording, RecordingWriter};
use protocol::handle::{EngineCommand, EngineHandle, EngineLimits, EngineMessage, Interruption};
use protocol::story::StreamStory;
use protocol::{Command, Device, Event, Failed, FailedKind, RunSpec, StreamLine};

/// The number of steps that compile a run's kernels and fill the caches.
const WARM_UP: u64 = 3;

/// A running engine, and a second one that warms up another device.
pub struct LiveEngine {
    command: EngineCommand,
    main: EngineHandle,
    /// The device on which the main engine was last asked to compute.
    device: Option<String>,
    /// The device that is warmed up, and how far its engine is.
    warm: Option<(String, WarmUp)>,
    /// The run that was started last.
    last_run: Option<RunSpec>,
    /// Reports of this source itself, which wait for the screen.
    own: VecDeque<FromEngine>,
    recorder: Option<RecordingWriter>,
    /// The runs of this session, for a report.
    story: Rc<RefCell<StreamStory>>,
}

/// The state of a second engine that opens a device beside the run in progress.
enum WarmUp {
    Begun(BackgroundJob<WarmUpNews>),
    Ready(Box<EngineHandle>),
}

/// A message of the thread that warms a device up.
enum WarmUpNews {
    Report(Box<FromEngine>),
    /// The engine and its device. The device is open and has computed.
    Ready(Box<EngineHandle>, Device),
    Failed(String),
}

impl LiveEngine {
    pub fn new(
        command: EngineCommand,
        recorder: Option<RecordingWriter>,
        story: Rc<RefCell<StreamStory>>,
    ) -> Result<Self> {
        let main = EngineHandle::start(command.clone(), EngineLimits::default())?;
        Ok(Self {
            command,
            main,
            device: None,
            warm: None,
            last_run: None,
            own: VecDeque::new(),
            recorder,
            story,
        })
    }

    /// Ends the recording. Returns its place, or `None` if nothing was recorded.
    pub fn close(self) -> Result<Option<FinishedRecording>> {
        self.recorder.map(RecordingWriter::finish).transpose()
    }

    /// Starts a second engine that warms up a device.
    fn warm_up(&mut self, select: String) {
        let command = self.command.clone();
        let device = select.clone();
        let run = self.last_run.clone();
        let work = move |stop: Arc<AtomicBool>, outbox: Sender<WarmUpNews>| {
            let report = |line| drop(outbox.send(WarmUpNews::Report(Box::new(line))));
            let news = match warmed_up(command, &device, run, &stop, &report) {
                Ok((engine, device)) => WarmUpNews::Ready(Box::new(engine), device),
                Err(error) => WarmUpNews::Failed(format!("{error:#}")),
            };
            let _ = outbox.send(news);
        };
        let broke_off = WarmUpNews::Failed("it broke off; the log may say why".to_owned());
        match BackgroundJob::begin(Builder::new().name("warm-up".to_owned()), work, broke_off) {
            Ok(job) => self.warm = Some((select, WarmUp::Begun(job))),
            Err(error) => self.own.push_back(failed(error.to_string())),
        }
    }

    /// Sends a command to the engine that has this device open. The second engine takes over if the device is the one that it warmed up.
    fn send_to(&mut self, device: &str, command: Command) {
        if let Some((_, WarmUp::Ready(engine))) = self.warm.take_if(|(select, _)| select == device)
            && !engine.is_over()
        {
            end_in_background(std::mem::replace(&mut self.main, *engine));
        }
        self.device = Some(device.to_owned());
        self.main.send(command);
    }

    /// Returns the next report of the second engine.
    fn next_warm_up_report(&mut self) -> Option<FromEngine> {
        let (_, warm) = self.warm.as_mut()?;
        let job = match warm {
            WarmUp::Begun(job) => job,
            WarmUp::Ready(engine) => {
                // The second engine only waits. If it ends, the main engine opens the device when work is sent there.
                while engine.next(Duration::ZERO).is_some() {}
                return None;
            }
        };
        Some(match job.next_message()? {
            WarmUpNews::Report(report) => *report,
            WarmUpNews::Ready(engine, device) => {
                *warm = WarmUp::Ready(engine);
                let event = Event::DeviceReady { device };
                FromEngine::Line(StreamLine { t: 0.0, event })
            }
            WarmUpNews::Failed(why) => {
                self.warm = None;
                failed(why)
            }
        })
    }

    /// Adds a line to the story and to the recording. A failed recording is reported once and ends.
    fn record(&mut self, line: &StreamLine, text: &str) {
        let is_sealed = self.last_run.as_ref().map(|run| run.sealed);
        let at_ms = (line.t * 1e3) as u64;
        let mut story = self.story.borrow_mut();
        // Like the screen, a report must not name the fault of a mystery.
        if line.event.begins_sealed().or(is_sealed) == Some(true) {
            story.on_event(&line.event.clone().covered(), at_ms);
        } else {
            story.on_event(&line.event, at_ms);
        }
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.add(line, text)
        {
            self.own
                .push_back(FromEngine::Stray(format!("recording ends here: {error:#}")));
            self.recorder = None;
        }
    }
}

/// Starts an engine, opens a device in it and makes a few steps of a run there. Returns the engine and the device. `report` passes lines to
/// the screen meanwhile.
fn warmed_up(
    command: EngineCommand,
    select: &str,
    run: Option<RunSpec>,
    stop: &AtomicBool,
    report: &dyn Fn(FromEngine),
) -> Result<(EngineHandle, Device)> {
    let limits = EngineLimits {
        patience: Duration::ZERO,
        ..EngineLimits::default()
    };
    let mut engine = EngineHandle::start(command, limits)?;
    let device = select.to_owned();
    let start = run.map(|run| Command::Start {
        device: device.clone(),
        run: RunSpec {
            variant: "warm-up".to_owned(),
            steps: Some(WARM_UP),
            ..run
        },
        request: 0,
    });
    let mut opened = None;
    for command in std::iter::once(Command::Open { device }).chain(start) {
        let on_message = |message: &EngineMessage| {
            match message {
                EngineMessage::Line(line, _) => match &line.event {
                    Event::DeviceReady { device } => opened = Some(device.clone()),
                    Event::Compiling { .. } => report(FromEngine::Line((**line).clone())),
                    _ => {}
                },
                EngineMessage::Stray(text) => report(FromEngine::Stray(text.clone())),
                _ => {}
            }
            Ok(())
        };
        let unless = Some((stop, Interruption::Kill));
        engine.drive(command, unless, on_message)?.answered()?;
    }
    Ok((engine, opened.context("the engine opened no device")?))
}

impl EventSource for LiveEngine {
    fn send(&mut self, command: Command) {
        match &command {
            Command::Open { device }
                if self.device.as_deref().is_some_and(|busy| busy != device) =>
            {
                self.warm_up(device.clone());
            }
            Command::Start { device, run, .. } | Command::Pair { device, b: run, .. } => {
                self.last_run = Some(run.clone());
                let device = device.clone();
                self.send_to(&device, command);
            }
            _ => self.main.send(command),
        }
    }

    fn try_recv(&mut self) -> Option<FromEngine> {
        if let Some(report) = self.own.pop_front().or_else(|| self.next_warm_up_report()) {
            return Some(report);
        }
        loop {
            return Some(match self.main.next(Duration::ZERO)? {
                EngineMessage::Line(line, text) => {
                    self.record(&line, &text);
                    FromEngine::Line(*line)
                }
                EngineMessage::Stray(text) => FromEngine::Stray(text),
                EngineMessage::Malformed { line, why } => FromEngine::Malformed { line, why },
                EngineMessage::Silent(_) => FromEngine::Silent,
                EngineMessage::Slow { .. } => continue,
                EngineMessage::Over(end) => FromEngine::Gone {
                    reason: end.to_string(),
                },
            });
        }
    }

    fn restart(&mut self) {
        if let Err(error) = self.main.renew() {
            self.own.push_back(FromEngine::Gone {
                reason: format!("{error:#}"),
            });
        }
    }

    fn kill(&mut self) {
        self.main.kill();
    }
}

/// Makes the report that a device could not be opened.
fn failed(reason: String) -> FromEngine {
    let event = Event::Failed(Failed {
        kind: FailedKind::Device,
        reason,
        request: 0,
    });
    FromEngine::Line(StreamLine { t: 0.0, event })
}

/// Ends an engine in a thread, so that the screen does not wait. If no thread can be started, the engine ends before this returns.
fn end_in_background(engine: EngineHandle) {
    let _ = Builder::new()
        .name("engine-end".to_owned())
        .spawn(move || drop(engine));
}

#[cfg(all(test, unix))]
mod tests;
