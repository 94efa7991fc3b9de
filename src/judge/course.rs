//! The part of `course check` that makes runs. Every starter must fail the checks that its stage says it fails, and every solution must pass.
//! Every fault of mysteries must fail its criterion, and the known-good configuration must pass.

use super::stage::{StageFacts, evaluate};
use super::{CriterionResult, Outcome, StageReport, mystery};
use crate::course::check::{Metric, Starter};
use crate::course::metric;
use crate::course::mystery::{Criterion, FAULTS, Fault, Mystery};
use crate::course::placeholder::{FigureSources, number};
use crate::course::{Course, Stage};
use protocol::config::{Preset, RunConfig};
use protocol::units::digits;
use protocol::{Finished, Pair};

/// One run or comparison of `course check`, and its result.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CourseTrial {
    /// The name of the trial, as in `1 broken-init, starter`.
    #[serde(rename = "what")]
    pub name: String,
    /// True if the trial passed. `None` if nothing was measured that could fail; `detail` says why.
    pub passed: Option<bool>,
    pub detail: String,
}

/// The detail of a trial that is only judged with `--measure`.
pub const WITH_MEASURE: &str = "not measured: its speed is judged with --measure";
/// The number of steps of a run whose fault shows from the beginning.
const FEW_STEPS: u64 = 8;

/// The result of a trial: true if it passed, and the detail. `None` if nothing was measured that could fail.
pub type TrialResult = (Option<bool>, String);
/// A function that runs a configuration for this many steps.
pub type RunSteps<'a> = dyn FnMut(&RunConfig, u64) -> Result<Finished, String> + 'a;
/// A function that compares two configurations in pairs.
pub type CompareConfigs<'a> = dyn FnMut(&RunConfig, &RunConfig) -> Result<Pair, String> + 'a;

/// Tries the starter and the solution of every stage. `compare` is needed for the checks about ratios, which are otherwise left out.
pub fn stage_trials(
    course: &Course,
    run: &mut RunSteps<'_>,
    mut compare: Option<&mut CompareConfigs<'_>>,
) -> Vec<CourseTrial> {
    let mut tried = Vec::new();
    for stage in &course.stages {
        let mut add = |side: &str, found| {
            let name = format!("{} {}, {side}", stage.number, stage.id);
            tried.push(CourseTrial::new(name, found));
        };
        let pair = compare.as_mut().and_then(|compare| {
            compare(&stage.broken, &stage.fixed)
                .map_err(|error| add("comparison", (Some(false), error)))
                .ok()
        });
        for (name, config) in [("starter", &stage.broken), ("solution", &stage.fixed)] {
            let is_starter = name == "starter";
            // A pair compares the starter with the solution, so it says nothing about the starter alone.
            let pair_of_side = if is_starter { None } else { pair.as_ref() };
            let found = match run(config, stage.steps) {
                Err(error) => (Some(false), did_not_run(error)),
                Ok(finished) => {
                    if !is_starter && let Some(range) = range(stage, &finished, pair_of_side) {
                        add("range", range);
                    }
                    verdict(stage, config, &finished, pair_of_side, is_starter)
                }
            };
            add(name, found);
        }
    }
    tried
}

/// Checks that learners cannot guess the figure of the stage's estimate from its scale alone. `None` if neither the solution nor its pairs
/// measured the figure. A figure of step times depends on the machine and its load, so it is only judged together with pairs.
fn range(stage: &Stage, solution: &Finished, pair: Option<&Pair>) -> Option<TrialResult> {
    let estimate = stage.estimate.as_ref()?;
    let (_, figure) = estimate.of.split_once('.')?;
    if pair.is_none() && metric::depends_on_step_times(figure) {
        return Some((None, WITH_MEASURE.to_owned()));
    }
    let fixed = Finished {
        variant: "fixed".to_owned(),
        ..solution.clone()
    };
    let sources = FigureSources {
        slots: [None, Some(fixed)],
        pair,
        ..FigureSources::none(&stage.fixed)
    };
    let truth = number(&estimate.of, &sources)?;
    let place = estimate.gives_away(truth);
    let detail = format!(
        "{} is {}, {} from {} to {}",
        estimate.of,
        digits(truth, 3),
        place.unwrap_or("on a scale"),
        estimate.from,
        estimate.to
    );
    Some((Some(place.is_none()), detail))
}

/// Tries each fault of mysteries alone: it must fail the criterion that it names, and the known-good configuration must meet all criteria.
/// A fault of speed is only tried with `compare`. Combinations need no trial, as `course::mystery` explains.
pub fn mystery_trials(
    run: &mut RunSteps<'_>,
    mut compare: Option<&mut CompareConfigs<'_>>,
) -> Vec<CourseTrial> {
    let mut tried: Vec<CourseTrial> = Vec::new();
    let mut goods: Vec<RunConfig> = Vec::new();
    for fault in FAULTS {
        let mystery = Mystery::with_faults(0, vec![fault], Preset::Tiny);
        if !goods.contains(&mystery.good) {
            let name = format!("mystery, known-good configuration {}", goods.len() + 1);
            tried.push(CourseTrial::from_result(
                name,
                known_good(run, &mystery.good),
            ));
            goods.push(mystery.good.clone());
        }
        let name = format!("mystery, {}", fault.id);
        let tried_fault = match (fault.criterion, compare.as_mut()) {
            (Criterion::Speed, None) => {
                tried.push(CourseTrial::new(name, (None, WITH_MEASURE.to_owned())));
                continue;
            }
            (Criterion::Speed, Some(compare)) => slower(&mystery, fault, *compare),
            _ => fails_in_run(run, &mystery.broken, fault),
        };
        tried.push(CourseTrial::from_result(name, tried_fault));
    }
    tried
}

