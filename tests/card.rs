//! Exercises in a real terminal. They are opened with keys, and their files are saved as editors save them: wrong, right, and with every kind
//! of content that can replace a kernel. The checks run on a CPU driver of Vulkan; without one the tests of kernels are skipped.
#![cfg(target_os = "linux")]

use crate::{adapter, pty};
use std::path::PathBuf;

use perflings::course::{Course, Exercise};
use pty::Terminal;

/// Returns the exercise k01 and its place in the list of stages and exercises.
fn k01(course: &Course) -> (usize, &Exercise) {
    let index = course
        .exercises
        .iter()
        .position(|exercise| exercise.label() == "k01")
        .expect("an exercise of the course");
    (course.stages.len() + index, &course.exercises[index])
}

/// Opens the exercise at this place of the list with keys alone. Returns false where no kernel can be checked.
fn open(terminal: &mut Terminal, entry: usize) -> bool {
    terminal.see_training();
    terminal.press("l");
    terminal.see(&["kernels to write"]);
    for _ in 0..entry {
        terminal.press("j");
    }
    terminal.press("\r");
    terminal.see_that("card", |screen| {
        let has_result = screen.contains("── not yet") || screen.contains("── not checked");
        has_result && screen.contains("exercise k01")
    });
    let is_checked = !terminal.text().contains("── not checked");
    if !is_checked {
        assert!(terminal.text().contains("install"), "{}", terminal.text());
        adapter::skip("the card says what to install");
    }
    is_checked
}

/// Returns the path of a file of the exercise k01 in the learner's folder.
fn file(terminal: &Terminal, course: &Course, name: &str) -> PathBuf {
    let state = terminal.home.path().join("STATE/perflings");
    state.join(&course.id).join("work/swiglu").join(name)
}

/// Saves a file as editors do: writes a new file and puts it in the place of the old one.
fn save(path: &PathBuf, text: impl AsRef<[u8]>) {
    let new = path.with_extension("wgsl.new");
    std::fs::write(&new, text).expect("written");
    std::fs::rename(&new, path).expect("renamed");
}

