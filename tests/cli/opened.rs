//! `perflings open`: as text, JSON and pages, alone and side by side; our own recordings, and what is no profile.

use super::*;

/// Returns a trace of the PyTorch profiler with two steps; each step launches one kernel twice.
fn kineto(kernel: &str) -> String {
    let mut events = Vec::new();
    for (id, launch_us) in [(1, 0), (2, 40), (3, 200), (4, 240)] {
        events.push(format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":5,"args":{{"correlation":{id}}}}}"#,
            launch_us + 1
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"{kernel}","pid":0,"tid":7,"ts":{},"dur":10,"args":{{"device":0,"stream":7,"correlation":{id}}}}}"#,
            launch_us + 20
        ));
    }
    for (number, begin_us) in [(0, 0), (1, 200)] {
        events.push(format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":1,"tid":1,"ts":{begin_us},"dur":100}}"#
        ));
    }
    format!(
        r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
        events.join(",")
    )
}

#[test]
fn a_profile_is_summed_up_compared_reported_and_exported() {
    let learner = Learner::new();
    let a = learner.write("a.json", kineto("flash_fwd_kernel"));
    let b = learner.write("b.json", kineto("softmax_warp_forward"));
    learner.run(&["open", &a]).succeeds(&[
        "flash_fwd_kernel",
        "attention",
        "host-bound",
        "launch-bound: The device is idle for",
    ]);
    let output = learner.run(&["open", &a, "--json"]);
    output.succeeds(&[]);
    let json: serde_json::Value = serde_json::from_str(&output.out).expect("one object");
    assert_eq!(json["kernels"], 4);
    assert_eq!(json["busy_ns"], 40_000);
    assert_eq!(json["steps"][1]["dur_ns"], 100_000);
    assert_eq!(json["unread"], serde_json::Value::Null);
    learner
        .run(&["open", &a, &b])
        .succeeds(&["Vanished: in A alone, 1", "New: in B alone, 1"]);
    let both = learner.run(&["open", &a, &b, "--json"]);
    let both: serde_json::Value = serde_json::from_str(&both.out).expect("one object");
    assert_eq!(both["new"][0]["name"], "softmax_warp_forward");
    let path = |name: &str| learner.path(name).display().to_string();
    for (name, wanted) in [
        ("page.md", "| flash\\_fwd\\_kernel |"),
        ("page.html", "<svg"),
    ] {
        learner
            .run(&["open", &a, "--report", &path(name)])
            .succeeds(&[]);
        let page = std::fs::read_to_string(learner.path(name)).expect("written");
        assert!(page.contains(wanted), "{page}");
    }
    // Each export reads back with equal figures.
    for name in ["a.pftrace", "a_kernel_trace.csv", "a_kernel_stats.csv"] {
        learner
            .run(&["open", &a, "--export", &path(name)])
            .succeeds(&[]);
        let back = learner.run(&["open", &path(name), "--json"]);
        back.succeeds(&[]);
        let back: serde_json::Value = serde_json::from_str(&back.out).expect("one object");
        assert_eq!(
            (&back["kernels"], &back["kernel_ns"]),
            (&json["kernels"], &json["kernel_ns"]),
            "{name}"
        );
    }
    let sums = path("a_kernel_stats.csv");
    learner
        .run(&["open", &sums, "--export", &path("b.pftrace")])
        .fails(2, &["sums without times", "kernel_stats.csv"]);
    learner
        .run(&["open", &a, "--report", "page.pdf"])
        .fails(2, &["page.pdf", ".md or .html"]);
    learner
        .run(&["open", &a, "--export", "a.csv"])
        .fails(2, &["a.csv", "kernel_trace.csv"]);
    learner
        .run(&["open", &a, &b, "--export", &path("both.pftrace")])
        .fails(2, &["one profile", "b.json --export", "both.pftrace"]);
    assert!(!learner.path("both.pftrace").exists());
}

