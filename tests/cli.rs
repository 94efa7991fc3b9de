//! The program on the command line: each mistake has one clear message and its exit code. Runs use a fake engine that
//! prints prepared lines, so that nothing depends on a device or a clock.
#![cfg(unix)]

use crate::learner;

#[path = "cli/course.rs"]
mod course;
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/kit.rs"]
mod kit;
#[path = "cli/mistakes.rs"]
mod mistakes;
#[path = "cli/odd_files.rs"]
mod odd_files;
#[path = "cli/opened.rs"]
mod opened;
#[path = "cli/outside.rs"]
mod outside;
#[path = "cli/recordings.rs"]
mod recordings;
#[path = "cli/runs.rs"]
mod runs;
#[path = "cli/settings.rs"]
mod settings;
#[path = "cli/watching.rs"]
mod watching;

use std::path::Path;

use protocol::config::{Preset, RunConfig};
use protocol::*;

use learner::Learner;

impl Learner {
    /// Returns the value of `--engine` for a fake engine that answers the first command with these events.
    fn engine(&self, lines: &[Event]) -> String {
        self.engine_greeting(&hello(1), lines)
    }

    /// Returns the value of `--engine` for a fake engine with this first event, which then answers the first command with `lines`.
    fn engine_greeting(&self, greeting: &Event, lines: &[Event]) -> String {
        let greeting = self.write("greeting.jsonl", stream(std::slice::from_ref(greeting)));
        let answer = self.write("answer.jsonl", stream(lines));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_engine.sh");
        format!("sh '{}' '{greeting}' '{answer}'", script.display())
    }
}

/// Returns events as the lines of an engine's stream, a tenth of a second apart.
fn stream(events: &[Event]) -> String {
    let line = |(i, event): (usize, &Event)| {
        let line = StreamLine {
            t: i as f64 * 0.1,
            event: event.clone(),
        };
        serde_json::to_string(&line).expect("plain data") + "\n"
    };
    events.iter().enumerate().map(line).collect()
}

fn hello(protocol: u32) -> Event {
    let version = if protocol == 1 { "0.1.0" } else { "9.9.9" };
    Event::Hello(Hello {
        protocol,
        version: version.to_owned(),
        pid: 1,
        os: "linux".to_owned(),
        cores: 2,
        date: "2026-11-21".to_owned(),
        ..Hello::default()
    })
}

fn device() -> Device {
    Device {
        kind: "cpu".to_owned(),
        name: "a stand-in, 2 threads".to_owned(),
    }
}

fn started() -> Event {
    let config = RunConfig::preset(Preset::Tiny);
    Event::Started(Started {
        config: config.hash(),
        parameters: config.parameters(),
        tensors: 38,
        ln_vocab: config.ln_vocab(),
        entropy: Some(4.5),
        forward_flops: config.forward_flops(),
        from_step: 0,
        peaks: None,
        paired: false,
        matrix_cores: false,
        request: 0,
        device: device(),
        run: RunSpec {
            stage: 0,
            variant: "custom".to_owned(),
            slot: Slot::A,
            config,
            steps: Some(3),
            sealed: false,
        },
    })
}

fn step(step: u64, loss: f64) -> Event {
    Event::Step(Step {
        slot: Slot::A,
        step,
        loss: Some(Num(loss)),
        ms: 20.0,
        synced: true,
        profiled: false,
        phases: None,
        clocks: None,
    })
}

fn finished() -> Finished {
    Finished {
        variant: "custom".to_owned(),
        device: device(),
        steps: 3,
        loss_first: Num(6.95),
        loss_last: Num(6.5),
        ln_vocab: 6.907_755,
        entropy: Some(4.5),
        samples_per_s: Some(400.0),
        step_ms: Some(Spread {
            median: 20.0,
            p25: 19.0,
            p75: 21.0,
            p95: 23.0,
            n: 3,
        }),
        clock: "host-sync".to_owned(),
        grad: GradSummary {
            tensors: 38,
            with_grad: 37,
            params_pct: 98.5,
            ..GradSummary::default()
        },
        lints: vec![Lint {
            name: "gradient-coverage".to_owned(),
            why: "one tensor has none".to_owned(),
            next: "Find it.".to_owned(),
        }],
        ..Finished::default()
    }
}

/// Returns the events of a run of three steps.
fn a_run() -> Vec<Event> {
    vec![
        started(),
        Event::Heartbeat { device_s: None },
        step(0, 6.95),
        step(1, 6.7),
        step(2, 6.5),
        Event::Finished(Box::new(finished())),
    ]
}

fn failed(kind: FailedKind, reason: &str) -> Event {
    Event::Failed(Failed {
        kind,
        reason: reason.to_owned(),
        request: 0,
    })
}
