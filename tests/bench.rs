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
        (
            &["--versions", "v1,v9"],
            "[possible values: v1, v2, v3, v4]",
        ),
        (&["--devices", "cpux"], "did you mean `cpu`"),
        (&["--steps", "0"], "0 is not in 1..=1000000"),
        (&["--rounds", "0"], "0 is not in 1..=1000"),
        (&["--json", "--markdown"], "cannot be used with"),
        (&["--ablate", "--sweep", "batch=4"], "cannot be used with"),
        (&["--ablate=ful"], "'full'"),
        (&["--ablate", "--rounds", "2"], "cannot be used with"),
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
        (&["--sweep", "bach=4,8"], "did you mean `batch=4,8`"),
        (&["--sweep", "context=64,100000"], "over the limit of 8192"),
        (
            &["--sweep", "batch=4,8", "--set", "train.batch=4"],
            "leave out one of the two",
        ),
        (
            &["--ablate", "--set", "model.norm=fused"],
            "--ablate gives this key its values",
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

    // A result written by an earlier version is still a baseline: it had fewer fields.
    let mut earlier = report.clone();
    earlier.as_object_mut().expect("an object").remove("groups");
    for cell in earlier["cells"].as_array_mut().expect("cells") {
        cell["speed"]["step_ms"]["median"] = 1e-3.into();
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
        slower.out.contains("| cpu | tiny | v1 | SLOWER |"),
        "{}",
        slower.out
    );
    let config = |cell: &Value| cell["config"].as_str().map(str::to_owned);
    assert_ne!(config(&cells[0]), config(&cells[1]));
}
