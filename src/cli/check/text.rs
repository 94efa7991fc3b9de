//! The text of a checked stage or exercise: the verdict, then for each criterion the demand and the measured figure.

use crate::judge::{CriterionResult, Outcome, StageReport};

/// Returns the text of a report with a title such as `stage 3 Missing sync`.
pub(crate) fn text(title: &str, report: &StageReport) -> String {
    let verdict = match report.outcome() {
        Outcome::Passed => "passed",
        Outcome::Failed => "not passed",
        Outcome::NotMeasured => "not passed: something was not measured",
    };
    let mut lines = vec![format!("{title}: {verdict}")];
    lines.extend(report.lines.iter().map(line));
    lines.join("\n")
}

/// Returns the mark for a criterion that passed, failed or was not measured.
pub(crate) const fn mark(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "pass",
        Some(false) => "FAIL",
        None => "----",
    }
}

fn line(line: &CriterionResult) -> String {
    let mark = mark(line.outcome.decided());
    let optional = if line.optional { " (optional)" } else { "" };
    format!(
        "  {mark}  {}{optional}\n        asked     {}\n        measured  {}",
        line.name, line.asked, line.measured
    )
}
