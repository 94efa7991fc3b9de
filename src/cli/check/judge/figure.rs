//! Criteria without an answer of the learner's: a figure of a run, or the quadratic share of its memory.

use super::Found;
use super::memory::{fitted, law};
use crate::course::check::{Line, Outcome};
use crate::course::exercise::config::FigureTest;
use crate::course::exercise::{ConfigCheck, ConfigMetric};
use crate::course::metric;
use crate::course::placeholder::measured;

/// Holds one of them against the runs; not measured where a run or its figure is missing.
pub(super) fn figure(check: &ConfigCheck, found: &Found) -> Line {
    let answer = |asked: String, measured: String, outcome| Line {
        name: check.name.clone(),
        asked,
        measured,
        outcome,
        optional: outcome == Outcome::NotMeasured,
    };
    match &check.metric {
        ConfigMetric::QuadraticShare { of, at_most } => {
            let asked = format!(
                "at most {:.0} % of the memory at the largest value is quadratic, with {of}",
                100.0 * at_most
            );
            match fitted(found, of) {
                Err(why) => answer(asked, why, Outcome::NotMeasured),
                Ok((fit, x)) => {
                    let all: f64 = fit
                        .coefficients
                        .iter()
                        .enumerate()
                        .map(|(power, c)| c * x.powi(power as i32))
                        .sum();
                    let share = fit.coefficients.get(2).map_or(0.0, |c| c * x * x) / all;
                    let said = format!("{:.1} % at {x}: {}", 100.0 * share, law(&fit));
                    answer(asked, said, Outcome::of(share <= *at_most))
                }
            }
        }
        ConfigMetric::Figure { name, of, test } => {
            let run = |value: &str| found.points.iter().find(|point| point.value == value);
            let first = found
                .points
                .first()
                .and_then(|point| metric::value(name, point.run.as_ref().ok()?));
            let asked = match test {
                FigureTest::AtLeast(x) => format!("{name} with {of} at least {x}"),
                FigureTest::AtMost(x) => format!("{name} with {of} at most {x}"),
                FigureTest::WithinOfFirst(share) => {
                    let beside =
                        first.map_or("the first value's".to_owned(), |x| measured(name, x));
                    format!("{name} with {of} within {} % of {beside}", 100.0 * share)
                }
            };
            match run(of).map(|point| &point.run) {
                None => answer(
                    asked,
                    "not measured: no such run".to_owned(),
                    Outcome::NotMeasured,
                ),
                Some(Err(_)) => answer(
                    asked,
                    "does not apply: this device refuses it".to_owned(),
                    Outcome::NotMeasured,
                ),
                Some(Ok(run)) => {
                    let Some(x) = metric::value(name, run) else {
                        let why = "not measured: the run did not measure it".to_owned();
                        return answer(asked, why, Outcome::NotMeasured);
                    };
                    let passed = match test {
                        FigureTest::AtLeast(least) => x >= *least,
                        FigureTest::AtMost(most) => x <= *most,
                        FigureTest::WithinOfFirst(share) => {
                            first.is_some_and(|first| (x - first).abs() <= share * first.abs())
                        }
                    };
                    answer(asked, measured(name, x), Outcome::of(passed))
                }
            }
        }
        _ => answer(String::new(), String::new(), Outcome::NotMeasured),
    }
}
