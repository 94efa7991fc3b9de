//! `perflings run all` from outside: a course of two stages, a few steps on the CPU.

use std::process::Stdio;
use std::time::Duration;

use crate::learner;
use learner::Learner;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const COURSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/courses/example");

/// Returns the arguments of `run all` on the example course, followed by `more`.
fn run_all<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "run", "all", "--course", COURSE, "--device", "cpu", "--steps", "4",
    ];
    [&args, more].concat()
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let learner = Learner::new();
    learner.write("taken", "a file");
    std::fs::create_dir(learner.path("empty")).expect("made");
    std::fs::create_dir(learner.path("full")).expect("made");
    learner.write("full/x", "kept");
    for (args, message) in [
        (run_all(&["--as", "fixed"]), "`run all` takes no --as"),
        (run_all(&["--set", "train.batch=2"]), "takes no --set"),
        (run_all(&["--record", "x"]), "takes no --record"),
        (
            run_all(&["--out", "full"]),
            "full exists and is not empty; write --out full-2",
        ),
        (run_all(&["--out", "taken"]), "write --out taken-2"),
        (run_all(&["--json", "--markdown"]), "cannot be used with"),
        (vec!["run", "1", "--out", "x"], "--out belongs to `run all`"),
        (
            vec!["run", "1", "--rounds", "2"],
            "--rounds belongs to `run all`",
        ),
    ] {
        let output = learner.run(&args);
        output.fails(2, &[message]);
        assert!(output.out.is_empty(), "{args:?}");
    }
    let output = learner.run(&["run", "all", "--course", COURSE, "--device", "gpu:9"]);
    output.fails(3, &["gpu:9"]);
}

#[test]
fn every_stage_has_its_row_and_its_files() {
    let learner = Learner::new();
    let output = learner.run(&run_all(&["--rounds", "2", "--out", "found", "--json"]));
    // A run of the second stage's starter may fail at its learning rate.
    assert!(matches!(output.code, Some(0 | 1)), "{}", output.err);
    let journey: Value = serde_json::from_str(output.out.trim()).expect("JSON");
    let rows = journey["rows"].as_array().expect("rows");
    let names: Vec<(u64, &str)> = rows
        .iter()
        .map(|row| {
            let stage = row["stage"].as_u64().expect("a number");
            (stage, row["variant"].as_str().expect("a name"))
        })
        .collect();
    let expected = [
        (0, "v1"),
        (1, "broken"),
        (1, "fixed"),
        (2, "broken"),
        (2, "fixed"),
    ];
    assert_eq!(names, expected);
    for row in rows {
        assert_ne!(row["phrase"].as_str(), Some(""), "{row}");
        if row["cell"].is_null() {
            assert!(row["reason"].is_string(), "{row}");
        } else {
            assert_has_figures(row);
            assert_has_files(row, &learner);
        }
    }
    let measured = rows.iter().filter(|row| !row["cell"].is_null()).count();
    assert!(measured >= 4, "{measured}");
    let read = |name: &str| std::fs::read_to_string(learner.path(name)).expect("written");
    let saved: Value = serde_json::from_str(&read("found/journey.json")).expect("JSON");
    assert_eq!(saved, journey);
    assert!(read("found/journey.md").contains("| 1 fixed |"));
    // The card of the summary shows the rows that were measured.
    let last = read("perflings/example/last-journey.json");
    let last: Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(last["preset"], journey["preset"]);
    assert_eq!(last["rows"].as_array().map(Vec::len), Some(measured));
    for entry in std::fs::read_dir(learner.path("found")).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        let is_partial = name.to_string_lossy().ends_with(".part");
        assert!(!is_partial, "{name:?}");
    }
}

/// Fails if a measured row lacks a figure, or if a stage has no ratio to its baseline.
fn assert_has_figures(row: &Value) {
    let cell = &row["cell"];
    let rate = cell["speed"]["samples_per_s"].as_f64();
    assert!(rate.is_some_and(|rate| rate > 0.0), "{row}");
    let rounds = cell["speed"]["rounds_ms"].as_array().map(Vec::len);
    assert_eq!(rounds, Some(2), "{row}");
    let launches = cell["kernels"]["launches_per_step"].as_u64();
    assert!(launches.is_some_and(|launches| launches > 0), "{row}");
    let is_baseline = row["stage"] == 0;
    assert_eq!(row["ratio"].is_null(), is_baseline, "{row}");
    if !is_baseline {
        let [low, ratio, high] = ["low", "ratio", "high"].map(|name| row["ratio"][name].as_f64());
        assert!(low <= ratio && ratio <= high, "{row}");
    }
}

/// Fails if a measured row has no log that can be reported, no table of kernels, or no trace.
fn assert_has_files(row: &Value, learner: &Learner) {
    let files: Vec<String> = serde_json::from_value(row["files"].clone()).expect("names");
    let paths: Vec<String> = files.iter().map(|name| format!("found/{name}")).collect();
    let [log, kernels, trace] = paths.as_slice() else {
        panic!("three files: {row}");
    };
    let report = learner.run(&["report", log]);
    report.succeeds(&["parameters with a gradient"]);
    let table = std::fs::read_to_string(learner.path(kernels)).expect("a table");
    assert!(table.lines().count() > 10, "{kernels}");
    let bytes = std::fs::read(learner.path(trace)).expect("a trace");
    assert!(bytes.len() > 1000, "{trace}");
}

#[test]
fn ctrl_c_keeps_the_figures_measured_so_far() {
    let learner = Learner::new();
    let args = run_all(&["--rounds", "1000", "--out", "found"]);
    let mut child = learner
        .process(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // The log of the second row is there once the first row is measured.
    let files = || std::fs::read_dir(learner.path("found")).map_or(0, Iterator::count);
    while files() < 2 {
        let ended = child.try_wait().expect("waits");
        assert!(ended.is_none(), "ended before the second row");
        std::thread::sleep(Duration::from_millis(20));
    }
    let number = i32::try_from(child.id()).expect("a number");

    kill_process(Pid::from_raw(number).expect("not 0"), Signal::INT).expect("signalled");

    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    for text in [
        "Interrupted: the following",
        "v1",
        "1 broken",
        "stage 2 fixed: not measured: interrupted",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    for name in ["found/v1.jsonl", "found/v1.pftrace", "found/journey.json"] {
        assert!(learner.path(name).is_file(), "{name}");
    }
}
