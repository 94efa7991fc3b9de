//! The checks of a config exercise, and the learner's `answer.toml`: what they expect, written down before anything is
//! measured. A question mark is no answer, and without an answer nothing is measured.

use std::collections::BTreeMap;

use toml_edit::{Document, Value};

use super::Sweep;
use crate::config::file::line_of;
use crate::config::nearest;
use crate::course::fields::{Fields, Table};
use crate::course::{metric, text};

/// The learner's file.
pub const ANSWERS: &str = "answer.toml";

/// A criterion of a config exercise.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigCheck {
    pub name: String,
    pub metric: ConfigMetric,
    /// The key of `answer.toml` that is held against the measurement, and what is asked of the learner.
    pub answer: Option<(String, String)>,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigMetric {
    /// The last value of the sweep that each doubling up to it reached in less than `factor` times the step time.
    Bend { factor: f64 },
    /// The first value at which the quadratic term of a + b·x + c·x², fitted to peak memory, is the largest.
    Leads { of: String },
    /// The share of the quadratic term at the largest value is at most this.
    QuadraticShare { of: String, at_most: f64 },
    /// Pairs of changes that the learner puts in the wrong order, where the measurement is clear: at most so many.
    Order { at_most: u64 },
    /// `refused`, `slower`, `same` or `faster` than the first value of the sweep.
    Speed { of: String },
    /// A figure of the run with this value.
    Figure {
        name: String,
        of: String,
        test: FigureTest,
    },
}

/// What a figure must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureTest {
    AtLeast(f64),
    AtMost(f64),
    /// Not further from the first value's figure than this share of it.
    WithinOfFirst(f64),
}

/// How a format or a change may do.
pub const SPEEDS: &[&str] = &["refused", "slower", "same", "faster"];
/// The answer that no value of the sweep is meant.
pub const NONE: &str = "none";

impl ConfigCheck {
    /// The words that an answer may be, where it is one word.
    pub fn words(&self, sweep: Option<&Sweep>) -> Vec<String> {
        let values = || sweep.map(|sweep| sweep.values.clone()).unwrap_or_default();
        match &self.metric {
            ConfigMetric::Bend { .. } => values(),
            ConfigMetric::Leads { .. } => {
                let mut words = values();
                words.push(NONE.to_owned());
                words
            }
            ConfigMetric::Speed { .. } => SPEEDS.iter().map(|word| (*word).to_owned()).collect(),
            _ => Vec::new(),
        }
    }
}

const METRICS: &[&str] = &[
    "bend",
    "quadratic-leads",
    "quadratic-share",
    "order",
    "speed",
];

/// Reads every `[[check]]`.
pub fn read(
    fields: &mut Fields<'_>,
    t: Table<'_>,
    sweep: Option<&Sweep>,
    changes: usize,
) -> Vec<ConfigCheck> {
    let checks: Vec<ConfigCheck> = fields
        .tables(t, "check")
        .into_iter()
        .map(|table| check(fields, table, sweep, changes))
        .collect();
    if !checks.iter().any(|check| check.answer.is_some()) && !fields.failed {
        let what = "no check asks for an answer; give one `answer = \"batch\"` and `ask = \"…\"`";
        fields.fail(1, what.to_owned());
    }
    checks
}

fn check(
    fields: &mut Fields<'_>,
    t: Table<'_>,
    sweep: Option<&Sweep>,
    changes: usize,
) -> ConfigCheck {
    fields.known(
        t,
        &[
            "name", "metric", "answer", "ask", "of", "factor", "at-most", "at-least", "within",
        ],
    );
    let name = fields.text(t, "name");
    let word = fields.text(t, "metric");
    let metric = match word.as_str() {
        "bend" => ConfigMetric::Bend {
            factor: required(fields, t, "factor", 1.5),
        },
        "quadratic-leads" => ConfigMetric::Leads {
            of: of(fields, t, sweep, true),
        },
        "quadratic-share" => ConfigMetric::QuadraticShare {
            of: of(fields, t, sweep, true),
            at_most: required(fields, t, "at-most", 0.1),
        },
        "order" => ConfigMetric::Order {
            at_most: fields.whole(t, "at-most").unwrap_or(0),
        },
        "speed" => ConfigMetric::Speed {
            of: of(fields, t, sweep, false),
        },
        name => {
            if !name.is_empty() && !metric::known(name) {
                let all = METRICS
                    .iter()
                    .copied()
                    .chain(metric::METRICS.iter().map(|metric| metric.name));
                let near = nearest(name, all);
                let line = fields.line_of(t, "metric");
                fields.fail(
                    line,
                    format!("unknown metric `{name}`; the nearest known one is `{near}`"),
                );
            }
            ConfigMetric::Figure {
                name: name.to_owned(),
                of: of(fields, t, sweep, false),
                test: figure_test(fields, t),
            }
        }
    };
    if matches!(metric, ConfigMetric::Order { .. }) && changes < 2 {
        let line = fields.line_of(t, "metric");
        fields.fail(
            line,
            "`order` needs changes to rank; write at least two `[[rank]]`".to_owned(),
        );
    }
    let judged = matches!(
        metric,
        ConfigMetric::Bend { .. }
            | ConfigMetric::Leads { .. }
            | ConfigMetric::Order { .. }
            | ConfigMetric::Speed { .. }
    );
    let answer = judged.then(|| (fields.text(t, "answer"), fields.text(t, "ask")));
    ConfigCheck {
        name,
        metric,
        answer,
    }
}

