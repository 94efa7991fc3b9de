//! `perflings watch` without a terminal: the command, its output, its end and its signals; lines of every sort.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::*;

const HELLO: &str = r#"{"event":"hello","protocol":1,"host":"box"}"#;
const ENDED: &str = r#"{"event":"ended"}"#;

fn step(step: u64, loss: &str) -> String {
    format!(r#"{{"t":{step}.0,"event":"step","step":{step},"loss":{loss},"ms":20}}"#)
}

/// Watches a shell script, with a recording, so that no screen is asked for.
fn watched(learner: &Learner, script: &str) -> learner::Output {
    learner.run(&[
        "watch",
        "lines",
        "--record",
        "run.jsonl",
        "--",
        "sh",
        "-c",
        script,
    ])
}

#[test]
fn the_example_in_the_documentation_is_accepted() {
    let documentation = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/watch.md"));
    let documentation = documentation.expect("docs/watch.md");
    let begin = "```sh\n#!/bin/sh\n";
    let example = documentation.split_once(begin).expect("an example").1;
    let example = example.split_once("```").expect("its end").0;
    assert!(example.lines().count() < 30, "at most 30 lines");
    let learner = Learner::new();
    let script = learner.write("train.sh", example);
    let said = watched(&learner, &format!("sh '{script}'"));
    said.succeeds(&["loss", "lint"]);
    let checked = learner.run(&["watch", "--check", "lines/rank-0.jsonl"]);
    checked.succeeds(&[]);
    assert!(checked.err.contains(", 0 faults"), "{}", checked.err);
    // The recording is one like ours.
    learner
        .run(&["report", "run.jsonl"])
        .succeeds(&["train.sh"]);
    for event in ["hello", "run", "step", "gradients", "memory", "ended"] {
        assert!(example.contains(&format!("\"{event}\"")), "{event}");
    }
}

/// The command ends while most of what it printed is not read yet.
#[test]
fn what_a_command_printed_last_is_shown_after_long_lines() {
    let learner = Learner::new();
    let said = watched(
        &learner,
        "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last",
    );
    said.succeeds(&["(line 1 is longer than 1 MB)\nlast\n"]);
}

#[test]
fn what_a_command_prints_is_shown_and_its_exit_code_is_ours() {
    let learner = Learner::new();
    let said = watched(&learner, "printf 'one\\rtwo\\n'; echo three >&2; exit 3");
    said.fails(3, &["the command ended: exit status: 3"]);
    assert_eq!(
        said.out.lines().take(3).collect::<Vec<_>>(),
        ["one", "two", "three"]
    );
    let killed = Learner::new();
    watched(&killed, "kill -9 $$").fails(137, &["signal: 9"]);
    let again = watched(&learner, "true");
    assert_eq!(
        again.code,
        Some(0),
        "no lines of a training are there: {}",
        again.err
    );
    learner.write("lines/rank-0.jsonl", HELLO);
    watched(&learner, "true").fails(2, &["holds rank-0.jsonl of another training"]);
}

/// A signal reaches the command, which ends as it likes; what does not end is killed at last.
#[test]
fn signals_are_passed_on_and_no_process_is_left() {
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};
    let scripts = [
        (
            "trap 'exit 7' TERM; echo $$ > pid; while :; do sleep 0.1; done",
            1,
            7,
        ),
        (
            "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done",
            4,
            137,
        ),
    ];
    for (script, signals, code) in scripts {
        let learner = Learner::new();
        let args = [
            "watch",
            "lines",
            "--record",
            "run.jsonl",
            "--",
            "sh",
            "-c",
            script,
        ];
        let mut process = learner.process(&args);
        process.stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = process.spawn().expect("starts");
        let until = Instant::now() + Duration::from_secs(20);
        let written = || fs::read_to_string(learner.path("pid")).unwrap_or_default();
        while written().trim().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = |number: &str| Pid::from_raw(number.trim().parse().expect("a number"));
        let command = pid(&written()).expect("a process");
        let ours = pid(&process.id().to_string()).expect("a process");
        for _ in 0..signals {
            kill_process(ours, Signal::TERM).expect("sent");
            std::thread::sleep(Duration::from_millis(150));
        }
        let status = process.wait().expect("ends");
        assert_eq!(status.code(), Some(code), "{script}");
        assert!(test_kill_process(command).is_err(), "it is left: {script}");
    }
}

