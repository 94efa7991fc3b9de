//! Mistakes in a command or a file: one clear message, exit code 2.

use super::{Learner, a_run};

#[test]
fn help_shows_every_command_with_examples() {
    let output = Learner::new().run(&["--help"]);
    let commands = [
        "run", "compare", "check", "course", "list", "hint", "reset", "init", "doctor", "replay",
        "report", "export", "room", "engine",
    ];
    output.succeeds(&commands);
    output.succeeds(&[
        "Examples:",
        "perflings compare 4:broken 4:fixed",
        "Exit codes: 0",
    ]);
    Learner::new().run(&["run", "--help"]).succeeds(&[
        "--as", "--device", "--preset", "--set", "--steps", "--json", "--record", "--config",
    ]);
    Learner::new()
        .run(&["--version"])
        .succeeds(&["perflings 0."]);
}

#[test]
fn a_wrong_command_line_is_one_message_and_exit_code_2() {
    let learner = Learner::new();
    learner.run(&["runn"]).fails(
        2,
        &[
            "unrecognized subcommand 'runn'",
            "a similar subcommand exists: 'run'",
        ],
    );
    learner.run(&["run"]).fails(2, &["<STAGE>"]);
    learner
        .run(&["--free"])
        .fails(2, &["no terminal", "perflings run --config FILE"]);
    learner
        .run(&["--config", "mine.toml"])
        .fails(2, &["--free"]);
    learner
        .run(&["run", "1", "--as", "mended"])
        .fails(2, &["mended", "broken", "fixed"]);
    learner
        .run(&["run", "1", "--steps", "0"])
        .fails(2, &["--steps", "at least 1"]);
    learner
        .run(&["run", "1", "--device", "gup"])
        .fails(2, &["did you mean `gpu`", "vulkan-cpu"]);
    learner.run(&["run", "1", "--preset", "smal"]).fails(
        2,
        &["a similar value exists: 'small'", "tiny, small, medium"],
    );
    learner
        .run(&["run", "99"])
        .fails(2, &["there is no stage `99`", "1 broken-init"]);
    learner.run(&["run", "broken-int"]).fails(
        2,
        &["there is no stage `broken-int`; did you mean `broken-init`?"],
    );
    let far = learner.run(&["check", "zzz"]);
    assert!(!far.err.contains("did you mean"), "{}", far.err);
    far.fails(2, &["there is no stage `zzz`.", "`perflings list` shows"]);
    learner.run(&["run", "1", "--engine", "sh 'x"]).fails(
        2,
        &["--engine: `sh 'x` has a quotation mark that is not closed"],
    );
    learner
        .run(&["run", "1", "--engine", "no-such-program engine"])
        .fails(2, &["Failed to start the engine `no-such-program engine`"]);
    learner
        .run(&["export", "x.jsonl", "--format", "pdf"])
        .fails(2, &["pdf", "perfetto"]);
    for hints in ["4", "x", "-1"] {
        learner
            .run(&["hint", "1", hints])
            .fails(2, &[hints, "write how many hints to show: 1, 2 or 3"]);
    }
    for seed in ["abc", "-3"] {
        learner
            .run(&["check", "k06", "--seed", seed])
            .fails(2, &["a seed is a whole number, 0 or larger"]);
    }
}

#[test]
fn a_stage_and_its_variant_are_told_apart() {
    let learner = Learner::new();
    for command in ["run", "check", "hint", "reset"] {
        learner.run(&[command, "5:fixed"]).fails(
            2,
            &[
                "`5:fixed` is a variant of a stage",
                "perflings run 5 --as fixed",
            ],
        );
    }
    learner
        .run(&["run", "99:fixed"])
        .fails(2, &["there is no stage `99`"]);
    let wanted = ["write 5:broken or 5:fixed"];
    learner.run(&["compare", "5", "5"]).fails(2, &wanted);
    learner.run(&["compare", "5:fix", "v1"]).fails(2, &wanted);
    learner
        .run(&["export", "5", "--kernels", "texts"])
        .fails(2, &wanted);
    let other = learner.write("o.json", "{\"a\": 1}\n");
    learner
        .run(&["export", &other, "--kernels", "texts"])
        .fails(2, &["--kernels takes a stage variant such as 5:fixed"]);
}

