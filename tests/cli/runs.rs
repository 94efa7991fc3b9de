//! Runs, comparisons and the doctor with a fake engine: what is printed, and the exit code.

use std::process::Stdio;

use protocol::*;

use super::*;

#[test]
fn a_run_ends_with_its_summary() {
    let learner = Learner::new();
    let output = learner.run(&[
        "run",
        "1",
        "--steps",
        "3",
        "--engine",
        &learner.engine(&a_run()),
    ]);
    output.succeeds(&[
        "loss       6.9500 first, 6.5000 last",
        "400.00 samples/s; step 20.00 ms [19.00, 21.00], p95 23.00, n = 3",
        "37 of 38 tensors, 98.5 %",
    ]);
    output.succeeds(&[
        "gradient-coverage: one tensor has none",
        "memory     not measured",
    ]);
}

#[test]
fn a_run_without_a_profiled_step_has_no_figures_of_one() {
    let learner = Learner::new();
    let grad = GradSummary {
        tensors: 38,
        ..GradSummary::default()
    };
    let stopped = |memory| {
        let ended = Finished {
            ended: Some("stopped".to_owned()),
            grad: grad.clone(),
            memory,
            ..finished()
        };
        let engine = learner.engine(&[started(), Event::Finished(Box::new(ended))]);
        learner.run(&["run", "1", "--engine", &engine]).out
    };
    let out = stopped(Memory::default());
    assert!(out.contains("gradients  not measured"), "{out}");
    assert!(out.contains("memory     not measured"), "{out}");
    // An audit that found no gradient.
    let out = stopped(Memory {
        weights: 4096,
        ..Memory::default()
    });
    assert!(out.contains("gradients  0 of 38 tensors"), "{out}");
    assert!(out.contains("peak not measured; weights 4.0 KiB"), "{out}");
}

#[test]
fn json_prints_the_stream_unchanged_and_finished_is_its_last_line() {
    let learner = Learner::new();
    let output = learner.run(&[
        "run",
        "1",
        "--steps",
        "3",
        "--json",
        "--engine",
        &learner.engine(&a_run()),
    ]);
    output.succeeds(&[]);
    let expected = stream(&[hello(1)]) + &stream(&a_run());
    assert_eq!(output.out, expected);
    let last: serde_json::Value =
        serde_json::from_str(output.out.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        (last["event"].as_str(), last["loss_first"].as_f64()),
        (Some("finished"), Some(6.95))
    );
}

#[test]
fn a_missing_device_exits_with_3_and_says_what_was_looked_for() {
    let learner = Learner::new();
    let engine = learner.engine(&[failed(
        FailedKind::Device,
        "no GPU: Vulkan lists llvmpipe only",
    )]);
    learner
        .run(&["run", "1", "--device", "gpu", "--engine", &engine])
        .fails(3, &["no GPU: Vulkan lists llvmpipe only"]);
    let engine = learner.engine(&[failed(
        FailedKind::Usage,
        "bf16 is not computed here; use f32",
    )]);
    learner
        .run(&["run", "1", "--engine", &engine])
        .fails(2, &["bf16 is not computed here"]);
    let engine = learner.engine(&[failed(FailedKind::Internal, "kernel exploded")]);
    learner
        .run(&["run", "1", "--engine", &engine])
        .fails(1, &["kernel exploded"]);
}

