//! `perflings watch` without a terminal: the command with its output, its end and its signals, lines of every sort, and recorded trainings.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::*;

const HELLO: &str = r#"{"event":"hello","protocol":1,"host":"box"}"#;
const ENDED: &str = r#"{"event":"ended"}"#;

/// Returns the line of a step of 20 ms.
fn step(step: u64, loss: &str) -> String {
    format!(r#"{{"t":{step}.0,"event":"step","step":{step},"loss":{loss},"ms":20}}"#)
}

/// Returns the arguments that watch a shell script. With a recording no screen is opened.
fn watch_script(script: &str) -> [&str; 8] {
    [
        "watch",
        "lines",
        "--record",
        "run.jsonl",
        "--",
        "sh",
        "-c",
        script,
    ]
}

/// Watches a shell script to its end.
fn watched(learner: &Learner, script: &str) -> learner::Output {
    learner.run(&watch_script(script))
}

/// Returns the text of `docs/watch.md`.
fn documentation() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/watch.md")).expect("read")
}

#[test]
fn the_example_in_the_documentation_is_accepted() {
    let documentation = documentation();
    let (_, example) = documentation
        .split_once("```sh\n#!/bin/sh\n")
        .expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    assert!(example.lines().count() < 30, "at most 30 lines");
    for event in ["hello", "run", "step", "gradients", "memory", "ended"] {
        assert!(example.contains(&format!("\"{event}\"")), "{event}");
    }
    let learner = Learner::new();
    let script = learner.write("train.sh", example);

    let output = watched(&learner, &format!("sh '{script}'"));

    output.succeeds(&["loss", "lint"]);
    let checked = learner.run(&["watch", "--check", "lines/rank-0.jsonl"]);
    checked.succeeds(&[]);
    assert!(checked.err.contains(", 0 faults"), "{}", checked.err);
    // The recording can be read like one of our own engine.
    let reported = learner.run(&["report", "run.jsonl"]);
    reported.succeeds(&["train.sh"]);
}

/// The command ends while most of its output is not read yet.
#[test]
fn the_last_line_of_a_command_is_shown_after_long_lines() {
    let learner = Learner::new();

    let output = watched(
        &learner,
        "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last",
    );

    output.succeeds(&["(line 1 is longer than 1 MB)\nlast\n"]);
}

#[test]
fn the_output_of_a_command_is_shown() {
    let learner = Learner::new();

    let output = watched(&learner, "printf 'one\\rtwo\\n'; echo three >&2");

    let lines: Vec<&str> = output.out.lines().take(3).collect();
    assert_eq!(lines, ["one", "two", "three"]);
}

#[test]
fn the_exit_code_of_a_command_is_passed_on() {
    let learner = Learner::new();

    watched(&learner, "exit 3").fails(3, &["the command ended: exit status: 3"]);
    watched(&learner, "kill -9 $$").fails(128 + 9, &["signal: 9"]);
}

#[test]
fn a_folder_with_lines_of_another_training_is_refused() {
    let learner = Learner::new();
    watched(&learner, "true").succeeds(&[]);
    let without_lines = watched(&learner, "true");
    assert_eq!(without_lines.code, Some(0), "{}", without_lines.err);

    learner.write("lines/rank-0.jsonl", HELLO);

    let refused = watched(&learner, "true");
    refused.fails(2, &["holds rank-0.jsonl of another training"]);
}

/// A signal reaches the command, which ends as it likes. A command that ignores several signals is killed.
#[test]
fn signals_are_passed_on_and_no_process_is_left() {
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};
    for (trap, signals, code) in [("'exit 7'", 1, 7), ("''", 4, 128 + 9)] {
        let script = format!("trap {trap} TERM; echo $$ > pid; while :; do sleep 0.1; done");
        let learner = Learner::new();
        let mut process = learner
            .process(&watch_script(&script))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let deadline = Instant::now() + Duration::from_secs(20);
        let written = || fs::read_to_string(learner.path("pid")).unwrap_or_default();
        while written().trim().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = |number: &str| Pid::from_raw(number.trim().parse().expect("a number"));
        let command = pid(&written()).expect("a process");
        let program = pid(&process.id().to_string()).expect("a process");

        for _ in 0..signals {
            kill_process(program, Signal::TERM).expect("sent");
            std::thread::sleep(Duration::from_millis(150));
        }

        let status = process.wait().expect("ends");
        assert_eq!(status.code(), Some(code), "{script}");
        let is_left = test_kill_process(command).is_ok();
        assert!(!is_left, "{script}");
    }
}