#[test]
fn a_folder_of_ranks_is_one_profile_with_the_ranks_side_by_side() {
    let learner = Learner::new();
    let text = kineto("flash_fwd_kernel");
    let trace_of_rank = |rank: u32| {
        let head = format!("{{\"distributedInfo\":{{\"rank\":{rank},\"world_size\":2}},");
        text.replacen('{', &head, 1)
    };
    std::fs::create_dir(learner.path("ranks")).expect("a folder");
    learner.write("ranks/b.json", trace_of_rank(0));
    learner.write("ranks/a.json", trace_of_rank(1));
    learner.write("ranks/notes.txt", "no trace");
    let folder = learner.path("ranks").display().to_string();
    let output = learner.run(&["open", &folder, "--json"]);
    output.succeeds(&[]);
    let json: serde_json::Value = serde_json::from_str(&output.out).expect("one object");
    assert_eq!(
        (&json["kernels"], &json["launches"]),
        (&8.into(), &8.into())
    );
    let values = |key: &str| -> Vec<&serde_json::Value> {
        let ranks = json["ranks"].as_array().expect("a list");
        ranks.iter().map(|rank| &rank[key]).collect()
    };
    assert_eq!(values("rank"), [0, 1]);
    assert_eq!(values("file"), ["b.json", "a.json"]);
    assert_eq!(values("kernels"), [4, 4]);
    let shown = learner.run(&["open", &folder]);
    shown.succeeds(&[
        "2 of 2: figures are sums",
        "Processes side by side",
        "rank 1",
    ]);
    assert!(
        shown.err.contains("1 files are not read") && shown.err.contains("notes.txt"),
        "{}",
        shown.err
    );
    std::fs::create_dir(learner.path("empty")).expect("a folder");
    learner
        .run(&["open", &learner.path("empty").display().to_string()])
        .fails(2, &["is a folder without a trace"]);
}

#[test]
fn a_recording_of_ours_is_a_profile_too() {
    let learner = Learner::new();
    let run = format!(
        "{}/exercises/d05-one-row/run.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let output = learner.run(&["open", &run, "--json"]);
    output.succeeds(&[]);
    let json: serde_json::Value = serde_json::from_str(&output.out).expect("one object");
    assert_eq!(json["format"], "perflings recording");
    assert!(json["kernels"].as_u64() > Some(0), "{json}");
    assert_eq!(
        json["idle_share"],
        serde_json::Value::Null,
        "gaps are not known, because only sums are"
    );
    let a = learner.write("a.json", kineto("flash_fwd_kernel"));
    learner
        .run(&["open", &a, &run])
        .succeeds(&["perflings recording", "Families", "product"]);
    for format in ["kernel-trace", "kernel-stats"] {
        learner
            .run(&["export", &run, "--format", format])
            .succeeds(&["mlp.down linear"]);
    }
}

#[test]
fn a_profiled_step_has_a_ledger_and_reads_back_with_the_same_figures() {
    let learner = Learner::new();
    let run = learner.path("run.jsonl").display().to_string();
    let flags = ["--steps", "8", "--device", "cpu", "--record", &run];
    learner
        .run(&[&["run", "1"], &flags[..]].concat())
        .succeeds(&[]);
    let figures = |file: &str| -> serde_json::Value {
        let output = learner.run(&["open", file, "--json"]);
        output.succeeds(&[]);
        serde_json::from_str(&output.out).expect("one object")
    };
    let json = figures(&run);
    assert_eq!(json["steps"].as_array().map(Vec::len), Some(1), "{json}");
    let busy = json["busy_ns"].as_u64().expect("calls have times");
    assert!(busy > 0 && Some(busy) <= json["steps"][0]["dur_ns"].as_u64());
    for name in [
        "run.pftrace",
        "run_kernel_trace.csv",
        "run_kernel_stats.csv",
    ] {
        let file = learner.path(name).display().to_string();
        learner
            .run(&["open", &run, "--export", &file])
            .succeeds(&[]);
        let back = figures(&file);
        for figure in [
            "kernels",
            "distinct_names",
            "kernel_ns",
            "busy_ns",
            "median_kernel_ns",
            "top",
        ] {
            if !back[figure].is_null() {
                assert_eq!(back[figure], json[figure], "{figure} of {name}");
            }
        }
    }
}

#[test]
fn an_exercise_asks_about_a_trace_that_the_program_holds() {
    let learner = Learner::new();
    learner.run(&["check", "d06"]).fails(1, &[]);
    for name in ["eager", "d06"] {
        learner
            .run(&["open", name])
            .succeeds(&["3,620", "81.5 %", "launch-bound", "host-bound"]);
    }
    learner
        .run(&["check", "d06", "--answer", "d"])
        .succeeds(&["passed", "host-bound"]);
}

#[test]
fn a_file_that_is_no_profile_is_refused_in_one_line() {
    let learner = Learner::new();
    for (name, bytes, wanted) in [
        ("empty.json", &b""[..], "is empty"),
        ("words.json", b"hello there", "is text, but not a trace"),
        (
            "zeros.bin",
            &[0; 100],
            "is binary, but not in a known format",
        ),
        ("wide.csv", b"\xff\xfeK\0", "UTF-16"),
        (
            "saved.csv",
            b"Kernel_Name;Start_Timestamp;End_Timestamp\nk;1;2\n",
            "other separators between cells",
        ),
    ] {
        let output = learner.run(&["open", &learner.write(name, bytes)]);
        output.fails(2, &[name, wanted]);
        assert_eq!(output.err.lines().count(), 1, "{}", output.err);
    }
    learner
        .run(&["open", "missing.json"])
        .fails(2, &["missing.json: cannot be read"]);
}
