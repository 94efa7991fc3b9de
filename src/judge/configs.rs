//! Compares the measurement of a config exercise with the answers that the learner gave before it: one line for each criterion.

use super::truth::{fitted, law, of};
use super::{CriterionResult, Found, not_measured};
use crate::course::exercise::config::{Answers, FigureTest};
use crate::course::exercise::{ConfigCheck, ConfigMetric, Configs};
use crate::course::metric;
use crate::course::placeholder::measured;
use crate::course::sweep::SweepRuns;
use protocol::{Finished, Pair};

/// Every criterion; an answer that is missing or is no word of the question fails by name.
pub fn lines(configs: &Configs, answers: &Answers, found: &SweepRuns) -> Vec<CriterionResult> {
    configs
        .checks
        .iter()
        .map(|check| line(configs, check, answers, found))
        .collect()
}

/// What is wrong with the answers before anything is measured: missing ones, and words that are none of the choices.
pub fn unanswered(configs: &Configs, answers: &Answers) -> Vec<CriterionResult> {
    wanting(configs, answers)
        .into_iter()
        .filter_map(|(check, why)| {
            let asked = check.answer.as_ref()?.1.clone();
            let why = format!("{why} in answer.toml, or use --answer");
            Some(CriterionResult::new(&check.name, asked, (why, Some(false))))
        })
        .collect()
}

/// Checks without a usable answer, and what to write instead.
pub fn wanting<'a>(configs: &'a Configs, answers: &Answers) -> Vec<(&'a ConfigCheck, String)> {
    let wrong = |check: &ConfigCheck| {
        let (key, _) = check.answer.as_ref()?;
        let words = answers.get(key);
        if let ConfigMetric::Order { .. } = check.metric {
            let all = configs.letters();
            let mut sorted = words.cloned().unwrap_or_default();
            sorted.sort();
            let what = words.map_or_else(
                || format!("no answer yet: {key}"),
                |words| format!("`{}` is not an order of all of them", words.join(",")),
            );
            let write = format!(
                "write each of {} once, such as {}",
                all.join(", "),
                all.join(",")
            );
            return (sorted != all).then(|| format!("{what}; {write}"));
        }
        let allowed = check.words(configs.sweep.as_ref());
        let what = match words.map(Vec::as_slice) {
            Some([word]) if allowed.contains(word) => return None,
            Some(words) => format!("`{}` is not one of the answers", words.join(",")),
            None => format!("no answer yet: {key}"),
        };
        Some(format!("{what}; write one of {}", allowed.join(", ")))
    };
    let wrong = |check: &'a ConfigCheck| Some((check, wrong(check)?));
    configs.checks.iter().filter_map(wrong).collect()
}

/// The answers that this measurement makes right, as far as it can tell.
pub fn truth(configs: &Configs, found: &SweepRuns) -> Answers {
    configs
        .checks
        .iter()
        .filter_map(|check| {
            let (key, _) = check.answer.as_ref()?;
            Some((key.clone(), of(configs, check, found)?.1?))
        })
        .collect()
}

/// Whether a criterion is about time.
pub const fn is_speed(metric: &ConfigMetric) -> bool {
    matches!(
        metric,
        ConfigMetric::Bend { .. } | ConfigMetric::Order { .. } | ConfigMetric::Speed { .. }
    )
}

fn line(
    configs: &Configs,
    check: &ConfigCheck,
    answers: &Answers,
    found: &SweepRuns,
) -> CriterionResult {
    let Some((key, ask)) = &check.answer else {
        let (asked, found) = figure(check, found);
        return CriterionResult {
            optional: found.1.is_none(),
            ..CriterionResult::new(&check.name, asked, found)
        };
    };
    let Some(mine) = answers.get(key) else {
        let none = ("no answer yet".to_owned(), Some(false));
        return CriterionResult::new(&check.name, ask.clone(), none);
    };
    let found = match of(configs, check, found) {
        None => not_measured("the runs it needs are missing"),
        Some((said, None)) => (said, None),
        Some((said, Some(right))) => {
            let (passed, more) = fits(configs, check, found, mine, &right);
            (format!("{said}{more}"), Some(passed))
        }
    };
    let asked = format!("{ask}; you said {}", mine.join(","));
    CriterionResult::new(&check.name, asked, found)
}

