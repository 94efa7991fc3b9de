//! Reads one `[[check]]`, with every complaint at its line.

use super::{Check, Metric, Starter, Target, Test};
use crate::config::nearest;
use crate::course::fields::{Fields, Table};
use crate::course::{formula, metric};

const KEYS: &[&str] = &[
    "name", "metric", "lint", "part", "present", "within", "of", "at-least", "at-most", "above",
    "below", "starter", "optional",
];

/// Reads one `[[check]]`.
pub fn read(fields: &mut Fields<'_>, table: Table<'_>) -> Check {
    fields.known(table, KEYS);
    let name = fields.text(table, "name");
    let metric = read_metric(fields, table);
    let test = read_test(fields, table, &metric);
    let starter = match fields
        .word(table, "starter", &["fails", "passes", "any"])
        .as_deref()
    {
        Some("passes") => Starter::Passes,
        Some("any") => Starter::Any,
        _ => Starter::Fails,
    };
    let optional = fields.flag(table, "optional").unwrap_or(false);
    Check {
        name,
        metric,
        test,
        starter,
        optional,
        line: table.line,
    }
}

fn read_metric(fields: &mut Fields<'_>, table: Table<'_>) -> Metric {
    let word = fields.text(table, "metric");
    match word.as_str() {
        "ratio" => Metric::Ratio,
        "quiz" => Metric::Quiz,
        "lint" => Metric::Lint(fields.text(table, "lint")),
        "part" => Metric::Part(fields.text(table, "part")),
        name => {
            if !name.is_empty() && !metric::known(name) {
                let all = metric::METRICS
                    .iter()
                    .map(|metric| metric.name)
                    .chain(["ratio", "lint", "part", "quiz"]);
                let near = nearest(name, all);
                let line = fields.line_of(table, "metric");
                fields.fail(
                    line,
                    format!("unknown metric `{name}`; the nearest known one is `{near}`"),
                );
            }
            Metric::Figure(name.to_owned())
        }
    }
}

fn read_test(fields: &mut Fields<'_>, table: Table<'_>, metric: &Metric) -> Test {
    match metric {
        Metric::Quiz => return Test::Right,
        Metric::Lint(_) | Metric::Part(_) => {
            return match fields.flag(table, "present") {
                Some(true) => Test::Present,
                Some(false) => Test::Absent,
                None => {
                    if !Fields::has(table, "present") {
                        fields.missing(table, "present", "= true` or `present = false");
                    }
                    Test::Absent
                }
            };
        }
        Metric::Figure(_) | Metric::Ratio => {}
    }
    let given: Vec<&str> = ["within", "at-least", "at-most", "above", "below"]
        .into_iter()
        .filter(|key| Fields::has(table, key))
        .collect();
    let fallback = Test::AtLeast(Target::Number(0.0));
    match given.as_slice() {
        ["within"] => {
            let share = fields.number(table, "within").unwrap_or(0.0);
            if !Fields::has(table, "of") {
                fields.missing(table, "of", "= \"formula.first_loss\"");
                return fallback;
            }
            Test::Within(share, read_target(fields, table, "of"))
        }
        [key] => {
            let target = read_target(fields, table, key);
            match *key {
                "at-least" => Test::AtLeast(target),
                "at-most" => Test::AtMost(target),
                "above" => Test::Above(target),
                _ => Test::Below(target),
            }
        }
        [] => {
            let what = "a check needs one of `within`, `at-least`, `at-most`, `above`, `below`; write one of them";
            fields.fail(table.line, what.to_owned());
            fallback
        }
        [first, second, ..] => {
            let line = fields.line_of(table, second);
            fields.fail(
                line,
                format!(
                    "a check has one condition, this has `{first}` and `{second}`; write two checks"
                ),
            );
            fallback
        }
    }
}

fn read_target(fields: &mut Fields<'_>, table: Table<'_>, key: &str) -> Target {
    if !Fields::is_text(table, key) {
        return Target::Number(fields.number(table, key).unwrap_or(f64::NAN));
    }
    let name = fields.text(table, key);
    let known = name.strip_prefix("formula.").map_or_else(
        || metric::known(&name),
        |name| formula::find(name).is_some(),
    );
    if !known {
        let all: Vec<String> = formula::FORMULAS
            .iter()
            .map(|formula| format!("formula.{}", formula.name))
            .chain(metric::METRICS.iter().map(|metric| metric.name.to_owned()))
            .collect();
        let near = nearest(&name, all.iter().map(String::as_str));
        let line = fields.line_of(table, key);
        fields.fail(
            line,
            format!("unknown figure `{name}`; the nearest known one is `{near}`"),
        );
    }
    Target::Named(name)
}