#[test]
fn a_command_that_is_not_an_engine_exits_with_2_and_an_engine_that_dies_with_1() {
    let learner = Learner::new();
    let run = |engine: &str| learner.run(&["run", "1", "--engine", engine]);
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
fn a_run_that_breaks_off_exits_with_1() {
    let learner = Learner::new();
    let ended = Finished {
        ended: Some("not-finite: layers.0.norm1.gamma".to_owned()),
        loss_last: Num(f64::NAN),
        ..finished()
    };
    let engine = learner.engine(&[started(), Event::Finished(Box::new(ended))]);
    let output = learner.run(&["run", "1", "--engine", &engine]);
    output.fails(1, &[]);
    assert!(
        output
            .out
            .contains("ended early: not-finite: layers.0.norm1.gamma")
            && output.out.contains("NaN last"),
        "{}",
        output.out
    );
}

/// Starts a command with an engine that works until it gets `stop`, and sends the command ctrl-c in the middle.
fn interrupted(learner: &Learner, args: &[&str]) -> std::process::Output {
    let greeting = learner.write("hello.jsonl", stream(&[hello(1)]));
    let begin = learner.write("begin.jsonl", stream(&[started(), step(0, 6.9)]));
    let stopped = Finished {
        ended: Some("stopped".to_owned()),
        ..finished()
    };
    let end = learner.write("end.jsonl", stream(&[Event::Finished(Box::new(stopped))]));
    let begun = learner.path("begun");
    let engine = format!(
        "sh -c 'read x; cat {greeting}; read x; cat {begin}; : > {}; read stop; cat {end}; read x'",
        begun.display()
    );
    let child = learner
        .process(args)
        .args(["--engine", &engine])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    for _ in 0..500 {
        if begun.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("signalled");
    child.wait_with_output().expect("ends")
}

#[test]
fn ctrl_c_stops_the_run_and_keeps_its_summary() {
    let output = interrupted(&Learner::new(), &["run", "1", "--steps", "100000"]);
    assert_eq!(output.status.code(), Some(130));
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(out.contains("ended early: stopped"), "{out}");
    // Without a terminal no progress is printed.
    assert_eq!(String::from_utf8(output.stderr).expect("UTF-8"), "");
}

#[test]
fn ctrl_c_exits_with_130_everywhere() {
    for args in [
        &["run", "1"][..],
        &["run", "all"],
        &["compare", "1:broken", "1:fixed"],
        &["check", "1"],
        &["check", "c03", "--answer", "c,a,b,e,d"],
        &["bench", "--devices", "cpu", "--versions", "v1,v3"],
        &[
            "bench",
            "--devices",
            "cpu",
            "--presets",
            "tiny",
            "--knobs",
            "--pairs",
            "30",
        ],
        &["course", "check", "--measure"],
    ] {
        let output = interrupted(&Learner::new(), args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{args:?}: {stderr}");
    }
}

#[test]
fn a_reader_that_goes_away_causes_no_panic() {
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
        wanted: 40,
        ratio: 1.5,
        low: (n >= 10).then_some(1.4),
        high: (n >= 10).then_some(1.6),
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
    let output = learner.run(&["compare", "v1", "v3", "--engine", &engine]);
    output.succeeds(&[
        "v3 is faster than v1: 1.500x [1.400, 1.600], n = 30\n",
        "differ in model.norm",
    ]);
    let output = learner.run(&["compare", "v1", "v3", "--json", "--engine", &engine]);
    assert_eq!(output.out.lines().count(), 5);
    let unclear = learner.engine(&[Event::Finished(Box::new(Finished {
        pair: Some(pair(6, Verdict::Unclear, true)),
        ..finished()
    }))]);
    learner
        .run(&["compare", "1:broken", "1:fixed", "--engine", &unclear])
        .succeeds(&["unclear (n=6): 1.500x (no interval below 10 pairs)"]);
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
    learner.run(&["doctor", "--engine", &engine]).succeeds(&[
        "a stand-in, 2 threads",
        "terminal",
        "progress",
        "No GPU was found",
    ]);
    let output = learner.run(&["doctor", "--json", "--engine", &engine]);
    let answer: serde_json::Value = serde_json::from_str(&output.out).expect("one JSON object");
    assert_eq!(answer["devices"][0]["select"], "cpu");
    let output = learner.run(&["doctor", "--engine", "false"]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.out.contains("The engine did not answer"),
        "{}",
        output.out
    );
}

#[test]
fn drivers_that_write_to_stderr_do_not_reach_stdout() {
    let learner = Learner::new();
    let answer = learner.write("run.jsonl", stream(&[hello(1)]) + &stream(&a_run()));
    let engine = format!("sh -c 'echo MESA warning >&2; read x; cat {answer}; read x; read x'");
    let output = learner.run(&["run", "1", "--engine", &engine]);
    output.succeeds(&["samples/s"]);
    assert!(!output.out.contains("MESA"), "{}", output.out);
}
