//! A config exercise: a configuration, the values to try, the checks, and the learner's `answer.toml`. In this file learners write what they
//! expect, such as `batch = "8"`, before anything is measured. Its starter has `batch = "?"`, which is not an answer.

mod check;
mod read;

use std::collections::BTreeMap;

pub use check::OWN_METRICS;
pub(super) use read::read;
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_edit::{DocumentMut, value};

use crate::course::StageFile;
use crate::course::config_file::{FileError, line_of, not_toml, set};
use crate::course::save_file::letter;
use crate::sanitize;
use protocol::config::RunConfig;

/// The name of the learner's file.
pub const ANSWERS: &str = "answer.toml";

/// A config exercise.
#[derive(Clone, Debug, PartialEq)]
pub struct Configs {
    /// The text of `config.toml`.
    pub text: String,
    pub config: RunConfig,
    /// The file `answer.toml`; its starter has a question mark for every answer.
    pub file: StageFile,
    pub checks: Vec<ConfigCheck>,
    /// The number of steps of each run.
    pub steps: u64,
    pub sweep: Option<Sweep>,
    /// Changes that the learner ranks by their effect on the step time before they are measured.
    pub rank: Vec<RankedChange>,
}

/// Several values of one key, each of which is measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    pub key: String,
    #[serde(default, deserialize_with = "words_of_numbers")]
    pub values: Vec<String>,
    /// Other settings with each of which the sweep is repeated, such as `model.attention=flash`.
    #[serde(default)]
    pub with: Vec<String>,
    /// The metrics in the table.
    #[serde(default)]
    pub metrics: Vec<String>,
}

/// One optimisation to rank.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankedChange {
    pub label: String,
    /// Assignments such as `model.norm=fused`.
    #[serde(default)]
    pub set: Vec<String>,
}

impl Configs {
    /// Returns the letters of the changes to rank.
    pub fn letters(&self) -> Vec<String> {
        (0..self.rank.len()).map(letter).collect()
    }

    /// Returns true if values are compared with the first one. A value that the device refuses is then an answer as well.
    pub fn compares_speeds(&self) -> bool {
        let is_speed = |check: &ConfigCheck| matches!(check.metric, ConfigMetric::Speed { .. });
        self.checks.iter().any(is_speed)
    }

    /// Returns every run of the sweep in order: the setting of `with`, if there is one, and the value.
    pub fn points(&self) -> Vec<(Option<&str>, &str)> {
        let Some(sweep) = &self.sweep else {
            return Vec::new();
        };
        let values = || sweep.values.iter().map(String::as_str);
        if sweep.with.is_empty() {
            return values().map(|value| (None, value)).collect();
        }
        sweep
            .with
            .iter()
            .flat_map(|setting| values().map(move |value| (Some(setting.as_str()), value)))
            .collect()
    }
}

/// Returns the configuration with an assignment such as `model.norm=fused`.
///
/// # Errors
/// If the key or the value is unknown, or if the configuration cannot run.
pub fn apply(config: &RunConfig, assignment: &str) -> Result<RunConfig, String> {
    let mut changed = config.clone();
    set(&mut changed, assignment)?;
    match changed.problems().first() {
        None => Ok(changed),
        Some(problem) => Err(problem.message.clone()),
    }
}

/// Reads a list of numbers or words as texts, so that `8` and `"8"` mean the same value.
fn words_of_numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::<toml::Value>::deserialize(deserializer)?;
    let words = values.into_iter().map(|value| match value {
        toml::Value::String(text) => text,
        number => number.to_string(),
    });
    Ok(words.collect())
}

/// A criterion of a config exercise.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigCheck {
    pub name: String,
    pub metric: ConfigMetric,
    /// The key of `answer.toml` that is compared with the measurement, and the question to the learner; `None` if the learner is not asked.
    pub answer: Option<(String, String)>,
}

/// The measurement of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigMetric {
    /// The last value of the sweep up to which each doubling took less than `factor` times the step time.
    Bend { factor: f64 },
    /// The first value at which the quadratic term of a + b·x + c·x², fitted to peak memory, is the largest. `of` is a setting of `with`.
    Leads { of: String },
    /// The share of the quadratic term at the largest value is at most `at_most`. `of` is a setting of `with`.
    QuadraticShare { of: String, at_most: f64 },
    /// The learner's order has at most `at_most` wrong pairs of changes that the measurement clearly distinguishes.
    Order { at_most: u64 },
    /// The value `of` is `refused`, `slower`, `same` or `faster`, compared with the first value of the sweep.
    Speed { of: String },
    /// The figure `name` of the run with the value `of`.
    Figure {
        name: String,
        of: String,
        test: FigureTest,
    },
}

/// The test of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureTest {
    AtLeast(f64),
    AtMost(f64),
    /// The figure differs from that of the sweep's first value by at most this share of it.
    WithinOfFirst(f64),
}

/// The possible answers to the question about the speed of a value.
const SPEEDS: [&str; 4] = ["refused", "slower", "same", "faster"];
/// The answer that no value of the sweep is the right one.
pub const NONE: &str = "none";

impl ConfigCheck {
    /// Returns the possible words of an answer that is one word; empty for other answers.
    pub fn words(&self, sweep: Option<&Sweep>) -> Vec<String> {
        let values = sweep.map(|sweep| sweep.values.clone()).unwrap_or_default();
        match &self.metric {
            ConfigMetric::Bend { .. } => values,
            ConfigMetric::Leads { .. } => [values, vec![NONE.to_owned()]].concat(),
            ConfigMetric::Speed { .. } => SPEEDS.map(str::to_owned).to_vec(),
            _ => Vec::new(),
        }
    }
}

