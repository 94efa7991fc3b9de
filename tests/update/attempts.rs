//! The log of attempts. After any sequence of keys, each figure on the screen belongs to the configuration that is named with it. The engine
//! of these tests answers like the real one.

#[path = "attempts/play.rs"]
mod play;

use crossterm::event::KeyCode;
use perflings::app::figures::figures;
use perflings::app::{Action, App, Options, Overlay, RunState};
use perflings::course::Course;
use perflings::judge::Outcome;
use protocol::story::RunStory;
use protocol::*;

use super::session::{act, begin, hear, solve, wanted};
use super::{sample, screen, session};
use play::{Play, Work};

fn first_step(run: &RunStory) -> Option<u64> {
    run.loss.first().map(|(step, _)| step)
}

fn last_step(run: &RunStory) -> Option<u64> {
    run.loss.last().map(|(step, _)| step)
}

#[test]
fn pairs_restart_with_a_b_that_was_changed_meanwhile() {
    for (measured, later) in [(15, 0), (15, 3), (39, 3)] {
        let mut play = Play::of_stage(1, 20);
        play.turn("model.gradient", KeyCode::Right);
        play.train(10);
        play.keys("T");
        play.train(measured);
        assert_eq!(play.pairs_shown(), Some(measured as u32));
        play.turn("model.norm", KeyCode::Right);
        assert_eq!(play.pairs_shown(), None, "the result was of another B");
        play.train(later);
        assert_eq!(play.pairs_shown(), None, "{later} more of the other B");
        play.wait(600);
        assert!(play.app.bench.pairing(), "{measured}, {later}");
        let Work::Pairs(_, b, 0) = &play.work else {
            panic!("no pairs");
        };
        assert_eq!(b.config, play.app.bench.comparison.config_b);
        play.train(40);
        play.assert_consistent();
        assert!(play.app.pairs_ended() && !play.app.bench.pairing());
        assert_eq!(play.pairs_shown(), Some(40));
    }
}

#[test]
fn a_knob_that_restarts_b_and_is_turned_back_loses_nothing_of_a() {
    let mut play = Play::of_stage(2, 120);
    let first = play.slot(Slot::A).first_loss();
    let steps_and_parity_of_a = |play: &Play| {
        let figures = figures(&play.app).expect("a stage");
        let a = figures.slots[0].as_ref().expect("A ran");
        let evidence = a.evidence.as_ref();
        (a.steps, evidence.and_then(|evidence| evidence.parity))
    };
    let before = steps_and_parity_of_a(&play);
    play.turn("model.init", KeyCode::Right);
    play.wait(600);
    play.train(30);
    play.assert_consistent();
    assert!(
        play.slot(Slot::B).first_loss() > first,
        "B has another start"
    );
    play.turn("model.init", KeyCode::Left);
    play.wait(600);
    play.train(10);
    play.assert_consistent();
    assert_eq!(
        steps_and_parity_of_a(&play),
        before,
        "the figures of A stay"
    );
    assert!(super::notice(&play.app).contains("run of 120 steps stays in the chart"));
    let drawn = play.text_at(120, 36);
    assert!(
        drawn.contains(" at step 119"),
        "the earlier run is in the chart: {drawn}"
    );
    play.turn("model.gradient", KeyCode::Right);
    play.train(10);
    play.assert_consistent();
    assert_eq!(play.slot(Slot::B).went_on_from, Some(Slot::A));
    assert_eq!(
        play.app.bench.run.first_loss(),
        first,
        "the first loss is that of the weights that train now"
    );
    assert_eq!(first_step(play.slot(Slot::B)), Some(10));
    assert_eq!(last_step(play.slot(Slot::A)), Some(119));
}

#[test]
fn a_b_that_equals_a_again_shows_no_figures_of_its_earlier_configuration() {
    for path in ["model.init", "model.norm"] {
        let mut play = Play::of_stage(1, 20);
        play.turn(path, KeyCode::Right);
        play.wait(600);
        play.train(80);
        assert!(play.slot(Slot::B).has_begun() && play.app.lesson.learner.report.is_some());
        play.turn(path, KeyCode::Left);
        // The engine still trains the old B.
        play.train(3);
        let report = play.app.lesson.learner.report.as_ref();
        let judged = report.is_some_and(|report| {
            report
                .lines
                .iter()
                .any(|line| line.asked.contains("loss") && line.outcome != Outcome::NotMeasured)
        });
        assert!(!judged, "{path}: the old B is judged as the present one");
        play.wait(600);
        play.train(10);
        assert!(play.app.bench.comparison.b_equals_a());
        // The run of A is judged now, because B equals A.
        let report = play.app.lesson.learner.report.as_ref().expect("judged");
        for line in &report.lines {
            assert_ne!(line.measured, "no run yet", "{path}: {}", line.name);
        }
        assert!(!play.slot(Slot::B).has_begun(), "{path}");
        assert_eq!(play.app.bench.run.attempts().len(), 2, "the log keeps it");
        let figures = figures(&play.app).expect("a stage");
        assert!(
            figures.slots[1].is_some(),
            "the lesson still describes the latest B"
        );
        // The earlier configuration gets its figures back.
        play.turn(path, KeyCode::Right);
        play.wait(600);
        play.train(3);
        assert_eq!(play.app.bench.run.attempts().len(), 2);
        play.assert_consistent();
    }
}

