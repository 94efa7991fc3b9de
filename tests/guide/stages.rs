//! The states of a stage, from its symptom to looking back, as a learner reaches them.

use perflings::app::Panel;
use perflings::app::bench::Asked;
use perflings::course::Stage;
use perflings::course::save_file::{Prediction, StageState};
use perflings::judge::{Outcome, StageReport};

use super::session::begin_pairs;
use super::*;

/// Plays a stage from its beginning to its end, and checks the sentence of each state.
pub(super) fn stage(reached: &mut ReachedSentences, number: u32) {
    let mut app = at_stage(number);
    let stage = app.stage().expect("a stage").clone();
    predict(reached, &mut app);
    find_evidence(reached, &mut app, stage.evidence.len());
    read_and_fix(reached, &mut app);
    let known = app.lesson.learner.progress.stages.get_mut(&stage.id);
    known.expect("seen").state = StageState::Predicted;
    check_b(reached, app.clone());
    pass(reached, &mut app, &stage);
    leave(reached, &app, &stage);
    look_back(reached, &mut app, &stage);
}

/// Looks at the panels, reads the lesson on two screens, answers the question and sets a range.
fn predict(reached: &mut ReachedSentences, app: &mut App) {
    reached.check(app);
    train(app, 10);
    reached.check(app);
    for action in [Action::Toggle, Action::Pair, Action::Knobs] {
        reached.act(app, action);
        reached.act(app, Action::No);
    }
    reached.act(app, Action::Lesson);
    for _ in 0..6 {
        reached.act(app, Action::TurnPage(1));
    }
    reached.check_without_notice(app);
    let mut small = app.clone();
    session::resize(&mut small, 80, 24);
    small.view.lesson_open = true;
    for by in [-9, 1, 1, 1] {
        reached.act(&mut small, Action::TurnPage(by));
        reached.check_without_notice(&mut small);
    }
    reached.act(app, Action::Question);
    reached.act(app, Action::Answer(0));
    let mut leaves = app.clone();
    reached.act(&mut leaves, Action::NextStage);
    reached.check_without_notice(app);
    reached.act(app, Action::Lesson);
    reached.act(app, Action::Lesson);
    for action in [Action::RangeKeep, Action::RangeShift(1), Action::RangeKeep] {
        reached.act(app, action);
        reached.check_without_notice(app);
    }
}

/// Marks wrong panels until the evidence is pointed out, and walks through its `pointers` panels.
fn find_evidence(reached: &mut ReachedSentences, app: &mut App, pointers: usize) {
    // Continuing without an answer asks for confirmation.
    reached.act(app, Action::NextPointer);
    reached.check(app);
    reached.act(app, Action::No);
    // The lints are hidden, so they cannot be marked. After a wrong answer there is a second try.
    for panel in [Panel::Lints, Panel::Loss, Panel::Loss] {
        reached.act(app, Action::Focus(panel));
        reached.check_without_notice(app);
        reached.act(app, Action::Locate);
        reached.check_without_notice(app);
    }
    reached.act(app, Action::Close);
    reached.check_without_notice(app);
    reached.act(app, Action::Lesson);
    reached.act(app, Action::Lesson);
    for _ in 0..=pointers {
        reached.act(app, Action::NextPointer);
        reached.check_without_notice(app);
    }
}

/// Reads the background and the cause, and turns a knob to another value and back.
fn read_and_fix(reached: &mut ReachedSentences, app: &mut App) {
    for _ in 0..20 {
        reached.act(app, Action::TurnPage(1));
        reached.check_without_notice(app);
    }
    reached.act(app, Action::Lesson);
    for action in [
        Action::Knobs,
        Action::KnobTurn(1),
        Action::KnobTurn(-1),
        Action::Knobs,
        Action::Solution,
    ] {
        reached.act(app, action);
        reached.check_without_notice(app);
    }
    app.view.confirm = None;
}

