//! The program as a learner calls it: each mistake has one clear message and its exit code. Runs go to a stand-in
//! engine whose lines are written here, so that nothing depends on a device or a clock.
#![cfg(unix)]

use std::io::Write;
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

#[test]
fn help_shows_every_command_with_examples() {
    let said = Learner::new().says(&["--help"]);
    let commands = [
        "run", "compare", "check", "course", "list", "hint", "reset", "init", "doctor", "replay",
        "report", "export", "engine",
    ];
    said.succeeds(&commands);
    said.succeeds(&[
        "Examples:",
        "perflings compare 4:broken 4:fixed",
        "Exit codes: 0",
    ]);
    Learner::new().says(&["run", "--help"]).succeeds(&[
        "--as", "--device", "--preset", "--set", "--steps", "--json", "--record", "--config",
    ]);
    Learner::new()
        .says(&["--version"])
        .succeeds(&["perflings 0."]);
}

#[test]
fn a_wrong_command_line_is_one_message_and_two() {
    let learner = Learner::new();
    learner
        .says(&["runn"])
        .fails(2, &["unrecognized subcommand 'runn'", "'run'"]);
    learner.says(&["run"]).fails(2, &["<STAGE>"]);
    learner
        .says(&["run", "1", "--as", "mended"])
        .fails(2, &["mended", "broken", "fixed"]);
    learner
        .says(&["run", "1", "--steps", "0"])
        .fails(2, &["--steps"]);
    learner
        .says(&["run", "1", "--device", "gup"])
        .fails(2, &["did you mean `gpu`", "vulkan-cpu"]);
    learner
        .says(&["run", "1", "--preset", "smal"])
        .fails(2, &["unknown preset `smal`; did you mean `small`"]);
    learner
        .says(&["run", "99"])
        .fails(2, &["there is no stage `99`", "1 broken-init"]);
    learner.says(&["run", "broken-int"]).fails(
        2,
        &["there is no stage `broken-int`; did you mean `broken-init`?"],
    );
    learner
        .says(&["run", "1", "--engine", "sh 'x"])
        .fails(2, &["--engine: a ' is not closed"]);
    learner
        .says(&["run", "1", "--engine", "no-such-program engine"])
        .fails(2, &["Failed to start the engine `no-such-program engine`"]);
    learner
        .says(&["export", "x.jsonl", "--format", "pdf"])
        .fails(2, &["pdf", "perfetto"]);
    learner.says(&["hint", "1", "4"]).fails(2, &["4"]);
}

#[test]
fn a_wrong_change_names_the_nearest_right_one() {
    let learner = Learner::new();
    let set = |assignment: &str| learner.says(&["run", "1", "--set", assignment]);
    set("model.nrom=fused").fails(
        2,
        &["unknown key `model.nrom`; the nearest known key is `model.norm`"],
    );
    set("model.norm=fussed").fails(2, &["cannot be \"fussed\"; did you mean \"fused\"?"]);
    set("model.norm").fails(2, &["has no `=`"]);
    set("train.batch=eight").fails(2, &["it takes a whole number"]);
    set("train.batch=0").fails(2, &["train.batch is 0; write 1 or more"]);
    set("model.heads=3").fails(2, &["3 heads do not divide hidden = 128; write heads = 2"]);
    set("model.kv-heads=3").fails(
        2,
        &["3 kv-heads do not divide heads = 4; write kv-heads = 2"],
    );
    set("train.context=9000").fails(2, &["over the limit of 8192"]);
}

#[test]
fn a_wrong_file_is_named_with_its_line() {
    let learner = Learner::new();
    let run = |file: &str| learner.says(&["run", "--config", file]);
    run(&learner.write("a.toml", "[model]\n\nnrom = 1\n"))
        .fails(2, &["a.toml:3: unknown key `model.nrom`"]);
    run(&learner.write("b.toml", "[train]\nbatch = \"8\"\n")).fails(
        2,
        &["b.toml:2: `train.batch` is \"8\"; it takes a whole number"],
    );
    run(&learner.write("c.toml", "[model\n")).fails(2, &["c.toml:1: is not valid TOML"]);
    run(&learner.write("d.toml", b"preset = \"tiny\"\n# \xff\n"))
        .fails(2, &["d.toml:2: is not UTF-8 text"]);
    run(&learner.write("e.toml", "#".repeat(300_000)))
        .fails(2, &["e.toml: has 300000 bytes; the limit is"]);
    run("missing.toml").fails(2, &["missing.toml: cannot be read"]);
    run(".").fails(2, &["is a folder; name a file"]);
}

