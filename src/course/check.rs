//! The criteria of a stage, as `[[check]]` of its file gives them. Whether a run meets them is the judge's business.

use serde::Deserialize;

use super::toml_file::TomlFile;
use super::{formula, metric};
use crate::course::config_file::FileError;

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

impl Test {
    /// What a figure is held against.
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

/// The criterion that the table at `path` means.
///
/// # Errors
/// What it cannot mean.
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
            if !metric::known(name) {
                let all = metric::METRICS.iter().map(|metric| metric.name);
                let all = all.chain(["ratio", "lint", "part", "quiz"]);
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

/// The one condition of a figure.
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
    let given = conditions.into_iter();
    let mut given = given.filter_map(|(key, test)| Some((key, test?)));
    let Some((first, test)) = given.next() else {
        let what = "a check needs one of `within`, `at-least`, `at-most`, `above`, `below`";
        return Err(file.fault(path, format!("{what}; write one of them")));
    };
    if let Some((second, _)) = given.next() {
        let what = format!("a check has one condition, this has `{first}` and `{second}`");
        return Err(file.fault(&at(second), format!("{what}; write two checks")));
    }
    if let Some(Target::Named(name)) = test.target() {
        let known = match name.strip_prefix("formula.") {
            Some(name) => formula::find(name).is_some(),
            None => metric::known(name),
        };
        if !known {
            let formulas = formula::FORMULAS.iter();
            let formulas = formulas.map(|it| format!("formula.{}", it.name));
            let metrics = metric::METRICS.iter().map(|it| it.name.to_owned());
            let all: Vec<String> = formulas.chain(metrics).collect();
            let place = at(if first == "within" { "of" } else { first });
            return Err(file.unknown(&place, "figure", name, all.iter().map(String::as_str)));
        }
    }
    Ok(test)
}