fn required(fields: &mut Fields<'_>, t: Table<'_>, key: &str, otherwise: f64) -> f64 {
    if !Fields::has(t, key) {
        fields.missing(t, key, &format!("= {otherwise}"));
    }
    fields.number(t, key).unwrap_or(otherwise)
}

/// The setting or the value that `of` names.
fn of(fields: &mut Fields<'_>, t: Table<'_>, sweep: Option<&Sweep>, with: bool) -> String {
    let named = fields.text(t, "of");
    let Some(sweep) = sweep else {
        fields.fail(t.line, "needs a `[sweep]`; write one".to_owned());
        return named;
    };
    let all = if with { &sweep.with } else { &sweep.values };
    if !named.is_empty() && !all.contains(&named) {
        let line = fields.line_of(t, "of");
        let near = nearest(&named, all.iter().map(String::as_str)).to_owned();
        let place = if with { "with" } else { "values" };
        fields.fail(
            line,
            format!("`of` names `{named}`, which is not in the sweep's `{place}`; the nearest there is `{near}`"),
        );
    }
    named
}

fn figure_test(fields: &mut Fields<'_>, t: Table<'_>) -> FigureTest {
    let given: Vec<&str> = ["within", "at-least", "at-most"]
        .into_iter()
        .filter(|key| Fields::has(t, key))
        .collect();
    let [key] = given.as_slice() else {
        let what = "a figure needs one of `within`, `at-least`, `at-most`; write one of them";
        fields.fail(t.line, what.to_owned());
        return FigureTest::AtLeast(0.0);
    };
    let number = fields.number(t, key).unwrap_or(0.0);
    match *key {
        "within" => FigureTest::WithinOfFirst(number),
        "at-least" => FigureTest::AtLeast(number),
        _ => FigureTest::AtMost(number),
    }
}

/// The learner's answers, by key: one word each, or several for an order.
pub type Answers = BTreeMap<String, Vec<String>>;

/// Reads `answer.toml`. Question marks are left out: they are no answers yet.
///
/// # Errors
/// With the line, where it is no such file.
pub fn answers(raw: &str) -> Result<Answers, (usize, String)> {
    let (raw, _) = text::clean(raw);
    let document = Document::parse(raw.as_str()).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(&raw, span.start));
        (
            line,
            format!("is not valid TOML: {}", text::one_line(error.message())),
        )
    })?;
    let mut found = Answers::new();
    for (key, item) in document.as_table() {
        let line = item.span().map_or(0, |span| line_of(&raw, span.start));
        let words = item.as_value().and_then(words).ok_or_else(|| {
            (
                line,
                format!("`{key}` takes a number, a quoted word or a list of words"),
            )
        })?;
        if !words.is_empty() && !words.iter().any(|word| word == "?" || word.is_empty()) {
            found.insert(key.to_owned(), words);
        }
    }
    Ok(found)
}

fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(split(text.value())),
        Value::Integer(n) => Some(vec![n.value().to_string()]),
        Value::Array(list) => list
            .iter()
            .map(words)
            .collect::<Option<Vec<_>>>()
            .map(|parts| parts.concat()),
        _ => None,
    }
}

/// `c, a,b` as its words, in small letters.
pub fn split(text: &str) -> Vec<String> {
    text.split([',', ' '])
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether `answer.toml` begins with every key and no answer.
///
/// # Errors
/// What is wrong, with its line.
pub fn starter(raw: &str, checks: &[ConfigCheck]) -> Result<(), (usize, String)> {
    if let Some(key) = answers(raw)?.keys().next() {
        return Err((
            0,
            format!("answers `{key}` already; a starter writes {key} = \"?\""),
        ));
    }
    let document = Document::parse(raw).map_err(|error| (0, error.to_string()))?;
    for (key, _) in checks.iter().filter_map(|check| check.answer.as_ref()) {
        if !document.as_table().contains_key(key) {
            return Err((0, format!("does not ask for `{key}`; write {key} = \"?\"")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_words_and_question_marks_are_none() {
        let found = answers("batch = 8\norder = [\"C\", \"a\"]\nf16 = \"?\"\nall = \"b, a\"\n")
            .expect("answers");
        assert_eq!(found.len(), 3);
        assert_eq!(found["batch"], ["8"]);
        assert_eq!(found["order"], ["c", "a"]);
        assert_eq!(found["all"], ["b", "a"]);
        assert_eq!(answers("a = 1\nb = [").map_err(|(line, _)| line), Err(2));
        assert_eq!(
            answers("a = 1\nb = true\n"),
            Err((
                2,
                "`b` takes a number, a quoted word or a list of words".to_owned()
            ))
        );
    }
}
