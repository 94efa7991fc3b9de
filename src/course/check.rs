//! The criteria of a stage, as `[[check]]` of its file gives them. `judge` decides if a run meets them.

use serde::Deserialize;

use super::toml_file::TomlFile;
use super::{formula, metric};
use crate::course::config_file::FileError;

/// One criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The demand in a few words: `first loss is what the formula says`.
    pub name: String,
    /// The figure or fact that is tested.
    pub metric: Metric,
    /// The test of it.
    pub test: Test,
    /// The outcome that this criterion must have for the stage as it starts.
    pub starter: Starter,
    /// True if the criterion is reported but does not decide, because not every device can show it.
    pub optional: bool,
    /// The line in the file, for messages.
    pub line: usize,
}

/// The figure or fact that a criterion tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A figure of the run, by its name in `metric.rs`.
    Figure(String),
    /// The step time of the stage as it starts over that of the learner's configuration, measured in pairs, with its interval.
    Ratio,
    /// A lint by name.
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
    /// The lint or the part is there.
    Present,
    /// The lint or the part is not there, in a run that would have shown it.
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

/// A number, or the name of a figure.
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

/// The outcome that a criterion must have for the starter. `course check` tells a fault from an accident by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Starter {
    #[default]
    Fails,
    Passes,
    /// The outcome does not matter.
    Any,
}

/// One `[[check]]` as it is written.
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

/// Reads the criterion in the table at `path`.
///
/// # Errors
/// If a key is missing, names nothing that exists, or contradicts another key.
pub fn checked(file: &TomlFile<'_>, path: &str, raw: CheckToml) -> Result<Check, FileError> {
    let at = |key: &str| format!("{path}.{key}");
    let presence = || match raw.present {
        Some(true) => Ok(Test::Present),
        Some(false) => Ok(Test::Absent),
        None => Err(file.missing(&at("present"), "true` or `present = false")),
    };
    let named = |key: &str, name: &Option<String>| {
        let name = name.clone();
        name.ok_or_else(|| file.missing(&at(key), "\"…\""))
    };
    let (metric, test) = match raw.metric.as_str() {
        "quiz" => (Metric::Quiz, Test::Right),
        "lint" => (Metric::Lint(named("lint", &raw.lint)?), presence()?),
        "part" => (Metric::Part(named("part", &raw.part)?), presence()?),
        "ratio" => (Metric::Ratio, test(file, path, &raw)?),
        name => {
            if !metric::is_known(name) {
                let figures = metric::METRICS.iter().map(|metric| metric.name);
                let all = figures.chain(["ratio", "lint", "part", "quiz"]);
                return Err(file.unknown(&at("metric"), "metric", name, all));
            }
            (Metric::Figure(name.to_owned()), test(file, path, &raw)?)
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

/// Reads the one condition of a figure.
fn test(file: &TomlFile<'_>, path: &str, raw: &CheckToml) -> Result<Test, FileError> {
    let at = |key: &str| format!("{path}.{key}");
    if raw.within.is_some() && raw.of.is_none() {
        return Err(file.missing(&at("of"), "\"formula.first_loss\""));
    }
    let conditions = [
        (
            "within",
            raw.within
                .zip(raw.of.clone())
                .map(|(share, of)| Test::Within(share, of)),
        ),
        ("at-least", raw.at_least.clone().map(Test::AtLeast)),
        ("at-most", raw.at_most.clone().map(Test::AtMost)),
        ("above", raw.above.clone().map(Test::Above)),
        ("below", raw.below.clone().map(Test::Below)),
    ];
    let mut given = conditions
        .into_iter()
        .filter_map(|(key, test)| Some((key, test?)));
    let Some((first, test)) = given.next() else {
        let message = "a check needs one of `within`, `at-least`, `at-most`, `above`, `below`";
        return Err(file.fault(path, format!("{message}; write one of them")));
    };
    if let Some((second, _)) = given.next() {
        let message = format!("a check has one condition, this has `{first}` and `{second}`");
        return Err(file.fault(&at(second), format!("{message}; write two checks")));
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
