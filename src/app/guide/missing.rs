//! The next move while the learner's own B is checked: it names the check of the stage that B does not meet yet.

use crate::app::App;
use crate::app::learner::Activity;
use crate::course::Stage;
use crate::course::check::Metric;
use crate::judge::{CriterionResult, Outcome};
use protocol::Slot;

/// Returns a sentence that names the unmet check and the key that helps, with keys in braces. `None` if the stage waits for something else.
pub(super) fn missing(app: &App, stage: &Stage) -> Option<String> {
    let learner = &app.lesson.learner;
    let checked = learner.activity(stage) == Activity::Check && !learner.has_passed(stage);
    if !checked || app.bench.pairing() || app.bench.switching() {
        return None;
    }
    let sentence = |what: String| Some(format!("Stage {} is not passed. {what}", stage.number));
    if app.bench.comparison.b_equals_a() {
        return sentence("Your B is still the stage as found. {knobs}: change B".to_owned());
    }
    let starts = app.bench.pending.due_ms.is_some() || !app.bench.is_current();
    let Some(report) = &learner.report else {
        if starts {
            return None;
        }
        return sentence("Your B has not run yet. {toggle}: run B".to_owned());
    };
    let metric = |line: &CriterionResult| {
        let check = stage.checks.iter().find(|check| check.name == line.name);
        check.map(|check| &check.metric)
    };
    let of_pairs = |line: &CriterionResult| metric(line) == Some(&Metric::Ratio);
    // In the order of the stage, but unmeasured pairs last: speed is worth measuring once the other checks are met.
    let mut required = report.lines.iter().filter(|line| !line.optional);
    let urgent = required.clone().find(|line| match line.outcome {
        Outcome::Passed => false,
        Outcome::Failed => true,
        Outcome::NotMeasured => !of_pairs(line),
    });
    let open = urgent.or_else(|| required.find(|line| line.outcome == Outcome::NotMeasured))?;
    let name = plain(&open.name);
    if open.outcome == Outcome::Failed {
        let found = plain(&open.measured);
        let far = if runs_on(app, stage) { " so far" } else { "" };
        return sentence(format!(
            "Not met{far}: {name}; found {found}. {{knobs}}: change B"
        ));
    }
    let first_loss = metric(open) == Some(&Metric::Figure("loss_first".to_owned()));
    let began_elsewhere = app.bench.run.slot(Slot::B).went_on_from.is_some();
    let next = match open {
        _ if of_pairs(open) => "{pair}: measure A and B in pairs",
        // A run that continues with A's weights never has a first loss.
        _ if runs_on(app, stage) && !(first_loss && began_elsewhere) => "B is still running",
        _ if app.bench.run.active == Slot::B => "{restart}: run B again from step 0",
        _ => "{toggle}: run B",
    };
    sentence(format!("Not measured for your B yet: {name}. {next}"))
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
    let mut lines = report.lines.iter();
    let failed = lines.find(|line| !line.optional && line.outcome == Outcome::Failed)?;
    let (name, found) = (plain(&failed.name), plain(&failed.measured));
    Some(format!(
        "The stage stays passed, but your B as it is now fails: {name}; found {found}"
    ))
}

/// Returns true if B runs and has not made all the steps that the stage's checks need.
fn runs_on(app: &App, stage: &Stage) -> bool {
    let young = app.shown_run().step().is_none_or(|step| step < stage.steps);
    app.bench.run.active == Slot::B && app.bench.run.state.is_active() && young
}

/// Removes braces, which would name keys.
fn plain(text: &str) -> String {
    text.replace(['{', '}'], "")
}
