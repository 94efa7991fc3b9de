//! A kernel exercise in a real terminal: opened with keys, saved as editors save, failing, passing, and with every kind of
//! file that can replace a kernel. The checks run on a CPU driver of Vulkan; without one these tests are skipped.
#![cfg(target_os = "linux")]

use crate::{adapter, pty};
use std::path::PathBuf;

use perflings::course::{Course, Exercise};
use pty::Terminal;

/// The exercise, and its place in the list of stages and exercises.
fn k01(course: &Course) -> (usize, &Exercise) {
    let at = course
        .exercises
        .iter()
        .position(|exercise| exercise.label() == "k01");
    let at = at.expect("the course has it");
    (course.stages.len() + at, &course.exercises[at])
}

/// Opens the exercise with keys alone. False where no kernel can be checked.
fn open(terminal: &mut Terminal, entry: usize) -> bool {
    terminal.see_training();
    terminal.press("l");
    terminal.see(&["kernels to write"]);
    for _ in 0..entry {
        terminal.press("j");
    }
    terminal.press("\r");
    terminal.see_that("a card", |screen| {
        screen.contains("exercise k01")
            && ["── not yet", "── not checked"]
                .iter()
                .any(|title| screen.contains(title))
    });
    let checked = !terminal.text().contains("── not checked");
    if !checked {
        assert!(terminal.text().contains("install"), "{}", terminal.text());
        adapter::skip("the card says what to install");
    }
    checked
}

fn file(terminal: &Terminal, course: &Course, name: &str) -> PathBuf {
    let state = terminal.home.path().join("STATE/perflings");
    state.join(&course.id).join("work/swiglu").join(name)
}

/// As editors save: a new file, put in the old one's place.
fn save(path: &PathBuf, text: impl AsRef<[u8]>) {
    let new = path.with_extension("wgsl.new");
    std::fs::write(&new, text).expect("written");
    std::fs::rename(&new, path).expect("renamed");
}

#[test]
fn a_saved_solution_turns_the_card_green_and_nonsense_is_placed() {
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
    // No kernel of it computes on the CPU, so the model waits.
    terminal.see_that("the model waiting", |screen| screen.contains("○ paused"));
    // Leaving for the stage and coming back keeps the result.
    terminal.press("\u{1b}");
    terminal.see(&["Answer the question"]);
    terminal.press("l");
    terminal.see(&["✓ k01"]);
    terminal.press("\u{1b}");
    terminal.see_that("the panels", |screen| !screen.contains("✓ k01"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let progress = terminal.home.path().join("STATE/perflings");
    let progress = progress.join(&course.id).join("progress.toml");
    let progress = std::fs::read_to_string(progress).expect("kept");
    let known = progress.split("[stage.swiglu]").nth(1).expect("a record");
    assert!(known.contains("state = \"passed\""), "{progress}");
}

#[test]
fn whatever_is_saved_is_answered_with_a_card() {
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
    for (what, text, said) in cases {
        save(&path, text);
        terminal.see_that(&format!("a card for {what}"), |screen| {
            // The card is in the left column, where a text may be on two lines.
            let column = |line: &str| line.chars().take(48).collect::<String>();
            let words: Vec<String> = screen
                .lines()
                .map(|line| column(line).trim_matches(['│', ' ']).to_owned())
                .collect();
            screen.contains("── not yet") && words.join(" ").contains(said)
        });
        // The solution passes again: a checking process is available, whatever happened to the last one.
        save(&path, good);
        terminal.see_that(&format!("recovery from {what}"), |screen| {
            screen.contains("✓ correct at N = 1")
        });
    }
    terminal.see(&["the model waits", "○ paused"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

/// A course of one stage and one configuration exercise with two runs of two steps each.
#[test]
fn runs_are_answered_measured_and_judged_on_the_screen() {
    let course = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/courses/runs");
    let mut terminal = Terminal::start_with(&["--course", course], &[]);
    terminal.resize(120, 50);
    terminal.see(&["running A broken", "any key closes"]);
    terminal.press(" ");
    terminal.see_that("the panels", |screen| !screen.contains("any key closes"));
    terminal.press("l");
    terminal.see(&["Does the first loss"]);
    terminal.press("j\r");
    // Nothing is measured before there is an answer.
    terminal.see(&["predict before you measure", "answer.toml:2: no answer yet"]);
    let file = terminal
        .home
        .path()
        .join("STATE/perflings/runs/work/length");
    let file = file.join("answer.toml");
    save(&file, "context = [\n");
    terminal.see(&["answer.toml:1: is not valid TOML"]);
    save(&file, "context = 8\n");
    terminal.see(&["answer.toml:1: `8` is not one of"]);
    // Saved with an answer: the runs are measured while the stage's run pauses.
    save(&file, "context = 16\n");
    terminal.see(&["── passed", "context  step ms  first loss"]);
    terminal.see(&["running A broken", "How many values are there?"]);
    terminal.press("b");
    terminal.see(&["The sweep has two.", "With two values"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let progress = terminal
        .home
        .path()
        .join("STATE/perflings/runs/progress.toml");
    let progress = std::fs::read_to_string(progress).expect("kept");
    let known = progress.split("[stage.length]").nth(1).expect("a record");
    assert!(known.contains("state = \"passed\""), "{progress}");
}
