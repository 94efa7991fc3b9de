//! What a class gets: a kit on a stick, and a line about each laptop.

use std::os::unix::fs::PermissionsExt;
use std::process::Command as Process;

use super::{Learner, a_run};

#[test]
fn a_kit_starts_from_its_folder_or_says_why_not() {
    let learner = Learner::new();
    let engine = learner.engine(&a_run());
    let recorded = learner.run(&["run", "1", "--engine", &engine, "--record", "mine.jsonl"]);
    assert_eq!(recorded.code, Some(0), "{}", recorded.err);
    let kit = learner.run(&["kit", "a stick", "--recording", "mine.jsonl"]);
    kit.succeeds(&["wrote a kit for linux"]);
    for name in [
        "README.txt",
        "course/lessons/glossary.md",
        "recordings/mine.jsonl",
    ] {
        assert!(learner.path("a stick").join(name).is_file(), "{name}");
    }
    let start = |args: &[&str]| {
        let mut start = Process::new("sh");
        start.arg(learner.path("a stick/start.sh")).args(args);
        let output = start.env("HOME", learner.home.path()).output();
        let output = output.expect("starts");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8(said).expect("UTF-8"),
        )
    };
    let (code, said) = start(&["list"]);
    assert!(code == Some(0) && said.contains("broken-init"), "{said}");
    // Commands take the course of the kit, too.
    let stage = learner.path("a stick/course/exercises/01-broken-init/stage.toml");
    let text = std::fs::read_to_string(&stage).expect("a stage");
    let text = text.replace("A loss that should not exist", "Mine");
    std::fs::write(&stage, text).expect("written");
    let (code, said) = start(&["list"]);
    assert!(code == Some(0) && said.contains(" Mine "), "{said}");
    // Without a command it is the workshop with the course of the kit, which asks for a terminal here.
    let (code, said) = start(&["--stage", "nowhere"]);
    assert!(
        code == Some(2) && !said.contains("unexpected argument"),
        "{said}"
    );
    // As on a stick that is mounted noexec.
    let program = learner.path("a stick/perflings");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o644)).expect("set");
    let (code, said) = start(&[]);
    let copy = format!("cp '{}' ~/perflings", program.display());
    assert!(
        code == Some(1) && said.contains("noexec") && said.contains(&copy),
        "{said}"
    );
    std::fs::write(&program, "\u{7f}ELF of another machine").expect("written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("set");
    let (code, said) = start(&[]);
    assert!(
        code == Some(1) && said.contains("It was made for linux"),
        "{said}"
    );
    learner
        .run(&["kit", "a stick"])
        .fails(2, &["is not empty; name a new folder"]);
}

#[test]
fn the_doctor_has_a_line_for_a_class() {
    let learner = Learner::new();
    let said = learner.run(&["doctor", "--room", "--engine", "false"]);
    assert_eq!(said.code, Some(1));
    let line = said.out.trim_end();
    assert!(
        line.starts_with("MISSING  ") && line.contains("no terminal") && !line.contains('\n'),
        "{line}"
    );
    let said = learner.run(&["doctor", "--room", "--json", "--engine", "false"]);
    let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(
        (&found["ready"], &found["gflops"]),
        (&false.into(), &serde_json::Value::Null)
    );
    let missing = found["missing"].to_string();
    assert!(missing.contains("no device"), "{missing}");
}

#[test]
fn the_program_holds_the_course_of_this_checkout() {
    let learner = Learner::new();
    let mut init = learner.process(&["init", "copy"]);
    let init = init.env_remove("CARGO_PKG_NAME").output().expect("starts");
    assert!(init.status.success());
    let differ = Process::new("diff")
        .args(["-rq", "exercises"])
        .arg(learner.path("copy/exercises"))
        .output();
    let differ = String::from_utf8(differ.expect("starts").stdout).expect("UTF-8");
    // cargo does not see a file that was added.
    assert_eq!(differ, "", "`touch src/main.rs`, then build again");
}
