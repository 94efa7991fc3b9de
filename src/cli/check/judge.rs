//! A config exercise's measurement held against what the learner said before it: one line for each criterion.

use crate::cli::bench::fit::{Fit, polynomial};
use crate::course::check::{Line, Outcome};
use crate::course::exercise::config::{Answers, FigureTest};
use crate::course::exercise::{ConfigCheck, ConfigMetric, Configs};
use crate::course::metric;
use crate::course::placeholder::{measured, show};
use crate::protocol::{Finished, Pair, Verdict};

/// One run of the sweep.
#[derive(Clone, Debug)]
pub struct Point {
    pub with: Option<String>,
    pub value: String,
    /// Or why there is no run: a format that the device refuses.
    pub run: Result<Finished, String>,
}

/// Everything measured for one exercise.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub points: Vec<Point>,
    /// Plain against each change, in the order of the exercise.
    pub changes: Vec<Result<Pair, String>>,
    /// The first value against each other one.
    pub speeds: Vec<(String, Result<Pair, String>)>,
}

/// What the measurement says, in words, and the answer that it makes right; none where it cannot tell.
struct Truth {
    said: String,
    answer: Option<Vec<String>>,
}

/// Every criterion; an answer that is missing or is no word of the question fails by name.
pub fn lines(configs: &Configs, answers: &Answers, found: &Found) -> Vec<Line> {
    configs
        .checks
        .iter()
        .map(|check| line(configs, check, answers, found))
        .collect()
}

/// What is wrong with the answers before anything is measured: missing ones, and words that are none of the choices.
pub fn unanswered(configs: &Configs, answers: &Answers) -> Vec<Line> {
    configs
        .checks
        .iter()
        .filter_map(|check| {
            let (key, ask) = check.answer.as_ref()?;
            let why = match answers.get(key) {
                None => format!("no answer yet; write {key} = … in answer.toml, or use --answer"),
                Some(words) => problem(configs, check, words)?,
            };
            Some(Line {
                name: check.name.clone(),
                asked: ask.clone(),
                measured: why,
                outcome: Outcome::Failed,
                optional: false,
            })
        })
        .collect()
}

fn problem(configs: &Configs, check: &ConfigCheck, words: &[String]) -> Option<String> {
    if matches!(check.metric, ConfigMetric::Order { .. }) {
        let all = letters(configs.rank.len());
        let mut sorted = words.to_vec();
        sorted.sort();
        return (sorted != all).then(|| {
            format!(
                "`{}` is no order; write each of {} once, such as {}",
                words.join(","),
                all.join(", "),
                all.join(",")
            )
        });
    }
    let allowed = check.words(configs.sweep.as_ref());
    let known = words.len() == 1 && allowed.contains(&words[0]);
    (!known).then(|| {
        format!(
            "`{}` is no answer here; write one of {}",
            words.join(","),
            allowed.join(", ")
        )
    })
}

