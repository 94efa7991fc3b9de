//! Faults that learners found, as sequences of keys in each stage.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::app::figures::figures;
use perflings::course::placeholder::number;
use perflings::tui::keys;

use super::*;

/// This stage of the built-in course, whose A has trained 40 steps.
fn stage_at(number: u32) -> App {
    let options = Options {
        stage: Some(number),
        ..Options::default()
    };
    let mut app = session::begin(Course::builtin(), options).0;
    train(&mut app, 40);
    app
}

/// Presses a key.
fn key(app: &mut App, code: KeyCode) {
    let event = KeyEvent::new(code, KeyModifiers::NONE);
    if let Some(action) = keys::action(event, app) {
        act(app, action);
    }
}

/// Answers the prediction, and keeps a range if the stage asks for one.
fn predict(app: &mut App) {
    key(app, KeyCode::Char('a'));
    if app.reading().estimates() {
        key(app, KeyCode::Right);
        key(app, KeyCode::Enter);
    }
}

/// Makes B the solution and starts it at this step. Returns its run.
fn run_b(app: &mut App, from_step: u64) -> RunSpec {
    solve(app);
    act(app, Action::Toggle);
    act(app, Action::Yes);
    let run = wanted(app);
    assert_eq!(run.slot, Slot::B);
    hear(app, sample::started(&run, from_step));
    run
}

#[test]
fn a_range_begins_in_the_middle_moves_with_every_key_and_can_be_typed() {
    let mut stages_with_range = 0;
    for stage in 1..=9 {
        let mut app = stage_at(stage);
        key(&mut app, KeyCode::Char('a'));
        let Some(estimate) = app.stage().and_then(|stage| stage.estimate.clone()) else {
            continue;
        };
        stages_with_range += 1;
        let range = |app: &App| {
            let range = app.lesson.learner.range;
            range.map(|range| (range.low, range.high))
        };
        for presses in 1..=9 {
            key(&mut app, KeyCode::Right);
            assert_eq!(range(&app), Some((27 + presses, 33 + presses)), "{stage}");
        }
        let value = estimate.from + 0.7 * (estimate.to - estimate.from);
        let typed = format!("{value:.2}");
        for digit in typed.chars() {
            key(&mut app, KeyCode::Char(digit));
            assert_eq!(app.view.confirm, None, "stage {stage}: {digit}");
        }
        assert_eq!(app.lesson.learner.typed, typed);
        key(&mut app, KeyCode::Enter);
        let stage = app.stage().expect("a stage");
        let progress = app.lesson.learner.progress_of(stage);
        let (low, high) = progress.estimate.expect("kept");
        assert!(
            low <= value && value <= high,
            "{}: {low} {value} {high}",
            stage.number
        );
    }
    assert!(stages_with_range > 0);
}

#[test]
fn a_hint_leaves_the_knobs_open_and_the_page_as_it_is() {
    for stage in 1..=9 {
        let mut app = stage_at(stage);
        predict(&mut app);
        skip_locating(&mut app);
        act(&mut app, Action::Knobs);
        assert!(app.knobs_open(), "stage {stage}");
        let page = app.view.lesson_page;
        for hint in 1..=3 {
            key(&mut app, KeyCode::Char('h'));
            assert_eq!(app.reading().hints().0, hint, "stage {stage}");
            assert!(app.knobs_open() && app.view.lesson_page == page);
            assert!(notice(&app).contains("page 1"), "{}", notice(&app));
        }
    }
}

/// The lesson describes A as it was found, even if A continues later with weights that B has trained.
#[test]
fn an_a_that_continues_after_b_keeps_its_own_figures() {
    for stage in 1..=9 {
        let mut app = stage_at(stage);
        let a = wanted(&app);
        hear(&mut app, sample::gradients(&a, 39, false));
        let found = |app: &App| {
            let figures = figures(app).expect("a stage");
            ["broken.grad.params_pct", "broken.loss_last"].map(|name| number(name, &figures))
        };
        let before = found(&app);
        assert!(before[0].is_some() && before[1].is_some(), "stage {stage}");
        let b = run_b(&mut app, 41);
        for step in 41..60 {
            hear(&mut app, sample::step(&b, step));
        }
        act(&mut app, Action::Toggle);
        hear(&mut app, sample::started(&a, 60));
        assert!(notice(&app).contains("weights that B trained"));
        for step in 60..80 {
            hear(&mut app, sample::step(&a, step));
        }
        hear(&mut app, sample::gradients(&a, 79, true));
        assert_eq!(found(&app), before, "stage {stage}, while A runs");
        let other = Finished {
            variant: "broken".to_owned(),
            steps: 80,
            ln_vocab: 6.93,
            loss_last: 1.0.into(),
            ..Finished::default()
        };
        hear(&mut app, Event::Finished(Box::new(other)));
        assert_eq!(found(&app), before, "stage {stage}, after its end");
    }
}