/// Whether the answer is near enough, and a remark about the measurement.
fn fits(
    configs: &Configs,
    check: &ConfigCheck,
    found: &SweepRuns,
    mine: &[String],
    right: &[String],
) -> (bool, String) {
    match &check.metric {
        ConfigMetric::Order { at_most } => {
            let (wrong, clear) = inversions(&found.changes, &configs.letters(), mine);
            let all = configs.rank.len() * configs.rank.len().saturating_sub(1) / 2;
            let more = format!(
                "; {wrong} of the {clear} pairs that are clearly apart are in the wrong order ({all} pairs in all)"
            );
            (wrong <= *at_most, more)
        }
        ConfigMetric::Bend { .. } | ConfigMetric::Leads { .. } => {
            let words = check.words(configs.sweep.as_ref());
            let at = |answer: &[String]| words.iter().position(|word| answer.first() == Some(word));
            let near = at(mine)
                .zip(at(right))
                .is_some_and(|(a, b)| a.abs_diff(b) <= 1);
            let beside = near && mine != right;
            let more = if beside {
                "; a neighbour counts as right"
            } else {
                ""
            };
            (near, more.to_owned())
        }
        _ => (mine == right, String::new()),
    }
}

/// Pairs in the wrong order among those whose intervals do not touch, and how many such pairs there are.
fn inversions(
    changes: &[Result<Pair, String>],
    letters: &[String],
    order: &[String],
) -> (u64, u64) {
    let place = |change: usize| {
        order
            .iter()
            .position(|word| letters.get(change) == Some(word))
    };
    let (mut wrong, mut clear) = (0, 0);
    for (i, a) in changes.iter().enumerate() {
        for (j, b) in changes.iter().enumerate() {
            if let (Ok(a), Ok(b)) = (a, b)
                && a.low.zip(b.high).is_some_and(|(low, high)| low > high)
            {
                clear += 1;
                wrong += u64::from(place(i) > place(j));
            }
        }
    }
    (wrong, clear)
}

/// A criterion without an answer of the learner's: what is asked, and what the runs say.
fn figure(check: &ConfigCheck, found: &SweepRuns) -> (String, Found) {
    match &check.metric {
        ConfigMetric::QuadraticShare { of, at_most } => {
            let asked = format!(
                "at most {:.0} % of the memory at the largest value is quadratic, with {of}",
                100.0 * at_most
            );
            let found = fitted(found, of).map_or_else(
                |why| (why, None),
                |(fit, x)| {
                    let terms = fit.coefficients.iter().zip(0..);
                    let all: f64 = terms.map(|(c, power)| c * x.powi(power)).sum();
                    let share = fit.coefficients[2] * x * x / all;
                    let said = format!("{:.1} % at {x}: {}", 100.0 * share, law(&fit));
                    (said, Some(share <= *at_most))
                },
            );
            (asked, found)
        }
        ConfigMetric::Figure { name, of, test } => {
            let points = &found.points;
            let value = |run: &Result<Finished, String>| metric::value(name, run.as_ref().ok()?);
            let first = points.first().and_then(|point| value(&point.run));
            let asked = match test {
                FigureTest::AtLeast(x) => format!("{name} with {of} at least {x}"),
                FigureTest::AtMost(x) => format!("{name} with {of} at most {x}"),
                FigureTest::WithinOfFirst(share) => {
                    let beside =
                        first.map_or("the first value's".to_owned(), |x| measured(name, x));
                    format!("{name} with {of} within {} % of {beside}", 100.0 * share)
                }
            };
            let run = points.iter().find(|point| point.value == *of);
            let found = match run.map(|point| (&point.run, value(&point.run))) {
                None => not_measured("no such run"),
                Some((Err(_), _)) => ("does not apply: this device refuses it".to_owned(), None),
                Some((Ok(_), None)) => not_measured("the run did not measure it"),
                Some((Ok(_), Some(x))) => {
                    let passed = match test {
                        FigureTest::AtLeast(least) => x >= *least,
                        FigureTest::AtMost(most) => x <= *most,
                        FigureTest::WithinOfFirst(share) => {
                            first.is_some_and(|first| (x - first).abs() <= share * first.abs())
                        }
                    };
                    (measured(name, x), Some(passed))
                }
            };
            (asked, found)
        }
        _ => (String::new(), (String::new(), None)),
    }
}

#[cfg(test)]
mod tests;
