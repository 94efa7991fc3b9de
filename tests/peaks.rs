//! The doctor measures the peaks of the devices, stores them, and survives a damaged file.

use crate::learner;
use learner::Learner;
use serde_json::Value;

fn doctor(learner: &Learner, args: &[&str]) -> String {
    let run = learner.run(&[&["doctor"], args].concat());
    run.succeeds(&[]);
    run.out
}

#[test]
fn peaks_are_measured_kept_shown_and_measured_again() {
    let learner = Learner::new();
    assert!(doctor(&learner, &[]).contains("peaks not measured yet"));

    let report: Value =
        serde_json::from_str(&doctor(&learner, &["--calibrate", "--json"])).expect("JSON");
    let devices = report["devices"].as_array().expect("devices");
    assert_eq!(devices[0]["select"], "cpu");
    for device in devices {
        for rate in ["flops", "bytes"] {
            let best = device["roof"][rate]["best"].as_f64().expect("a rate");
            assert!(best > 1e8, "{device}");
        }
        let date = device["roof"]["date"].as_str().expect("a date");
        assert!(doctor(&learner, &[]).contains(date));
    }

    let file = learner.path("perflings/roofs.json");
    assert!(file.is_file());
    std::fs::write(&file, "{ damaged").expect("written");
    let output = doctor(&learner, &[]);
    assert!(output.contains("it was set aside as"), "{output}");
    assert!(output.contains("peaks not measured yet"), "{output}");
    let aside = learner.path("perflings/roofs.json.damaged-1");
    assert_eq!(
        std::fs::read_to_string(aside).expect("set aside"),
        "{ damaged"
    );
}
