//! The engine as a process: its answers, its end, and the repetition of a run.

#[path = "engine/lints.rs"]
mod lints;
#[path = "engine/pairs.rs"]
mod pairs;
#[path = "engine/peaks.rs"]
mod peaks;
#[path = "engine/requests.rs"]
mod requests;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use protocol::config::{Knob, KnobValue, Preset, RunConfig};
use protocol::{
    Command, Event, Failed, FailedKind, Finished, PROTOCOL, RunSpec, Slot, Started, StreamLine,
};

/// The time after which an engine counts as stuck. A healthy one answers long before.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// A running engine. It is killed when it is dropped.
struct Engine {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<StreamLine>,
}

impl Engine {
    /// Starts an engine with a folder for caches that all tests share, so that peaks measured while other tests run do not replace the learner's.
    fn start() -> Self {
        Self::start_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// Starts an engine with this folder for caches.
    fn start_in(caches: &Path) -> Self {
        let mut child = Process::new(env!("CARGO_BIN_EXE_perflings"))
            .arg("engine")
            .env("XDG_CACHE_HOME", caches)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the engine starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut engine = Self {
            child,
            input,
            lines,
        };
        engine.send(&Command::Hello {
            protocol: PROTOCOL,
            threads: None,
        });
        engine.events_until(|event| matches!(event, Event::Hello(_)));
        engine
    }

    fn send(&mut self, command: &Command) {
        let text = serde_json::to_string(command).expect("plain data");
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{text}")
            .and_then(|()| input.flush())
            .expect("the engine reads");
    }

    fn next_event(&mut self) -> Event {
        self.lines
            .recv_timeout(HANG_TIMEOUT)
            .expect("the engine goes on")
            .event
    }

    /// Returns the events up to and including the first that `is_last` accepts, without heartbeats.
    fn events_until(&mut self, is_last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next_event();
            let ends = is_last(&event);
            if !matches!(event, Event::Heartbeat { .. }) {
                events.push(event);
            }
            if ends {
                return events;
            }
        }
    }

    /// Returns the events up to and including the first step.
    fn events_until_step(&mut self) -> Vec<Event> {
        self.events_until(|event| matches!(event, Event::Step(_)))
    }

