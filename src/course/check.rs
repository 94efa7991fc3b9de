//! The criteria of a stage: read from `[[check]]`, held against what a run reported, answered line by line. Nothing
//! here runs a model; what was not measured is neither passed nor failed, and `unclear` never passes.

mod read;

use serde::{Deserialize, Serialize};

pub use read::{CheckToml, checked};

use super::{Stage, formula, metric, placeholder};
use crate::config::{RunConfig, Swiglu};
use crate::protocol::{Finished, Pair, Verdict};

/// One criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is asked, in a few words: `first loss is what the formula says`.
    pub name: String,
    pub metric: Metric,
    pub test: Test,
    /// What this criterion says of the stage as it starts.
    pub starter: Starter,
    /// Reported, but does not decide: what not every device can show.
    pub optional: bool,
    pub line: usize,
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A figure of the run, by its name in `metric.rs`.
    Figure(String),
    /// Time of the stage as it starts over time of the learner's, paired, with its interval.
    Ratio,
    /// A plausibility lint by name.
    Lint(String),
    /// A part of the model in the kernel list: `mlp.swiglu`.
    Part(String),
    /// The stage's questions.
    Quiz,
}

/// What it must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Not further from the target than this share of it.
    Within(f64, Target),
    AtLeast(Target),
    AtMost(Target),
    Above(Target),
    Below(Target),
    /// The lint or the part is there.
    Present,
    /// It is not there, in a run that would have shown it.
    Absent,
    /// Every question answered rightly.
    Right,
}

/// A number, or the name of one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "it takes a number or the quoted name of a figure"
)]
pub enum Target {
    Number(f64),
    /// `formula.first_loss`, `ln_vocab`, `entropy`, or another metric.
    Named(String),
}

/// What a criterion must say of the starter, so that `course check` can tell a fault from an accident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Starter {
    #[default]
    Fails,
    Passes,
    /// Either.
    Any,
}

/// How a criterion came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    Failed,
    NotMeasured,
}

impl Outcome {
    /// Of a criterion that was measured.
    pub const fn of(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// One criterion with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub name: String,
    /// `loss_first within 3 % of 6.933`.
    pub asked: String,
    /// `122.04`, or why there is nothing.
    pub measured: String,
    pub outcome: Outcome,
    pub optional: bool,
}

/// All criteria of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub stage: String,
    pub lines: Vec<Line>,
}

impl Report {
    /// Failed as soon as one line failed; passed when every line that decides passed.
    pub fn outcome(&self) -> Outcome {
        let mut deciding = self
            .lines
            .iter()
            .filter(|line| !line.optional)
            .map(|line| line.outcome)
            .peekable();
        if deciding.peek().is_none() || self.lines.is_empty() {
            return Outcome::NotMeasured;
        }
        deciding
            .max_by_key(|outcome| match outcome {
                Outcome::Passed => 0,
                Outcome::NotMeasured => 1,
                Outcome::Failed => 2,
            })
            .unwrap_or(Outcome::NotMeasured)
    }

    pub fn passed(&self) -> bool {
        self.outcome() == Outcome::Passed
    }
}

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
                && measured.config.is_some_and(is_reference)
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

/// Whether every operation runs in the version that the others are held against, so that there is nothing to compare.
fn is_reference(config: &RunConfig) -> bool {
    let (m, plain) = (&config.model, RunConfig::preset(config.preset).model);
    (m.kv_layout, m.attention, m.norm) == (plain.kv_layout, plain.attention, plain.norm)
        && (m.loss, m.gradient, m.matmul) == (plain.loss, plain.gradient, plain.matmul)
        && matches!(m.swiglu, Swiglu::Separate | Swiglu::FusedGateUp)
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