#[test]
fn what_cannot_fit_is_refused_with_the_numbers() {
    let said = Learner::new().says(&[
        "run",
        "1",
        "--device",
        "cpu",
        "--set",
        "train.batch=65536",
        "--set",
        "train.context=8192",
    ]);
    said.fails(
        2,
        &[
            "needs about",
            "available",
            "make train.batch, train.context or the preset smaller",
        ],
    );
    assert_eq!(said.out, "");
}

#[test]
fn a_run_ends_with_its_summary() {
    let learner = Learner::new();
    let said = learner.says(&[
        "run",
        "1",
        "--steps",
        "3",
        "--engine",
        &learner.engine(&a_run()),
    ]);
    said.succeeds(&[
        "loss      6.9500 first, 6.5000 last",
        "400.00 samples/s; step 20.00 ms [19.00, 21.00], p95 23.00, n = 3",
        "37 of 38 tensors, 98.5 %",
    ]);
    said.succeeds(&[
        "gradient-coverage: one tensor has none",
        "peak not measured",
    ]);
    assert!(said.err.contains("step     2  loss 6.5"), "{}", said.err);
}

#[test]
fn json_is_the_stream_as_it_came_and_finished_is_its_last_line() {
    let learner = Learner::new();
    let said = learner.says(&[
        "run",
        "1",
        "--steps",
        "3",
        "--json",
        "--engine",
        &learner.engine(&a_run()),
    ]);
    said.succeeds(&[]);
    let expected = stream(&[hello(1)]) + &stream(&a_run());
    assert_eq!(said.out, expected);
    let last: serde_json::Value =
        serde_json::from_str(said.out.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        (last["event"].as_str(), last["loss_first"].as_f64()),
        (Some("finished"), Some(6.95))
    );
}

#[test]
fn a_missing_device_is_three_with_what_was_looked_for() {
    let learner = Learner::new();
    let engine = learner.engine(&[failed(
        FailedKind::Device,
        "no GPU: Vulkan lists llvmpipe only",
    )]);
    learner
        .says(&["run", "1", "--device", "gpu", "--engine", &engine])
        .fails(3, &["no GPU: Vulkan lists llvmpipe only"]);
    let engine = learner.engine(&[failed(
        FailedKind::Usage,
        "bf16 is not computed here; use f32",
    )]);
    learner
        .says(&["run", "1", "--engine", &engine])
        .fails(2, &["bf16 is not computed here"]);
    let engine = learner.engine(&[failed(FailedKind::Internal, "kernel exploded")]);
    learner
        .says(&["run", "1", "--engine", &engine])
        .fails(1, &["kernel exploded"]);
}

#[test]
fn an_engine_that_is_none_is_two_and_one_that_dies_is_one() {
    let learner = Learner::new();
    let run = |engine: &str| learner.says(&["run", "1", "--engine", engine]);
    run("yes nonsense").fails(2, &["`yes nonsense` does not speak the engine's protocol"]);
    run("false").fails(2, &["`false` exited with status 1 before its greeting"]);
    run(&learner.engine_greeting(&hello(7), &[])).fails(
        2,
        &["perflings 9.9.9 and speaks protocol 7", "Update perflings"],
    );
    let greeting = learner.write("hello.jsonl", stream(&[hello(1)]));
    run(&format!(
        "sh -c 'read x; cat {greeting}; read x; kill -9 $$'"
    ))
    .fails(1, &["was ended by signal 9"]);
}

#[test]
fn a_run_that_breaks_off_is_one() {
    let learner = Learner::new();
    let ended = Finished {
        ended: Some("not-finite: layers.0.norm1.gamma".to_owned()),
        loss_last: Num(f64::NAN),
        ..finished()
    };
    let engine = learner.engine(&[started(), Event::Finished(Box::new(ended))]);
    let said = learner.says(&["run", "1", "--engine", &engine]);
    said.fails(1, &[]);
    assert!(
        said.out
            .contains("ended early: not-finite: layers.0.norm1.gamma")
            && said.out.contains("NaN last"),
        "{}",
        said.out
    );
}

