//! What a stage still lacks, from the lines of its report: the next move while the learner's own B is checked.

use crate::app::App;
use crate::app::study::Activity;
use crate::course::Stage;
use crate::course::check::Metric;
use crate::course::save_file::StageState;
use crate::judge::{CriterionResult, Outcome};
use protocol::Slot;

/// Says what is missing and the key that helps, keys named in braces; nothing where the stage waits for something else.
pub(super) fn missing(app: &App, stage: &Stage) -> Option<String> {
    let study = &app.lesson.study;
    let checked =
        study.activity(stage) == Activity::Check && study.of(stage).state != StageState::Passed;
    if !checked || app.bench.pairing() || app.bench.switching() {
        return None;
    }
    let said = |what: String| Some(format!("Stage {} is not passed. {what}", stage.number));
    if app.bench.comparison.same() {
        return said("Your B is as the stage was found; {knobs} changes it".to_owned());
    }
    let starts = app.bench.pending.due_ms.is_some() || !app.bench.is_current();
    let Some(report) = &study.report else {
        if starts {
            return None;
        }
        return said("Your B has not run yet; {toggle} runs it".to_owned());
    };
    let metric = |line: &CriterionResult| {
        let mut checks = stage.checks.iter();
        checks.find(|it| it.name == line.name).map(|it| &it.metric)
    };
    let of_pairs = |line: &CriterionResult| metric(line) == Some(&Metric::Ratio);
    // In the order of the stage, pairs last: speed is worth measuring once the rest is right.
    let mut required = report.lines.iter().filter(|line| !line.optional);
    let unmet = required.clone().filter(|it| it.outcome != Outcome::Passed);
    let first = unmet
        .clone()
        .find(|it| !of_pairs(it) || it.outcome == Outcome::Failed);
    let open = first.or_else(|| required.find(|it| it.outcome == Outcome::NotMeasured))?;
    let name = plain(&open.name);
    if open.outcome == Outcome::Failed {
        let found = plain(&open.measured);
        let far = if runs_on(app, stage) { " so far" } else { "" };
        return said(format!(
            "Not met{far}: {name}; found {found}. {{knobs}} changes B"
        ));
    }
    let first_loss = metric(open) == Some(&Metric::Figure("loss_first".to_owned()));
    let began_elsewhere = app.bench.run.slot(Slot::B).went_on_from.is_some();
    let next = match open {
        _ if of_pairs(open) => "{pair} measures A and B in pairs",
        // A run that went on from A's weights never has a first loss.
        _ if runs_on(app, stage) && !(first_loss && began_elsewhere) => "It runs on",
        _ if app.bench.run.active == Slot::B => "{restart} runs it again from step 0",
        _ => "{toggle} runs it",
    };
    said(format!("Not measured for your B yet: {name}. {next}"))
}

/// What B, as it is now, does not meet in a stage that was passed before.
pub(super) fn lost(app: &App, stage: &Stage) -> Option<String> {
    let passed = app.lesson.study.of(stage).state == StageState::Passed;
    if !passed || app.bench.comparison.same() || app.bench.pairing() || app.bench.switching() {
        return None;
    }
    let report = app.lesson.study.report.as_ref()?;
    let mut lines = report.lines.iter();
    let failed = lines.find(|it| !it.optional && it.outcome == Outcome::Failed)?;
    let (name, found) = (plain(&failed.name), plain(&failed.measured));
    Some(format!(
        "The stage stays passed, but your B as it is now fails: {name}; found {found}"
    ))
}

/// B runs and has not made as many steps as the stage's checks want.
fn runs_on(app: &App, stage: &Stage) -> bool {
    let young = app.shown_run().step().is_none_or(|step| step < stage.steps);
    app.bench.run.active == Slot::B && app.bench.run.state.is_active() && young
}

/// Braces would name keys.
fn plain(text: &str) -> String {
    text.replace(['{', '}'], "")
}
