//! Compares the measurement of a config exercise with the answers that the learner gave before, with one result for each criterion.

use super::truth::{fitted, law, measured_answer};
use super::{CriterionResult, Found, not_measured};
use crate::course::exercise::config::{Answers, FigureTest};
use crate::course::exercise::{ConfigCheck, ConfigMetric, Configs};
use crate::course::metric;
use crate::course::placeholder::measured;
use crate::course::sweep::SweepRuns;
use protocol::{Finished, Pair};

/// Returns the result of every criterion. A criterion fails if its answer is missing or not allowed.
pub fn lines(configs: &Configs, answers: &Answers, found: &SweepRuns) -> Vec<CriterionResult> {
    configs
        .checks
        .iter()
        .map(|check| line(configs, check, answers, found))
        .collect()
}

/// Returns a failed criterion for each answer that is missing or not allowed, before anything is measured.
pub fn unanswered(configs: &Configs, answers: &Answers) -> Vec<CriterionResult> {
    unusable_answers(configs, answers)
        .into_iter()
        .filter_map(|(check, why)| {
            let asked = check.answer.as_ref()?.1.clone();
            let why = format!("{why} in answer.toml, or use --answer");
            Some(CriterionResult::new(&check.name, asked, (why, Some(false))))
        })
        .collect()
}

/// Returns the checks without a usable answer, each with a sentence that says what to write.
pub fn unusable_answers<'a>(
    configs: &'a Configs,
    answers: &Answers,
) -> Vec<(&'a ConfigCheck, String)> {
    let mut all = Vec::new();
    for check in &configs.checks {
        if let Some(problem) = problem_of_answer(configs, check, answers) {
            all.push((check, problem));
        }
    }
    all
}

/// Returns a sentence about a missing or impossible answer. `None` if the answer can be judged, or if the check asks for none.
fn problem_of_answer(configs: &Configs, check: &ConfigCheck, answers: &Answers) -> Option<String> {
    let (key, _) = check.answer.as_ref()?;
    let words = answers.get(key);
    if let ConfigMetric::Order { .. } = check.metric {
        let letters = configs.letters();
        let mut sorted = words.cloned().unwrap_or_default();
        sorted.sort();
        if sorted == letters {
            return None;
        }
        let problem = match words {
            None => format!("no answer yet: {key}"),
            Some(words) => format!("`{}` does not put all of them in order", words.join(",")),
        };
        return Some(format!(
            "{problem}; write each of {} once, such as {}",
            letters.join(", "),
            letters.join(",")
        ));
    }
    let allowed = check.words(configs.sweep.as_ref());
    let problem = match words.map(Vec::as_slice) {
        Some([word]) if allowed.contains(word) => return None,
        Some(words) => format!("`{}` is not one of the answers", words.join(",")),
        None => format!("no answer yet: {key}"),
    };
    Some(format!("{problem}; write one of {}", allowed.join(", ")))
}

/// Returns the right answers according to this measurement. Questions that it cannot decide are left out.
pub fn right_answers(configs: &Configs, found: &SweepRuns) -> Answers {
    configs
        .checks
        .iter()
        .filter_map(|check| {
            let (key, _) = check.answer.as_ref()?;
            Some((key.clone(), measured_answer(configs, check, found)?.1?))
        })
        .collect()
}

/// Returns true if a criterion depends on times, which other programs disturb.
pub const fn is_speed(metric: &ConfigMetric) -> bool {
    matches!(
        metric,
        ConfigMetric::Bend { .. } | ConfigMetric::Order { .. } | ConfigMetric::Speed { .. }
    )
}

/// Judges one criterion.
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
    let finding = match measured_answer(configs, check, found) {
        None => not_measured("the runs it needs are missing"),
        Some((measurement, None)) => (measurement, None),
        Some((measurement, Some(right))) => {
            let (passed, remark) = compare(configs, check, found, mine, &right);
            (format!("{measurement}{remark}"), Some(passed))
        }
    };
    let asked = format!("{ask}; you said {}", mine.join(","));
    CriterionResult::new(&check.name, asked, finding)
}

