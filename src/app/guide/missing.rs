//! The next move while the learner's own B is checked. The sentence names a check of the stage that B does not meet.

use crate::app::App;
use crate::app::learner::Activity;
use crate::course::Stage;
use crate::course::check::Metric;
use crate::judge::{CriterionResult, Outcome, StageReport};
use protocol::Slot;

/// Returns a sentence that names the unmet check and the key that helps, with keys in braces. `None` if the stage waits for something else.
pub(super) fn missing(app: &App, stage: &Stage) -> Option<String> {
    let learner = &app.lesson.learner;
    let is_checked = learner.activity(stage) == Activity::Check && !learner.has_passed(stage);
    if !is_checked || app.bench.pairing() || app.bench.switching() {
        return None;
    }
    let sentence = |what: String| Some(format!("Stage {} is not passed. {what}", stage.number));
    if app.bench.comparison.b_equals_a() {
        return sentence("Your B is still the stage as found. {knobs}: change B".to_owned());
    }
    let Some(report) = &learner.report else {
        if app.bench.pending.due_ms.is_some() || !app.bench.is_current() {
            return None;
        }
        return sentence("Your B has not run yet. {toggle}: run B".to_owned());
    };
    let open = most_urgent(stage, report)?;
    let name = without_braces(&open.name);
    if open.outcome == Outcome::Failed {
        let measured = without_braces(&open.measured);
        let so_far = if runs_on(app, stage) { " so far" } else { "" };
        return sentence(format!(
            "Not met{so_far}: {name}; found {measured}. {{knobs}}: change B"
        ));
    }
    let is_first_loss = metric(stage, open) == Some(&Metric::Figure("loss_first".to_owned()));
    let continues_other_run = app.bench.run.slot(Slot::B).went_on_from.is_some();
    let next = if is_ratio(stage, open) {
        "{pair}: measure A and B in pairs"
    } else if runs_on(app, stage) && !(is_first_loss && continues_other_run) {
        "B is still running"
    } else if app.bench.run.active == Slot::B {
        // A run that continues with A's weights never has a first loss.
        "{restart}: run B again from step 0"
    } else {
        "{toggle}: run B"
    };
    sentence(format!("Not measured for your B yet: {name}. {next}"))
}

/// Returns the first required check that is not met, in the order of the stage. Unmeasured pairs come last: speed is worth measuring once
/// the other checks are met. `None` if all are met.
fn most_urgent<'a>(stage: &Stage, report: &'a StageReport) -> Option<&'a CriterionResult> {
    let waits =
        |line: &CriterionResult| line.outcome == Outcome::NotMeasured && is_ratio(stage, line);
    report
        .lines
        .iter()
        .filter(|line| !line.optional && line.outcome != Outcome::Passed)
        .min_by_key(|line| waits(line))
}

/// Returns the metric of the check that a line of the report is about.
fn metric<'a>(stage: &'a Stage, line: &CriterionResult) -> Option<&'a Metric> {
    let check = stage.checks.iter().find(|check| check.name == line.name);
    check.map(|check| &check.metric)
}

/// Returns true if a line of the report is about the ratio of pairs.
fn is_ratio(stage: &Stage, line: &CriterionResult) -> bool {
    metric(stage, line) == Some(&Metric::Ratio)
}

/// Returns a sentence that names a check which the present B fails although the stage was passed before.
pub(super) fn lost(app: &App, stage: &Stage) -> Option<String> {
    let bench = &app.bench;
    if !app.lesson.learner.has_passed(stage)
        || bench.comparison.b_equals_a()
        || bench.pairing()
        || bench.switching()
    {
        return None;
    }
    let report = app.lesson.learner.report.as_ref()?;
    let failed = report
        .lines
        .iter()
        .find(|line| !line.optional && line.outcome == Outcome::Failed)?;
    let name = without_braces(&failed.name);
    let measured = without_braces(&failed.measured);
    Some(format!(
        "The stage stays passed, but your B as it is now fails: {name}; found {measured}"
    ))
}

/// Returns true if B runs and has not made all the steps that the stage's checks need.
fn runs_on(app: &App, stage: &Stage) -> bool {
    let needs_steps = app.shown_run().step().is_none_or(|step| step < stage.steps);
    app.bench.run.active == Slot::B && app.bench.run.state.is_active() && needs_steps
}

/// Returns a text without braces, because a name in braces would be shown as a key.
fn without_braces(text: &str) -> String {
    text.replace(['{', '}'], "")
}
