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
    // Returns the exit code of the kit's script, and what it prints on stdout and stderr.
    let start = |args: &[&str]| {
        let output = Process::new("sh")
            .arg(learner.path("a stick/start.sh"))
            .args(args)
            .env("HOME", learner.home.path())
            .output()
            .expect("starts");
        let printed = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(printed).expect("UTF-8");
        (output.status.code(), text)
    };
    let (code, text) = start(&["list"]);
    assert!(code == Some(0) && text.contains("broken-init"), "{text}");
    // Commands take the course of the kit, too.
    let stage = learner.path("a stick/course/exercises/01-broken-init/stage.toml");
    let toml = std::fs::read_to_string(&stage).expect("a stage");
    let renamed = toml.replace("A loss that should not exist", "Mine");
    std::fs::write(&stage, renamed).expect("written");
    let (code, text) = start(&["list"]);
    assert!(code == Some(0) && text.contains(" Mine "), "{text}");
    // Without a command it is the workshop with the course of the kit, which asks for a terminal here.
    let (code, text) = start(&["--stage", "nowhere"]);
    assert!(
        code == Some(2) && !text.contains("unexpected argument"),
        "{text}"
    );
    // As on a stick that is mounted noexec.
    let program = learner.path("a stick/perflings");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o644)).expect("set");
    let (code, text) = start(&[]);
    let copy = format!("cp '{}' ~/perflings", program.display());
    assert!(
        code == Some(1) && text.contains("noexec") && text.contains(&copy),
        "{text}"
    );
    std::fs::write(&program, "\u{7f}ELF of another machine").expect("written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("set");
    let (code, text) = start(&[]);
    assert!(
        code == Some(1) && text.contains("It was made for linux"),
        "{text}"
    );
    learner
        .run(&["kit", "a stick"])
        .fails(2, &["is not empty; name a new folder"]);
}

#[test]
fn the_doctor_has_a_line_for_a_class() {
    let learner = Learner::new();
    let text = learner.run(&["doctor", "--room", "--engine", "false"]);
    assert_eq!(text.code, Some(1));
    let line = text.out.trim_end();
    assert!(
        line.starts_with("MISSING  ") && line.contains("no terminal") && !line.contains('\n'),
        "{line}"
    );
    let text = learner.run(&["doctor", "--room", "--json", "--engine", "false"]);
    let found: serde_json::Value = serde_json::from_str(&text.out).expect("JSON");
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
    let init = learner
        .process(&["init", "copy"])
        .env_remove("CARGO_PKG_NAME")
        .output()
        .expect("starts");
    assert!(init.status.success());
    let diff = Process::new("diff")
        .args(["-rq", "exercises"])
        .arg(learner.path("copy/exercises"))
        .output()
        .expect("starts");
    let differences = String::from_utf8(diff.stdout).expect("UTF-8");
    // cargo does not notice a file that was added to an included folder.
    assert_eq!(differences, "", "`touch src/main.rs`, then build again");
}
