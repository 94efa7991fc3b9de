//! The screen's source when it is live: one engine that runs, and behind it, at first light, a second one that warms
//! a GPU up until the learner moves there. It records on the way.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::thread::Builder;
use std::time::Duration;

use crate::app::source::{FromEngine, Source};
use crate::cli::out;
use crate::engine::client::{Client, EngineCommand, Heard};
use crate::export::report::Collector;
use crate::protocol::{Command, Device, Event, Failed, FailedKind, Line, RunSpec};
use crate::record::Recorder;

/// Steps that compile a run's kernels and fill the caches.
const WARM_UP: u64 = 3;
/// Messages of the second engine that are looked at before the first one has its turn.
const AT_ONCE: usize = 64;

/// A running engine with its successor.
pub struct Live {
    command: EngineCommand,
    main: Client,
    /// What the first engine was last asked to compute on.
    device: Option<String>,
    warm: Option<Warm>,
    last_run: Option<RunSpec>,
    own: VecDeque<FromEngine>,
    recorder: Option<Recorder>,
    /// What the stream has shown so far, for a report.
    collector: Rc<RefCell<Collector>>,
}

struct Warm {
    client: Client,
    select: String,
    /// The device, once it is open; it is reported when the warm-up run is over.
    opened: Option<Device>,
    reported: bool,
}