/// A loss that was low at one earlier step must not pass the stage.
#[test]
fn the_last_loss_is_judged_at_the_step_where_the_checks_end() {
    let (mut app, _) = begin(Course::builtin(), Options::default());
    let stage = app.stage().expect("a stage").clone();
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    act(&mut app, Action::Toggle);
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    let outcome = |app: &App| {
        let report = app.lesson.learner.report.as_ref().expect("judged");
        let mut lines = report.lines.iter();
        let line = lines.find(|line| line.asked.starts_with("loss_last"));
        line.expect("a check").outcome
    };
    let mut outcomes = Vec::new();
    for at in 0..stage.steps + 40 {
        let loss = match at {
            0 => 6.93,
            _ if at == stage.steps - 1 => 6.5,
            // Noise around ln V.
            _ => 6.9 + 0.05 * (at % 2) as f64,
        };
        let Event::Step(step) = sample::step(&run, at) else {
            unreachable!()
        };
        hear(
            &mut app,
            Event::Step(Step {
                loss: Some(Num(loss)),
                ..step
            }),
        );
        hear(&mut app, sample::throughput(&run, at));
        outcomes.push(outcome(&app));
    }
    let (early, late) = outcomes.split_at(stage.steps as usize - 1);
    assert!(early.iter().all(|outcome| *outcome == Outcome::NotMeasured));
    assert!(late.iter().all(|outcome| *outcome == Outcome::Passed));
}

#[test]
fn the_figures_of_a_stay_during_toggles() {
    let mut play = Play::of_stage(2, 40);
    let loss_and_parity_of_a = |play: &Play| {
        let a = play.slot(Slot::A);
        let evidence = a.evidence.as_ref();
        let parity = evidence.and_then(|evidence| evidence.parity);
        (a.first_loss(), parity)
    };
    let before = loss_and_parity_of_a(&play);
    play.turn("model.norm", KeyCode::Right);
    play.train(20);
    play.keys("t");
    play.train(20);
    assert_eq!(loss_and_parity_of_a(&play), before);
    play.turn("model.norm", KeyCode::Right);
    play.train(20);
    assert_eq!(loss_and_parity_of_a(&play), before, "B equals A again");
    play.assert_consistent();
}

#[test]
fn an_a_that_continues_with_the_weights_of_b_keeps_its_own_last_loss() {
    let mut play = Play::of_stage(2, 40);
    let own = play.slot(Slot::A).own_loss();
    play.turn("model.norm", KeyCode::Right);
    play.train(60);
    play.keys("t");
    play.train(20);
    assert_eq!(play.slot(Slot::A).own_loss(), own);
    assert!(play.slot(Slot::A).loss.last() != own, "A trains");
    let figures = figures(&play.app).expect("a stage");
    let summary_of_a = figures.slots[0].as_ref().expect("A ran");
    let (_, own_loss) = own.expect("a loss");
    let (_, present_loss) = play.slot(Slot::A).loss.last().expect("a loss");
    assert_eq!(summary_of_a.loss_last.0, own_loss);
    let panels = play.text_at(200, 50);
    let both = format!("{own_loss:.2}, then {present_loss:.2} ");
    assert!(panels.contains(&both), "{both}: {panels}");
    play.keys("B");
    let attempts = play.text_at(200, 50);
    assert!(
        attempts.contains(&format!("loss {own_loss:.2} at step 39")),
        "{attempts}"
    );
    // On small screens the knobs cover the panels and show the loss.
    play.key(KeyCode::Esc);
    assert!(play.app.knobs_open());
    let knobs = play.text_at(80, 24);
    assert!(knobs.contains(&format!("A loss {own_loss:.2}")), "{knobs}");
    play.assert_consistent();
}