#[test]
fn ctrl_c_stops_the_run_and_keeps_its_summary() {
    let learner = Learner::new();
    let greeting = learner.write("hello.jsonl", stream(&[hello(1)]));
    let begin = learner.write("begin.jsonl", stream(&[started(), step(0, 6.9)]));
    let stopped = Finished {
        ended: Some("stopped".to_owned()),
        ..finished()
    };
    let end = learner.write("end.jsonl", stream(&[Event::Finished(Box::new(stopped))]));
    // Goes on until it is told to stop.
    let engine = format!(
        "sh -c 'read x; cat {greeting}; read x; cat {begin}; read stop; cat {end}; read x'"
    );
    let mut child = learner
        .process(&["run", "1", "--steps", "100000", "--engine", &engine])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut progress = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("step     0") {
        line.clear();
        assert!(
            std::io::BufRead::read_line(&mut progress, &mut line).expect("reads") > 0,
            "the run began"
        );
    }
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("signalled");
    std::io::copy(&mut progress, &mut std::io::sink()).expect("reads to the end");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(out.contains("ended early: stopped"), "{out}");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let learner = Learner::new();
    let many: Vec<Event> = std::iter::once(started())
        .chain((0..5000).map(|i| step(i, 6.9)))
        .collect();
    let engine = learner.engine(&many);
    let mut child = learner
        .process(&["run", "1", "--json", "--engine", &engine])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), "")
    );
}

#[test]
fn a_comparison_gives_one_line_with_its_interval() {
    let learner = Learner::new();
    let pair = |n, verdict, done| Pair {
        n,
        wanted: 30,
        ratio: 1.5,
        low: 1.4,
        high: 1.6,
        verdict,
        done,
        differs: vec!["model.norm".to_owned()],
        ..Pair::default()
    };
    let done = pair(30, Verdict::Faster, true);
    let lines = [
        started(),
        Event::Pair(pair(6, Verdict::Unclear, false)),
        Event::Pair(done.clone()),
        Event::Finished(Box::new(Finished {
            pair: Some(done),
            ..finished()
        })),
    ];
    let engine = learner.engine(&lines);
    let said = learner.says(&["compare", "v1", "v3", "--engine", &engine]);
    said.succeeds(&[
        "v3 is faster than v1: 1.500x [1.400, 1.600], n = 30\n",
        "differ in model.norm",
    ]);
    let said = learner.says(&["compare", "v1", "v3", "--json", "--engine", &engine]);
    assert_eq!(said.out.lines().count(), 5);
    let unclear = learner.engine(&[Event::Finished(Box::new(Finished {
        pair: Some(pair(6, Verdict::Unclear, true)),
        ..finished()
    }))]);
    learner
        .says(&["compare", "1:broken", "1:fixed", "--engine", &unclear])
        .succeeds(&["unclear (n=6): 1.500x"]);
}

#[test]
fn comparing_different_work_is_refused() {
    let learner = Learner::new();
    learner.says(&["compare", "v1", "small:v1"]).fails(
        2,
        &[
            "v1 and small:v1 do different work",
            "differ in preset (tiny and small)",
        ],
    );
    let other = learner.write(
        "other.toml",
        "preset = \"tiny\"\n[train]\nbatch = 4\nseed = 7\n",
    );
    learner
        .says(&["compare", "v1", &other])
        .fails(2, &["train.batch (8 and 4), train.seed (42 and 7)"]);
    learner
        .says(&["compare", "v1", "v7"])
        .fails(2, &["`v7` is no stage variant", "v1 to v4"]);
    learner
        .says(&["compare", "99:broken", "1:fixed"])
        .fails(2, &["there is no stage `99`"]);
    learner
        .says(&["compare", "v1", "missing.toml"])
        .fails(2, &["missing.toml: cannot be read"]);
}