#[test]
fn a_wrong_key_or_value_names_the_nearest_right_one() {
    let learner = Learner::new();
    let set = |assignment: &str| learner.run(&["run", "1", "--set", assignment]);
    set("model.nrom=fused").fails(
        2,
        &["unknown key `model.nrom`; the nearest known key is `model.norm`"],
    );
    set("model.norm=fussed").fails(2, &["cannot be \"fussed\"; did you mean \"fused\"?"]);
    set("model.norm").fails(2, &["has no `=`"]);
    set("train.batch=eight").fails(2, &["it takes a whole number"]);
    set("train.batch=0").fails(2, &["train.batch is 0; write 1 or more"]);
    set("model.heads=3").fails(2, &["3 heads do not divide hidden = 128; write heads = 2"]);
    set("model.kv-heads=3").fails(
        2,
        &["3 kv-heads do not divide heads = 4; write kv-heads = 2"],
    );
    set("train.context=9000").fails(2, &["over the limit of 8192"]);
}

#[test]
fn a_wrong_file_is_named_with_its_line() {
    let learner = Learner::new();
    let run = |file: &str| learner.run(&["run", "--config", file]);
    run(&learner.write("a.toml", "[model]\n\nnrom = 1\n"))
        .fails(2, &["a.toml:3: unknown key `model.nrom`"]);
    run(&learner.write("b.toml", "[train]\nbatch = \"8\"\n")).fails(
        2,
        &["b.toml:2: `train.batch` is \"8\"; it takes a whole number"],
    );
    run(&learner.write("c.toml", "[model\n")).fails(2, &["c.toml:1: is not valid TOML"]);
    run(&learner.write("d.toml", b"preset = \"tiny\"\n# \xff\n"))
        .fails(2, &["d.toml:2: is not UTF-8 text"]);
    run(&learner.write("e.toml", "#".repeat(300_000)))
        .fails(2, &["e.toml: has 300000 bytes; the limit is"]);
    run("missing.toml").fails(2, &["missing.toml: cannot be read"]);
    run(".").fails(2, &["is a folder; name a file"]);
}

#[test]
fn a_configuration_that_does_not_fit_in_memory_is_refused_with_the_numbers() {
    let output = Learner::new().run(&[
        "run",
        "1",
        "--device",
        "cpu",
        "--set",
        "train.batch=65536",
        "--set",
        "train.context=8192",
    ]);
    output.fails(
        2,
        &[
            "needs about",
            "available",
            "make train.batch, train.context or the preset smaller",
        ],
    );
    assert_eq!(output.out, "");
}

#[test]
fn comparing_different_work_is_refused() {
    let learner = Learner::new();
    learner.run(&["compare", "v1", "small:v1"]).fails(
        2,
        &[
            "v1 and small:v1 do different work",
            "differ in preset (tiny and small)",
        ],
    );
    let other = learner.write(
        "other.toml",
        "preset = \"tiny\"\n[train]\nbatch = 4\nseed = 7\n",
    );
    learner
        .run(&["compare", "v1", &other])
        .fails(2, &["train.seed (42 and 7)"]);
    learner
        .run(&["compare", "v1", "v7"])
        .fails(2, &["`v7` is not a stage variant", "v1 to v4"]);
    learner
        .run(&["compare", "99:broken", "1:fixed"])
        .fails(2, &["there is no stage `99`"]);
    learner
        .run(&["compare", "v1", "missing.toml"])
        .fails(2, &["missing.toml: cannot be read"]);
}

#[test]
fn without_a_terminal_the_workshop_runs_headless_and_says_so() {
    let learner = Learner::new();
    let output = learner.run(&["--engine", &learner.engine(&a_run())]);
    output.succeeds(&["samples/s"]);
    assert!(
        output
            .err
            .contains("there is no terminal here; running stage 1 without a screen"),
        "{}",
        output.err
    );
    learner
        .run(&["--room", "/nowhere"])
        .fails(2, &["--room shares what is done on the screen"]);
}
