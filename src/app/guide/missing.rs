//! What a stage still lacks, from the lines of its report: the next move while the learner's own B is checked.

use crate::app::App;
use crate::app::study::Phase;
use crate::course::Stage;
use crate::course::check::{Check, Metric};
use crate::course::progress::State;
use crate::judge::{Line, Outcome};
use crate::protocol::Slot;

/// Says what is missing and the key that helps, keys named in braces; nothing where the stage waits for something else.
pub fn missing(app: &App, stage: &Stage) -> Option<String> {
    let study = &app.study;
    let checked = study.phase(stage) == Phase::Check && study.of(stage).state != State::Passed;
    if !checked || app.run.pairing || app.run.switching.is_some() {
        return None;
    }
    let said = |what: String| Some(format!("Stage {} is not passed. {what}", stage.number));
    if app.fix.same() {
        return said("Your B is as the stage was found; {knobs} changes it".to_owned());
    }
    let Some(report) = &study.report else {
        return said("Your B has not run yet; {toggle} runs it".to_owned());
    };
    let mut required = report.lines.iter().filter(|line| !line.optional);
    let failed = required.clone().find(|it| it.outcome == Outcome::Failed);
    if let Some(line) = failed {
        let (name, found) = (plain(&line.name), plain(&line.measured));
        let far = if runs_on(app, stage) { " so far" } else { "" };
        return said(format!(
            "Not met{far}: {name} ({found}). {{knobs}} changes B"
        ));
    }
    let open = required.find(|it| it.outcome == Outcome::NotMeasured)?;
    let name = plain(&open.name);
    let of_pairs = |check: &Check| check.name == open.name && check.metric == Metric::Ratio;
    let next = match open {
        Line { .. } if stage.checks.iter().any(of_pairs) => "{pair} measures A and B in pairs",
        _ if runs_on(app, stage) => "It runs on",
        _ if app.run.active == Slot::B => "{restart} runs it again from step 0",
        _ => "{toggle} runs it",
    };
    said(format!("Not measured for your B yet: {name}. {next}"))
}

/// B runs and has not made as many steps as the stage's checks want.
fn runs_on(app: &App, stage: &Stage) -> bool {
    let young = app.step().is_none_or(|step| step < stage.steps);
    app.run.active == Slot::B && app.run.state.is_active() && young
}

/// Braces would name keys.
fn plain(text: &str) -> String {
    text.replace(['{', '}'], "")
}