/// The stage is passed, but its range may still wait for pairs, which are measured.
fn pass(reached: &mut ReachedSentences, app: &mut App, stage: &Stage) {
    app.lesson.learner.progress_mut(&stage.id).state = StageState::Passed;
    reached.check_without_notice(app);
    app.bench.comparison.set_b(stage.fixed.clone(), false);
    act(app, Action::Toggle);
    train(app, 5);
    reached.act(app, Action::Pair);
    begin_pairs(app);
    reached.hear(app, sample::pair(40, true));
    for _ in 0..3 {
        reached.check_without_notice(app);
        reached.act(app, Action::Lesson);
        reached.act(app, Action::TurnPage(1));
    }
    act(app, Action::Knobs);
    reached.check_without_notice(app);
    act(app, Action::Knobs);
}

/// Asks to leave the stage in several states of the progress, with and without measurements.
fn leave(reached: &mut ReachedSentences, app: &App, stage: &Stage) {
    for (state, prediction) in [
        (StageState::Passed, Some(Prediction::Skipped)),
        (StageState::Predicted, Some(Prediction::Skipped)),
        (StageState::Predicted, None),
    ] {
        let mut leaves = app.clone();
        let known = leaves.lesson.learner.progress_mut(&stage.id);
        known.state = state;
        known.prediction = prediction;
        leaves.view.confirm = Some(Confirm::Leave { to: 2 });
        reached.check(&leaves);
        leaves.lesson.learner.pair = None;
        leaves.lesson.learner.report = None;
        reached.check(&leaves);
    }
}

/// Answers the quiz, and asks to reset the stage.
fn look_back(reached: &mut ReachedSentences, app: &mut App, stage: &Stage) {
    app.lesson.learner.progress_mut(&stage.id).measured = Some(1.0);
    for _ in 0..stage.quiz.len() {
        reached.act(app, Action::Question);
        reached.act(app, Action::Answer(0));
        reached.check_without_notice(app);
    }
    reached.act(app, Action::Reset);
}

/// Checks the sentences that name the unmet checks of the learner's B.
fn check_b(reached: &mut ReachedSentences, mut app: App) {
    let stage = app.stage().expect("a stage").clone();
    let now_ms = app.clock.now_ms + 1000;
    update(&mut app, Message::Tick { now_ms });
    train(&mut app, 3);
    app.lesson.learner.mark_fix_tried(&stage);
    app.view.knobs = false;
    reached.check_without_notice(&mut app);
    app.bench.comparison.set_b(stage.fixed.clone(), false);
    reached.check(&app);
    act(&mut app, Action::Toggle);
    reached.check_without_notice(&mut app);
    let run = wanted(&app);
    for steps in [3, stage.steps + 1] {
        train(&mut app, steps);
        reached.check_without_notice(&mut app);
        unmet_checks(reached, &app);
    }
    let end = Event::Finished(Box::new(Finished {
        slot: run.slot,
        steps: stage.steps + 1,
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
    let required = report.lines.iter().filter(|line| !line.optional);
    // No check has an empty name, so that all are met with it.
    for name in required.map(|line| line.name.as_str()).chain([""]) {
        for outcome in [Outcome::Failed, Outcome::NotMeasured] {
            for active in [Slot::A, Slot::B] {
                let mut app = app.clone();
                app.lesson.learner.report = Some(with_outcome(&report, name, outcome));
                app.bench.run.active = active;
                reached.check(&app);
            }
        }
    }
}

/// Returns the report in which the check with this name has this outcome and all others have passed. Each measured text is long.
fn with_outcome(report: &StageReport, name: &str, outcome: Outcome) -> StageReport {
    let mut changed = report.clone();
    for line in &mut changed.lines {
        line.outcome = if line.name == name {
            outcome
        } else {
            Outcome::Passed
        };
        line.measured = "412.7 million tokens/s at 1,024 tokens".to_owned();
    }
    changed
}
