//! The course and the learner's own files and progress.

use super::{Learner, a_run};

#[test]
fn the_course_is_listed_hinted_and_copied() {
    let learner = Learner::new();
    learner.run(&["list"]).succeeds(&["1  new  broken-init"]);
    learner.run(&["hint", "1"]).succeeds(&["hint 1/3: "]);
    let output = learner.run(&["hint", "broken-init", "3"]);
    output.succeeds(&["hint 3/3: "]);
    assert!(
        !output.out.contains("{{"),
        "placeholders are filled: {}",
        output.out
    );
    let first: serde_json::Value = serde_json::from_str(
        learner
            .run(&["list", "--json"])
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
        .run(&["init", "copy"])
        .succeeds(&["files into copy"]);
    assert!(
        learner
            .path("copy/exercises/01-broken-init/config.toml")
            .is_file()
    );
    // A second `init` writes the files that are missing, and leaves those that were changed.
    let lost = learner.path("copy/exercises/01-broken-init/config.toml");
    let mine = learner.path("copy/exercises/02-strides/config.toml");
    std::fs::remove_file(&lost).expect("removed");
    std::fs::write(&mine, "# mine\n").expect("written");
    learner
        .run(&["init", "copy"])
        .succeeds(&["wrote 1 file into copy"]);
    let kept = std::fs::read_to_string(&mine).expect("there");
    assert!(lost.is_file() && kept == "# mine\n", "{kept}");
    std::fs::remove_file(&mine).expect("removed");
    learner.run(&["init", "copy"]).succeeds(&["wrote 1 file"]);
    std::fs::create_dir(learner.path("other")).expect("made");
    std::fs::write(learner.path("other/x"), "").expect("written");
    learner
        .run(&["init", "other"])
        .fails(2, &["other is not empty; name a new folder"]);
    learner
        .run(&["list", "--course", "copy"])
        .succeeds(&["broken-init"]);
    learner
        .run(&["list", "--course", "nowhere"])
        .fails(2, &["nowhere"]);
}

#[test]
fn a_reset_keeps_the_learner_s_file_aside() {
    let learner = Learner::new();
    let mine = learner.path("perflings/tiny-llama/work/broken-init/config.toml");
    std::fs::create_dir_all(mine.parent().expect("a folder")).expect("made");
    std::fs::write(&mine, "preset = \"tiny\"\n[model]\nnrom = \"fused\"\n").expect("written");
    learner
        .run(&["run", "1"])
        .fails(2, &["config.toml:3: unknown key `model.nrom`"]);
    learner
        .run(&["reset", "1"])
        .succeeds(&["stage 1 (broken-init) is reset", "config.toml.1"]);
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
    let output = learner.run(&["list"]);
    output.succeeds(&["broken-init"]);
    assert!(
        output.err.contains("progress.toml:1") && output.err.contains("set aside as"),
        "{}",
        output.err
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
    learner.run(&["init", "copy"]).succeeds(&[]);
    let stage = learner.path("copy/exercises/01-broken-init");
    let solution = std::fs::read(stage.join("solution/config.toml")).expect("a solution");
    std::fs::write(stage.join("config.toml"), solution).expect("saved over the starter");
    let engine = learner.engine(&a_run());
    let output = learner.run(&[
        "run", "1", "--course", "copy", "--json", "--engine", &engine,
    ]);
    output.succeeds(&[]);
    assert!(
        output.err.contains("stage 1 with your ")
            && output.err.contains("01-broken-init/config.toml"),
        "{}",
        output.err
    );
    // The fake engine checks no kernel.
    for folder in std::fs::read_dir(learner.path("copy/exercises"))
        .expect("a copy")
        .flatten()
    {
        if folder.file_name().to_string_lossy().starts_with('k') {
            std::fs::remove_dir_all(folder.path()).expect("removed");
        }
    }
    let output = learner.run(&["course", "check", "--course", "copy", "--engine", &engine]);
    assert_eq!(output.code, Some(1), "an author has to fix it");
    assert!(
        output.out.contains(
            "01-broken-init/stage.toml: config.toml and solution/config.toml say the same"
        ),
        "{}",
        output.out
    );
    learner
        .run(&["reset", "1", "--course", "copy"])
        .succeeds(&["your file is kept as", "config.toml.1"]);
    let output = learner.run(&["run", "1", "--course", "copy", "--engine", &engine]);
    assert!(!output.err.contains("with your"), "{}", output.err);
}

#[test]
fn exercises_are_listed_hinted_and_answered() {
    let learner = Learner::new();
    learner.run(&["list"]).succeeds(&[
        "c01  new  config",
        "d05  new  detective",
        "k09  new  kernel",
    ]);
    learner.run(&["hint", "k01", "2"]).succeeds(&["hint 2/3: "]);
    let asked = learner.run(&["check", "c01"]);
    assert_eq!(asked.code, Some(1), "{}", asked.err);
    for text in [
        "FAIL  you must say where the bend is",
        "no answer yet",
        "answer.toml",
    ] {
        assert!(asked.out.contains(text), "`{text}` in {}", asked.out);
    }
    learner
        .run(&["check", "c01", "--answer", "many"])
        .fails(1, &[]);
    let wrong = learner.run(&["check", "c01", "--answer", "many"]);
    assert!(
        wrong
            .out
            .contains("`many` is not one of the answers; write one of 1, 2, 4")
    );
    learner
        .run(&["check", "c04", "--answer", "same"])
        .fails(2, &["this exercise asks for f16 and bf16"]);
    learner
        .run(&["check", "k99"])
        .fails(2, &["there is no exercise `k99`; did you mean `k09`?"]);
    learner
        .run(&["check", "1", "--answer", "b"])
        .fails(2, &["--answer belongs to exercises"]);
    learner
        .run(&["check", "1", "--seed", "5"])
        .fails(2, &["--seed belongs to kernel exercises"]);
    learner
        .run(&["check", "c01", "--seed", "5"])
        .fails(2, &["c01 takes no --seed"]);
}

#[test]
fn a_recorded_run_is_shown_and_its_fault_named() {
    let learner = Learner::new();
    learner
        .run(&["replay", "d03"])
        .succeeds(&["recording of", "AMD EPYC", "2026-11-21"]);
    let asked = learner.run(&["check", "d03"]);
    assert_eq!(asked.code, Some(1));
    assert!(asked.out.contains("perflings replay d03"), "{}", asked.out);
    let wrong = learner.run(&["check", "d03", "--answer", "b"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.out.contains("you said b, which is not right") && !wrong.out.contains("answer is a"),
        "{}",
        wrong.out
    );
    assert!(!wrong.err.contains("not looked at"), "{}", wrong.err);
    let again = learner.run(&["check", "d03", "--answer", "c"]);
    assert!(
        again.out.contains("you said c; the answer is a"),
        "{}",
        again.out
    );
    let unseen = learner.run(&["check", "d01", "--answer", "a"]);
    assert!(unseen.err.contains("not looked at"), "{}", unseen.err);
    learner
        .run(&["check", "d03", "--answer", "a"])
        .fails(1, &[]);
    learner.run(&["list"]).succeeds(&["d03  seen"]);
    let kept = learner.path("perflings/tiny-llama/progress.toml");
    let kept = std::fs::read_to_string(kept).expect("progress");
    assert!(kept.contains("[stage.missing-time]"), "{kept}");
    learner
        .run(&["reset", "d03"])
        .succeeds(&["d03 (missing-time) is reset"]);
    learner.run(&["list"]).succeeds(&["d03  new"]);
    // After a reset the first answer still counts, because the right one has been revealed.
    learner
        .run(&["check", "d03", "--answer", "a"])
        .fails(1, &[]);
    learner.run(&["list"]).succeeds(&["d03  seen"]);
    learner
        .run(&["check", "d03", "--answer", "e"])
        .fails(2, &["write a, b, c or d"]);
}

#[test]
fn answers_in_a_copy_are_read_and_kept_aside_by_a_reset() {
    let learner = Learner::new();
    learner.run(&["init", "copy"]).succeeds(&[]);
    let file = learner.path("copy/exercises/c03-rank/answer.toml");
    std::fs::write(&file, "order = [\n").expect("written");
    let args = ["check", "c03", "--course", "copy"];
    learner
        .run(&args)
        .fails(2, &["c03-rank/answer.toml:", "is not valid TOML"]);
    std::fs::write(&file, "order = \"a, b\"\n").expect("written");
    let output = learner.run(&args);
    assert!(output.err.contains("your answers in"), "{}", output.err);
    assert!(
        output
            .out
            .contains("`a,b` does not put all of them in order"),
        "{}",
        output.out
    );
    learner
        .run(&["reset", "c03", "--course", "copy"])
        .succeeds(&["answer.toml.1", "c03 (rank) is reset"]);
    let back = std::fs::read_to_string(&file).expect("the starter");
    assert!(back.contains("order = \"?\""), "{back}");
}

#[test]
fn progress_of_an_older_course_is_kept_by_id() {
    let learner = Learner::new();
    std::fs::create_dir_all(learner.path("perflings/tiny-llama")).expect("made");
    let old = "current = \"gone-stage\"\n[stage.gone-stage]\nstate = \"passed\"\n[stage.strides]\nstate = \"passed\"\n";
    learner.write("perflings/tiny-llama/progress.toml", old);
    learner.run(&["list"]).succeeds(&["2  passed  strides"]);
    learner.run(&["hint", "3"]).succeeds(&["hint 1/3"]);
    let kept = learner.path("perflings/tiny-llama/progress.toml");
    let kept = std::fs::read_to_string(kept).expect("progress");
    assert!(kept.contains("[stage.gone-stage]"), "{kept}");
}

#[test]
fn an_author_begins_with_examples_that_pass_and_reads_every_fault_at_once() {
    let learner = Learner::new();
    for (what, label) in [("stage", "01"), ("kernel", "k01"), ("recording", "d01")] {
        let name = format!("my-{what}");
        learner
            .run(&["course", "new", what, &name, "--course", "own"])
            .succeeds(&[&format!("wrote exercises/{label}-{name}")]);
    }
    learner
        .run(&["course", "check", "--text", "--course", "own"])
        .succeeds(&["passed: 1 stages and 2 exercises"]);
    // A recorded run needs no device, and the others are left alone.
    learner
        .run(&["course", "check", "d01", "--course", "own"])
        .succeeds(&["passed: d01"]);
    for (args, why) in [
        (&["stage", "my-stage"], "has this name"),
        (&["stage", "../x"], "lower-case letters"),
    ] {
        let args = [&["course", "new"], &args[..], &["--course", "own"]].concat();
        learner.run(&args).fails(2, &[why]);
    }
    learner
        .run(&["course", "check", "k07", "--course", "own"])
        .fails(2, &["no stage or exercise k07"]);
    let file = learner.path("own/exercises/01-my-stage/stage.toml");
    let text = std::fs::read_to_string(&file).expect("there");
    let wrong = text
        .replace("level =", "lvel = \"beginner\"\nlevel =")
        .replace("steps = 40", "stepz = 3\nsteps = 40")
        .replace("{{run.loss_first}}", "{{run.optimizer_ms}}")
        .replace("\"1\", \"ln V\"", "\"ln V\"")
        .replace("varies = [\"train.data\"]", "varies = [\"train.dat\"]");
    std::fs::write(&file, &wrong).expect("written");
    let output = learner.run(&["course", "check", "1", "--text", "--course", "own"]);
    for part in ["unknown key `lvel`", "unknown key `stepz`"] {
        assert!(output.out.contains(part), "{part}: {}", output.out);
    }
    let wrong = wrong
        .replace("lvel = \"beginner\"\n", "")
        .replace("stepz = 3\n", "");
    std::fs::write(&file, &wrong).expect("written");
    let output = learner.run(&["course", "check", "01", "--text", "--course", "own"]);
    assert_eq!(output.code, Some(1));
    for part in ["has 3 choices; write 4", "train.dat"] {
        assert!(output.out.contains(part), "{part}: {}", output.out);
    }
    let wrong = text.replace("{{run.loss_first}}", "{{run.optimizer_ms}}");
    std::fs::write(&file, &wrong).expect("written");
    let output = learner.run(&["course", "check", "--text", "--course", "own"]);
    let nearest = "the nearest known figure is `{{run.phases.optimizer}}`";
    assert!(output.out.contains(nearest), "{}", output.out);
}

#[test]
fn an_answer_that_does_not_follow_from_its_recording_or_profile_is_refused() {
    let learner = Learner::new();
    learner.run(&["init", "copy"]).succeeds(&[]);
    let check = |label: &str| {
        let args = ["course", "check", label, "--text", "--course", "copy"];
        learner.run(&args)
    };
    for (label, folder, right) in [("d03", "d03-missing-time", "a"), ("d06", "d06-idle", "d")] {
        check(label).succeeds(&["passed: "]);
        let file = learner.path(&format!("copy/exercises/{folder}/exercise.toml"));
        let text = std::fs::read_to_string(&file).expect("there");
        for wrong in ["a", "b", "c", "d"]
            .into_iter()
            .filter(|letter| *letter != right)
        {
            let declared = text.replace(
                &format!("\nanswer = \"{right}\""),
                &format!("\nanswer = \"{wrong}\""),
            );
            std::fs::write(&file, declared).expect("written");
            let output = check(label);
            assert_eq!(output.code, Some(1), "{}", output.out);
            let follows = format!("write `answer = \"{right}\"`");
            for part in [&follows, "asks for", "the recording gives"] {
                assert!(output.out.contains(part), "{part}: {}", output.out);
            }
        }
    }
}
