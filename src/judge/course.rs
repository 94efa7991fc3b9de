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
        let mut add = |what: &str, (passed, detail): (bool, String)| {
            let what = format!("{} {}, {what}", stage.number, stage.id);
            tried.push(Tried {
                what,
                passed,
                detail,
            });
        };
        let pair = match compare.as_mut() {
            None => None,
            Some(compare) => compare(&stage.broken, &stage.fixed)
                .map_err(|error| add("comparison", (false, error)))
                .ok(),
        };
        for (what, config) in [("starter", &stage.broken), ("solution", &stage.fixed)] {
            let starter = what == "starter";
            let side = pair.as_ref().filter(|_| !starter);
            let found = run(config, stage.steps).map_or_else(
                |error| (false, format!("did not run: {error}")),
                |finished| verdict(stage, config, &finished, side, starter),
            );
            add(what, found);
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
        match wanted {
            _ if line.outcome == wanted => named.push(said),
            Outcome::Passed => wrong.push(format!("must pass: {said}")),
            _ => wrong.push(format!("must fail: {said}")),
        }
    }
    if wrong.is_empty() {
        (true, named.join("; "))
    } else {
        (false, wrong.join("; "))
    }
}