impl Live {
    pub fn new(
        command: EngineCommand,
        recorder: Option<Recorder>,
        collector: Rc<RefCell<Collector>>,
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
            collector,
        })
    }

    /// Ends the recording, if there is one.
    pub fn close(mut self) {
        if let Some(recorder) = self.recorder.take() {
            match recorder.finish() {
                Ok(path) => out::notice(&format!("recorded in {}", path.display())),
                Err(error) => out::notice(&format!("{error:#}")),
            }
        }
    }

    /// Opens the device in a second engine, beside the run in progress.
    fn warm_up(&mut self, select: String) {
        match Client::spawn(self.command.clone()) {
            Ok(mut client) => {
                client.send(Command::Open {
                    device: select.clone(),
                });
                self.warm = Some(Warm {
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
            let report = match warm.client.next(Duration::ZERO)? {
                Heard::Line(line, _) => match warm.hear(*line, self.last_run.as_ref()) {
                    Some(FromEngine::Line(Line {
                        event: Event::Failed(failure),
                        ..
                    })) => {
                        self.drop_warm();
                        Some(failed(failure.reason))
                    }
                    report => report,
                },
                Heard::Stray(text) => Some(FromEngine::Stray(text)),
                Heard::Over(over) => {
                    let reason = over.reason().to_owned();
                    self.drop_warm();
                    Some(failed(reason))
                }
                Heard::Silent(_) => {
                    self.drop_warm();
                    Some(failed(
                        "the engine that opened it stopped answering".to_owned(),
                    ))
                }
                Heard::Malformed { .. } | Heard::Awake => None,
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

    fn record(&mut self, line: &Line, text: &str) {
        self.collector.borrow_mut().hear(&line.event);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.add(line, text)
        {
            self.own
                .push_back(FromEngine::Stray(format!("recording ends here: {error:#}")));
            self.recorder = None;
        }
    }
}

impl Warm {
    /// What of this engine's stream concerns the screen.
    fn hear(&mut self, line: Line, last_run: Option<&RunSpec>) -> Option<FromEngine> {
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
                });
                None
            }
            Event::Finished(_) if !self.reported => {
                self.reported = true;
                let device = self.opened.clone()?;
                Some(FromEngine::Line(Line {
                    t: line.t,
                    event: Event::DeviceReady { device },
                }))
            }
            _ => None,
        }
    }
}

impl Source for Live {
    fn send(&mut self, command: Command) {
        match &command {
            Command::Open { device }
                if self.device.as_deref().is_some_and(|busy| busy != device) =>
            {
                self.warm_up(device.clone());
            }
            Command::Start { device, run } => {
                self.last_run = Some(run.clone());
                let device = device.clone();
                self.work(&device, command);
            }
            Command::Pair { device, b, .. } => {
                self.last_run = Some(b.clone());
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
                Heard::Line(line, text) => {
                    self.record(&line, &text);
                    FromEngine::Line(*line)
                }
                Heard::Stray(text) => FromEngine::Stray(text),
                Heard::Malformed { line, why } => FromEngine::Malformed { line, why },
                Heard::Silent(_) => FromEngine::Silent,
                Heard::Awake => continue,
                Heard::Over(over) => FromEngine::Gone {
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
    });
    FromEngine::Line(Line { t: 0.0, event })
}

/// Lets an engine end in its own time, away from the screen. Without a thread it ends here.
fn retire(client: Client) {
    let _ = Builder::new()
        .name("engine-farewell".to_owned())
        .spawn(move || drop(client));
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::config::{Preset, RunConfig};
    use crate::protocol::Slot;

    /// An engine that names itself when it is given work, opens what it is asked to unless told not to, and
    /// finishes at once.
    const ENGINE: &str = r#"
        read x; printf '{"t":0,"event":"hello","protocol":1,"version":"0","pid":%d,"os":"","cores":1,"date":""}\n' $$
        while read c; do case $c in
            *'"command":"open"'*) echo '{"t":0,"event":"compiling","kernels":1,"latest":"k"}'; echo "$READY" ;;
            *'"command":"start"'*) printf '{"t":0,"event":"log","level":"info","text":"%d"}\n' $$; echo "$FINISHED" ;;
        esac; done"#;

    fn live(answer_to_open: &Event) -> Live {
        let line = |event: &Event| {
            serde_json::to_string(&Line {
                t: 0.0,
                event: event.clone(),
            })
            .expect("plain data")
        };
        let finished = line(&Event::Finished(Box::default()));
        let script = format!(
            "READY='{}'; FINISHED='{finished}'; {ENGINE}",
            line(answer_to_open)
        );
        let command = EngineCommand::new("sh", ["-c", &script]);
        Live::new(command, None, Rc::default()).expect("sh starts")
    }

    fn gpu() -> Device {
        Device {
            kind: "gpu".to_owned(),
            name: "a GPU".to_owned(),
        }
    }

    fn start(device: &str) -> Command {
        let config = RunConfig::preset(Preset::Tiny);
        let run = RunSpec {
            stage: 1,
            variant: "broken".to_owned(),
            slot: Slot::A,
            config,
            steps: None,
        };
        Command::Start {
            device: device.to_owned(),
            run,
        }
    }

    /// Reports until one is wanted; the wanted one last.
    fn until(live: &mut Live, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut heard = Vec::new();
        // Only a failing test gets to the end of this.
        for _ in 0..20_000 {
            match live.try_recv() {
                Some(FromEngine::Line(line)) => {
                    heard.push(line.event);
                    if heard.last().is_some_and(&wanted) {
                        return heard;
                    }
                }
                Some(other) => panic!("{other:?}"),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        panic!("only {heard:?}")
    }

    fn pid(heard: &[Event]) -> String {
        heard
            .iter()
            .rev()
            .find_map(|e| {
                if let Event::Log(log) = e {
                    Some(log.text.clone())
                } else {
                    None
                }
            })
            .expect("it named itself")
    }

    #[test]
    fn a_gpu_warms_up_behind_the_run_and_takes_over_when_asked() {
        let mut live = live(&Event::DeviceReady { device: gpu() });
        live.send(start("cpu"));
        let finished = |event: &Event| matches!(event, Event::Finished(_));
        let first = pid(&until(&mut live, finished));
        live.send(Command::Open {
            device: "gpu".to_owned(),
        });
        let heard = until(&mut live, |event| {
            matches!(event, Event::DeviceReady { .. })
        });
        assert!(matches!(heard[0], Event::Compiling { .. }), "{heard:?}");
        assert_eq!(
            heard.len(),
            2,
            "its warm-up run is nobody's business: {heard:?}"
        );
        live.send(start("gpu"));
        assert_ne!(pid(&until(&mut live, finished)), first, "another process");
    }

    #[test]
    fn a_gpu_that_does_not_open_leaves_the_run_alone() {
        let failed = Failed {
            kind: FailedKind::Device,
            reason: "lost".to_owned(),
        };
        let mut live = live(&Event::Failed(failed.clone()));
        live.send(start("cpu"));
        let finished = |event: &Event| matches!(event, Event::Finished(_));
        let first = pid(&until(&mut live, finished));
        live.send(Command::Open {
            device: "gpu".to_owned(),
        });
        let heard = until(&mut live, |event| matches!(event, Event::Failed(_)));
        assert_eq!(heard.last(), Some(&Event::Failed(failed)));
        assert!(live.warm.is_none());
        live.send(start("cpu"));
        assert_eq!(pid(&until(&mut live, finished)), first, "the same process");
    }

    #[test]
    fn an_engine_that_was_killed_is_replaced() {
        let mut live = live(&Event::Heartbeat);
        live.send(start("cpu"));
        let finished = |event: &Event| matches!(event, Event::Finished(_));
        let first = pid(&until(&mut live, finished));
        live.kill();
        assert!(matches!(live.try_recv(), Some(FromEngine::Gone { .. })));
        live.restart();
        live.send(start("cpu"));
        assert_ne!(pid(&until(&mut live, finished)), first);
    }
}
