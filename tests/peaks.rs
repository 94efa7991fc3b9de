//! The doctor measures what the devices here can do, remembers it, and survives a damaged file.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn doctor(home: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perflings"));
    command.arg("doctor").args(args).current_dir(home);
    for name in ["STATE", "DATA", "CONFIG", "CACHE"] {
        command.env(format!("XDG_{name}_HOME"), home);
    }
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn peaks_are_measured_kept_shown_and_measured_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    assert!(doctor(home, &[]).contains("peaks not measured yet"));

    let said: Value =
        serde_json::from_str(&doctor(home, &["--calibrate", "--json"])).expect("JSON");
    let devices = said["devices"].as_array().expect("devices");
    assert_eq!(devices[0]["select"], "cpu");
    for device in devices {
        for rate in ["flops", "bytes"] {
            let best = device["roof"][rate]["best"].as_f64().expect("a rate");
            assert!(best > 1e8, "{device}");
        }
        let date = device["roof"]["date"].as_str().expect("a date");
        assert!(doctor(home, &[]).contains(date));
    }

    let file = home.join("perflings/roofs.json");
    assert!(file.is_file());
    std::fs::write(&file, "{ damaged").expect("written");
    let said = doctor(home, &[]);
    assert!(said.contains("it was set aside as"), "{said}");
    assert!(said.contains("peaks not measured yet"), "{said}");
    let aside = home.join("perflings/roofs.json.damaged-1");
    assert_eq!(
        std::fs::read_to_string(aside).expect("set aside"),
        "{ damaged"
    );
}