/// The answers that this measurement makes right, as far as it can tell.
pub fn truth(configs: &Configs, found: &Found) -> Answers {
    configs
        .checks
        .iter()
        .filter_map(|check| {
            let (key, _) = check.answer.as_ref()?;
            Some((key.clone(), of(configs, check, found)?.answer?))
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

fn line(configs: &Configs, check: &ConfigCheck, answers: &Answers, found: &Found) -> Line {
    let answer = |asked: String, measured: String, outcome| Line {
        name: check.name.clone(),
        asked,
        measured,
        outcome,
        optional: false,
    };
    let Some((key, ask)) = &check.answer else {
        return figure(check, found);
    };
    let Some(mine) = answers.get(key) else {
        return answer(ask.clone(), "no answer yet".to_owned(), Outcome::Failed);
    };
    let asked = format!("{ask}; you said {}", mine.join(","));
    match of(configs, check, found) {
        None => answer(
            asked,
            "not measured: the runs it needs are missing".to_owned(),
            Outcome::NotMeasured,
        ),
        Some(Truth { said, answer: None }) => answer(asked, said, Outcome::NotMeasured),
        Some(Truth {
            said,
            answer: Some(right),
        }) => {
            let (passed, more) = fits(configs, check, found, mine, &right);
            let outcome = if passed {
                Outcome::Passed
            } else {
                Outcome::Failed
            };
            answer(asked, format!("{said}{more}"), outcome)
        }
    }
}

/// Whether the answer is near enough, and what to add to the measurement.
fn fits(
    configs: &Configs,
    check: &ConfigCheck,
    found: &Found,
    mine: &[String],
    right: &[String],
) -> (bool, String) {
    match &check.metric {
        ConfigMetric::Order { at_most } => {
            let (wrong, clear) = inversions(&found.changes, mine);
            let all = configs.rank.len() * configs.rank.len().saturating_sub(1) / 2;
            let more = format!(
                "; {wrong} of the {clear} pairs that are clearly apart stand wrong ({all} pairs in all)"
            );
            (wrong <= *at_most, more)
        }
        ConfigMetric::Bend { .. } | ConfigMetric::Leads { .. } => {
            let words = check.words(configs.sweep.as_ref());
            let at = |answer: &[String]| words.iter().position(|word| answer.first() == Some(word));
            let near = at(mine)
                .zip(at(right))
                .is_some_and(|(a, b)| a.abs_diff(b) <= 1);
            (near, String::new())
        }
        _ => (mine == right, String::new()),
    }
}

/// Pairs in the wrong order among those whose intervals do not touch, and how many such pairs there are.
fn inversions(changes: &[Result<Pair, String>], order: &[String]) -> (u64, u64) {
    let place = |change: usize| order.iter().position(|word| *word == letter(change));
    let (mut wrong, mut clear) = (0, 0);
    for (i, a) in changes.iter().enumerate() {
        for (j, b) in changes.iter().enumerate() {
            if let (Ok(a), Ok(b)) = (a, b)
                && a.low > b.high
            {
                clear += 1;
                wrong += u64::from(place(i) > place(j));
            }
        }
    }
    (wrong, clear)
}

fn of(configs: &Configs, check: &ConfigCheck, found: &Found) -> Option<Truth> {
    match &check.metric {
        ConfigMetric::Bend { factor } => bend(found, *factor),
        ConfigMetric::Leads { of } => leads(configs, found, of),
        ConfigMetric::Order { .. } => order(configs, found),
        ConfigMetric::Speed { of } => speed(found, of),
        _ => None,
    }
}

fn bend(found: &Found, factor: f64) -> Option<Truth> {
    let times: Vec<(&str, f64)> = found
        .points
        .iter()
        .filter_map(|point| {
            let run = point.run.as_ref().ok()?;
            Some((point.value.as_str(), run.step_ms?.median))
        })
        .collect();
    if times.len() < 2 {
        return None;
    }
    let mut said = vec![format!(
        "{}: {}",
        times[0].0,
        measured("step_ms", times[0].1)
    )];
    let mut bend = None;
    for pair in times.windows(2) {
        let ratio = pair[1].1 / pair[0].1;
        said.push(format!("{}: {ratio:.2}x", pair[1].0));
        if ratio >= factor && bend.is_none() {
            bend = Some(pair[0].0);
        }
    }
    let last = times[times.len() - 1].0;
    let bend = bend.unwrap_or(last);
    Some(Truth {
        said: format!(
            "step time by batch, each against the one before: {}; the bend is at {bend}",
            said.join(", ")
        ),
        answer: Some(vec![bend.to_owned()]),
    })
}

/// Peak memory in MiB over the sweep's values, with this setting.
fn memory(found: &Found, with: &str) -> (Vec<(f64, f64)>, Option<String>) {
    let mut points = Vec::new();
    let mut why = None;
    for point in found
        .points
        .iter()
        .filter(|point| point.with.as_deref() == Some(with))
    {
        match &point.run {
            Ok(run) => match (
                point.value.parse::<f64>(),
                metric::value("memory.peak_mib", run),
            ) {
                (Ok(x), Some(mib)) => points.push((x, mib)),
                _ => why = run.memory.reason.clone().or(why),
            },
            Err(error) => why = Some(error.clone()),
        }
    }
    (points, why)
}

fn fitted(found: &Found, with: &str) -> Result<(Fit, f64), String> {
    let (points, why) = memory(found, with);
    let largest = points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    polynomial(&points, 2)
        .map(|fit| (fit, largest))
        .map_err(|error| match why {
            Some(why) => format!("not measured: {why}"),
            None => format!("not measured: {error}"),
        })
}

fn law(fit: &Fit) -> String {
    let [a, b, c] = fit.coefficients[..] else {
        return String::new();
    };
    format!(
        "{} + {}·S + {}·S² MiB (largest miss {} MiB)",
        show(a, 2),
        show(b, 5),
        show(c, 7),
        show(fit.largest, 2)
    )
}

fn leads(configs: &Configs, found: &Found, with: &str) -> Option<Truth> {
    let (fit, _) = match fitted(found, with) {
        Ok(fit) => fit,
        Err(said) => return Some(Truth { said, answer: None }),
    };
    let [a, b, c] = fit.coefficients[..] else {
        return None;
    };
    let values = &configs.sweep.as_ref()?.values;
    let first = values.iter().find(|value| {
        value
            .parse::<f64>()
            .is_ok_and(|s| c * s * s >= (b * s).max(a))
    });
    let answer = first.map_or("none", String::as_str);
    Some(Truth {
        said: format!(
            "peak memory = {}; the last term leads from {answer}",
            law(&fit)
        ),
        answer: Some(vec![answer.to_owned()]),
    })
}

fn order(configs: &Configs, found: &Found) -> Option<Truth> {
    if found.changes.len() != configs.rank.len() {
        return None;
    }
    let mut measured: Vec<(usize, &Pair)> = Vec::new();
    for (at, change) in found.changes.iter().enumerate() {
        match change {
            Ok(pair) if pair.n > 0 => measured.push((at, pair)),
            Ok(_) => return None,
            Err(why) => {
                let said = format!("not measured: {}: {why}", letter(at));
                return Some(Truth { said, answer: None });
            }
        }
    }
    measured.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
    let said: Vec<String> = measured
        .iter()
        .map(|(at, pair)| {
            format!(
                "{} {:.2}x [{:.2}, {:.2}]",
                letter(*at),
                pair.ratio,
                pair.low,
                pair.high
            )
        })
        .collect();
    Some(Truth {
        said: said.join(", "),
        answer: Some(measured.iter().map(|(at, _)| letter(*at)).collect()),
    })
}

fn speed(found: &Found, of: &str) -> Option<Truth> {
    let point = found.points.iter().find(|point| point.value == of)?;
    if let Err(why) = &point.run {
        return Some(Truth {
            said: format!("refused: {why}"),
            answer: Some(vec!["refused".to_owned()]),
        });
    }
    let (_, pair) = found.speeds.iter().find(|(value, _)| value == of)?;
    let pair = match pair {
        Ok(pair) => pair,
        Err(why) => {
            let said = format!("not measured: {why}");
            return Some(Truth { said, answer: None });
        }
    };
    let answer = match pair.verdict {
        Verdict::Faster => Some("faster"),
        Verdict::Slower => Some("slower"),
        Verdict::Same => Some("same"),
        Verdict::Unclear => None,
    };
    Some(Truth {
        said: format!(
            "{:.3}x [{:.3}, {:.3}], n={}, {}",
            pair.ratio, pair.low, pair.high, pair.n, pair.verdict
        ),
        answer: answer.map(|word| vec![word.to_owned()]),
    })
}

/// A criterion without an answer of the learner's.
fn figure(check: &ConfigCheck, found: &Found) -> Line {
    let answer = |asked: String, measured: String, outcome| Line {
        name: check.name.clone(),
        asked,
        measured,
        outcome,
        optional: outcome == Outcome::NotMeasured,
    };
    let verdict = |passed| {
        if passed {
            Outcome::Passed
        } else {
            Outcome::Failed
        }
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
                    answer(asked, said, verdict(share <= *at_most))
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
                    answer(asked, measured(name, x), verdict(passed))
                }
            }
        }
        _ => answer(String::new(), String::new(), Outcome::NotMeasured),
    }
}

fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .and_then(|at| b'a'.checked_add(at))
        .map_or_else(String::new, |c| char::from(c).to_string())
}

fn letters(count: usize) -> Vec<String> {
    (0..count).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Course;
    use crate::course::exercise::Body;
    use crate::protocol::{Memory, Spread};

    fn configs(id: &str) -> Configs {
        let course = Course::builtin("en");
        let found = course.exercises.iter().find(|one| one.id == id);
        match found.map(|one| one.body.clone()) {
            Some(Body::Config(configs)) => configs,
            _ => panic!("{id} is a config exercise"),
        }
    }

    fn answer(key: &str, words: &str) -> Answers {
        let words = words.split(',').map(str::to_owned).collect();
        Answers::from([(key.to_owned(), words)])
    }

    fn run(step_ms: f64, mib: f64) -> Finished {
        Finished {
            steps: 12,
            loss_first: 6.93.into(),
            step_ms: Some(Spread {
                median: step_ms,
                n: 10,
                ..Spread::default()
            }),
            memory: Memory {
                peak_bytes: Some((mib * 1024.0 * 1024.0) as u64),
                ..Memory::default()
            },
            ..Finished::default()
        }
    }

    fn points(configs: &Configs, of: impl Fn(Option<&str>, f64) -> Finished) -> Found {
        let points = configs.points().into_iter().map(|(with, value)| Point {
            with: with.map(str::to_owned),
            value: value.to_owned(),
            run: Ok(of(with, value.parse().expect("a number"))),
        });
        Found {
            points: points.collect(),
            ..Found::default()
        }
    }

    #[test]
    fn the_bend_is_the_last_cheap_doubling() {
        let configs = configs("batch");
        // Launch-bound up to 8, then bound by work.
        let found = points(&configs, |_, batch| run(2.0f64.max(batch / 4.0), 1.0));
        assert_eq!(truth(&configs, &found)["batch"], ["8"]);
        let outcome = |said: &str| lines(&configs, &answer("batch", said), &found)[0].outcome;
        assert_eq!(outcome("8"), Outcome::Passed);
        assert_eq!(outcome("16"), Outcome::Passed, "a neighbour is near enough");
        assert_eq!(outcome("32"), Outcome::Failed);
        let flat = points(&configs, |_, _| run(2.0, 1.0));
        assert_eq!(truth(&configs, &flat)["batch"], ["64"]);
        let steep = points(&configs, |_, batch| run(batch, 1.0));
        assert_eq!(truth(&configs, &steep)["batch"], ["1"]);
    }

    #[test]
    fn the_quadratic_term_is_found_and_flash_has_none() {
        let configs = configs("context");
        let found = points(&configs, |with, s| {
            let composed = with == Some("model.attention=composed");
            let square = if composed { 2e-4 * s * s } else { 0.0 };
            run(1.0, 18.0 + 0.06 * s + square)
        });
        let right = truth(&configs, &found);
        assert_eq!(right["context"], ["512"]);
        let said = lines(&configs, &right, &found);
        assert!(
            said.iter().all(|line| line.outcome == Outcome::Passed),
            "{said:#?}"
        );
        let wrong = lines(&configs, &answer("context", "64"), &found);
        assert_eq!(wrong[0].outcome, Outcome::Failed);
        let mut unmeasured = found.clone();
        for point in &mut unmeasured.points {
            if let Ok(run) = &mut point.run {
                run.memory.peak_bytes = None;
                run.memory.reason = Some("no counter".to_owned());
            }
        }
        let line = &lines(&configs, &right, &unmeasured)[0];
        assert_eq!(
            (line.outcome, line.measured.as_str()),
            (Outcome::NotMeasured, "not measured: no counter")
        );
    }

    #[test]
    fn an_order_fails_on_pairs_that_are_clearly_apart() {
        let configs = configs("rank");
        let pair = |ratio: f64| {
            Ok(Pair {
                n: 30,
                ratio,
                low: ratio - 0.02,
                high: ratio + 0.02,
                ..Pair::default()
            })
        };
        let found = Found {
            changes: vec![pair(1.0), pair(1.1), pair(1.3), pair(1.01), pair(1.2)],
            ..Found::default()
        };
        assert_eq!(truth(&configs, &found)["order"], ["c", "e", "b", "d", "a"]);
        let outcome = |said: &str| lines(&configs, &answer("order", said), &found)[0].outcome;
        assert_eq!(outcome("c,e,b,a,d"), Outcome::Passed, "a and d overlap");
        assert_eq!(
            outcome("e,c,b,d,a"),
            Outcome::Passed,
            "one mistake is allowed"
        );
        assert_eq!(outcome("a,b,c,d,e"), Outcome::Failed);
        let words = unanswered(&configs, &answer("order", "a,b"));
        assert!(words[0].measured.contains("is no order"), "{words:?}");
    }

    #[test]
    fn a_refusal_is_an_answer_and_unclear_is_none() {
        let configs = configs("precision");
        let mut found = Found::default();
        for value in ["f32", "f16", "bf16"] {
            found.points.push(Point {
                with: None,
                value: value.to_owned(),
                run: if value == "bf16" {
                    Err("not computed here".to_owned())
                } else {
                    Ok(run(1.0, 1.0))
                },
            });
        }
        let pair = |verdict| Pair {
            n: 30,
            verdict,
            ..Pair::default()
        };
        found.speeds = vec![("f16".to_owned(), Ok(pair(Verdict::Faster)))];
        let right = truth(&configs, &found);
        assert_eq!(
            (&right["f16"][0][..], &right["bf16"][0][..]),
            ("faster", "refused")
        );
        found.speeds = vec![("f16".to_owned(), Ok(pair(Verdict::Unclear)))];
        let line = &lines(&configs, &right, &found)[0];
        assert_eq!(line.outcome, Outcome::NotMeasured);
        assert_eq!(unanswered(&configs, &Answers::new()).len(), 2);
    }
}
