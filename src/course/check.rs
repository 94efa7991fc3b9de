//! The criteria that a run of a stage has to meet. `judge` decides if it does. A stage's file writes a criterion as
//!
//! ```toml
//! [[check]]
//! name = "the first loss is near ln V"
//! metric = "loss_first"
//! within = 0.03
//! of = "formula.first_loss"
//! ```

use serde::Deserialize;

use super::toml_file::TomlFile;
use super::{formula, metric};
use crate::course::config_file::FileError;

/// One criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The demand in a few words: `first loss is what the formula says`.
    pub name: String,
    pub metric: Metric,
    pub test: Test,
    pub starter: Starter,
    /// True if the criterion is reported but does not decide, because not every device can show it.
    pub optional: bool,
    /// The line in the file, for messages.
    pub line: usize,
}

/// The figure or fact that a criterion tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The name of a figure of the run, which `metric.rs` lists.
    Figure(String),
    /// The step time of the starter divided by that of the learner's configuration, measured in pairs, with its interval.
    Ratio,
    /// The name of a lint.
    Lint(String),
    /// A part of the model in the list of kernels: `mlp.swiglu`.
    Part(String),
    /// The questions of the stage.
    Quiz,
}

/// The test of a figure or a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The figure differs from the target by at most this share of the target.
    Within(f64, Target),
    AtLeast(Target),
    AtMost(Target),
    Above(Target),
    Below(Target),
    /// The run shows the lint or the part.
    Present,
    /// The run does not show the lint or the part, although it was looked for.
    Absent,
    /// Every question is answered rightly.
    Right,
}

impl Test {
    /// Returns the number that a figure is compared with; `None` for a fact.
    pub const fn target(&self) -> Option<&Target> {
        match self {
            Self::Within(_, target)
            | Self::AtLeast(target)
            | Self::AtMost(target)
            | Self::Above(target)
            | Self::Below(target) => Some(target),
            Self::Present | Self::Absent | Self::Right => None,
        }
    }
}

/// The number that a figure is compared with: a constant, or another figure.
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

/// The outcome that a criterion must have for the starter. `course check` reports a starter with another outcome as a fault of the course.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Starter {
    #[default]
    Fails,
    Passes,
    /// The outcome does not matter.
    Any,
}

/// A table `[[check]]` of a file, before its keys are compared with each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CheckToml {
    name: String,
    metric: String,
    lint: Option<String>,
    part: Option<String>,
    present: Option<bool>,
    within: Option<f64>,
    of: Option<Target>,
    at_least: Option<Target>,
    at_most: Option<Target>,
    above: Option<Target>,
    below: Option<Target>,
    #[serde(default)]
    starter: Starter,
    #[serde(default)]
    optional: bool,
}

/// Reads the criterion in the table at `path`, such as `check.0`.
///
/// # Errors
/// If a key is missing, names nothing that exists, or contradicts another key.
pub fn read_check(file: &TomlFile<'_>, path: &str, raw: CheckToml) -> Result<Check, FileError> {
    let presence = || {
        let example = "true` or `present = false";
        let present = file.required(path, "present", raw.present, example)?;
        Ok(if present { Test::Present } else { Test::Absent })
    };
    let (metric, test) = match raw.metric.as_str() {
        "quiz" => (Metric::Quiz, Test::Right),
        "lint" => {
            let lint = file.required(path, "lint", raw.lint, "\"first-loss\"")?;
            (Metric::Lint(lint), presence()?)
        }
        "part" => {
            let part = file.required(path, "part", raw.part, "\"mlp.swiglu\"")?;
            (Metric::Part(part), presence()?)
        }
        "ratio" => (Metric::Ratio, read_test(file, path, &raw)?),
        name if metric::is_known(name) => (
            Metric::Figure(name.to_owned()),
            read_test(file, path, &raw)?,
        ),
        name => {
            let known = metric::names().chain(["ratio", "lint", "part", "quiz"]);
            return Err(file.unknown(&format!("{path}.metric"), "metric", name, known));
        }
    };
    Ok(Check {
        name: raw.name,
        metric,
        test,
        starter: raw.starter,
        optional: raw.optional,
        line: file.line(path),
    })
}

/// Reads the condition of a figure. A table has exactly one.
fn read_test(file: &TomlFile<'_>, path: &str, raw: &CheckToml) -> Result<Test, FileError> {
    let at = |key: &str| format!("{path}.{key}");
    if raw.within.is_some() && raw.of.is_none() {
        return Err(file.missing(&at("of"), "\"formula.first_loss\""));
    }
    let within = raw.within.zip(raw.of.clone());
    let conditions = [
        ("within", within.map(|(share, of)| Test::Within(share, of))),
        ("at-least", raw.at_least.clone().map(Test::AtLeast)),
        ("at-most", raw.at_most.clone().map(Test::AtMost)),
        ("above", raw.above.clone().map(Test::Above)),
        ("below", raw.below.clone().map(Test::Below)),
    ];
    let mut given = conditions
        .into_iter()
        .filter_map(|(key, test)| Some((key, test?)));
    let Some((first, test)) = given.next() else {
        let message = "a check of a figure has no condition; \
                       write one of `within`, `at-least`, `at-most`, `above`, `below`";
        return Err(file.fault(path, message));
    };
    if let Some((second, _)) = given.next() {
        let message = format!(
            "a check has one condition, this has `{first}` and `{second}`; write two checks"
        );
        return Err(file.fault(&at(second), message));
    }
    if let Some(Target::Named(name)) = test.target() {
        let known = match name.strip_prefix("formula.") {
            Some(name) => formula::find(name).is_some(),
            None => metric::is_known(name),
        };
        if !known {
            let formulas = formula::FORMULAS
                .iter()
                .map(|formula| format!("formula.{}", formula.name));
            let metrics = metric::METRICS.iter().map(|metric| metric.name.to_owned());
            let all: Vec<String> = formulas.chain(metrics).collect();
            let place = at(if first == "within" { "of" } else { first });
            return Err(file.unknown(&place, "figure", name, all.iter().map(String::as_str)));
        }
    }
    Ok(test)
}