#[test]
fn a_recording_round_trips_through_replay_report_and_export() {
    let learner = Learner::new();
    let file = learner.path("run.jsonl").display().to_string();
    let said = learner.says(&[
        "run",
        "1",
        "--record",
        &file,
        "--engine",
        &learner.engine(&a_run()),
    ]);
    said.succeeds(&[]);
    assert!(said.err.contains("recorded in"), "{}", said.err);
    assert!(!learner.path("run.jsonl.part").exists());
    let recorded = std::fs::read_to_string(&file).expect("recorded");
    assert!(
        !recorded.contains("heartbeat") && recorded.lines().count() == 6,
        "{recorded}"
    );
    learner.says(&["replay", &file]).succeeds(&[
        "recording of a stand-in, 2 threads, 2026-11-21, 6 lines",
        "6.9500 first",
    ]);
    learner.says(&["report", &file]).succeeds(&[
        "# perflings report",
        "Measured on 2026-11-21",
        "6.9500 at step 0",
        "6.5000 at step 2",
    ]);
    learner
        .says(&["export", &file, "--format", "csv"])
        .succeeds(&["t_s,slot,stage", "a,0,custom,2,6.5,20,true,false,,,,"]);
    let trace = learner.path("run.pftrace");
    let said = learner.says(&[
        "export",
        &file,
        "--format",
        "perfetto",
        "--out",
        &trace.display().to_string(),
    ]);
    said.succeeds(&[]);
    assert_eq!(
        std::fs::read(trace).expect("written").first(),
        Some(&0x0a),
        "field 1, a packet"
    );
}

#[test]
fn a_recording_cut_short_keeps_its_lines() {
    let learner = Learner::new();
    let file = learner.path("run.jsonl").display().to_string();
    let dying = learner.write("begin.jsonl", stream(&[started(), step(0, 6.9)]));
    let greeting = learner.write("hello.jsonl", stream(&[hello(1)]));
    let engine = format!("sh -c 'read x; cat {greeting}; read x; cat {dying}; exit 4'");
    learner
        .says(&["run", "1", "--record", &file, "--engine", &engine])
        .fails(1, &["exited with status 4"]);
    let part = format!("{file}.part");
    let said = learner.says(&["replay", &part]);
    said.succeeds(&["3 lines", "6.9000 at step 0"]);
    assert!(said.err.contains("ends without a summary"), "{}", said.err);
    let mut bytes = std::fs::read(&part).expect("lines");
    bytes.truncate(bytes.len() - 20);
    let said = learner.says(&["replay", &learner.write("cut.jsonl", bytes)]);
    said.succeeds(&["2 lines"]);
    assert!(
        said.err
            .contains("cut.jsonl: the recording is cut in the middle of line 3"),
        "{}",
        said.err
    );
}

#[test]
fn what_is_no_recording_is_named() {
    let learner = Learner::new();
    let replay = |file: String| learner.says(&["replay", &file]);
    replay(learner.write("a.jsonl", stream(&[hello(7)]))).fails(
        2,
        &[
            "a.jsonl:1: was recorded by perflings 9.9.9 with protocol 7",
            "Update perflings",
        ],
    );
    replay(learner.write("b.jsonl", "hello\n")).fails(2, &["b.jsonl:1: is not a recording"]);
    replay(learner.write("c.jsonl", "")).fails(2, &["c.jsonl: is empty"]);
    replay(learner.write("d.jsonl", b"\xff\xfe\n")).fails(2, &["d.jsonl:1: is not UTF-8"]);
    replay("missing.jsonl".to_owned()).fails(2, &["missing.jsonl: cannot be read"]);
    learner
        .says(&["replay", "b.jsonl", "--speed", "0"])
        .fails(2, &["write a number above 0"]);
}

