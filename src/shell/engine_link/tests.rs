//! Tests a warm-up, its failure and a replaced engine, with shell scripts as engines.

use super::*;
use protocol::Slot;
use protocol::config::{Preset, RunConfig};

/// An engine that names its process when it is given work, answers `$READY` when it is asked to open a device, and finishes a run at once.
const ENGINE: &str = r#"
    read x; printf '{"t":0,"event":"hello","protocol":1,"version":"0","pid":%d,"os":"","cores":1,"date":""}\n' $$
    while read c; do case $c in
        *'"command":"open"'*) echo '{"t":0,"event":"compiling","kernels":1,"latest":"k"}'; echo "$READY" ;;
        *'"command":"start"'*) printf '{"t":0,"event":"log","level":"info","text":"%d"}\n' $$; echo "$FINISHED" ;;
    esac; done"#;

fn live(answer_to_open: &Event) -> LiveEngine {
    let line = |event: &Event| {
        serde_json::to_string(&StreamLine {
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
    LiveEngine::new(command, None, Rc::default()).expect("sh starts")
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
        sealed: false,
    };
    Command::Start {
        device: device.to_owned(),
        run,
        request: 0,
    }
}

/// Returns the reports up to the first one that is wanted.
fn until(live: &mut LiveEngine, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let mut heard = Vec::new();
    // Only a failing test reaches the end of this loop.
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
        .find_map(|event| match event {
            Event::Log(log) => Some(log.text.clone()),
            _ => None,
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
    assert_eq!(heard.len(), 2, "its warm-up run is not reported: {heard:?}");
    live.send(start("gpu"));
    assert_ne!(pid(&until(&mut live, finished)), first, "another process");
}

#[test]
fn a_gpu_that_does_not_open_leaves_the_run_alone() {
    let failed = Failed {
        kind: FailedKind::Device,
        reason: "lost".to_owned(),
        request: 0,
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
    let mut live = live(&Event::Heartbeat { device_s: None });
    live.send(start("cpu"));
    let finished = |event: &Event| matches!(event, Event::Finished(_));
    let first = pid(&until(&mut live, finished));
    live.kill();
    assert!(matches!(live.try_recv(), Some(FromEngine::Gone { .. })));
    live.restart();
    live.send(start("cpu"));
    assert_ne!(pid(&until(&mut live, finished)), first);
}
