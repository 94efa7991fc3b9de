//! Settings, flags before and after a command, completions and manual pages.

use crate::learner::Learner;

#[test]
fn a_setting_is_the_default_of_its_flag() {
    let learner = Learner::new();
    learner.run(&["config", "theme"]).succeeds(&["not set"]);
    learner
        .run(&["config", "theme", "darc"])
        .fails(2, &["did you mean `dark`?"]);
    learner
        .run(&["config", "threads", "0"])
        .fails(2, &["from 1 to 1024"]);
    learner
        .run(&["config", "thread"])
        .fails(2, &["did you mean `threads`?"]);
    // The key `editor` takes text, also if the text looks like a number.
    assert_eq!(learner.run(&["config", "editor", "7"]).code, Some(0));
    assert_eq!(learner.run(&["config", "threads", "2"]).code, Some(0));
    let kept = std::fs::read_to_string(learner.path("perflings/config.toml")).expect("a file");
    assert_eq!(kept, "editor = \"7\"\nthreads = 2\n");
    assert_eq!(learner.run(&["config", "device", "gpu:7"]).code, Some(0));
    let help = learner.run(&["run", "--help"]);
    help.succeeds(&["[default: gpu:7]"]);
    learner.run(&["config"]).succeeds(&["gpu:7", "config.toml"]);
    assert_eq!(learner.run(&["config", "device", "--unset"]).code, Some(0));
    learner
        .run(&["run", "--help"])
        .succeeds(&["[default: auto]"]);
}

#[test]
fn a_setting_that_cannot_be_used_is_reported_and_left_out() {
    let learner = Learner::new();
    assert_eq!(learner.run(&["config", "theme", "dark"]).code, Some(0));
    let all = learner.run(&["config"]).out;
    let file = all.lines().next().expect("the path").to_owned();
    for (text, wanted) in [
        ("theme = \"purple\"\n", "the setting theme is not used"),
        (
            "teme = \"dark\"\n",
            ":1: unknown key `teme`; the nearest known key is `theme`",
        ),
        ("theme = \n", ":1: "),
    ] {
        std::fs::write(&file, text).expect("written");
        let listed = learner.run(&["list"]);
        listed.succeeds(&["broken-init"]);
        assert!(listed.err.contains(wanted), "{}", listed.err);
        assert!(
            learner
                .run(&["list", "--quiet"])
                .out
                .contains("broken-init")
        );
    }
}

#[test]
fn the_retired_setting_language_has_no_effect_and_a_notice() {
    let learner = Learner::new();
    assert_eq!(learner.run(&["config", "device", "gpu:7"]).code, Some(0));
    let file = learner.path("perflings/config.toml");
    std::fs::write(&file, "language = \"de\"\ndevice = \"gpu:7\"\n").expect("written");
    let told = "all lessons are in English; `perflings config language --unset` removes it";
    let help = learner.run(&["run", "--help"]);
    help.succeeds(&["[default: gpu:7]"]);
    assert_eq!(help.err.matches(told).count(), 1, "{}", help.err);
    learner
        .run(&["config", "language", "de"])
        .fails(2, &["language has no effect any more", told]);
    let unset = learner.run(&["config", "language", "--unset"]);
    assert_eq!(unset.code, Some(0), "{}", unset.err);
    let kept = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(kept, "device = \"gpu:7\"\n");
    let listed = learner.run(&["list", "--lang", "dee"]);
    listed.succeeds(&["broken-init"]);
    let told = "--lang has no effect any more: all lessons are in English";
    assert_eq!(listed.err.matches(told).count(), 1, "{}", listed.err);
}

#[test]
fn global_flags_come_before_or_after_a_command_and_all_others_after_it() {
    let learner = Learner::new();
    let after = learner.run(&["list", "--quiet"]);
    after.succeeds(&["broken-init"]);
    for before in [&["--quiet", "list"], &["--threads=2", "list"]] {
        assert_eq!(learner.run(before).out, after.out);
    }
    learner
        .run(&["--stage", "3", "list"])
        .fails(2, &["`--stage` stands before `list`"]);
    let output = learner.run(&["--device", "cpu", "run", "1"]);
    output.fails(
        2,
        &["write it after the command: `perflings run --device …`"],
    );
    learner
        .run(&["--json", "list"])
        .fails(2, &["unexpected argument '--json'", "'list --json' exists"]);
    for (line, wanted) in [
        (["--quiet", "lst"], "a similar subcommand exists: 'list'"),
        (["--quiet", "3"], "`perflings --stage 3` opens it"),
    ] {
        learner.run(&line).fails(2, &[wanted]);
    }
    let help = learner.run(&["course", "check", "--help"]).out;
    for line in [
        &["help", "course", "check"][..],
        &["--quiet", "help", "course", "check"],
    ] {
        assert_eq!(learner.run(line).out, help, "{line:?}");
    }
    learner
        .run(&["course", "--quiet", "check", "--course", "nowhere"])
        .fails(2, &["nowhere: cannot be read"]);
    learner
        .run(&["--theme", "darc"])
        .fails(2, &["did you mean `dark`?"]);
}

#[test]
fn every_command_takes_every_global_flag_on_either_side() {
    let learner = Learner::new();
    let help = learner.run(&["--help"]).out;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = listed
        .map_while(|line| line.split_whitespace().next())
        // `help` takes the name of a command and no flag.
        .filter(|name| !["engine", "help"].contains(name))
        .collect();
    assert!(commands.len() > 15, "{help}");
    for command in commands {
        let flags = &["--quiet", "--no-progress", "--threads", "2"][..];
        for words in [[flags, &[command]].concat(), [&[command], flags].concat()] {
            let output = learner.run(&[&words[..], &["--help"]].concat());
            assert_eq!(output.code, Some(0), "{words:?}: {}", output.err);
        }
    }
    learner
        .run(&["--threads", "0", "list"])
        .fails(2, &["1..=1024"]);
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let learner = Learner::new();
    for shell in ["bash", "zsh", "fish"] {
        learner
            .run(&["completions", shell])
            .succeeds(&["mystery", "colour-blind", "calibrate"]);
    }
    // Values of flags before the command: a test of fish itself needs fish.
    let fish = learner.run(&["completions", "fish"]);
    fish.succeeds(&[
        "$cmd[1..-2]",
        "vulkan-cpu",
        "-a \"theme markers ",
        "-a \"bash ",
    ]);
    learner
        .run(&["man"])
        .succeeds(&[".TH perflings 1", "mystery", "Examples:\n.nf\n  perflings "]);
    let dir = learner.path("man1");
    learner
        .run(&["man", dir.to_str().expect("text")])
        .succeeds(&["pages"]);
    let page = std::fs::read_to_string(dir.join("perflings-course-check.1")).expect("a page");
    assert!(page.contains("\\-\\-measure"), "{page}");
}

#[test]
fn the_list_has_predictions_and_outcomes() {
    let learner = Learner::new();
    let listed = learner.run(&["list", "--json"]);
    let first: serde_json::Value =
        serde_json::from_str(listed.out.lines().next().expect("a line")).expect("JSON");
    let outcome = &first["outcome"];
    assert!(outcome["prediction"].is_null() && outcome["prediction_skipped"] == false);
    assert_eq!(outcome["quiz_right"], 0);
}
