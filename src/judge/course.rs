//! The part of `course check` that runs: every starter must fail by name, every solution must pass.

use super::Outcome;
use super::stage::{Measured, evaluate};
use crate::config::RunConfig;
use crate::course::check::{Metric, Starter};
use crate::course::{Course, Stage};
use crate::protocol::{Finished, Pair};

/// One thing that `course check` tried on a device, and how it came out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Tried {
    /// `1 broken-init, starter`.
    pub what: String,
    pub passed: bool,
    pub detail: String,
}

/// Runs a configuration for so many steps.
pub type Run<'a> = dyn FnMut(&RunConfig, u64) -> Result<Finished, String> + 'a;
/// Compares broken with fixed.
pub type Compare<'a> = dyn FnMut(&RunConfig, &RunConfig) -> Result<Pair, String> + 'a;

/// Runs every starter, which must fail by name, and every solution, which must pass; with `compare`, ratios as well.
pub fn behaviour(
    course: &Course,
    run: &mut Run<'_>,
    mut compare: Option<&mut Compare<'_>>,
) -> Vec<Tried> {
    let mut tried = Vec::new();
    for stage in &course.stages {
        let pair = compare
            .as_mut()
            .map(|compare| compare(&stage.broken, &stage.fixed));
        let pair = match pair {
            None => None,
            Some(Ok(pair)) => Some(pair),
            Some(Err(error)) => {
                let what = format!("{} {}, comparison", stage.number, stage.id);
                tried.push(Tried {
                    what,
                    passed: false,
                    detail: error,
                });
                None
            }
        };
        for starter in [true, false] {
            let config = if starter { &stage.broken } else { &stage.fixed };
            let what = format!(
                "{} {}, {}",
                stage.number,
                stage.id,
                if starter { "starter" } else { "solution" }
            );
            let found = run(config, stage.steps).map(|finished| {
                let side = if starter { None } else { pair.as_ref() };
                verdict(stage, config, &finished, side, starter)
            });
            tried.push(match found {
                Ok((passed, detail)) => Tried {
                    what,
                    passed,
                    detail,
                },
                Err(error) => Tried {
                    what,
                    passed: false,
                    detail: format!("did not run: {error}"),
                },
            });
        }
    }
    tried
}

fn verdict(
    stage: &Stage,
    config: &RunConfig,
    finished: &Finished,
    pair: Option<&Pair>,
    starter: bool,
) -> (bool, String) {
    let report = evaluate(
        stage,
        Measured {
            config: Some(config),
            finished: Some(finished),
            pair,
            quiz_right: None,
        },
    );
    let mut wrong = Vec::new();
    let mut named = Vec::new();
    for check in &stage.checks {
        let Some(line) = report.lines.iter().find(|line| line.name == check.name) else {
            continue;
        };
        let needs_pair = check.metric == Metric::Ratio && pair.is_none();
        if check.metric == Metric::Quiz || needs_pair || check.optional {
            continue;
        }
        let wanted = match (starter, check.starter) {
            (false, _) | (true, Starter::Passes) => Outcome::Passed,
            (true, Starter::Fails) => Outcome::Failed,
            (true, Starter::Any) => continue,
        };
        let said = format!(
            "`{}`: {}, measured {}",
            line.name, line.asked, line.measured
        );
        if line.outcome == wanted {
            named.push(said);
        } else {
            let must = if wanted == Outcome::Passed {
                "must pass"
            } else {
                "must fail"
            };
            wrong.push(format!("{must}: {said}"));
        }
    }
    if wrong.is_empty() {
        (true, named.join("; "))
    } else {
        (false, wrong.join("; "))
    }
}