/// Each line that cannot be read is named by number, and the others are shown.
#[test]
fn lines_of_every_sort_are_shown_or_named() {
    let learner = Learner::new();
    let file = learner.path("run.jsonl");
    let mut lines = fs::File::create(&file).expect("created");
    let mut add = |bytes: &[u8]| lines.write_all(&[bytes, b"\n"].concat()).expect("written");
    add(HELLO.as_bytes());
    add(step(0, "4.5").as_bytes());
    add(&b"x".repeat(10 << 20));
    add(&[0, 159, 146, 150, 27, b'[', b'2', b'J']);
    add(step(1, "NaN").as_bytes());
    add(step(1, "\"NaN\"").as_bytes());
    add(step(0, "4.4").as_bytes());
    add(br#"{"t":-1e300,"event":"step","step":2,"loss":4.3,"ms":20}"#);
    add(br#"{"t":1e300,"event":"step","step":3,"loss":4.2,"ms":20,"of-a-later-version":{}}"#);
    add(br#"{"event":"hello","protocol":2}"#);
    add(br#"{"event":"step","step":18446744073709551615,"ms":1e308}"#);
    add(ENDED.as_bytes());
    drop(lines);
    let said = learner.run(&["watch", "run.jsonl", "--record", "out.jsonl"]);
    said.succeeds(&[]);
    for (line, why) in [
        (3, "longer than 1 MB"),
        (4, "column"),
        (5, "write it as text"),
        (7, "`step` is 0 after 1"),
        (10, "update perflings"),
    ] {
        let told = said
            .err
            .lines()
            .find(|problem| problem.contains(&format!("line {line}:")));
        assert!(
            told.is_some_and(|problem| problem.contains(why)),
            "{line}: {}",
            said.err
        );
    }
    assert!(
        !said.err.contains('\u{1b}') && !said.err.contains("panicked"),
        "{}",
        said.err
    );
    learner
        .run(&["report", "out.jsonl"])
        .succeeds(&["not-finite"]);
    let checked = learner.run(&["watch", "--check", "run.jsonl"]);
    assert_eq!(checked.code, Some(1));
    for line in [3, 4, 5, 7, 10] {
        assert!(
            checked.out.contains(&format!("run.jsonl:{line}: ")),
            "{}",
            checked.out
        );
    }
}

#[test]
fn lines_come_from_standard_input_until_it_closes() {
    let learner = Learner::new();
    let mut process = learner.process(&["watch", "-"]);
    process.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = process.stderr(Stdio::piped()).spawn().expect("starts");
    let [first, second] = [step(0, "4.5"), step(1, "4.25")];
    let text = format!("{HELLO}\n{first}\n{second}\n{{\"event\":\"st");
    let mut input = process.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("written");
    drop(input);
    let output = process.wait_with_output().expect("ends");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && shown.contains("4.25"), "{shown}");
}

#[test]
fn a_reader_that_leaves_and_a_full_disk_end_only_us() {
    let learner = Learner::new();
    let program = env!("CARGO_BIN_EXE_perflings");
    let text = format!("{HELLO}\n{}\n{ENDED}\n", step(0, "4.5"));
    learner.write("run.jsonl", text);
    let piped = format!("'{program}' watch run.jsonl 2>&1 | true");
    let status = std::process::Command::new("sh")
        .args(["-c", &piped])
        .current_dir(learner.home.path())
        .status();
    assert!(status.expect("runs").success());
    if Path::new("/dev/full").exists() {
        let said = learner.run(&["watch", "run.jsonl", "--record", "/dev/full"]);
        assert!(
            said.code != Some(0) && !said.err.contains("panicked"),
            "{}",
            said.err
        );
    }
}

/// What names the fault of each stage in a watched training, and nothing is said of the trainings without one. `docs/watch.md` has the
/// same table.
#[test]
fn the_faults_of_the_stages_are_named_and_their_healthy_twins_are_not() {
    let learner = Learner::new();
    let folder = |name: &str| format!("{}/tests/data/watched/{name}", env!("CARGO_MANIFEST_DIR"));
    let watched = |name: &str| {
        let said = learner.run(&["watch", &folder(name), "--record", &format!("{name}.jsonl")]);
        said.succeeds(&["first", "peak"]);
        let recorded = fs::read_to_string(learner.path(&format!("{name}.jsonl")));
        let recorded = recorded.expect("a recording");
        let lines = recorded
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        (said.out, lines.collect::<Vec<serde_json::Value>>())
    };
    let copies_ms = |lines: &[serde_json::Value]| {
        let profiles = lines.iter().filter(|line| line["event"] == "kernels");
        let rows =
            profiles.flat_map(|profile| profile["rows"].as_array().cloned().unwrap_or_default());
        let copies = rows.filter(|row| row["op"] == "copy");
        copies.filter_map(|row| row["ms"].as_f64()).sum::<f64>()
    };
    let peak = |lines: &[serde_json::Value]| {
        let peaks = lines.iter().filter_map(|line| line["peak_bytes"].as_u64());
        peaks.max().expect("a peak")
    };
    let (said, healthy) = watched("healthy");
    assert!(said.contains("lints      none"), "{said}");
    let (said, of_f16) = watched("healthy-f16");
    assert!(said.contains("lints      none"), "{said}");
    let documentation = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/watch.md"));
    let documentation = documentation.expect("docs/watch.md");
    let named = [
        (1, "first-loss"),
        (3, "sync-in-step"),
        (4, "one-kernel-dominates"),
        (5, "launch-bound"),
        (6, "gradient-coverage"),
        (7, "launch-bound"),
    ];
    for (stage, lint) in named {
        let (said, _) = watched(&format!("stage-{stage}"));
        assert!(said.contains(&format!("{lint}: ")), "{stage}: {said}");
        let mut rows = documentation.lines();
        let row = rows.find(|row| row.starts_with(&format!("| {stage} |")));
        assert!(
            row.is_some_and(|row| row.contains(&format!("`{lint}`"))),
            "{stage}"
        );
    }
    // Three have no lint: a panel shows them beside what is usual.
    let (_, strides) = watched("stage-2");
    assert!(copies_ms(&strides) > 3.0 * copies_ms(&healthy));
    let (_, memory) = watched("stage-8");
    assert!(peak(&memory) as f64 > 1.5 * peak(&healthy) as f64);
    let (_, bits) = watched("stage-9");
    let zeros = |lines: &[serde_json::Value]| {
        let audits = lines.iter().filter(|line| line["event"] == "gradients");
        let rows = audits.flat_map(|audit| audit["rows"].as_array().cloned().unwrap_or_default());
        let shares = rows.filter_map(|row| row["zero_pct"].as_f64());
        shares.fold(0.0, f64::max)
    };
    assert!(
        zeros(&bits) > 10.0 * zeros(&of_f16),
        "{} {}",
        zeros(&bits),
        zeros(&of_f16)
    );
}

/// Rows of a profile add up to the device time of the kernels in the table of `torch.profiler` itself, of the same step.
#[test]
fn kernels_are_those_of_the_profiler_s_own_table() {
    let learner = Learner::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/watched/stage-1");
    learner
        .run(&["watch", folder, "--record", "run.jsonl"])
        .succeeds(&[]);
    let recorded = fs::read_to_string(learner.path("run.jsonl")).expect("a recording");
    let mut lines = recorded
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let profile = lines.find(|it: &serde_json::Value| it["event"] == "kernels");
    let device_ms = profile.expect("a profile")["device_ms"].as_f64();
    let device_ms = device_ms.expect("a time");
    assert!((device_ms - 9.718_091).abs() < 1e-3, "{device_ms}");
}

/// The folder of a training that was recorded on an H200.
fn recorded(name: &str) -> String {
    format!("{}/tests/data/watched/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn json_lines(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn a_profile_of_a_watched_step_has_the_figures_that_open_has() {
    let learner = Learner::new();
    for name in ["healthy", "stage-2", "stage-4", "stage-5"] {
        let folder = recorded(name);
        let recording = format!("{name}.jsonl");
        learner
            .run(&["watch", &folder, "--record", &recording])
            .succeeds(&[]);
        let lines = json_lines(&fs::read_to_string(learner.path(&recording)).expect("a recording"));
        let mut profiles = lines.iter().filter(|line| line["event"] == "kernels");
        let profile = profiles.next_back().expect("a profile");
        let trace = profile["file"].as_str().expect("its file");
        let opened = &json_lines(&learner.run(&["open", trace, "--json"]).out)[0];
        assert_eq!(profile["launches"], opened["launches"], "{name}");
        assert_eq!(profile["unique"], opened["distinct_names"], "{name}");
        let device_ns = (profile["device_ms"].as_f64().expect("a time") * 1e6).round();
        assert_eq!(Some(device_ns), opened["kernel_ns"].as_f64(), "{name}");
        let rows = profile["rows"].as_array().expect("rows");
        let calls = rows.iter().filter_map(|row| row["calls"].as_u64());
        assert_eq!(Some(calls.sum()), opened["kernels"].as_u64(), "{name}");
        let known = opened["lints"].as_array().expect("lints").iter();
        let known: Vec<&str> = known.filter_map(|lint| lint["name"].as_str()).collect();
        let of_profile = ["launch-bound", "one-kernel-dominates", "sync-in-step"];
        let mut told = lines
            .iter()
            .filter(|line| line["event"] == "lints")
            .flat_map(|line| line["lints"].as_array().cloned().unwrap_or_default());
        assert!(
            told.all(|lint| {
                let name = lint["name"].as_str().unwrap_or_default();
                !of_profile.contains(&name) || known.contains(&name)
            }),
            "{name}"
        );
    }
}

#[test]
fn a_second_folder_stands_beside_the_first_one_as_b() {
    let learner = Learner::new();
    let [healthy, strides] = ["healthy", "stage-2"].map(recorded);
    let said = learner.run(&["watch", &healthy, &strides, "--record", "both.jsonl"]);
    said.succeeds(&[
        "\nB: stage 2, fault on NVIDIA H200",
        "A step of B takes",
        "% more time than one of A.",
        "this is more",
    ]);
    let lines = json_lines(&fs::read_to_string(learner.path("both.jsonl")).expect("a recording"));
    for event in ["run", "step", "kernels", "throughput", "finished"] {
        let of_event = lines.iter().filter(|line| line["event"] == event);
        let slots: Vec<&str> = of_event.filter_map(|line| line["slot"].as_str()).collect();
        assert!(
            slots.contains(&"a") && slots.contains(&"b"),
            "{event}: {slots:?}"
        );
    }
    let reported = learner.run(&["report", "both.jsonl"]);
    reported.succeeds(&["## stage 3, healthy", "## B: stage 2, fault"]);
}

#[test]
fn a_command_is_watched_beside_an_earlier_folder_that_never_said_it_was_over() {
    let learner = Learner::new();
    let earlier = format!("{HELLO}\n{}\n{}\n", step(0, "4.5"), step(1, "4.25"));
    fs::create_dir(learner.path("before")).expect("created");
    learner.write("before/rank-0.jsonl", earlier);
    let script = format!(
        "printf '%s\\n' '{HELLO}' '{}' '{ENDED}' > \"$PERFLINGS_WATCH/rank-0.jsonl\"; exit 3",
        step(0, "3.5")
    );
    let said = learner.run(&[
        "watch",
        "before",
        "after",
        "--record",
        "both.jsonl",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    said.fails(3, &["exit status: 3"]);
    assert!(
        said.out.contains("4.25") && said.out.contains("3.5"),
        "{}",
        said.out
    );
    assert!(learner.path("after/rank-0.jsonl").exists());
    let said = learner.run(&["watch", "-", "-"]);
    said.fails(2, &["standard input can be one of the two"]);
}
