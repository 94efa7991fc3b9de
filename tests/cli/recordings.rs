//! Recordings: written, cut, replayed, reported, exported, refused.

use super::*;

#[test]
fn a_recording_round_trips_through_replay_report_and_export() {
    let learner = Learner::new();
    let file = learner.path("run.jsonl").display().to_string();
    let output = learner.run(&[
        "run",
        "1",
        "--record",
        &file,
        "--engine",
        &learner.engine(&a_run()),
    ]);
    output.succeeds(&[]);
    assert!(output.err.contains("recorded in"), "{}", output.err);
    assert!(!learner.path("run.jsonl.part").exists());
    let recorded = std::fs::read_to_string(&file).expect("recorded");
    assert!(
        !recorded.contains("heartbeat") && recorded.lines().count() == 6,
        "{recorded}"
    );
    learner.run(&["replay", &file]).succeeds(&[
        "recording of a stand-in, 2 threads, 2026-11-21, 6 lines",
        "6.9500 first",
    ]);
    learner.run(&["report", &file]).succeeds(&[
        "# perflings report",
        "Measured on 2026-11-21",
        "6.9500 at step 0",
        "6.5000 at step 2",
    ]);
    // What is read is not replaced, and `-` is stdout.
    learner
        .run(&["report", &file, "--out", &file])
        .fails(2, &["this is the recording that is read"]);
    learner
        .run(&["report", &file, "--out", "-"])
        .succeeds(&["# perflings report"]);
    let page = learner.path("run.html").display().to_string();
    learner
        .run(&["report", &file, "--out", &page])
        .succeeds(&[]);
    let page = std::fs::read_to_string(page).expect("written");
    for wanted in [
        "<!doctype html>",
        "6.9500 at step 0",
        "<path class=\"curve",
        "</html>",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    // Without a recording: what the learner did.
    learner.run(&["report", "--html"]).succeeds(&[
        "<!doctype html>",
        "<h2>Score</h2>",
        "0 of 9 stages passed",
    ]);
    learner
        .run(&["export", &file, "--format", "csv"])
        .succeeds(&["t_s,slot,stage", "a,0,custom,2,6.5,20,true,false,,,,"]);
    let trace = learner.path("run.pftrace");
    let output = learner.run(&[
        "export",
        &file,
        "--format",
        "perfetto",
        "--out",
        &trace.display().to_string(),
    ]);
    output.succeeds(&[]);
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
        .run(&["run", "1", "--record", &file, "--engine", &engine])
        .fails(1, &["exited with status 4"]);
    let part = format!("{file}.part");
    let output = learner.run(&["replay", &part]);
    output.succeeds(&["3 lines", "6.9000 at step 0"]);
    assert!(
        output.err.contains("ends without a summary"),
        "{}",
        output.err
    );
    let mut bytes = std::fs::read(&part).expect("lines");
    bytes.truncate(bytes.len() - 20);
    let output = learner.run(&["replay", &learner.write("cut.jsonl", bytes)]);
    output.succeeds(&["2 lines"]);
    assert!(
        output
            .err
            .contains("cut.jsonl: the recording is cut in the middle, from line 3"),
        "{}",
        output.err
    );
}

#[test]
fn files_that_are_not_recordings_are_refused_by_name() {
    let learner = Learner::new();
    let replay = |file: String| learner.run(&["replay", &file]);
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
    replay("d99".to_owned()).fails(2, &["recorded runs are d01, d02, d03, d04, d05, d06"]);
    replay("d06".to_owned()).fails(2, &["`perflings open d06` shows"]);
    for command in ["open", "report"] {
        learner
            .run(&[command, "d01"])
            .fails(2, &["`perflings replay d01` shows"]);
        learner
            .run(&[command, "d99"])
            .fails(2, &["`d99` is neither a file nor a recorded run"]);
    }
    learner
        .run(&["replay", "d01", "--picture", "x.svg"])
        .fails(2, &["`replay` draws no picture any more"]);
    learner
        .run(&["replay", "b.jsonl", "--speed", "0"])
        .fails(2, &["write a number above 0"]);
}
