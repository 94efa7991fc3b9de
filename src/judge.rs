//! Turns measured facts into outcomes: for stages, configuration exercises and kernel exercises. Pure functions: no engine,
//! no clock, no files. What was not measured has neither passed nor failed.

pub mod configs;
pub mod course;
pub mod fit;
pub mod kernel;
pub mod mystery;
pub mod stage;
mod truth;

use serde::Serialize;

use protocol::Pair;

/// How a criterion came out; of several, the last in this order decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    NotMeasured,
    Failed,
}

impl Outcome {
    /// Of a criterion that was measured.
    pub const fn of(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }

    /// Whether it passed; `None` where it was not measured.
    pub const fn decided(self) -> Option<bool> {
        match self {
            Self::Passed => Some(true),
            Self::Failed => Some(false),
            Self::NotMeasured => None,
        }
    }
}

/// One criterion with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CriterionResult {
    pub name: String,
    /// `loss_first within 3 % of 6.933`.
    pub asked: String,
    /// `122.04`, or why there is nothing.
    pub measured: String,
    pub outcome: Outcome,
    pub optional: bool,
}

/// What passing these criteria means: that all are met, or how many, and which were not measured and why.
pub fn met(criteria: &[CriterionResult]) -> String {
    let not_measured = |line: &&CriterionResult| line.outcome == Outcome::NotMeasured;
    let open = criteria.iter().filter(not_measured);
    let open: Vec<String> = open
        .map(|line| format!("`{}` is open ({})", line.name, line.measured))
        .collect();
    match open.len() {
        0 => "every check is met".to_owned(),
        count => {
            let (met, all) = (criteria.len() - count, criteria.len());
            format!("{met} of {all} checks are met, {}", open.join(", "))
        }
    }
}

/// What was found, and whether it passes; `None` where it was not measured.
type Found = (String, Option<bool>);

impl CriterionResult {
    fn new(name: &str, asked: String, (measured, passed): Found) -> Self {
        Self {
            name: name.to_owned(),
            asked,
            measured,
            outcome: passed.map_or(Outcome::NotMeasured, Outcome::of),
            optional: false,
        }
    }
}

/// A finding that was not measured, for this reason.
fn not_measured(why: impl std::fmt::Display) -> Found {
    (format!("not measured: {why}"), None)
}

/// A paired comparison in figures: `1.200x [1.100, 1.300], n=30, faster`.
fn interval(pair: &Pair) -> String {
    format!("{}, n={}, {}", pair.figures(), pair.n, pair.verdict)
}

/// All criteria of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageReport {
    pub stage: String,
    pub lines: Vec<CriterionResult>,
}

impl StageReport {
    /// Failed as soon as one line failed; passed when every line that decides passed.
    pub fn outcome(&self) -> Outcome {
        let deciding = self.lines.iter().filter(|line| !line.optional);
        let outcomes = deciding.map(|line| line.outcome);
        outcomes.max().unwrap_or(Outcome::NotMeasured)
    }

    pub fn passed(&self) -> bool {
        self.outcome() == Outcome::Passed
    }
}
