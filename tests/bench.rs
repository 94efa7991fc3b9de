//! `perflings bench` from outside: mistakes are named before anything starts, and a real run has its figures.

use crate::learner;
use learner::Learner;
use serde_json::Value;

#[test]
fn mistakes_name_the_nearest_right_thing() {
    for (args, says) in [
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
        let said = learner.run(&[&["bench"], args].concat());
        said.fails(2, &[says]);
        assert!(said.out.is_empty(), "{args:?}");
    }
}

#[test]
fn two_versions_are_measured_and_a_device_that_is_not_here_is_named() {
    let learner = Learner::new();
    let args = "bench --presets tiny --versions v1,v3 --devices cpu,gpu:9 --steps 4 --rounds 2 --json --output now.json";
    let args: Vec<&str> = args.split(' ').collect();
    let said = learner.run(&args);
    said.fails(0, &["gpu:9 is skipped: "]);
    assert!(said.out.is_empty());

    let text = std::fs::read_to_string(learner.path("now.json")).expect("was written");
    let report: Value = serde_json::from_str(&text).expect("is JSON");
    assert_eq!(
        (report["bench"].as_str(), report["steps"].as_u64()),
        (Some("versions"), Some(4))
    );
    assert_eq!(report["missing"][0]["device"], "gpu:9");
    let cells = report["cells"].as_array().expect("cells");
    let names: Vec<_> = cells.iter().map(|cell| cell["version"].as_str()).collect();
    assert_eq!(names, [Some("v1"), Some("v3")]);
    for cell in cells {
        assert_eq!(
            (cell["preset"].as_str(), cell["rounds"].as_u64()),
            (Some("tiny"), Some(2))
        );
        assert!(
            cell["speed"]["samples_per_s"]
                .as_f64()
                .is_some_and(|s| s > 0.0),
            "{cell}"
        );
        assert_eq!(cell["speed"]["rounds_ms"].as_array().map(Vec::len), Some(2));
        assert!(
            cell["first_point_s"].as_f64().is_some_and(|s| s > 0.0),
            "{cell}"
        );
        assert_eq!(cell["grad"]["params_pct"].as_f64(), Some(100.0));
    }
    assert!(!learner.path("now.json.part").exists());

    // A result written by an earlier version is still a baseline: it had other fields.
    let mut earlier = report.clone();
    earlier["groups"] = Value::Array(Vec::new());
    for cell in earlier["cells"].as_array_mut().expect("cells") {
        cell["speed"]["step_ms"]["median"] = 1e-3.into();
        cell["value"] = Value::Null;
        cell["speed"]["low_ms"] = 1e-3.into();
        cell["speed"]["high_ms"] = 1e-3.into();
        if let Some(kernels) = cell["kernels"].as_object_mut() {
            kernels.remove("reason");
        }
    }
    learner.write("then.json", earlier.to_string());
    let args = "bench --presets tiny --versions v1 --devices cpu --steps 4 --rounds 1 --baseline then.json --markdown";
    let args: Vec<&str> = args.split(' ').collect();
    let slower = learner.run(&args);
    slower.fails(1, &["0 passed, 1 slower (cpu tiny v1), 1 not comparable"]);
    assert!(
        slower.out.contains("| SLOWER ") && slower.out.contains("cpu tiny v3: it was not"),
        "{}",
        slower.out
    );
    let config = |cell: &Value| cell["config"].as_str().map(str::to_owned);
    assert_ne!(config(&cells[0]), config(&cells[1]));
}

#[test]
fn changed_versions_are_measured_in_turns_or_in_pairs() {
    let learner = Learner::new();
    let bench = |args: &str| -> Value {
        let all = format!("bench --presets tiny --devices cpu --json {args}");
        let args: Vec<&str> = all.split(' ').collect();
        let said = learner.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.err);
        serde_json::from_str(said.out.trim()).expect("JSON")
    };
    let report = bench("--steps 4 --rounds 1 --versions v1,v1+train.batch=2");
    let cells = report["cells"].as_array().expect("cells");
    let batches: Vec<_> = cells.iter().map(|cell| cell["batch"].as_u64()).collect();
    assert_eq!(batches, [Some(8), Some(2)]);
    assert_eq!(cells[1]["version"], "v1+train.batch=2");

    let report = bench("--pairs 10 --versions v1,v1+model.norm=fused");
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
