//! Holds the criteria of a stage against what a run reported. An unclear comparison never passes.

use super::{Line, Outcome, Report};
use crate::config::RunConfig;
use crate::course::check::{Check, Metric, Target, Test};
use crate::course::{Stage, formula, metric, placeholder};
use crate::protocol::{Finished, Pair, Verdict};

/// What there is to hold the criteria against.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured<'a> {
    /// The configuration the learner has now.
    pub config: Option<&'a RunConfig>,
    /// The end of its run.
    pub finished: Option<&'a Finished>,
    /// Broken (A) against the learner's (B).
    pub pair: Option<&'a Pair>,
    /// Questions answered rightly at the first or a later try; `None`: not asked yet.
    pub quiz_right: Option<usize>,
}

/// Answers every criterion of the stage.
pub fn evaluate(stage: &Stage, measured: Measured<'_>) -> Report {
    let mut lines = Vec::new();
    if let Some(config) = measured.config {
        lines.push(scope(stage, config));
    }
    lines.extend(
        stage
            .checks
            .iter()
            .map(|check| line(stage, check, measured)),
    );
    Report {
        stage: stage.id.clone(),
        lines,
    }
}

/// A comparison is worth something when nothing but the knobs under study changed.
fn scope(stage: &Stage, config: &RunConfig) -> Line {
    let started = stage.broken_at(config.preset);
    let other: Vec<&str> = started
        .differences(config)
        .into_iter()
        .filter(|path| !stage.varies.iter().any(|v| v == path))
        .collect();
    Line {
        name: "nothing else changed".to_owned(),
        asked: format!(
            "only {} may differ from the starter",
            stage.varies.join(", ")
        ),
        measured: if other.is_empty() {
            "nothing else differs".to_owned()
        } else {
            format!("{} differs", other.join(", "))
        },
        outcome: Outcome::of(other.is_empty()),
        optional: false,
    }
}

/// Answers one criterion.
pub fn line(stage: &Stage, check: &Check, measured: Measured<'_>) -> Line {
    let config = measured.config.unwrap_or(&stage.fixed);
    let answer = |asked: String, measured: String, outcome| Line {
        name: check.name.clone(),
        asked,
        measured,
        outcome,
        optional: check.optional,
    };
    match &check.metric {
        Metric::Figure(name) => {
            let asked = format!(
                "{name} {}",
                asked(
                    &check.test,
                    config,
                    measured.finished,
                    metric::form(name).0.min(4)
                )
            );
            if name == "parity"
                && measured.finished.is_some()
                && measured
                    .config
                    .is_some_and(|config| config.reference() == *config)
            {
                return answer(
                    asked,
                    "0, this is the reference itself".to_owned(),
                    Outcome::Passed,
                );
            }
            let Some(found) = measured.finished.and_then(|run| metric::value(name, run)) else {
                let why = if measured.finished.is_none() {
                    "no run yet"
                } else {
                    "this run did not measure it"
                };
                return answer(asked, format!("not measured: {why}"), Outcome::NotMeasured);
            };
            let shown = placeholder::measured(name, found);
            match holds(&check.test, found, config, measured.finished) {
                Some(passed) => answer(asked, shown, Outcome::of(passed)),
                None => answer(
                    asked,
                    format!("{shown}; the other side was not measured"),
                    Outcome::NotMeasured,
                ),
            }
        }
        Metric::Ratio => {
            let asked = format!(
                "ratio, its whole interval {}",
                asked(&check.test, config, measured.finished, 2)
            );
            let Some(pair) = measured.pair.filter(|pair| pair.n > 0) else {
                return answer(
                    asked,
                    "not measured: needs a paired comparison".to_owned(),
                    Outcome::NotMeasured,
                );
            };
            let shown = format!(
                "{:.3}x [{:.3}, {:.3}], n={}, {}",
                pair.ratio, pair.low, pair.high, pair.n, pair.verdict
            );
            // The end of the interval that speaks against the claim decides.
            let worst = match check.test {
                Test::Below(_) | Test::AtMost(_) => pair.high,
                _ => pair.low,
            };
            let passed = holds(&check.test, worst, config, measured.finished).unwrap_or(false);
            // An unclear verdict leaves open which side is faster; a whole interval on the right side does not.
            if !passed && pair.verdict == Verdict::Unclear {
                return answer(asked, shown, Outcome::NotMeasured);
            }
            answer(asked, shown, Outcome::of(passed))
        }
        Metric::Lint(name) => {
            let wanted = check.test == Test::Present;
            let asked = format!(
                "lint `{name}` {}",
                if wanted { "present" } else { "absent" }
            );
            let Some(run) = measured.finished.filter(|run| run.steps > 0) else {
                return answer(
                    asked,
                    "not measured: no run yet".to_owned(),
                    Outcome::NotMeasured,
                );
            };
            let found = run.lints.iter().any(|lint| lint.name == *name);
            answer(
                asked,
                if found { "present" } else { "absent" }.to_owned(),
                Outcome::of(found == wanted),
            )
        }
        Metric::Part(part) => {
            let wanted = check.test == Test::Present;
            let asked = format!(
                "`{part}` {} the kernel list",
                if wanted { "in" } else { "not in" }
            );
            match measured
                .finished
                .and_then(|run| metric::has_part(run, part))
            {
                Some(found) => answer(
                    asked,
                    if found { "there" } else { "not there" }.to_owned(),
                    Outcome::of(found == wanted),
                ),
                None => answer(
                    asked,
                    "not measured: no step was profiled".to_owned(),
                    Outcome::NotMeasured,
                ),
            }
        }
        Metric::Quiz => {
            let all = stage.quiz.len();
            let asked = format!("all {all} questions answered rightly");
            match measured.quiz_right {
                None => answer(
                    asked,
                    "not measured: not answered yet".to_owned(),
                    Outcome::NotMeasured,
                ),
                Some(right) => answer(
                    asked,
                    format!("{right} of {all}"),
                    Outcome::of(right >= all),
                ),
            }
        }
    }
}

