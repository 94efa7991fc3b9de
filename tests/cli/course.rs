//! The course and the learner's own files and progress.

use super::{Learner, a_run};

#[test]
fn the_course_is_listed_hinted_and_copied() {
    let learner = Learner::new();
    learner
        .says(&["list"])
        .succeeds(&["1  new        broken-init"]);
    learner.says(&["hint", "1"]).succeeds(&["hint 1/3: "]);
    let said = learner.says(&["hint", "broken-init", "3"]);
    said.succeeds(&["hint 3/3: "]);
    assert!(
        !said.out.contains("{{"),
        "placeholders are filled: {}",
        said.out
    );
    let first: serde_json::Value = serde_json::from_str(
        learner
            .says(&["list", "--json"])
            .out
            .lines()
            .next()
            .expect("a stage"),
    )
    .expect("JSON");
    assert_eq!(
        (
            first["id"].as_str(),
            first["hints"].as_u64(),
            first["state"].as_str()
        ),
        (Some("broken-init"), Some(3), Some("seen"))
    );
    learner
        .says(&["init", "copy"])
        .succeeds(&["files into copy"]);
    assert!(
        learner
            .path("copy/exercises/01-broken-init/config.toml")
            .is_file()
    );
    learner
        .says(&["init", "copy"])
        .fails(2, &["copy is not empty; name a new folder"]);
    learner
        .says(&["list", "--course", "copy"])
        .succeeds(&["broken-init"]);
    learner
        .says(&["list", "--course", "nowhere"])
        .fails(2, &["nowhere"]);
}

#[test]
fn a_reset_keeps_the_learner_s_file_aside() {
    let learner = Learner::new();
    let mine = learner.path("perflings/tiny-llama/work/broken-init/config.toml");
    std::fs::create_dir_all(mine.parent().expect("a folder")).expect("made");
    std::fs::write(&mine, "preset = \"tiny\"\n[model]\nnrom = \"fused\"\n").expect("written");
    learner
        .says(&["run", "1"])
        .fails(2, &["config.toml:3: unknown key `model.nrom`"]);
    learner
        .says(&["reset", "1"])
        .succeeds(&["stage 1 (broken-init) is as it began", "config.toml.1"]);
    let aside = std::fs::read_to_string(mine.with_file_name("config.toml.1")).expect("kept");
    assert!(aside.contains("nrom"));
    assert!(
        !std::fs::read_to_string(&mine)
            .expect("the starter")
            .contains("nrom")
    );
}

#[test]
fn damaged_progress_is_set_aside_and_named() {
    let learner = Learner::new();
    std::fs::create_dir_all(learner.path("perflings/tiny-llama")).expect("made");
    learner.write("perflings/tiny-llama/progress.toml", "current = [[[\n");
    let said = learner.says(&["list"]);
    said.succeeds(&["broken-init"]);
    assert!(
        said.err.contains("progress.toml:1") && said.err.contains("set aside as"),
        "{}",
        said.err
    );
    assert!(
        learner
            .path("perflings/tiny-llama/progress.toml.damaged-1")
            .is_file()
    );
}

#[test]
fn a_starter_edited_in_a_copy_of_the_course_is_the_learner_s_own() {
    let learner = Learner::new();
    learner.says(&["init", "copy"]).succeeds(&[]);
    let stage = learner.path("copy/exercises/01-broken-init");
    let solution = std::fs::read(stage.join("solution/config.toml")).expect("a solution");
    std::fs::write(stage.join("config.toml"), solution).expect("saved over the starter");
    let engine = learner.engine(&a_run());
    let said = learner.says(&[
        "run", "1", "--course", "copy", "--json", "--engine", &engine,
    ]);
    said.succeeds(&[]);
    assert!(
        said.err.contains("stage 1 with your ") && said.err.contains("01-broken-init/config.toml"),
        "{}",
        said.err
    );
    let said = learner.says(&["course", "check", "--course", "copy", "--engine", &engine]);
    assert_eq!(said.code, Some(1), "an author has to mend it");
    assert!(
        said.out.contains(
            "01-broken-init/stage.toml: config.toml and solution/config.toml say the same"
        ),
        "{}",
        said.out
    );
    learner
        .says(&["reset", "1", "--course", "copy"])
        .succeeds(&["your file is kept as", "config.toml.1"]);
    let said = learner.says(&["run", "1", "--course", "copy", "--engine", &engine]);
    assert!(!said.err.contains("with your"), "{}", said.err);
}
