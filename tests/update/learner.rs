//! What a learner met in the stages, as scripts of keys over all of them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::app::figures::figures;
use perflings::course::placeholder::number;
use perflings::tui::keys;

use super::*;

/// A stage of the course, after 40 steps of A.
fn stage_at(number: u32) -> App {
    let options = Options {
        stage: Some(number),
        ..Options::default()
    };
    let mut app = session::begin(Course::builtin(), options).0;
    train(&mut app, 40);
    app
}

fn key(app: &mut App, code: KeyCode) {
    let event = KeyEvent::new(code, KeyModifiers::NONE);
    if let Some(action) = keys::action(event, app) {
        act(app, action);
    }
}

/// Answers the prediction, and keeps a range where one is asked for.
fn predict(app: &mut App) {
    key(app, KeyCode::Char('a'));
    if app.reading().estimates() {
        key(app, KeyCode::Right);
        key(app, KeyCode::Enter);
    }
}

/// B is the solution and trains from this step on with A's weights.
fn run_b(app: &mut App, from_step: u64) -> RunSpec {
    solve(app);
    act(app, Action::Toggle);
    act(app, Action::Yes);
    let run = wanted(app);
    assert_eq!(run.slot, Slot::B);
    hear(app, sample::started(&run, from_step));
    run
}

fn notice(app: &App) -> String {
    let notice = app.view.notice.as_ref();
    notice.map_or_else(String::new, |notice| notice.text.clone())
}

#[test]
fn a_range_begins_in_the_middle_takes_every_press_and_can_be_typed() {
    let mut asked = 0;
    for stage in 1..=9 {
        let mut app = stage_at(stage);
        key(&mut app, KeyCode::Char('a'));
        let Some(of) = app.stage().and_then(|it| it.estimate.clone()) else {
            continue;
        };
        asked += 1;
        let range = |app: &App| app.lesson.study.range.map(|it| (it.low, it.high));
        for presses in 1..=9 {
            key(&mut app, KeyCode::Right);
            assert_eq!(range(&app), Some((27 + presses, 33 + presses)), "{stage}");
        }
        let value = of.from + 0.7 * (of.to - of.from);
        let typed = format!("{value:.2}");
        for digit in typed.chars() {
            key(&mut app, KeyCode::Char(digit));
            assert_eq!(app.view.confirm, None, "stage {stage}: {digit}");
        }
        assert_eq!(app.lesson.study.typed, typed);
        key(&mut app, KeyCode::Enter);
        let here = app.stage().expect("a stage");
        let (low, high) = app.lesson.study.of(here).estimate.expect("kept");
        assert!(
            low <= value && value <= high,
            "{stage}: {low} {value} {high}"
        );
    }
    assert!(asked > 0);
}

#[test]
fn a_hint_beside_the_knobs_leaves_them_and_the_page() {
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

/// Issue 41, l: the lesson's columns are about A as it was found, also where A goes on later with weights that B has trained.
#[test]
fn a_that_goes_on_after_b_keeps_its_own_figures() {
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

/// Issue 41, q: what was seen at different steps is not set side by side.
#[test]
fn evidence_compares_equal_steps_only() {
    for both in [true, false] {
        for stage in 1..=9 {
            let mut app = stage_at(stage);
            let of_a = app.bench.run.slot(Slot::A).evidence.as_ref();
            let seen = of_a.expect("it was looked at").step;
            let of_b = if both { seen } else { 61 };
            predict(&mut app);
            let b = run_b(&mut app, 41);
            hear(&mut app, sample::evidence(&b, of_b));
            let theme = perflings::app::ThemeName::Dark;
            let markers = perflings::app::Markers::Braille;
            let drawn = screen::panel(&mut app, Panel::Evidence, 120, 36, theme, markers);
            let text = screen::text(&drawn);
            assert_eq!(text.contains("A at step"), both, "stage {stage}: {text}");
            assert!(text.contains(&format!("B at step {of_b}")), "{text}");
        }
    }
}

/// Issue 41, q: a run that went on with other weights has no first loss, also after a NaN.
#[test]
fn the_first_loss_of_a_run_that_went_on_is_not_told() {
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

/// Issue 41, r: a configuration that diverges is told once, by its side and its step, and is no failure of the engine.
#[test]
fn a_divergence_is_told_once() {
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
            let said = notice(&app);
            assert!(said.starts_with("Your B diverged at step 8"), "{said}");
            assert_eq!(app.bench.run.state, RunState::Finished, "stage {stage}");
            assert_eq!(app.devices.log.unseen, unseen, "no error");
            assert!(!app.bench.pairing());
        }
    }
}

/// Issue 41, c, d and p: pairs that are asked for at any moment after a change are those of the present B, a toggle ends them with a word, and
/// their end turns no page.
#[test]
fn pairs_after_a_change_are_measured_in_every_stage() {
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
            // The change's own start comes after the pairs were asked for.
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