impl CourseTrial {
    /// Makes a trial from its name and its result.
    pub fn new(name: String, (passed, detail): TrialResult) -> Self {
        Self {
            name,
            passed,
            detail,
        }
    }

    /// Makes a trial that passed with a detail, or failed for a reason.
    fn from_result(name: String, tried: Result<String, String>) -> Self {
        let passed = Some(tried.is_ok());
        let (Ok(detail) | Err(detail)) = tried;
        Self::new(name, (passed, detail))
    }
}

fn did_not_run(error: String) -> String {
    format!("did not run: {error}")
}

/// Runs the known-good configuration of a mystery. It must meet every criterion of a run.
fn known_good(run: &mut RunSteps<'_>, config: &RunConfig) -> Result<String, String> {
    let finished = run(config, mystery::STEPS).map_err(did_not_run)?;
    let report = report_of_run(config, &finished);
    let (passed, open): (Vec<_>, Vec<_>) = report
        .lines
        .iter()
        .filter(|line| line.name != Criterion::Speed.into_str())
        .partition(|line| line.outcome == Outcome::Passed);
    if open.is_empty() {
        Ok(describe(passed))
    } else {
        Err(format!("must pass: {}", describe(open)))
    }
}

/// Runs a configuration with a fault. It must fail the criterion of the fault.
fn fails_in_run(
    run: &mut RunSteps<'_>,
    config: &RunConfig,
    fault: &Fault,
) -> Result<String, String> {
    // Only the criterion of the falling loss needs many steps.
    let steps = match fault.criterion {
        Criterion::LossFalls => mystery::STEPS,
        _ => FEW_STEPS,
    };
    let finished = run(config, steps).map_err(did_not_run)?;
    fails(&report_of_run(config, &finished), fault)
}

/// Compares a mystery with its known-good configuration. The fault must make it slower.
fn slower(
    mystery: &Mystery,
    fault: &Fault,
    compare: &mut CompareConfigs<'_>,
) -> Result<String, String> {
    let pair = compare(&mystery.good, &mystery.broken).map_err(did_not_run)?;
    let facts = StageFacts {
        pair: Some(&pair),
        ..StageFacts::default()
    };
    fails(&mystery::evaluate(facts), fault)
}

/// Returns the line of the criterion that a fault names, as an error if that criterion did not fail.
fn fails(report: &StageReport, fault: &Fault) -> Result<String, String> {
    let name = fault.criterion.into_str();
    let line = describe(report.lines.iter().filter(|line| line.name == name));
    if mystery::unmet(report).contains(&name) {
        Ok(line)
    } else {
        Err(format!("must fail: {line}"))
    }
}

/// Judges the criteria of mysteries by a run alone.
fn report_of_run(config: &RunConfig, finished: &Finished) -> StageReport {
    mystery::evaluate(StageFacts {
        config: Some(config),
        finished: Some(finished),
        ..StageFacts::default()
    })
}

/// Returns the results of criteria in words: "`the model learns`: loss_last below 6.9, measured 6.94".
fn describe<'a>(lines: impl IntoIterator<Item = &'a CriterionResult>) -> String {
    let mut results = Vec::new();
    for CriterionResult {
        name,
        asked,
        measured,
        ..
    } in lines
    {
        results.push(format!("`{name}`: {asked}, measured {measured}"));
    }
    results.join("; ")
}

/// Judges the run of a starter or of a solution: each criterion must have the outcome that the stage declares.
fn verdict(
    stage: &Stage,
    config: &RunConfig,
    finished: &Finished,
    pair: Option<&Pair>,
    is_starter: bool,
) -> TrialResult {
    let facts = StageFacts {
        config: Some(config),
        finished: Some(finished),
        pair,
        quiz_right: None,
    };
    let report = evaluate(stage, facts);
    let mut wrong = Vec::new();
    let mut right = Vec::new();
    for check in &stage.checks {
        let Some(line) = report.lines.iter().find(|line| line.name == check.name) else {
            continue;
        };
        let needs_pair = check.metric == Metric::Ratio && pair.is_none();
        if check.metric == Metric::Quiz || needs_pair || check.optional {
            continue;
        }
        let wanted = match (is_starter, check.starter) {
            (false, _) | (true, Starter::Passes) => Outcome::Passed,
            (true, Starter::Fails) => Outcome::Failed,
            (true, Starter::Any) => continue,
        };
        let result = describe([line]);
        match wanted {
            _ if line.outcome == wanted => right.push(result),
            Outcome::Passed => wrong.push(format!("must pass: {result}")),
            _ => wrong.push(format!("must fail: {result}")),
        }
    }
    if !wrong.is_empty() {
        return (Some(false), wrong.join("; "));
    }
    if right.is_empty() {
        return (None, WITH_MEASURE.to_owned());
    }
    (Some(true), right.join("; "))
}
