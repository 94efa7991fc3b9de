//! The states of a stage, from its symptom to looking back.

use perflings::app::Panel;
use perflings::app::bench::Asked;
use perflings::course::save_file::{Prediction, StageState};
use perflings::judge::Outcome;

use super::session::begin_pairs;
use super::*;

/// Plays a stage from its beginning to its end.
pub(super) fn stage(reached: &mut ReachedSentences, number: u32) {
    let mut app = at_stage(number);
    let of = app.stage().expect("a stage").clone();
    reached.check(&app);
    train(&mut app, 10);
    reached.check(&app);
    for action in [
        Action::Toggle,
        Action::No,
        Action::Pair,
        Action::No,
        Action::Knobs,
        Action::No,
    ] {
        reached.act(&mut app, action);
    }
    reached.act(&mut app, Action::Lesson);
    for _ in 0..6 {
        reached.act(&mut app, Action::TurnPage(1));
    }
    reached.check_without_notice(&mut app);
    let mut small = app.clone();
    session::resize(&mut small, 80, 24);
    small.view.lesson_open = true;
    for by in [-9, 1, 1, 1] {
        reached.act(&mut small, Action::TurnPage(by));
        reached.check_without_notice(&mut small);
    }
    reached.act(&mut app, Action::Question);
    reached.act(&mut app, Action::Answer(0));
    let mut leaves = app.clone();
    reached.act(&mut leaves, Action::NextStage);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Lesson);
    reached.act(&mut app, Action::Lesson);
    reached.act(&mut app, Action::RangeKeep);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::RangeShift(1));
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::RangeKeep);
    reached.check_without_notice(&mut app);
    // Continuing without an answer asks for confirmation.
    reached.act(&mut app, Action::NextPointer);
    reached.check(&app);
    reached.act(&mut app, Action::No);
    // The learner is asked which panel shows the fault. The lints are hidden, and after a wrong answer there is a second try.
    for panel in [Panel::Lints, Panel::Loss, Panel::Loss] {
        reached.act(&mut app, Action::Focus(panel));
        reached.check_without_notice(&mut app);
        reached.act(&mut app, Action::Locate);
        reached.check_without_notice(&mut app);
    }
    reached.act(&mut app, Action::Close);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Lesson);
    reached.act(&mut app, Action::Lesson);
    for _ in 0..=of.evidence.len() {
        reached.act(&mut app, Action::NextPointer);
        reached.check_without_notice(&mut app);
    }
    // The background comes before the cause.
    for _ in 0..20 {
        reached.act(&mut app, Action::TurnPage(1));
        reached.check_without_notice(&mut app);
    }
    reached.act(&mut app, Action::Lesson);
    for action in [
        Action::Knobs,
        Action::KnobTurn(1),
        Action::KnobTurn(-1),
        Action::Knobs,
        Action::Solution,
    ] {
        reached.act(&mut app, action);
        reached.check_without_notice(&mut app);
    }
    app.view.confirm = None;
    let known = app.lesson.learner.progress.stages.get_mut(&of.id);
    known.expect("seen").state = StageState::Predicted;
    check(reached, app.clone());
    // The stage is passed, but its range may still wait for pairs.
    app.lesson.learner.progress_mut(&of.id).state = StageState::Passed;
    reached.check_without_notice(&mut app);
    app.bench.comparison.set_b(of.fixed.clone(), false);
    act(&mut app, Action::Toggle);
    train(&mut app, 5);
    reached.act(&mut app, Action::Pair);
    begin_pairs(&mut app);
    reached.hear(&mut app, sample::pair(40, true));
    for _ in 0..3 {
        reached.check_without_notice(&mut app);
        reached.act(&mut app, Action::Lesson);
        reached.act(&mut app, Action::TurnPage(1));
    }
    act(&mut app, Action::Knobs);
    reached.check_without_notice(&mut app);
    act(&mut app, Action::Knobs);
    for (state, prediction) in [
        (StageState::Passed, Some(Prediction::Skipped)),
        (StageState::Predicted, Some(Prediction::Skipped)),
        (StageState::Predicted, None),
    ] {
        let mut leaves = app.clone();
        let known = leaves.lesson.learner.progress_mut(&of.id);
        known.state = state;
        known.prediction = prediction;
        leaves.view.confirm = Some(Confirm::Leave { to: 2 });
        reached.check(&leaves);
        leaves.lesson.learner.pair = None;
        leaves.lesson.learner.report = None;
        reached.check(&leaves);
    }
    app.lesson.learner.progress_mut(&of.id).measured = Some(1.0);
    for _ in 0..of.quiz.len() {
        reached.act(&mut app, Action::Question);
        reached.act(&mut app, Action::Answer(0));
        reached.check_without_notice(&mut app);
    }
    reached.act(&mut app, Action::Reset);
}

/// Checks the sentences that name the unmet checks of the learner's B.
fn check(reached: &mut ReachedSentences, mut app: App) {
    let of = app.stage().expect("a stage").clone();
    let now_ms = app.clock.now_ms + 1000;
    update(&mut app, Message::Tick { now_ms });
    train(&mut app, 3);
    app.lesson.learner.mark_fix_tried(&of);
    app.view.knobs = false;
    reached.check_without_notice(&mut app);
    app.bench.comparison.set_b(of.fixed.clone(), false);
    reached.check(&app);
    act(&mut app, Action::Toggle);
    reached.check_without_notice(&mut app);
    let run = wanted(&app);
    for steps in [3, of.steps + 1] {
        train(&mut app, steps);
        reached.check_without_notice(&mut app);
        unmet_checks(reached, &app);
    }
    let end = Event::Finished(Box::new(Finished {
        slot: run.slot,
        steps: of.steps + 1,
        ..Finished::default()
    }));
    reached.hear(&mut app, end);
    reached.check_without_notice(&mut app);
    unmet_checks(reached, &app);
    reached.act(&mut app, Action::Pair);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Knobs);
    reached.check_without_notice(&mut app);
    app.bench.pending.asked = Asked::Nothing;
    for active in [Slot::A, Slot::B] {
        app.bench.run.active = active;
        reached.check(&app);
    }
}

/// Checks the sentences if a single check fails or was not measured, and if all are met.
fn unmet_checks(reached: &mut ReachedSentences, app: &App) {
    let Some(report) = app.lesson.learner.report.clone() else {
        return;
    };
    let with = |name: &str, outcome: Outcome| {
        let mut report = report.clone();
        for line in &mut report.lines {
            line.outcome = if line.name == name {
                outcome
            } else {
                Outcome::Passed
            };
            line.measured = "412.7 million tokens/s at 1,024 tokens".to_owned();
        }
        report
    };
    let required = report.lines.iter().filter(|line| !line.optional);
    // No check has an empty name, so that with it all are met.
    for name in required.map(|line| line.name.as_str()).chain([""]) {
        for outcome in [Outcome::Failed, Outcome::NotMeasured] {
            for active in [Slot::A, Slot::B] {
                let mut app = app.clone();
                app.lesson.learner.report = Some(with(name, outcome));
                app.bench.run.active = active;
                reached.check(&app);
            }
        }
    }
}