#[test]
fn a_saved_solution_passes_and_a_syntax_error_is_shown_with_its_line() {
    let course = Course::builtin();
    let (entry, exercise) = k01(&course);
    let mut terminal = Terminal::start(&[]);
    terminal.resize(120, 50);
    if !open(&mut terminal, entry) {
        return;
    }
    terminal.see(&["✗ fails at `one element`", "this is still the starter"]);
    // The file exists before an editor is opened; without an editor the screen says where it is.
    terminal.press("o");
    terminal.see(&["EDITOR is not set; this file is checked"]);
    terminal.press("h");
    terminal.see(&["Hint 1/3"]);
    for kernel in &exercise.kernels().expect("kernels").kernels {
        save(
            &file(&terminal, &course, &kernel.file.name),
            &kernel.file.solution,
        );
    }
    terminal.see(&["── passed", "✓ correct at N = 1"]);
    save(&file(&terminal, &course, "starter.wgsl"), "fn main( {\n");
    terminal.see(&["── not yet", "starter.wgsl:1:10 `{`"]);
    // The model cannot compute with this kernel on the CPU, so it waits.
    terminal.see_that("waiting model", |screen| screen.contains("○ paused"));
    // The list keeps the result after the learner has left the exercise.
    terminal.press("\u{1b}");
    terminal.see(&["Answer the question"]);
    terminal.press("l");
    terminal.see(&["✓ k01"]);
    terminal.press("\u{1b}");
    terminal.see_that("panels", |screen| !screen.contains("✓ k01"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    assert_passed(&terminal, &course.id, "swiglu");
}

/// Asserts that the learner's progress has this exercise as passed.
fn assert_passed(terminal: &Terminal, course: &str, exercise: &str) {
    let folder = terminal.home.path().join("STATE/perflings").join(course);
    let progress = std::fs::read_to_string(folder.join("progress.toml")).expect("a file");
    let (_, record) = progress
        .split_once(&format!("[stage.{exercise}]"))
        .expect("a record");
    assert!(record.contains("state = \"passed\""), "{progress}");
}

#[test]
fn every_kind_of_wrong_file_is_answered_with_a_card_and_the_next_check_works() {
    let course = Course::builtin();
    let (entry, exercise) = k01(&course);
    let mut terminal = Terminal::start(&[]);
    terminal.resize(120, 50);
    if !open(&mut terminal, entry) {
        return;
    }
    let kernels = &exercise.kernels().expect("kernels").kernels;
    let good = &kernels[0].file.solution;
    let edited = |from: &str, to: &str| {
        assert!(good.contains(from), "the solution has `{from}`");
        good.replace(from, to).into_bytes()
    };
    let path = file(&terminal, &course, "starter.wgsl");
    let binary: Vec<u8> = (0..4096_u32).map(|i| (i * 37 % 251) as u8).collect();
    // Each case has a name, the bytes of the file, and a part of the card's text.
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("an empty file", Vec::new(), "starter.wgsl"),
        ("a binary file", binary, "another file may have been"),
        ("ten megabytes", vec![b'x'; 10 << 20], "10485760 bytes"),
        ("no entry point", edited("fn main", "fn mine"), "main"),
        (
            "another binding",
            edited("@binding(2)", "@binding(7)"),
            "does not compile",
        ),
        (
            "an endless loop",
            edited(
                "let g = gate[i];",
                "loop { if (gate[i] > 1e30) { break; } }\n let g = gate[i];",
            ),
            "does not end",
        ),
        (
            "a division by zero",
            edited("* up[i]", "* up[i] / f32(id.y)"),
            "inf and should be",
        ),
        (
            "a write out of bounds",
            edited("i >= N", "i >= N + 3u"),
            "accesses element 1",
        ),
    ];
    for (name, bytes, part) in cases {
        save(&path, bytes);
        terminal.see_that(&format!("card for {name}"), |screen| {
            // The card is in the left column, where a text may be on two lines.
            let column = |line: &str| line.chars().take(48).collect::<String>();
            let lines: Vec<String> = screen
                .lines()
                .map(|line| column(line).trim_matches(['│', ' ']).to_owned())
                .collect();
            screen.contains("── not yet") && lines.join(" ").contains(part)
        });
        // The solution passes again, although the process that checked the last file may have died.
        save(&path, good);
        terminal.see_that(&format!("recovery from {name}"), |screen| {
            screen.contains("✓ correct at N = 1")
        });
    }
    terminal.see(&["the model waits", "○ paused"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn the_runs_of_a_configuration_exercise_are_measured_after_the_learner_has_answered() {
    // The course has one stage and one exercise with two runs of two steps each.
    let course = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/courses/runs");
    let mut terminal = Terminal::start_with(&["--course", course], &[]);
    terminal.resize(120, 50);
    terminal.see(&["running A broken", "any key closes"]);
    terminal.press(" ");
    terminal.see_that("panels", |screen| !screen.contains("any key closes"));
    terminal.press("l");
    terminal.see(&["Does the first loss"]);
    terminal.press("j\r");
    // Nothing is measured before the learner has answered.
    terminal.see(&["predict before you measure", "answer.toml:2: no answer yet"]);
    let state = terminal.home.path().join("STATE/perflings/runs");
    let file = state.join("work/length/answer.toml");
    save(&file, "context = [\n");
    terminal.see(&["answer.toml:1: is not valid TOML"]);
    save(&file, "context = 8\n");
    terminal.see(&["answer.toml:1: `8` is not one of"]);
    // With an answer, saving the file measures the runs, and the stage's run pauses meanwhile.
    save(&file, "context = 16\n");
    terminal.see(&["── passed", "step ms  first loss"]);
    terminal.see(&["running A broken", "How many values are there?"]);
    terminal.press("b");
    terminal.see(&["The sweep has two.", "With two values"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    assert_passed(&terminal, "runs", "length");
}