/// Each line that cannot be read is named by its number, and the others are shown.
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

    let output = learner.run(&["watch", "run.jsonl", "--record", "out.jsonl"]);
    let checked = learner.run(&["watch", "--check", "run.jsonl"]);

    output.succeeds(&[]);
    assert_eq!(checked.code, Some(1));
    for (line, why) in [
        (3, "longer than 1 MB"),
        (4, "column"),
        (5, "write it as text"),
        (7, "`step` is 0 after 1"),
        (10, "update perflings"),
    ] {
        let place = format!("line {line}:");
        let is_about_line = |fault: &&str| fault.contains(&place);
        let fault = output.err.lines().find(is_about_line).unwrap_or_default();
        assert!(fault.contains(why), "{line}: {}", output.err);
        let place = format!("run.jsonl:{line}: ");
        assert!(checked.out.contains(&place), "{place}: {}", checked.out);
    }
    for harmful in ["\u{1b}", "panicked"] {
        assert!(!output.err.contains(harmful), "{}", output.err);
    }
    let reported = learner.run(&["report", "out.jsonl"]);
    reported.succeeds(&["not-finite"]);
}

#[test]
fn lines_come_from_standard_input_until_it_closes() {
    let learner = Learner::new();
    let mut process = learner
        .process(&["watch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let first = step(0, "4.5");
    let second = step(1, "4.25");
    let text = format!("{HELLO}\n{first}\n{second}\n{{\"event\":\"st");
    let mut input = process.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("written");

    drop(input);

    let output = process.wait_with_output().expect("ends");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("4.25"), "{shown}");
}

/// Writes the file of a training of one step.
fn write_short_training(learner: &Learner) {
    let text = format!("{HELLO}\n{}\n{ENDED}\n", step(0, "4.5"));
    learner.write("run.jsonl", text);
}

#[test]
fn a_reader_of_the_output_may_leave() {
    let learner = Learner::new();
    write_short_training(&learner);
    let program = env!("CARGO_BIN_EXE_perflings");
    let piped = format!("'{program}' watch run.jsonl 2>&1 | true");

    let status = std::process::Command::new("sh")
        .args(["-c", &piped])
        .current_dir(learner.home.path())
        .status();

    assert!(status.expect("runs").success());
}

#[test]
fn a_full_disk_is_an_error() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let learner = Learner::new();
    write_short_training(&learner);

    let output = learner.run(&["watch", "run.jsonl", "--record", "/dev/full"]);

    assert_ne!(output.code, Some(0), "{}", output.err);
    assert!(!output.err.contains("panicked"), "{}", output.err);
}

/// Returns the folder of a training that was recorded on an H200.
fn recorded_training(name: &str) -> String {
    format!("{}/tests/data/watched/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns the lines of a text that are JSON.
fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Watches recorded trainings. Returns the output, and the events that were recorded again.
fn watch_trainings(names: &[&str]) -> (String, Vec<Value>) {
    let learner = Learner::new();
    let folders: Vec<String> = names.iter().map(|name| recorded_training(name)).collect();
    let mut args = vec!["watch"];
    args.extend(folders.iter().map(String::as_str));
    args.extend(["--record", "again.jsonl"]);
    let output = learner.run(&args);
    output.succeeds(&["first", "peak"]);
    let recording = fs::read_to_string(learner.path("again.jsonl")).expect("a recording");
    (output.out, json_lines(&recording))
}

/// Returns the events with this name.
fn events<'a>(lines: &'a [Value], name: &str) -> impl DoubleEndedIterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["event"] == name)
}

/// Returns the entries of a list of an event.
fn entries<'a>(event: &'a Value, list: &str) -> &'a [Value] {
    event[list].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn a_training_without_a_fault_has_no_lint() {
    for name in ["healthy", "healthy-f16"] {
        let (shown, _) = watch_trainings(&[name]);

        assert!(shown.contains("lints      none"), "{name}: {shown}");
    }
}

#[test]
fn lints_name_the_faults_of_the_stages_as_the_documentation_says() {
    let documentation = documentation();
    for (stage, lint) in [
        (1, "first-loss"),
        (3, "sync-in-step"),
        (4, "one-kernel-dominates"),
        (5, "launch-bound"),
        (6, "gradient-coverage"),
        (7, "launch-bound"),
    ] {
        let (shown, _) = watch_trainings(&[&format!("stage-{stage}")]);

        assert!(shown.contains(&format!("{lint}: ")), "{stage}: {shown}");
        let row_begin = format!("| {stage} |");
        let mut rows = documentation.lines();
        let row = rows.find(|row| row.starts_with(&row_begin)).expect("a row");
        assert!(row.contains(&format!("`{lint}`")), "{row}");
    }
}

#[test]
fn strided_reads_show_as_time_of_copies() {
    let copies_ms = |name: &str| -> f64 {
        let (_, lines) = watch_trainings(&[name]);
        events(&lines, "kernels")
            .flat_map(|profile| entries(profile, "rows"))
            .filter(|row| row["op"] == "copy")
            .filter_map(|row| row["ms"].as_f64())
            .sum()
    };
    assert!(copies_ms("stage-2") > 3.0 * copies_ms("healthy"));
}

