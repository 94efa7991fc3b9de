//! `perflings bench` from outside: mistakes are named before anything starts, and a real run has its figures.

use crate::learner;
use learner::Learner;
use serde_json::Value;

#[test]
fn mistakes_name_the_nearest_right_thing() {
    for (args, message) in [
        (
            &["--presets", "tinny"][..],
            "a similar value exists: 'tiny'",
        ),
        (&["--presets", "tiny,tiny"], "tiny is given twice"),
        (&["--versions", "v1,v9"], "It is one of v1, v2, v3, v4"),
        (&["--versions", "v1,v1"], "v1 is given twice"),
        (&["--versions", "v1+model.nrm=fused"], "model.norm"),
        (&["--versions", "v1+preset=small"], "--presets"),
        (
            &["--versions", "v1+train.context=100000"],
            "over the limit of 8192",
        ),
        (&["--devices", "cpux"], "did you mean `cpu`"),
        (&["--steps", "0"], "0 is not in 1..=1000000"),
        (&["--rounds", "0"], "0 is not in 1..=1000"),
        (&["--json", "--markdown"], "cannot be used with"),
        (
            &["--ablate"],
            "`bench --ablate` is now `bench --versions v1 --knobs --pairs 30`",
        ),
        (&["--ablate=full"], "`bench --ablate` is now"),
        (
            &["--sweep", "context=64,128"],
            "`bench --sweep context=64,128` is now a list of versions",
        ),
        (&["--pairs", "30", "--rounds", "2"], "cannot be used with"),
        (&["--pairs", "30", "--baseline", "x"], "cannot be used with"),
        (
            &["--pairs", "30", "--versions", "v1,v1+model.layers=8"],
            "v1 and v1+model.layers=8 do different work at tiny, because model.layers differs",
        ),
        (&["--min-ratio", "0.9"], "--baseline"),
        (
            &["--baseline", "x.json", "--min-ratio", "-1"],
            "a number above 0",
        ),
        (&["--baseline", "x.json"], "x.json"),
        (
            &["--baseline", "half.json"],
            "half.json is not a result of `bench`",
        ),
        (
            &["--baseline", "other.json"],
            "another kind of bench (`ablation`)",
        ),
        (&["--set", "preset=small"], "--presets"),
        (&["--set", "model.nrm=fused"], "model.norm"),
        (&["--output", "."], "is a folder"),
        (
            &["--output", "no/such/folder/x"],
            "cannot write in no/such/folder",
        ),
        (&["--engine", ""], "--engine"),
    ] {
        let learner = Learner::new();
        learner.write("half.json", r#"{"bench":"versions","format":1,"#);
        learner.write("other.json", r#"{"bench":"ablation","format":1}"#);
        let output = learner.run(&[&["bench"], args].concat());
        output.fails(2, &[message]);
        assert!(output.out.is_empty(), "{args:?}");
    }
}

/// Runs `bench` at `tiny` with these arguments, which are separated by spaces.
fn bench(learner: &Learner, args: &str) -> learner::Output {
    let all = format!("bench --presets tiny {args}");
    learner.run(&all.split(' ').collect::<Vec<_>>())
}

/// Returns the report that a bench on the CPU prints.
fn report(learner: &Learner, args: &str) -> Value {
    let output = bench(learner, &format!("--devices cpu --json {args}"));
    assert_eq!(output.code, Some(0), "{}", output.err);
    serde_json::from_str(output.out.trim()).expect("JSON")
}

#[test]
fn each_version_has_a_cell_with_its_figures() {
    let learner = Learner::new();

    let report = report(&learner, "--versions v1,v3 --steps 4 --rounds 2");

    assert_eq!(report["bench"], "versions");
    assert_eq!(report["steps"], 4);
    let cells = report["cells"].as_array().expect("cells");
    let names: Vec<_> = cells.iter().map(|cell| cell["version"].as_str()).collect();
    assert_eq!(names, [Some("v1"), Some("v3")]);
    assert_ne!(cells[0]["config"], cells[1]["config"]);
    for cell in cells {
        assert_eq!(cell["preset"], "tiny");
        assert_eq!(cell["rounds"], 2);
        let rounds = cell["speed"]["rounds_ms"].as_array().map(Vec::len);
        assert_eq!(rounds, Some(2), "{cell}");
        for figure in [&cell["speed"]["samples_per_s"], &cell["first_point_s"]] {
            assert!(figure.as_f64().is_some_and(|figure| figure > 0.0), "{cell}");
        }
        assert_eq!(cell["grad"]["params_pct"].as_f64(), Some(100.0));
    }
}

#[test]
fn a_device_that_is_not_here_is_named_and_the_report_is_written_whole() {
    let learner = Learner::new();
    let args = "--versions v1 --devices cpu,gpu:9 --steps 4 --rounds 1 --json --output now.json";

    let output = bench(&learner, args);

    output.fails(0, &["gpu:9 is skipped: "]);
    assert!(output.out.is_empty(), "{}", output.out);
    let text = std::fs::read_to_string(learner.path("now.json")).expect("was written");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["missing"][0]["device"], "gpu:9");
    assert!(!learner.path("now.json.part").exists());
}

/// Fields that an earlier version of the program had, or did not have, do not matter.
#[test]
fn a_faster_result_of_an_earlier_version_is_a_baseline() {
    let learner = Learner::new();
    let mut earlier = report(&learner, "--versions v1,v3 --steps 4 --rounds 1");
    earlier["groups"] = Value::Array(Vec::new());
    for cell in earlier["cells"].as_array_mut().expect("cells") {
        cell["value"] = Value::Null;
        for figure in ["low_ms", "high_ms"] {
            cell["speed"][figure] = 1e-3.into();
        }
        cell["speed"]["step_ms"]["median"] = 1e-3.into();
        if let Some(kernels) = cell["kernels"].as_object_mut() {
            kernels.remove("reason");
        }
    }
    learner.write("then.json", earlier.to_string());
    let args = "--versions v1 --devices cpu --steps 4 --rounds 1 --baseline then.json --markdown";

    let slower = bench(&learner, args);

    slower.fails(1, &["0 passed, 1 slower (cpu tiny v1), 1 not comparable"]);
    for text in ["| SLOWER ", "cpu tiny v3: it was not"] {
        assert!(slower.out.contains(text), "{text}: {}", slower.out);
    }
}

#[test]
fn a_version_with_a_changed_knob_has_a_cell_of_its_own() {
    let learner = Learner::new();
    let args = "--steps 4 --rounds 1 --versions v1,v1+train.batch=2";

    let report = report(&learner, args);

    let cells = report["cells"].as_array().expect("cells");
    let batches: Vec<_> = cells.iter().map(|cell| cell["batch"].as_u64()).collect();
    assert_eq!(batches, [Some(8), Some(2)]);
    assert_eq!(cells[1]["version"], "v1+train.batch=2");
}

#[test]
fn versions_are_compared_in_pairs_with_the_first_one() {
    let learner = Learner::new();

    let report = report(&learner, "--pairs 10 --versions v1,v1+model.norm=fused");

    assert_eq!(report["bench"], "pairs");
    let rows = report["pairs"].as_array().expect("rows");
    let names: Vec<_> = rows.iter().map(|row| row["version"].as_str()).collect();
    assert_eq!(names, [Some("v1"), Some("v1+model.norm=fused")]);
    for row in rows {
        assert_eq!(row["first"], "v1");
        assert_eq!(row["pair"]["n"], 10, "{row}");
        assert!(row["pair"]["low"].is_number(), "{row}");
    }
}
