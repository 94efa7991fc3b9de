//! The screen's source when it is live: one engine that trains, and at the beginning a second one that warms up a GPU until
//! the learner moves there. It also records.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::thread::Builder;
use std::time::Duration;

use crate::app::source::{EventSource, FromEngine};
use crate::record::{FinishedRecording, RecordingWriter};
use protocol::handle::{Client, ClientEvent, EngineCommand};
use protocol::story::StreamStory;
use protocol::{Command, Device, Event, Failed, FailedKind, RunSpec, StreamLine};

/// Steps that compile a run's kernels and fill the caches.
const WARM_UP: u64 = 3;
/// Messages of the second engine that are looked at before the first one has its turn.
const AT_ONCE: usize = 64;
/// How long a device that is opened there may make no progress.
const WARM_UP_LIMIT: Duration = Duration::from_secs(120);

/// A running engine with its successor.
pub struct LiveEngine {
    command: EngineCommand,
    main: Client,
    /// What the first engine was last asked to compute on.
    device: Option<String>,
    warm: Option<WarmUpEngine>,
    last_run: Option<RunSpec>,
    own: VecDeque<FromEngine>,
    recorder: Option<RecordingWriter>,
    /// What the stream has shown so far, for a report.
    story: Rc<RefCell<StreamStory>>,
}

struct WarmUpEngine {
    client: Client,
    select: String,
    /// The device, once it is open; it is reported when the warm-up run is over.
    opened: Option<Device>,
    reported: bool,
}

impl LiveEngine {
    pub fn new(
        command: EngineCommand,
        recorder: Option<RecordingWriter>,
        story: Rc<RefCell<StreamStory>>,
    ) -> anyhow::Result<Self> {
        let main = Client::spawn(command.clone())?;
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

    /// Ends the recording, if there is one; the result says where it is.
    pub fn close(mut self) -> anyhow::Result<Option<FinishedRecording>> {
        self.recorder
            .take()
            .map(RecordingWriter::finish)
            .transpose()
    }

    /// Opens the device in a second engine, beside the run in progress.
    fn warm_up(&mut self, select: String) {
        match Client::spawn(self.command.clone()) {
            Ok(mut client) => {
                client.send(Command::Open {
                    device: select.clone(),
                });
                self.warm = Some(WarmUpEngine {
                    client,
                    select,
                    opened: None,
                    reported: false,
                });
            }
            Err(error) => self.own.push_back(failed(format!("{error:#}"))),
        }
    }

    /// Work goes to the engine that has its device open.
    fn work(&mut self, device: &str, command: Command) {
        if let Some(warm) = self
            .warm
            .take_if(|warm| warm.select == device && !warm.client.is_over())
        {
            retire(std::mem::replace(&mut self.main, warm.client));
        }
        self.device = Some(device.to_owned());
        self.main.send(command);
    }

    fn hear_warm(&mut self) -> Option<FromEngine> {
        for _ in 0..AT_ONCE {
            let warm = self.warm.as_mut()?;
            if !warm.reported && warm.client.idle() > WARM_UP_LIMIT {
                self.drop_warm();
                let seconds = WARM_UP_LIMIT.as_secs();
                return Some(failed(format!("it has not answered for {seconds} s")));
            }
            let report = match warm.client.next(Duration::ZERO)? {
                ClientEvent::Line(line, _) => match warm.hear(*line, self.last_run.as_ref()) {
                    Some(FromEngine::Line(StreamLine {
                        event: Event::Failed(failure),
                        ..
                    })) => {
                        self.drop_warm();
                        Some(failed(failure.reason))
                    }
                    report => report,
                },
                ClientEvent::Stray(text) => Some(FromEngine::Stray(text)),
                ClientEvent::Over(over) => {
                    let reason = over.reason().to_owned();
                    self.drop_warm();
                    Some(failed(reason))
                }
                ClientEvent::Silent(_) => {
                    self.drop_warm();
                    Some(failed(
                        "the engine that opened it stopped answering".to_owned(),
                    ))
                }
                ClientEvent::Malformed { .. } | ClientEvent::Awake => None,
            };
            if report.is_some() {
                return report;
            }
        }
        None
    }

    fn drop_warm(&mut self) {
        if let Some(warm) = self.warm.take() {
            retire(warm.client);
        }
    }

    fn record(&mut self, line: &StreamLine, text: &str) {
        // A report names no fault of a mystery either.
        let asked = self.last_run.as_ref().map(|run| run.sealed);
        let at_ms = (line.t * 1e3) as u64;
        let mut story = self.story.borrow_mut();
        match line.event.begins_sealed().or(asked) {
            Some(true) => story.hear(&line.event.clone().covered(), at_ms),
            _ => story.hear(&line.event, at_ms),
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

impl WarmUpEngine {
    /// What the screen has to know of this engine's stream.
    fn hear(&mut self, line: StreamLine, last_run: Option<&RunSpec>) -> Option<FromEngine> {
        match line.event {
            Event::Compiling { .. } | Event::Failed(_) => Some(FromEngine::Line(line)),
            Event::DeviceReady { ref device } if self.opened.is_none() => {
                self.opened = Some(device.clone());
                let Some(run) = last_run else {
                    self.reported = true;
                    return Some(FromEngine::Line(line));
                };
                let run = RunSpec {
                    variant: "warm-up".to_owned(),
                    steps: Some(WARM_UP),
                    ..run.clone()
                };
                self.client.send(Command::Start {
                    device: self.select.clone(),
                    run,
                    request: 0,
                });
                None
            }
            Event::Finished(_) if !self.reported => {
                self.reported = true;
                let device = self.opened.clone()?;
                Some(FromEngine::Line(StreamLine {
                    t: line.t,
                    event: Event::DeviceReady { device },
                }))
            }
            _ => None,
        }
    }
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
                self.work(&device, command);
            }
            _ => self.main.send(command),
        }
    }

    fn try_recv(&mut self) -> Option<FromEngine> {
        if let Some(report) = self.own.pop_front().or_else(|| self.hear_warm()) {
            return Some(report);
        }
        loop {
            return Some(match self.main.next(Duration::ZERO)? {
                ClientEvent::Line(line, text) => {
                    self.record(&line, &text);
                    FromEngine::Line(*line)
                }
                ClientEvent::Stray(text) => FromEngine::Stray(text),
                ClientEvent::Malformed { line, why } => FromEngine::Malformed { line, why },
                ClientEvent::Silent(_) => FromEngine::Silent,
                ClientEvent::Awake => continue,
                ClientEvent::Over(over) => FromEngine::Gone {
                    reason: over.reason().to_owned(),
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

fn failed(reason: String) -> FromEngine {
    let event = Event::Failed(Failed {
        kind: FailedKind::Device,
        reason,
        request: 0,
    });
    FromEngine::Line(StreamLine { t: 0.0, event })
}

/// Lets an engine end in its own time, away from the screen. Without a thread it ends here.
fn retire(client: Client) {
    let _ = Builder::new()
        .name("engine-farewell".to_owned())
        .spawn(move || drop(client));
}

#[cfg(all(test, unix))]
mod tests;
