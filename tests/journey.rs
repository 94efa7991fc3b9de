//! `perflings run all` from outside: a course of two stages, a few steps on the CPU.

use crate::learner;
use std::process::Stdio;

use learner::Learner;
use serde_json::Value;

const COURSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/courses/example");

fn all<'a>(more: &[&'a str]) -> Vec<&'a str> {
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
    for (args, says) in [
        (all(&["--as", "fixed"]), "`run all` takes no --as"),
        (all(&["--set", "train.batch=2"]), "takes no --set"),
        (all(&["--record", "x"]), "takes no --record"),
        (
            all(&["--out", "full"]),
            "full exists and is not empty; write --out full-2",
        ),
        (all(&["--out", "taken"]), "write --out taken-2"),
        (all(&["--json", "--markdown"]), "cannot be used with"),
        (vec!["run", "1", "--out", "x"], "--out belongs to `run all`"),
        (
            vec!["run", "1", "--rounds", "2"],
            "--rounds belongs to `run all`",
        ),
    ] {
        let said = learner.run(&args);
        said.fails(2, &[says]);
        assert!(said.out.is_empty(), "{args:?}");
    }
    let said = learner.run(&["run", "all", "--course", COURSE, "--device", "gpu:9"]);
    said.fails(3, &["gpu:9"]);
}

#[test]
fn every_stage_has_its_row_and_its_files() {
    let learner = Learner::new();
    let said = learner.run(&all(&["--rounds", "2", "--out", "found", "--json"]));
    // The second stage's starter does not survive its learning rate, or it does: either is told.
    assert!(matches!(said.code, Some(0 | 1)), "{}", said.err);
    let journey: Value = serde_json::from_str(said.out.trim()).expect("JSON");
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
        assert!(
            row["phrase"]
                .as_str()
                .is_some_and(|phrase| !phrase.is_empty())
        );
        if row["cell"].is_null() {
            assert!(row["reason"].is_string(), "{row}");
            continue;
        }
        let cell = &row["cell"];
        assert!(
            cell["speed"]["samples_per_s"]
                .as_f64()
                .is_some_and(|figure| figure > 0.0)
        );
        assert_eq!(cell["speed"]["rounds_ms"].as_array().map(Vec::len), Some(2));
        assert!(
            cell["kernels"]["launches_per_step"]
                .as_u64()
                .is_some_and(|count| count > 0)
        );
        let ratio = &row["ratio"];
        assert_eq!(ratio.is_null(), row["stage"] == 0, "{row}");
        if !ratio.is_null() {
            let [low, ratio, high] = ["low", "ratio", "high"].map(|name| ratio[name].as_f64());
            assert!(low <= ratio && ratio <= high, "{row}");
        }
        let files: Vec<String> = serde_json::from_value(row["files"].clone()).expect("names");
        let [log, kernels, trace] = files.as_slice() else {
            panic!("three files: {row}");
        };
        let path = |name: &str| format!("found/{name}");
        let report = learner.run(&["report", &path(log)]);
        report.succeeds(&["parameters with a gradient"]);
        let table = std::fs::read_to_string(learner.path(&path(kernels))).expect("a table");
        assert!(table.lines().count() > 10, "{kernels}");
        let trace = std::fs::read(learner.path(&path(trace))).expect("a trace");
        assert!(trace.len() > 1000);
    }
    assert!(rows.iter().filter(|row| !row["cell"].is_null()).count() >= 4);
    let read = |name: &str| std::fs::read_to_string(learner.path(name)).expect("written");
    let kept: Value = serde_json::from_str(&read("found/journey.json")).expect("JSON");
    assert_eq!(kept, journey);
    assert!(read("found/journey.md").contains("| 1 fixed |"));
    let ending: Value =
        serde_json::from_str(&read("perflings/example/last-journey.json")).expect("JSON");
    assert_eq!(ending["preset"], journey["preset"]);
    let shown = ending["rows"].as_array().map(Vec::len);
    assert_eq!(
        shown,
        Some(rows.iter().filter(|row| !row["cell"].is_null()).count())
    );
    let parts = std::fs::read_dir(learner.path("found")).expect("a folder");
    let part = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".part");
    assert!(parts.flatten().all(|entry| !part(&entry.file_name())));
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let learner = Learner::new();
    let args = all(&["--rounds", "1000", "--out", "found"]);
    let mut child = learner
        .process(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // The log of the second row is there once the first row is done.
    let second = || std::fs::read_dir(learner.path("found")).map_or(0, Iterator::count) > 1;
    while !second() {
        let ended = child.try_wait().expect("waits");
        assert!(ended.is_none(), "two runs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("signalled");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    for says in [
        "Interrupted: the following",
        "v1",
        "1 broken",
        "stage 2 fixed: not measured: interrupted",
    ] {
        assert!(out.contains(says), "{says}: {out}");
    }
    for name in ["found/v1.jsonl", "found/v1.pftrace", "found/journey.json"] {
        assert!(learner.path(name).is_file(), "{name}");
    }
}