#[test]
fn evidence_compares_a_and_b_at_equal_steps_only() {
    for both in [true, false] {
        for stage in 1..=9 {
            let mut app = stage_at(stage);
            let evidence_of_a = app.bench.run.slot(Slot::A).evidence.as_ref();
            let step_of_a = evidence_of_a.expect("A was inspected").step;
            let step_of_b = if both { step_of_a } else { 61 };
            predict(&mut app);
            let b = run_b(&mut app, 41);
            hear(&mut app, sample::evidence(&b, step_of_b));
            let theme = perflings::app::ThemeName::Dark;
            let markers = perflings::app::Markers::Braille;
            let drawn = screen::panel(&mut app, Panel::Evidence, 120, 36, theme, markers);
            let text = screen::text(&drawn);
            assert_eq!(text.contains("A at step"), both, "stage {stage}: {text}");
            assert!(text.contains(&format!("B at step {step_of_b}")), "{text}");
        }
    }
}

#[test]
fn a_run_that_continues_another_has_no_first_loss() {
    for stage in 1..=9 {
        let mut app = stage_at(stage);
        let b = run_b(&mut app, 41);
        hear(&mut app, sample::step(&b, 41));
        let mut last = sample::step(&b, 42);
        if let Event::Step(step) = &mut last {
            step.loss = Some(f64::NAN.into());
        }
        hear(&mut app, last);
        let figures = figures(&app).expect("a stage");
        assert_eq!(number("fixed.loss_first", &figures), None, "stage {stage}");
    }
}

#[test]
fn a_divergence_is_reported_with_its_side_and_step_and_not_as_an_error() {
    for stage in 1..=9 {
        for paired in [false, true] {
            let mut app = stage_at(stage);
            let b = run_b(&mut app, 0);
            if paired {
                act(&mut app, Action::Pair);
                begin_pairs(&mut app);
            }
            let unseen = app.devices.log.unseen;
            let mut last = sample::step(&b, 8);
            if let Event::Step(step) = &mut last {
                step.loss = Some(f64::NAN.into());
            }
            hear(&mut app, last);
            let request = app.bench.pending.request;
            let end = Finished {
                slot: Slot::B,
                ended: Some("not-finite: loss at step 8".to_owned()),
                pair: paired.then(Pair::default),
                request,
                ..Finished::default()
            };
            hear(&mut app, Event::Finished(Box::new(end)));
            let text = notice(&app);
            assert!(text.starts_with("Your B diverged at step 8"), "{text}");
            assert_eq!(app.bench.run.state, RunState::Finished, "stage {stage}");
            assert_eq!(app.devices.log.unseen, unseen, "no error");
            assert!(!app.bench.pairing());
        }
    }
}

/// Pairs after a change compare the present B, a toggle ends them with a notice, and their end turns no page.
#[test]
fn pairs_right_after_a_change_are_measured_in_every_stage() {
    for stage in 1..=9 {
        for delay_ms in (0..=500).step_by(100) {
            let mut app = stage_at(stage);
            predict(&mut app);
            skip_locating(&mut app);
            solve(&mut app);
            act(&mut app, Action::Toggle);
            let (late, request) = (wanted(&app), app.bench.pending.request);
            let now_ms = app.clock.now_ms + delay_ms;
            update(&mut app, Message::Tick { now_ms });
            act(&mut app, Action::Pair);
            // The start of the changed B is reported after the request for pairs.
            hear(&mut app, answer(sample::started(&late, 41), request));
            let case = format!("stage {stage}, {delay_ms} ms");
            let Asked::Pairs { to_begin } = app.bench.pending.asked.clone() else {
                panic!("{case}: the pairs are lost");
            };
            assert_eq!(to_begin[1].config, app.bench.comparison.config_b, "{case}");
            begin_pairs(&mut app);
            let mut toggled = app.clone();
            act(&mut toggled, Action::Toggle);
            assert!(notice(&toggled).contains("pairs ended"), "{case}");
            act(&mut app, Action::TurnPage(-1));
            let page = app.reading().page().0;
            hear(&mut app, sample::pair(40, true));
            assert_eq!(app.reading().page().0, page, "{case}");
            assert!(app.pairs_ended(), "{case}");
        }
    }
}
