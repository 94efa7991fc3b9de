//! The program as a learner calls it: each mistake has one clear message and its exit code. Runs go to a stand-in
//! engine whose lines are written here, so that nothing depends on a device or a clock.
#![cfg(unix)]

#[path = "cli/course.rs"]
mod course;
#[path = "cli/mistakes.rs"]
mod mistakes;
#[path = "cli/recordings.rs"]
mod recordings;
#[path = "cli/runs.rs"]
mod runs;

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use perflings::config::{Preset, RunConfig};
use perflings::protocol::*;

/// What a call gave.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    /// The exit code, and something that stderr says.
    #[track_caller]
    fn fails(&self, code: i32, says: &[&str]) {
        assert_eq!(
            self.code,
            Some(code),
            "stdout: {}\nstderr: {}",
            self.out,
            self.err
        );
        for piece in says {
            assert!(
                self.err.contains(piece),
                "`{piece}` is missing in: {}",
                self.err
            );
        }
    }

    #[track_caller]
    fn succeeds(&self, says: &[&str]) {
        assert_eq!(
            self.code,
            Some(0),
            "stdout: {}\nstderr: {}",
            self.out,
            self.err
        );
        for piece in says {
            assert!(
                self.out.contains(piece),
                "`{piece}` is missing in: {}",
                self.out
            );
        }
    }
}

/// A learner with a home of their own.
struct Learner {
    home: tempfile::TempDir,
}

impl Learner {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).expect("written");
        self.path(name).display().to_string()
    }

    fn process(&self, args: &[&str]) -> Process {
        let mut process = Process::new(env!("CARGO_BIN_EXE_perflings"));
        process
            .args(args)
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        for key in [
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "HOME",
        ] {
            process.env(key, self.home.path());
        }
        process
    }

    fn says(&self, args: &[&str]) -> Said {
        let output = self.process(args).output().expect("starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Said {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// `--engine` with a stand-in that answers with these lines.
    fn engine(&self, lines: &[Event]) -> String {
        self.engine_greeting(&hello(1), lines)
    }

    fn engine_greeting(&self, greeting: &Event, lines: &[Event]) -> String {
        let greeting = self.write("greeting.jsonl", stream(std::slice::from_ref(greeting)));
        let answer = self.write("answer.jsonl", stream(lines));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_engine.sh");
        format!("sh '{}' '{greeting}' '{answer}'", script.display())
    }
}

fn stream(events: &[Event]) -> String {
    let line = |(i, event): (usize, &Event)| {
        let line = Line {
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
        roof: None,
        paired: false,
        device: device(),
        run: RunSpec {
            stage: 0,
            variant: "custom".to_owned(),
            slot: Slot::A,
            config,
            steps: Some(3),
        },
    })
}

fn step(step: u64, loss: f64) -> Event {
    Event::Step(Step {
        slot: Slot::A,
        step,
        loss: Num(loss),
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
        },
        lints: vec![Lint {
            name: "gradient-coverage".to_owned(),
            why: "one tensor has none".to_owned(),
            next: "Find it.".to_owned(),
        }],
        ..Finished::default()
    }
}

/// A short run as an engine tells it.
fn a_run() -> Vec<Event> {
    vec![
        started(),
        Event::Heartbeat,
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
    })
}
