//! A stage from its first frame to its quiz, presentations, and recorded runs.

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

#[test]
fn beats_recorded_runs_and_background_pages_have_pictures() {
    let mut beat = built_in_course();
    act(&mut beat, Action::Present);
    train(&mut beat, 40);
    let mut asked = beat.clone();
    act(&mut asked, Action::NextBeat);
    let mystery = recorded_run("d01");
    let mut named = mystery.clone();
    act(&mut named, Action::Answer(0));
    let mut page = built_in_course();
    act(&mut page, Action::Open(Overlay::Glossary));
    act(&mut page, Action::TurnPage(2));
    let mut fixed = beat.clone();
    for _ in 0..4 {
        act(&mut fixed, Action::NextBeat);
    }
    train(&mut fixed, 60);
    picture("beat_curve", &mut beat, TYPICAL);
    picture("beat_vote", &mut asked, TYPICAL);
    let mut pairs = built_in_course();
    act(&mut pairs, Action::Stage(4));
    act(&mut pairs, Action::Present);
    train(&mut pairs, 40);
    let mut clocks = pairs.clone();
    act(&mut clocks, Action::Stage(3));
    train(&mut clocks, 40);
    let row = pairs.clone();
    for _ in 0..6 {
        act(&mut pairs, Action::NextBeat);
    }
    pair(&mut pairs, 20, false);
    let both = ["A broken 120.6 → 77.42   ● B fixed 6.86 → 5.52"];
    assert_says(&[(80, 24)], &fixed, &both);
    let asks = ["RECORDING 2026-11-21", "Why does this loss not fall?"];
    assert_says(&[(80, 24)], &mystery, &asks);
    let heads = ["╭ Flash attention, step by step ─", "← → turn, esc closes"];
    assert_says(&[(80, 24)], &page, &heads);
    for (name, mut app) in [
        ("beat_ledger", clocks),
        ("beat_kernels", row),
        ("beat_pairs", pairs),
        ("recording_named_wrongly", named),
    ] {
        picture(name, &mut app, (80, 24));
    }
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
        let whole_lesson = |app: &mut App| {
            (0..30)
                .map(|_| {
                    act(app, Action::Scroll(10));
                    text_at((width, height), app)
                })
                .collect::<String>()
        };
        assert!(!whole_lesson(&mut app).contains("tied head multiplies"));
        while app.reading().page_number().0 > 1 {
            act(&mut app, Action::TurnPage(-1));
        }
        act(&mut app, Action::Answer(0));
        assert!(
            !whole_lesson(&mut app).contains("tied head multiplies"),
            "the range is still open"
        );
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
        assert!(
            !whole_lesson(&mut app).contains("tied head multiplies"),
            "the evidence was not seen yet"
        );
        skip_locating(&mut app);
        for _ in 0..app.stage().expect("a stage").evidence.len() {
            act(&mut app, Action::NextPointer);
        }
        assert!(whole_lesson(&mut app).contains("tied head multiplies"));
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