#[test]
fn the_course_is_listed_hinted_and_copied() {
    let learner = Learner::new();
    learner
        .says(&["list"])
        .succeeds(&["1  new        broken-init"]);
    learner.says(&["hint", "1"]).succeeds(&["hint 1/3: "]);
    let said = learner.says(&["hint", "broken-init", "3"]);
    said.succeeds(&["hint 3/3: "]);
    assert!(
        !said.out.contains("{{"),
        "placeholders are filled: {}",
        said.out
    );
    let first: serde_json::Value = serde_json::from_str(
        learner
            .says(&["list", "--json"])
            .out
            .lines()
            .next()
            .expect("a stage"),
    )
    .expect("JSON");
    assert_eq!(
        (
            first["id"].as_str(),
            first["hints"].as_u64(),
            first["state"].as_str()
        ),
        (Some("broken-init"), Some(3), Some("seen"))
    );
    learner
        .says(&["init", "copy"])
        .succeeds(&["files into copy"]);
    assert!(
        learner
            .path("copy/exercises/01-broken-init/config.toml")
            .is_file()
    );
    learner
        .says(&["init", "copy"])
        .fails(2, &["copy is not empty; name a new folder"]);
    learner
        .says(&["list", "--course", "copy"])
        .succeeds(&["broken-init"]);
    learner
        .says(&["list", "--course", "nowhere"])
        .fails(2, &["nowhere"]);
}

#[test]
fn a_reset_keeps_the_learner_s_file_aside() {
    let learner = Learner::new();
    let mine = learner.path("perflings/tiny-llama/work/broken-init/config.toml");
    std::fs::create_dir_all(mine.parent().expect("a folder")).expect("made");
    std::fs::write(&mine, "preset = \"tiny\"\n[model]\nnrom = \"fused\"\n").expect("written");
    learner
        .says(&["run", "1"])
        .fails(2, &["config.toml:3: unknown key `model.nrom`"]);
    learner
        .says(&["reset", "1"])
        .succeeds(&["stage 1 (broken-init) is as it began", "config.toml.1"]);
    let aside = std::fs::read_to_string(mine.with_file_name("config.toml.1")).expect("kept");
    assert!(aside.contains("nrom"));
    assert!(
        !std::fs::read_to_string(&mine)
            .expect("the starter")
            .contains("nrom")
    );
}

#[test]
fn damaged_progress_is_set_aside_and_named() {
    let learner = Learner::new();
    std::fs::create_dir_all(learner.path("perflings/tiny-llama")).expect("made");
    learner.write("perflings/tiny-llama/progress.toml", "current = [[[\n");
    let said = learner.says(&["list"]);
    said.succeeds(&["broken-init"]);
    assert!(
        said.err.contains("progress.toml:1") && said.err.contains("set aside as"),
        "{}",
        said.err
    );
    assert!(
        learner
            .path("perflings/tiny-llama/progress.toml.damaged-1")
            .is_file()
    );
}

#[test]
fn without_a_terminal_the_workshop_runs_headless_and_says_so() {
    let learner = Learner::new();
    let said = learner.says(&["--engine", &learner.engine(&a_run())]);
    said.succeeds(&["samples/s"]);
    assert!(
        said.err
            .contains("there is no terminal here; running stage 1 without a screen"),
        "{}",
        said.err
    );
}

#[test]
fn the_doctor_lists_devices_and_what_to_do() {
    let learner = Learner::new();
    let cpu = DeviceInfo {
        select: "cpu".to_owned(),
        device: device(),
        backend: "flex".to_owned(),
        ..DeviceInfo::default()
    };
    let engine = learner.engine(&[Event::Devices { devices: vec![cpu] }]);
    learner.says(&["doctor", "--engine", &engine]).succeeds(&[
        "a stand-in, 2 threads",
        "terminal",
        "progress",
        "No GPU was found",
    ]);
    let said = learner.says(&["doctor", "--json", "--engine", &engine]);
    let answer: serde_json::Value = serde_json::from_str(&said.out).expect("one JSON object");
    assert_eq!(answer["devices"][0]["select"], "cpu");
    let said = learner.says(&["doctor", "--engine", "false"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.out.contains("The engine did not answer"),
        "{}",
        said.out
    );
}

#[test]
fn drivers_that_write_to_stderr_do_not_reach_stdout() {
    let learner = Learner::new();
    let answer = learner.write("run.jsonl", stream(&[hello(1)]) + &stream(&a_run()));
    let engine = format!("sh -c 'echo MESA warning >&2; read x; cat {answer}; read x; read x'");
    let said = learner.says(&["run", "1", "--engine", &engine]);
    said.succeeds(&["samples/s"]);
    assert!(
        said.err.contains("perflings: engine: MESA warning") && !said.out.contains("MESA"),
        "{}",
        said.err
    );
    std::io::stdout().flush().expect("flushes");
}