/// The learner's answers, by key: one word each, or several for an order.
pub type Answers = BTreeMap<String, Vec<String>>;

/// Reads `answer.toml`; `path` is for messages only. Question marks are left out, because they are not answers.
///
/// # Errors
/// If the text is not TOML, or if a value is not an answer. The error has its line.
pub fn answers(raw: &str, path: &str) -> Result<Answers, FileError> {
    let (text, _) = sanitize::without_escapes(raw);
    let mut found = Answers::new();
    for (key, value) in &parse(&text, path)? {
        let name = key.get_ref();
        let answer = words(value.get_ref()).ok_or_else(|| {
            let message = format!("`{name}` takes a number, a quoted word or a list of words");
            FileError::new(path, line_of(&text, value.span().start), message)
        })?;
        if !answer.is_empty() && !answer.iter().any(|word| word == "?") {
            found.insert(name.to_string(), answer);
        }
    }
    Ok(found)
}

fn parse<'t>(raw: &'t str, path: &str) -> Result<DeTable<'t>, FileError> {
    DeTable::parse(raw)
        .map(Spanned::into_inner)
        .map_err(|error| not_toml(path, raw, error.message(), error.span()))
}

/// Returns the words of an answer; `None` for a value that cannot be an answer.
fn words(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::String(text) => Some(split(text)),
        DeValue::Integer(n) => Some(vec![n.to_string()]),
        DeValue::Array(list) => {
            let mut all = Vec::new();
            for entry in list {
                all.extend(words(entry.get_ref())?);
            }
            Some(all)
        }
        _ => None,
    }
}

/// Splits a text such as `c, a,b` into words in lower case.
pub fn split(text: &str) -> Vec<String> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Checks that the starter of `answer.toml` has every key and no answer; `path` is for messages only.
///
/// # Errors
/// If an answer is given already, or if a key is missing.
pub fn check_starter(raw: &str, path: &str, checks: &[ConfigCheck]) -> Result<(), FileError> {
    if let Some(key) = answers(raw, path)?.keys().next() {
        let message = format!("answers `{key}` already; a starter writes {key} = \"?\"");
        let line = line_of_key(raw, key).unwrap_or(0);
        return Err(FileError::new(path, line, message));
    }
    let keys = parse(raw, path)?;
    for (key, _) in checks.iter().filter_map(|check| check.answer.as_ref()) {
        if !keys.contains_key(key.as_str()) {
            let message = format!("does not ask for `{key}`; write {key} = \"?\"");
            return Err(FileError::new(path, 0, message));
        }
    }
    Ok(())
}

/// Returns the line of a key, from 1; `None` if the key is missing.
pub fn line_of_key(raw: &str, key: &str) -> Option<usize> {
    let keys = parse(raw, "").ok()?;
    Some(line_of(raw, keys.get(key)?.span().start))
}

/// Returns the text of `answer.toml` with these answers. The comments in `raw` stay. If `raw` is not TOML, `starter` takes its place.
pub fn written(raw: &str, starter: &str, answers: &Answers) -> String {
    let mut document = [raw, starter]
        .iter()
        .find_map(|text| text.parse::<DocumentMut>().ok())
        .unwrap_or_default();
    for (key, words) in answers {
        document[key.as_str()] = value(words.join(","));
    }
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_list_of_words_and_a_question_mark_is_not_an_answer() {
        let read = |raw| answers(raw, "answer.toml").map_err(|error| error.to_string());
        let found = read("batch = 8\norder = [\"C\", \"a\"]\nf16 = \"?\"\nall = \"b, a\"\n")
            .expect("answers");
        assert_eq!(found.len(), 3);
        assert_eq!(found["batch"], ["8"]);
        assert_eq!(found["order"], ["c", "a"]);
        assert_eq!(found["all"], ["b", "a"]);
        let error = read("a = 1\nb = [").expect_err("not TOML");
        assert!(error.starts_with("answer.toml:2: is not valid"), "{error}");
        let message = "answer.toml:2: `b` takes a number, a quoted word or a list of words";
        assert_eq!(read("a = 1\nb = true\n"), Err(message.to_owned()));
    }

    #[test]
    fn a_starter_that_answers_is_refused_with_the_line_of_the_answer() {
        let error = check_starter("# first\nf16 = \"same\"\n", "answer.toml", &[]);
        assert_eq!(
            error.expect_err("an answer").to_string(),
            "answer.toml:2: answers `f16` already; a starter writes f16 = \"?\""
        );
    }

    #[test]
    fn answers_are_written_where_the_question_marks_are() {
        let raw = "# first\nf16 = \"?\"\n# second\nbf16 = \"?\"\n";
        assert_eq!(line_of_key(raw, "bf16"), Some(4));
        assert_eq!(line_of_key(raw, "f8"), None);
        let answers = Answers::from([("bf16".to_owned(), vec!["same".to_owned()])]);
        let text = "# first\nf16 = \"?\"\n# second\nbf16 = \"same\"\n";
        assert_eq!(written(raw, "", &answers), text);
        assert_eq!(written("f16 = [", raw, &answers), text);
    }
}