/// Returns true if the learner's answer is near enough to the right one, and a remark to add to the measurement.
fn compare(
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
            let remark = format!(
                "; {wrong} of the {clear} pairs that are clearly apart are in the wrong order \
                 ({all} pairs in all)"
            );
            (wrong <= *at_most, remark)
        }
        ConfigMetric::Bend { .. } | ConfigMetric::Leads { .. } => {
            let words = check.words(configs.sweep.as_ref());
            let index =
                |answer: &[String]| words.iter().position(|word| answer.first() == Some(word));
            let near = index(mine)
                .zip(index(right))
                .is_some_and(|(a, b)| a.abs_diff(b) <= 1);
            let remark = if near && mine != right {
                "; a neighbour counts as right"
            } else {
                ""
            };
            (near, remark.to_owned())
        }
        _ => (mine == right, String::new()),
    }
}

/// Compares each change with each other one. Returns the number of pairs that `order` has in the wrong order, and the number of pairs that
/// the measurement decides, because the intervals of the two changes do not touch.
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
    let mut wrong = 0;
    let mut clear = 0;
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

/// Returns the demand and the finding of a criterion that needs no answer of the learner.
fn figure(check: &ConfigCheck, found: &SweepRuns) -> (String, Found) {
    match &check.metric {
        ConfigMetric::QuadraticShare { of, at_most } => {
            let asked = format!(
                "at most {:.0} % of the memory at the largest value is quadratic, with {of}",
                100.0 * at_most
            );
            (asked, quadratic_share(found, of, *at_most))
        }
        ConfigMetric::Figure { name, of, test } => figure_of_run(found, name, of, *test),
        _ => (String::new(), (String::new(), None)),
    }
}

/// Judges the share of the quadratic term in the memory at the largest value, with the setting `of`.
fn quadratic_share(found: &SweepRuns, of: &str, at_most: f64) -> Found {
    match fitted(found, of) {
        Err(why) => (why, None),
        Ok((fit, x)) => {
            let [a, b, c] = fit.coefficients;
            let share = c * x * x / (a + b * x + c * x * x);
            let finding = format!("{:.1} % at {x}: {}", 100.0 * share, law(&fit));
            (finding, Some(share <= at_most))
        }
    }
}

/// Returns the demand and the finding about a figure of the run with the value `of`.
fn figure_of_run(found: &SweepRuns, name: &str, of: &str, test: FigureTest) -> (String, Found) {
    let value = |run: &Result<Finished, String>| metric::value(name, run.as_ref().ok()?);
    let first = found.points.first().and_then(|point| value(&point.run));
    let asked = match test {
        FigureTest::AtLeast(least) => format!("{name} with {of} at least {least}"),
        FigureTest::AtMost(most) => format!("{name} with {of} at most {most}"),
        FigureTest::WithinOfFirst(share) => {
            let target = first.map_or("the first value's".to_owned(), |x| measured(name, x));
            format!("{name} with {of} within {} % of {target}", 100.0 * share)
        }
    };
    let point = found.points.iter().find(|point| point.value == of);
    let finding = match point.map(|point| (&point.run, value(&point.run))) {
        None => not_measured("no such run"),
        Some((Err(_), _)) => ("does not apply: this device refuses it".to_owned(), None),
        Some((Ok(_), None)) => not_measured("the run did not measure it"),
        Some((Ok(_), Some(x))) => {
            let passed = match test {
                FigureTest::AtLeast(least) => x >= least,
                FigureTest::AtMost(most) => x <= most,
                FigureTest::WithinOfFirst(share) => {
                    first.is_some_and(|first| (x - first).abs() <= share * first.abs())
                }
            };
            (measured(name, x), Some(passed))
        }
    };
    (asked, finding)
}

#[cfg(test)]
mod tests;