/// The number a target stands for.
fn target(target: &Target, config: &RunConfig, finished: Option<&Finished>) -> Option<f64> {
    match target {
        Target::Number(x) => Some(*x),
        Target::Named(name) => match name.strip_prefix("formula.") {
            Some(name) => Some((formula::find(name)?.value)(config)),
            None if name == "ln_vocab" => Some(config.ln_vocab()),
            None => metric::value(name, finished?),
        },
    }
}

fn holds(test: &Test, found: f64, config: &RunConfig, finished: Option<&Finished>) -> Option<bool> {
    let of = |t: &Target| target(t, config, finished);
    Some(match test {
        Test::Within(share, t) => {
            let wanted = of(t)?;
            (found - wanted).abs() <= share * wanted.abs()
        }
        Test::AtLeast(t) => found >= of(t)?,
        Test::AtMost(t) => found <= of(t)?,
        Test::Above(t) => found > of(t)?,
        Test::Below(t) => found < of(t)?,
        Test::Present | Test::Absent | Test::Right => return None,
    })
}

fn asked(test: &Test, config: &RunConfig, finished: Option<&Finished>, decimals: usize) -> String {
    let of = |t: &Target| match (t, target(t, config, finished)) {
        (Target::Number(x), _) => x.to_string(),
        (Target::Named(name), Some(x)) => format!("{} ({name})", placeholder::show(x, decimals)),
        (Target::Named(name), None) => name.clone(),
    };
    match test {
        Test::Within(share, t) => format!("within {} % of {}", share * 100.0, of(t)),
        Test::AtLeast(t) => format!("at least {}", of(t)),
        Test::AtMost(t) => format!("at most {}", of(t)),
        Test::Above(t) => format!("above {}", of(t)),
        Test::Below(t) => format!("below {}", of(t)),
        Test::Present => "present".to_owned(),
        Test::Absent => "absent".to_owned(),
        Test::Right => "right".to_owned(),
    }
}
