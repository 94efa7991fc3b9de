//! The part of `course check` that runs: every starter must fail by name, every solution must pass; so must every fault of a
//! mystery run and the configuration without it.

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

/// One thing that `course check` tried on a device, and how it came out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CourseTrial {
    /// `1 broken-init, starter`.
    pub what: String,
    /// None where nothing was measured that could fail; the detail says why.
    pub passed: Option<bool>,
    pub detail: String,
}

/// Why speed was not judged without `--measure`.
pub const WITH_MEASURE: &str = "not measured: its speed is judged with --measure";
/// Steps of a run whose fault shows from the beginning.
const FEW_STEPS: u64 = 8;

/// What was found: whether it passed, none where nothing was measured that could fail; and the detail.
pub type Found = (Option<bool>, String);
/// Runs a configuration for so many steps.
pub type RunSteps<'a> = dyn FnMut(&RunConfig, u64) -> Result<Finished, String> + 'a;
/// Compares broken with fixed.
pub type CompareConfigs<'a> = dyn FnMut(&RunConfig, &RunConfig) -> Result<Pair, String> + 'a;

/// Runs every starter, which must fail by name, and every solution, which must pass; with `compare`, ratios as well.
pub fn behaviour(
    course: &Course,
    run: &mut RunSteps<'_>,
    mut compare: Option<&mut CompareConfigs<'_>>,
) -> Vec<CourseTrial> {
    let mut tried = Vec::new();
    for stage in &course.stages {
        let mut add = |what: &str, found| {
            let what = format!("{} {}, {what}", stage.number, stage.id);
            tried.push(CourseTrial::new(what, found));
        };
        let pair = match compare.as_mut() {
            None => None,
            Some(compare) => compare(&stage.broken, &stage.fixed)
                .map_err(|error| add("comparison", (Some(false), error)))
                .ok(),
        };
        for (what, config) in [("starter", &stage.broken), ("solution", &stage.fixed)] {
            let starter = what == "starter";
            let side = pair.as_ref().filter(|_| !starter);
            let found = match run(config, stage.steps) {
                Err(error) => (Some(false), did_not_run(error)),
                Ok(finished) => {
                    if !starter && let Some(range) = range(stage, &finished, side) {
                        add("range", range);
                    }
                    verdict(stage, config, &finished, side, starter)
                }
            };
            add(what, found);
        }
    }
    tried
}

/// Tells whether the figure that learners estimate could be guessed from its scale. `None` where this solution, or its pairs,
/// did not measure the figure; a figure of step times depends on the machine and its load, so it is judged beside pairs only.
fn range(stage: &Stage, solution: &Finished, pair: Option<&Pair>) -> Option<Found> {
    let of = stage.estimate.as_ref()?;
    let (_, figure) = of.of.split_once('.')?;
    if pair.is_none() && metric::of_step_times(figure) {
        return Some((None, WITH_MEASURE.to_owned()));
    }
    let solution = Finished {
        variant: "fixed".to_owned(),
        ..solution.clone()
    };
    let known = FigureSources {
        slots: [None, Some(solution)],
        pair,
        ..FigureSources::none(&stage.fixed)
    };
    let truth = number(&of.of, &known)?;
    let place = of.gives_away(truth);
    let said = format!(
        "{} is {}, {} from {} to {}",
        of.of,
        digits(truth, 3),
        place.unwrap_or("on a scale"),
        of.from,
        of.to
    );
    Some((Some(place.is_none()), said))
}