#[test]
fn a_wasteful_attention_shows_as_a_peak_of_memory() {
    let peak_bytes = |name: &str| {
        let (_, lines) = watch_trainings(&[name]);
        let peaks = lines.iter().filter_map(|line| line["peak_bytes"].as_f64());
        peaks.fold(0.0, f64::max)
    };
    assert!(peak_bytes("stage-8") > 1.5 * peak_bytes("healthy"));
}

#[test]
fn a_missing_loss_scale_shows_as_zeros_of_gradients() {
    let most_zeros = |name: &str| {
        let (_, lines) = watch_trainings(&[name]);
        events(&lines, "gradients")
            .flat_map(|audit| entries(audit, "rows"))
            .filter_map(|row| row["zero_pct"].as_f64())
            .fold(0.0, f64::max)
    };
    assert!(most_zeros("stage-9") > 10.0 * most_zeros("healthy-f16"));
}

/// `torch.profiler` itself gives 9.718 ms of device time for this step.
#[test]
fn the_rows_of_a_profile_have_the_device_time_of_the_profiler_s_own_table() {
    let (_, lines) = watch_trainings(&["stage-1"]);

    let profile = events(&lines, "kernels").next().expect("a profile");
    let device_ms = profile["device_ms"].as_f64().expect("a time");
    assert!((device_ms - 9.718_091).abs() < 1e-3, "{device_ms}");
}

#[test]
fn a_profile_of_a_watched_step_has_the_figures_that_open_has() {
    let learner = Learner::new();
    for name in ["healthy", "stage-2", "stage-4", "stage-5"] {
        let (_, lines) = watch_trainings(&[name]);

        let profile = events(&lines, "kernels").next_back().expect("a profile");
        let trace = profile["file"].as_str().expect("its file");
        let opened = &json_lines(&learner.run(&["open", trace, "--json"]).out)[0];
        assert_eq!(profile["launches"], opened["launches"], "{name}");
        assert_eq!(profile["unique"], opened["distinct_names"], "{name}");
        let device_ns = (profile["device_ms"].as_f64().expect("a time") * 1e6).round();
        assert_eq!(Some(device_ns), opened["kernel_ns"].as_f64(), "{name}");
        let rows = entries(profile, "rows").iter();
        let calls = rows.filter_map(|row| row["calls"].as_u64());
        assert_eq!(Some(calls.sum()), opened["kernels"].as_u64(), "{name}");
        let lints_of_profiles = ["launch-bound", "one-kernel-dominates", "sync-in-step"];
        for lint in events(&lines, "lints").flat_map(|line| entries(line, "lints")) {
            let lint = lint["name"].as_str().expect("a name");
            let is_opened = entries(opened, "lints")
                .iter()
                .any(|other| other["name"] == lint);
            let is_of_profile = lints_of_profiles.contains(&lint);
            assert!(!is_of_profile || is_opened, "{name}: {lint}");
        }
    }
}

#[test]
fn a_second_folder_stands_beside_the_first_one_as_b() {
    let learner = Learner::new();
    let [healthy, strides] = ["healthy", "stage-2"].map(recorded_training);

    let output = learner.run(&["watch", &healthy, &strides, "--record", "both.jsonl"]);

    output.succeeds(&[
        "\nB: stage 2, fault on NVIDIA H200",
        "A step of B takes",
        "% more time than one of A.",
        "B differs from A by more",
    ]);
    let lines = json_lines(&fs::read_to_string(learner.path("both.jsonl")).expect("a recording"));
    for name in ["run", "step", "kernels", "throughput", "finished"] {
        for slot in ["a", "b"] {
            let has_slot = events(&lines, name).any(|event| event["slot"] == slot);
            assert!(has_slot, "{name} of {slot}");
        }
    }
    let reported = learner.run(&["report", "both.jsonl"]);
    reported.succeeds(&["## stage 3, healthy", "## B: stage 2, fault"]);
}

#[test]
fn standard_input_can_be_one_place_only() {
    let output = Learner::new().run(&["watch", "-", "-"]);

    output.fails(2, &["standard input can be one of the two"]);
}

#[test]
fn a_command_is_watched_beside_an_earlier_folder_that_did_not_end() {
    let learner = Learner::new();
    let earlier = format!("{HELLO}\n{}\n{}\n", step(0, "4.5"), step(1, "4.25"));
    fs::create_dir(learner.path("before")).expect("created");
    learner.write("before/rank-0.jsonl", earlier);
    let script = format!(
        "printf '%s\\n' '{HELLO}' '{}' '{ENDED}' > \"$PERFLINGS_WATCH/rank-0.jsonl\"; exit 3",
        step(0, "3.5")
    );

    let output = learner.run(&[
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

    output.fails(3, &["exit status: 3"]);
    for loss in ["4.25", "3.5"] {
        assert!(output.out.contains(loss), "{loss}: {}", output.out);
    }
    assert!(learner.path("after/rank-0.jsonl").exists());
}