    /// Returns the events up to the next failure, and the failure.
    fn events_until_failure(&mut self) -> (Vec<Event>, Failed) {
        let events = self.events_until(|event| matches!(event, Event::Failed(_)));
        match events.last() {
            Some(Event::Failed(failed)) => (events.clone(), failed.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the events up to the summary of the work in progress, and the summary.
    fn events_until_summary(&mut self) -> (Vec<Event>, Finished) {
        let ends = |event: &Event| matches!(event, Event::Finished(_) | Event::Failed(_));
        let events = self.events_until(ends);
        match events.last() {
            Some(Event::Finished(finished)) => (events.clone(), (**finished).clone()),
            other => panic!("{other:?}"),
        }
    }

    /// Trains for a number of steps.
    fn run(&mut self, config: RunConfig, steps: u64) -> (Vec<Event>, Finished) {
        let run = RunSpec {
            steps: Some(steps),
            ..endless(config)
        };
        self.send(&start(run, 0));
        self.events_until_summary()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a run of A without a last step.
fn endless(config: RunConfig) -> RunSpec {
    RunSpec {
        stage: 0,
        variant: "custom".into(),
        slot: Slot::A,
        config,
        steps: None,
        sealed: false,
    }
}

/// Returns a run of B without a last step.
fn endless_b(config: RunConfig) -> RunSpec {
    RunSpec {
        slot: Slot::B,
        ..endless(config)
    }
}

fn start(run: RunSpec, request: u64) -> Command {
    Command::Start {
        device: "cpu".into(),
        run,
        request,
    }
}

/// Returns the command that compares A and B in pairs.
fn compare(a: RunSpec, b: RunSpec, pairs: u32, request: u64) -> Command {
    Command::Pair {
        device: "cpu".into(),
        stage: 0,
        a,
        b,
        pairs,
        request,
    }
}

/// Returns the configuration of a network of a few thousand parameters, with these knobs changed.
fn small(knobs: &[(&str, &str)]) -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    config.model.hidden = 32;
    config.model.layers = 2;
    config.model.ffn = 64;
    config.model.vocab = 50;
    config.train.context = 16;
    config.train.batch = 4;
    for (path, value) in knobs {
        Knob::find(path)
            .expect("known")
            .set(&mut config, &KnobValue::from_word(value))
            .expect("valid");
    }
    config
}

/// Returns a configuration that needs more memory than any machine of the tests has.
fn too_large() -> RunConfig {
    let mut config = small(&[]);
    config.model.hidden = 65_536;
    config.model.ffn = 262_144;
    config.model.layers = 1024;
    config
}

fn losses(events: &[Event]) -> Vec<f64> {
    let loss = |event: &Event| match event {
        Event::Step(step) => step.loss.map(|loss| loss.0),
        _ => None,
    };
    events.iter().filter_map(loss).collect()
}

/// Waits for the next heartbeat, and returns the seconds since the device made progress; `None` if it has no work.
fn next_heartbeat(engine: &mut Engine) -> Option<f64> {
    loop {
        if let Event::Heartbeat { device_s } = engine.next_event() {
            return device_s;
        }
    }
}

#[test]
fn heartbeats_report_the_progress_of_the_device_while_there_is_work() {
    let mut engine = Engine::start();
    assert_eq!(next_heartbeat(&mut engine), None);
    engine.send(&start(endless(small(&[])), 0));
    engine.events_until_step();
    // The first heartbeat after a change may have been on its way before it.
    next_heartbeat(&mut engine);
    let since_progress = next_heartbeat(&mut engine);
    assert!(since_progress.is_some_and(|seconds| seconds < 60.0));
    engine.send(&Command::Pause);
    engine.events_until(|event| matches!(event, Event::Paused { .. }));
    next_heartbeat(&mut engine);
    assert_eq!(next_heartbeat(&mut engine), None);
}

#[test]
fn a_run_repeats_with_its_seed_and_differs_with_another() {
    let mut engine = Engine::start();
    let (first, summary) = engine.run(small(&[]), 12);
    let (again, _) = engine.run(small(&[]), 12);
    let (other, _) = engine.run(small(&[("train.seed", "43")]), 12);
    assert_eq!(losses(&first), losses(&again));
    assert_ne!(losses(&first), losses(&other));
    assert_eq!(summary.steps, 12);
}

#[test]
fn the_loss_falls_on_learnable_data() {
    let mut engine = Engine::start();
    let (events, summary) = engine.run(small(&[("train.learning-rate", "1e-2")]), 150);
    let losses = losses(&events);
    let late = losses[losses.len() - 20..].iter().sum::<f64>() / 20.0;
    assert!(
        late < 0.9 * summary.ln_vocab,
        "{late} against {}",
        summary.ln_vocab
    );
    assert!(summary.entropy.is_some_and(|entropy| late > entropy));
}

/// Waits for the memory of this slot, and returns its peak in bytes.
fn next_memory_peak(engine: &mut Engine, slot: Slot) -> u64 {
    let is_of_slot = |event: &Event| matches!(event, Event::Memory(memory) if memory.slot == slot);
    match engine.events_until(is_of_slot).last() {
        Some(Event::Memory(memory)) => memory.peak_bytes.expect("counted"),
        _ => unreachable!(),
    }
}

#[test]
fn a_change_in_mid_run_measures_its_own_peak_of_memory() {
    let mut engine = Engine::start();
    let long_context = |attention| {
        small(&[
            ("train.context", "256"),
            ("train.batch", "1"),
            ("model.attention", attention),
        ])
    };
    engine.send(&start(endless(long_context("composed")), 0));
    let composed = next_memory_peak(&mut engine, Slot::A);
    engine.send(&Command::Apply {
        run: endless_b(long_context("flash")),
        request: 0,
    });
    let flash = next_memory_peak(&mut engine, Slot::B);
    assert!(flash < composed, "{flash} of {composed} bytes");
}

#[test]
fn knobs_that_keep_parameters_change_in_mid_run() {
    let mut engine = Engine::start();
    engine.send(&start(
        endless(small(&[("model.gradient", "detached-norm")])),
        0,
    ));
    engine.events_until(|event| matches!(event, Event::Step(step) if step.step >= 5));
    engine.send(&Command::Apply {
        run: RunSpec {
            variant: "fixed".into(),
            ..endless_b(small(&[]))
        },
        request: 0,
    });
    let is_audit_of_b =
        |event: &Event| matches!(event, Event::Gradients(audit) if audit.slot == Slot::B);
    let events = engine.events_until(is_audit_of_b);
    let started = events.iter().find_map(started);
    assert!(started.is_some_and(|started| started.from_step > 5 && started.run.variant == "fixed"));
    let Some(Event::Gradients(audit)) = events.last() else {
        panic!("no audit")
    };
    assert_eq!(audit.with_grad, audit.tensors);
}

fn started(event: &Event) -> Option<&Started> {
    match event {
        Event::Started(started) => Some(started),
        _ => None,
    }
}

#[test]
fn a_run_is_paused_resumed_and_stopped() {
    let mut engine = Engine::start();
    engine.send(&start(endless(small(&[])), 0));
    engine.events_until_step();
    engine.send(&Command::Pause);
    engine.events_until(|event| matches!(event, Event::Paused { .. }));
    engine.send(&Command::Resume);
    engine.events_until(|event| matches!(event, Event::Resumed { .. }));
    engine.send(&Command::Stop);
    let (_, finished) = engine.events_until_summary();
    assert_eq!(finished.ended.as_deref(), Some("stopped"));
}

#[test]
fn three_clocks_are_read_in_every_sync_mode() {
    for sync in ["per-phase", "per-step", "never"] {
        let mut engine = Engine::start();
        let (_, finished) = engine.run(small(&[("measure.sync", sync)]), 24);
        let evidence = finished.evidence.expect("evidence");
        let clocks = evidence.clocks.expect("clocks");
        assert!(clocks.enqueue > 0.0, "{sync}: {clocks:?}");
        assert!(clocks.host_sync > clocks.enqueue, "{sync}: {clocks:?}");
        assert!(clocks.device > Some(0.0), "{sync}: {clocks:?}");
    }
}

#[test]
fn a_run_that_cannot_run_is_refused_with_a_reason_and_the_engine_goes_on() {
    let mut engine = Engine::start();
    for (config, device, reason) in [
        (too_large(), "cpu", "iB are free"),
        (
            small(&[("train.precision", "f16")]),
            "cpu",
            "loss-scaling = \"none\"",
        ),
        (small(&[]), "gpu:99", "gpu:99"),
        (small(&[]), "toaster", "unknown device `toaster`"),
    ] {
        engine.send(&Command::Start {
            device: device.into(),
            run: endless(config),
            request: 0,
        });
        let (_, failed) = engine.events_until_failure();
        assert!(failed.reason.contains(reason), "{}", failed.reason);
    }
    let (_, finished) = engine.run(small(&[]), 2);
    assert_eq!(finished.steps, 2);
}

#[test]
fn a_b_that_cannot_run_does_not_end_the_run_in_progress() {
    let mut engine = Engine::start();
    engine.send(&start(endless(small(&[])), 0));
    engine.events_until_step();
    engine.send(&start(endless_b(too_large()), 0));
    let (events, failed) = engine.events_until_failure();
    let is_summary = |event: &Event| matches!(event, Event::Finished(_));
    assert!(!events.iter().any(is_summary), "{events:?}");
    assert_eq!(failed.kind, FailedKind::Refused, "{}", failed.reason);
    let later = engine.events_until_step();
    let Some(Event::Step(step)) = later.last() else {
        unreachable!()
    };
    assert!(step.step > 0 && step.slot == Slot::A, "{step:?}");
}

#[test]
fn a_line_that_is_no_command_is_answered() {
    let mut engine = Engine::start();
    let input = engine.input.as_mut().expect("open");
    writeln!(input, "{{\"command\":\"fly\"}}\nnot json at all").expect("the engine reads");

    for _ in 0..2 {
        let (_, failed) = engine.events_until_failure();
        assert_eq!(failed.kind, FailedKind::Usage);
        assert!(failed.reason.starts_with("not a command: "), "{failed:?}");
    }
}

#[test]
fn the_end_of_the_input_ends_the_process_also_in_an_endless_run() {
    let mut engine = Engine::start();
    engine.send(&start(endless(small(&[])), 0));
    engine.events_until_step();
    drop(engine.input.take());
    let status = engine.child.wait().expect("the engine ends");
    assert!(status.success(), "{status}");
}