/// Tries each fault of mystery runs alone: it must fail the criterion that it names, and the known-good configuration must meet all.
/// A fault of speed is tried with `compare` only. Combinations are made of faults at different keys, and every fault fails by
/// itself: so a combination fails until all are fixed, and then it is the known-good configuration. A test of `course::mystery`
/// checks the values.
pub fn mysteries(
    run: &mut RunSteps<'_>,
    mut compare: Option<&mut CompareConfigs<'_>>,
) -> Vec<CourseTrial> {
    let mut tried: Vec<CourseTrial> = Vec::new();
    let mut goods: Vec<RunConfig> = Vec::new();
    for fault in FAULTS {
        let mystery = Mystery::with_faults(0, vec![fault], Preset::Tiny);
        if !goods.contains(&mystery.good) {
            let what = format!("mystery, known-good configuration {}", goods.len() + 1);
            tried.push(CourseTrial::of(what, known_good(run, &mystery.good)));
            goods.push(mystery.good.clone());
        }
        let what = format!("mystery, {}", fault.id);
        let tried_fault = match (fault.fails, compare.as_mut()) {
            (Criterion::Speed, None) => {
                tried.push(CourseTrial::new(what, (None, WITH_MEASURE.to_owned())));
                continue;
            }
            (Criterion::Speed, Some(compare)) => slower(&mystery, fault, *compare),
            _ => fails_in_run(run, &mystery.broken, fault),
        };
        tried.push(CourseTrial::of(what, tried_fault));
    }
    tried
}

impl CourseTrial {
    /// A trial, and what was found: whether it passed, and the detail.
    pub fn new(what: String, (passed, detail): Found) -> Self {
        Self {
            what,
            passed,
            detail,
        }
    }

    /// A trial that passed with what was found, or failed for a reason.
    fn of(what: String, tried: Result<String, String>) -> Self {
        let passed = Some(tried.is_ok());
        let (Ok(detail) | Err(detail)) = tried;
        Self::new(what, (passed, detail))
    }
}

fn did_not_run(error: String) -> String {
    format!("did not run: {error}")
}

fn known_good(run: &mut RunSteps<'_>, config: &RunConfig) -> Result<String, String> {
    let finished = run(config, mystery::STEPS).map_err(did_not_run)?;
    let report = of_run(config, &finished);
    let (passed, open): (Vec<_>, Vec<_>) = report
        .lines
        .iter()
        .partition(|line| line.outcome == Outcome::Passed);
    let wrong = open.into_iter();
    match told(wrong.filter(|line| line.name != Criterion::Speed.into_str())) {
        wrong if wrong.is_empty() => Ok(told(passed.into_iter())),
        wrong => Err(format!("must pass: {wrong}")),
    }
}

fn fails_in_run(
    run: &mut RunSteps<'_>,
    config: &RunConfig,
    fault: &Fault,
) -> Result<String, String> {
    // Only a falling loss needs many steps to show.
    let steps = match fault.fails {
        Criterion::LossFalls => mystery::STEPS,
        _ => FEW_STEPS,
    };
    let finished = run(config, steps).map_err(did_not_run)?;
    fails(&of_run(config, &finished), fault)
}

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

/// Whether a fault failed the criterion that it names.
fn fails(report: &StageReport, fault: &Fault) -> Result<String, String> {
    let name = fault.fails.into_str();
    let line = told(report.lines.iter().filter(|line| line.name == name));
    match mystery::unmet(report).contains(&name) {
        true => Ok(line),
        false => Err(format!("must fail: {line}")),
    }
}

fn of_run(config: &RunConfig, finished: &Finished) -> StageReport {
    mystery::evaluate(StageFacts {
        config: Some(config),
        finished: Some(finished),
        ..StageFacts::default()
    })
}

fn told<'a>(lines: impl Iterator<Item = &'a CriterionResult>) -> String {
    let line = |line: &CriterionResult| {
        format!(
            "`{}`: {}, measured {}",
            line.name, line.asked, line.measured
        )
    };
    lines.map(line).collect::<Vec<_>>().join("; ")
}

fn verdict(
    stage: &Stage,
    config: &RunConfig,
    finished: &Finished,
    pair: Option<&Pair>,
    starter: bool,
) -> Found {
    let report = evaluate(
        stage,
        StageFacts {
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
        let said = told(std::iter::once(line));
        match wanted {
            _ if line.outcome == wanted => named.push(said),
            Outcome::Passed => wrong.push(format!("must pass: {said}")),
            _ => wrong.push(format!("must fail: {said}")),
        }
    }
    match (wrong.is_empty(), named.is_empty()) {
        (false, _) => (Some(false), wrong.join("; ")),
        (true, false) => (Some(true), named.join("; ")),
        (true, true) => (None, WITH_MEASURE.to_owned()),
    }
}
