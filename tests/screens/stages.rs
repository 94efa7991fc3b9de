//! A stage from its first frame to its quiz, the beats of its presentation, and recorded runs.

use super::*;

#[test]
fn one_state_has_a_picture_at_each_size() {
    // 59x15 is too small for panels, and 160x45 is the smallest size that shows all of them.
    for size in SIZES.into_iter().chain([(59, 15), (160, 45)]) {
        picture("two_runs", &mut b_trains(), size);
    }
}

#[test]
fn the_curves_and_the_state_of_the_run_are_on_every_screen() {
    picture("stage_1_before_the_prediction", &mut a_trains(), TYPICAL);
    picture("busy_machine", &mut on_a_busy_machine(), TYPICAL);
    let a = "A broken 120.6 → 77.42";
    let one_run = [a, "ln V 6.91", "entropy 2.31", "running A broken · step 40"];
    assert_says(&SIZES, &a_trains(), &one_run);
    assert_says(&SIZES, &on_a_busy_machine(), &one_run);
    assert_says(&SIZES, &on_a_busy_machine(), &["▲ Other", "use 60 %"]);
    let two_runs = [a, "B fixed 6.86 → 5.52", "running B fixed · step 60"];
    assert_says(&SIZES, &b_trains(), &two_runs);
}

/// Returns a stage of the built-in course at beat number `beat`, from 0, of its presentation. Its run has 40 steps.
fn at_beat(stage: u32, beat: usize) -> App {
    let mut app = built_in_course();
    act(&mut app, Action::Stage(stage));
    act(&mut app, Action::Present);
    train(&mut app, 40);
    for _ in 0..beat {
        act(&mut app, Action::NextBeat);
    }
    app
}

#[test]
fn each_kind_of_beat_has_a_picture() {
    picture("beat_curve", &mut at_beat(1, 0), TYPICAL);
    picture("beat_vote", &mut at_beat(1, 1), TYPICAL);
    picture("beat_ledger", &mut at_beat(3, 0), (80, 24));
    picture("beat_kernels", &mut at_beat(4, 0), (80, 24));
    let mut pairs = at_beat(4, 6);
    pair(&mut pairs, 20, false);
    picture("beat_pairs", &mut pairs, (80, 24));
}

#[test]
fn a_beat_after_the_fix_shows_both_curves() {
    let mut fixed = at_beat(1, 4);
    train(&mut fixed, 60);

    let curves = ["A broken 120.6 → 77.42   ● B fixed 6.86 → 5.52"];
    assert_says(&[(80, 24)], &fixed, &curves);
}

#[test]
fn a_recorded_run_asks_for_its_fault_and_judges_the_answer() {
    let mut recorded = recorded_run("d01");
    let question = ["RECORDING 2026-11-21", "Why does this loss not fall?"];
    assert_says(&[(80, 24)], &recorded, &question);

    act(&mut recorded, Action::Answer(0));

    picture("recording_named_wrongly", &mut recorded, (80, 24));
}

#[test]
fn a_background_page_has_its_title_and_the_keys_that_turn_it() {
    let mut page = built_in_course();
    act(&mut page, Action::Open(Overlay::Glossary));
    act(&mut page, Action::TurnPage(2));

    let head = ["╭ Flash attention, step by step ─", "← → turn, esc closes"];
    assert_says(&[(80, 24)], &page, &head);
}

#[test]
fn each_activity_of_a_stage_has_a_picture() {
    let mut prediction_complete = built_in_course();
    act(&mut prediction_complete, Action::Lesson);
    act(&mut prediction_complete, Action::Answer(1));
    act(&mut prediction_complete, Action::RangeShift(1));
    act(&mut prediction_complete, Action::RangeKeep);
    let mut walking = prediction_complete.clone();
    skip_locating(&mut walking);
    let mut evidence = walking.clone();
    act(&mut evidence, Action::NextPointer);
    let mut cause = evidence.clone();
    for _ in 0..3 {
        act(&mut cause, Action::NextPointer);
    }
    let mut result = cause.clone();
    solve(&mut result);
    act(&mut result, Action::Toggle);
    train(&mut result, 60);
    act(&mut result, Action::Lesson);
    let mut quiz = result.clone();
    act(&mut quiz, Action::Pair);
    pair(&mut quiz, 40, true);
    act(&mut quiz, Action::Lesson);
    act(&mut quiz, Action::TurnPage(2));
    act(&mut quiz, Action::Answer(0));
    let next = [
        "▸ evidence ─",
        "2/4 evidence The rms after each layer: where does it grow?",
    ];
    assert_says(&[(80, 24), TYPICAL], &evidence, &next);
    let states: [(&str, App, &[&str]); 5] = [
        (
            "asks_which_panel_shows_it",
            prediction_complete,
            &[
                "You said b: The head:",
                "Which panel shows it, and which number?",
            ],
        ),
        (
            "at_the_evidence",
            walking,
            &["1/4 loss Compare the first point with the line at ln V."],
        ),
        (
            "at_the_background",
            cause,
            &[
                "Why ln V is the line to watch",
                "enter: continue to the cause",
            ],
        ),
        (
            "checked",
            result,
            &[
                "measured",
                "✓ Correct. The loss of step 0 is taken",
                "Measured checks",
            ],
        ),
        (
            "looks_back",
            quiz,
            &[
                "Questions: 1 of 4 answered, 1 right",
                "✓ a: It about doubles.",
            ],
        ),
    ];
    for (name, mut app, says) in states {
        assert_says(&[(80, 24), TYPICAL], &app, says);
        picture(&format!("stage_1_{name}"), &mut app, TYPICAL);
    }
}

#[test]
fn the_cause_is_hidden_until_the_evidence_was_seen() {
    for (width, height) in [(80, 24), (120, 36), (200, 50)] {
        let mut app = a_trains();
        session::resize(&mut app, width, height);
        app.view.lesson_open = true;
        app.view.focus = Some(Panel::Lesson);
        let shows_cause = |app: &mut App| {
            let mut pages = (0..30).map(|_| {
                act(app, Action::Scroll(10));
                text_at((width, height), app)
            });
            pages.any(|page| page.contains("tied head multiplies"))
        };
        assert!(!shows_cause(&mut app), "nothing is predicted yet");
        while app.reading().page().1 > 1 {
            act(&mut app, Action::TurnPage(-1));
        }
        act(&mut app, Action::Answer(0));
        assert!(!shows_cause(&mut app), "the range is still open");
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
        assert!(!shows_cause(&mut app), "the evidence was not seen yet");
        skip_locating(&mut app);
        for _ in 0..app.stage().expect("a stage").evidence.len() {
            act(&mut app, Action::NextPointer);
        }
        assert!(shows_cause(&mut app), "the evidence was seen");
    }
}

#[test]
fn the_first_frame_needs_no_engine() {
    let mut app = before_any_event();
    assert_eq!(app.bench.run.state, RunState::Starting);
    let drawn = text_at((80, 24), &mut app);
    assert!(
        drawn.contains("Broken initialisation") && drawn.contains("starting"),
        "{drawn}"
    );
}
