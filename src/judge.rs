//! Turns measured facts into outcomes of stages, config exercises, kernel exercises and mysteries. A criterion asks for something, such as
//! `first loss within 3 % of 6.933`; its result has what was measured, such as `122.04`, and an outcome. A criterion that was not measured has
//! neither passed nor failed. These are pure functions without engine, clock or files.

pub mod configs;
pub mod course;
pub mod detective;
pub mod fit;
pub mod kernel;
pub mod mystery;
pub mod stage;
mod truth;

use serde::Serialize;

use protocol::Pair;

/// The outcome of a criterion. The outcome of several criteria is the largest in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    NotMeasured,
    Failed,
}

impl Outcome {
    /// Returns the outcome of a measured criterion.
    pub const fn from_passed(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }

    /// Returns true if the criterion passed, false if it failed. `None` if it was not measured.
    pub const fn decided(self) -> Option<bool> {
        match self {
            Self::Passed => Some(true),
            Self::Failed => Some(false),
            Self::NotMeasured => None,
        }
    }
}

/// The result of one criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CriterionResult {
    pub name: String,
    /// The demand, as in `loss_first within 3 % of 6.933`.
    pub asked: String,
    /// The measured figure, as in `122.04`, or why there is none.
    pub measured: String,
    pub outcome: Outcome,
    pub optional: bool,
}

/// Returns a sentence about criteria of which none failed: all are met, or how many, with the names and reasons of those that were not
/// measured.
pub fn met(criteria: &[CriterionResult]) -> String {
    let open: Vec<String> = criteria
        .iter()
        .filter(|line| line.outcome == Outcome::NotMeasured)
        .map(|line| format!("`{}` is open ({})", line.name, line.measured))
        .collect();
    if open.is_empty() {
        return "every check is met".to_owned();
    }
    let all = criteria.len();
    let met = all - open.len();
    format!("{met} of {all} checks are met, {}", open.join(", "))
}

/// The measured figure of a criterion in words, and true if it passes. `None` if it was not measured; the words say why.
type Found = (String, Option<bool>);

impl CriterionResult {
    fn new(name: &str, asked: String, (measured, passed): Found) -> Self {
        Self {
            name: name.to_owned(),
            asked,
            measured,
            outcome: passed.map_or(Outcome::NotMeasured, Outcome::from_passed),
            optional: false,
        }
    }
}

/// Makes the finding of a criterion that was not measured for this reason.
fn not_measured(why: impl std::fmt::Display) -> Found {
    (format!("not measured: {why}"), None)
}

/// Returns a paired comparison in figures, as in `1.200x [1.100, 1.300], n=30, faster`.
fn interval(pair: &Pair) -> String {
    format!("{}, n={}, {}", pair.figures(), pair.n, pair.verdict)
}

/// The results of all criteria of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageReport {
    pub stage: String,
    pub lines: Vec<CriterionResult>,
}

impl StageReport {
    /// Returns the outcome of the stage: failed if a required line failed, passed if every required line passed.
    pub fn outcome(&self) -> Outcome {
        self.lines
            .iter()
            .filter(|line| !line.optional)
            .map(|line| line.outcome)
            .max()
            .unwrap_or(Outcome::NotMeasured)
    }

    pub fn passed(&self) -> bool {
        self.outcome() == Outcome::Passed
    }
}