#[test]
fn each_configuration_of_b_has_its_own_curve() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.train(10);
    let begin_of_norm = first_step(play.slot(Slot::B));
    play.turn("model.loss", KeyCode::Right);
    play.train(10);
    assert_eq!(first_step(play.slot(Slot::B)), Some(30));
    assert_eq!(play.slot(Slot::B).went_on_from, Some(Slot::B));
    play.turn("model.loss", KeyCode::Left);
    play.train(10);
    let shown = play.slot(Slot::B);
    assert_eq!(first_step(shown), begin_of_norm);
    assert_eq!(last_step(shown), Some(49));
    play.assert_consistent();
}

#[test]
fn the_log_leads_back_to_an_attempt_and_to_its_pairs() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.train(10);
    play.keys("T");
    play.train(40);
    play.turn("model.loss", KeyCode::Right);
    play.wait(600);
    play.train(10);
    assert!(play.app.lesson.learner.pair.is_none());
    play.keys("B");
    assert_eq!(play.app.view.overlay, Some(Overlay::Attempts));
    let knobs = |play: &Play| -> Vec<String> {
        let bench = &play.app.bench;
        let attempts = bench.run.attempts().into_iter();
        attempts
            .map(|attempt| bench.knobs_of_attempt(attempt))
            .collect()
    };
    assert_eq!(
        knobs(&play),
        ["", "model.norm fused", "model.norm fused, model.loss fused"]
    );
    assert_eq!(play.app.view.selected, 2, "the present one is marked");
    play.key(KeyCode::Up);
    play.key(KeyCode::Enter);
    play.wait(600);
    assert_eq!(play.app.bench.comparison.differences(), "model.norm fused");
    assert_eq!(play.pairs_shown(), Some(40));
    play.train(10);
    play.assert_consistent();
    // The first line is A, so choosing it undoes all changes.
    play.keys("B");
    play.keys("g");
    play.key(KeyCode::Enter);
    play.wait(600);
    assert!(play.app.bench.comparison.b_equals_a() && play.app.lesson.learner.pair.is_none());
    assert_eq!(knobs(&play).len(), 3, "nothing is forgotten");
}

#[test]
fn after_pairs_the_next_move_says_that_nothing_runs() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.train(10);
    play.keys("T");
    play.train(40);
    assert_eq!(play.app.bench.run.state, RunState::Finished);
    let sentence = super::next_move(&play.app);
    assert!(sentence.contains("nothing runs"), "{sentence}");
}

#[test]
fn no_sequence_of_keys_shows_a_figure_of_another_configuration() {
    let knobs = ["model.init", "model.norm", "model.loss", "model.gradient"];
    for seed in 0..60 {
        let mut random = protocol::random::Rng::named(seed, "keys", 0);
        let mut play = Play::of_stage(1 + (seed % 2) as u32, 20);
        for _ in 0..25 {
            match random.bits() >> 61 {
                0 | 1 => {
                    let knob = knobs[(random.bits() >> 62) as usize];
                    if play.app.knobs_open() {
                        play.turn(knob, KeyCode::Right);
                    }
                }
                2 if !play.app.bench.comparison.b_equals_a() => play.keys("T"),
                3 if !play.app.bench.comparison.b_equals_a() => play.keys("t"),
                4 => play.keys("r"),
                5 => play.wait(600),
                _ => play.train(1 + (random.bits() >> 59)),
            }
            play.assert_consistent();
        }
    }
}

#[test]
fn a_number_is_typed_into_a_knob_and_refused_with_its_reason() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.turn("train.learning-rate", KeyCode::Enter);
    play.keys("0.025");
    assert!(play.app.view.typing());
    let drawn = play.text_at(120, 36);
    assert!(drawn.contains("Type a value for B"), "{drawn}");
    play.key(KeyCode::Backspace);
    play.key(KeyCode::Enter);
    assert_eq!(play.app.bench.comparison.config_b.train.learning_rate, 0.02);
    assert!(!play.app.view.typing());
    for (typed, why) in [("abc", "a number"), ("-1", "trains nothing")] {
        play.key(KeyCode::Enter);
        play.keys(typed);
        play.key(KeyCode::Enter);
        let row = play
            .app
            .bench
            .comparison
            .rows()
            .nth(play.app.bench.comparison.row);
        let reason = row.and_then(|row| row.refused).expect("a reason");
        assert!(reason.contains(why), "{reason}");
        assert_eq!(play.app.bench.comparison.config_b.train.learning_rate, 0.02);
    }
    // Letters are keys again after esc.
    play.key(KeyCode::Enter);
    play.keys("9");
    play.key(KeyCode::Esc);
    assert!(play.app.knobs_open() && !play.app.view.typing());
    play.assert_consistent();
}
