//! Derives the right answers to the questions of a config exercise from its measurement: at which value a curve bends, from which value on
//! memory grows with the square, in which order changes help, and which value is faster or slower than the first.

use super::interval;
use crate::course::exercise::config::NONE;
use crate::course::exercise::{ConfigCheck, ConfigMetric, Configs};
use crate::course::metric;
use crate::course::placeholder::measured;
use crate::course::sweep::{SweepPoint, SweepRuns};
use crate::judge::fit::{Fit, quadratic};
use protocol::units::show;
use protocol::{Pair, Verdict};

/// The measurement in words, and the right answer according to it. `None` if it decides nothing.
type MeasuredAnswer = (String, Option<Vec<String>>);

/// Returns a measurement whose answer is one word.
fn one_word(measurement: String, answer: &str) -> Option<MeasuredAnswer> {
    Some((measurement, Some(vec![answer.to_owned()])))
}

/// Returns the measured answer to the question of a check. `None` if runs are missing, or if the check asks no question.
pub(super) fn measured_answer(
    configs: &Configs,
    check: &ConfigCheck,
    found: &SweepRuns,
) -> Option<MeasuredAnswer> {
    match &check.metric {
        ConfigMetric::Bend { factor } => bend(configs, found, *factor),
        ConfigMetric::Leads { of } => leads(configs, found, of),
        ConfigMetric::Order { .. } => order(configs, found),
        ConfigMetric::Speed { of } => speed(found, of),
        _ => None,
    }
}

/// Returns the value before the first one whose step takes at least `factor` times as long; the last value if there is none.
fn bend(configs: &Configs, found: &SweepRuns, factor: f64) -> Option<MeasuredAnswer> {
    let key = configs.sweep.as_ref()?.key.rsplit('.').next()?;
    let value_and_time = |point: &SweepPoint| {
        let run = point.run.as_ref().ok()?;
        Some((point.value.clone(), run.step_ms?.median))
    };
    let times: Vec<(String, f64)> = found.points.iter().filter_map(value_and_time).collect();
    let [(first, ms), .., (last, _)] = times.as_slice() else {
        return None;
    };
    let mut ratios = vec![format!("{first}: {}", measured("step_ms", *ms))];
    let mut first_bend = None;
    for ((value, ms), (next, next_ms)) in times.iter().zip(&times[1..]) {
        let ratio = next_ms / ms;
        ratios.push(format!("{next}: {ratio:.2}x"));
        if ratio >= factor {
            first_bend.get_or_insert(value);
        }
    }
    let bend = first_bend.unwrap_or(last);
    let measurement = format!(
        "step time by {key}, each against the one before: {}; the bend is at {bend}",
        ratios.join(", ")
    );
    one_word(measurement, bend)
}

/// Returns the first value at which the quadratic term of the memory is the largest.
fn leads(configs: &Configs, found: &SweepRuns, with: &str) -> Option<MeasuredAnswer> {
    let (fit, _) = match fitted(found, with) {
        Ok(fit) => fit,
        Err(why) => return Some((why, None)),
    };
    let [a, b, c] = fit.coefficients;
    let leads = |value: &&String| {
        let number = value.parse::<f64>();
        number.is_ok_and(|s| c * s * s >= (b * s).max(a))
    };
    let first = configs.sweep.as_ref()?.values.iter().find(leads);
    let answer = first.map_or(NONE, String::as_str);
    let law = law(&fit);
    let measurement = format!("peak memory = {law}; the last term dominates from {answer} on");
    one_word(measurement, answer)
}

/// Returns the letters of the changes, with the one that makes a step fastest first.
fn order(configs: &Configs, found: &SweepRuns) -> Option<MeasuredAnswer> {
    if found.changes.len() != configs.rank.len() {
        return None;
    }
    let mut measured: Vec<(String, &Pair)> = Vec::new();
    for (letter, change) in configs.letters().into_iter().zip(&found.changes) {
        match change {
            Ok(pair) if pair.n > 0 => measured.push((letter, pair)),
            Ok(_) => return None,
            Err(why) => return Some((format!("not measured: {letter}: {why}"), None)),
        }
    }
    measured.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
    let figures: Vec<String> = measured
        .iter()
        .map(|(letter, pair)| format!("{letter} {}", pair.figures()))
        .collect();
    let order = measured.into_iter().map(|(letter, _)| letter).collect();
    Some((figures.join(", "), Some(order)))
}

/// Compares the value `of` with the first value: it is refused by the device, faster, slower or the same.
fn speed(found: &SweepRuns, of: &str) -> Option<MeasuredAnswer> {
    let point = found.points.iter().find(|point| point.value == of)?;
    if let Err(why) = &point.run {
        return one_word(format!("refused: {why}"), "refused");
    }
    let (_, pair) = found.speeds.iter().find(|(value, _)| value == of)?;
    match pair {
        Err(why) => Some((format!("not measured: {why}"), None)),
        Ok(pair) => match pair.verdict {
            Verdict::Faster => one_word(interval(pair), "faster"),
            Verdict::Slower => one_word(interval(pair), "slower"),
            Verdict::Same => one_word(interval(pair), "same"),
            Verdict::Unclear => Some((interval(pair), None)),
        },
    }
}

/// Fits a polynomial to the peak memory in MiB over the sweep's values with this setting. Returns it with the largest of the values.
///
/// # Errors
/// Returns why there is no fit.
pub(super) fn fitted(found: &SweepRuns, with: &str) -> Result<(Fit, f64), String> {
    let mut points = Vec::new();
    let mut why = None;
    for point in &found.points {
        if point.with.as_deref() != Some(with) {
            continue;
        }
        let x = point.value.parse::<f64>().ok();
        match &point.run {
            Ok(run) => match x.zip(metric::value("memory.peak_mib", run)) {
                Some(point) => points.push(point),
                None => why = run.memory.reason.clone().or(why),
            },
            Err(error) => why = Some(error.clone()),
        }
    }
    let largest = points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    match quadratic(&points) {
        Ok(fit) => Ok((fit, largest)),
        Err(error) => Err(format!("not measured: {}", why.unwrap_or(error))),
    }
}

/// Returns the polynomial as a formula: `18 + 0.06·S + 0.0002·S² MiB (largest miss 0.1 MiB)`.
pub(super) fn law(fit: &Fit) -> String {
    let [a, b, c] = fit.coefficients;
    format!(
        "{} + {}·S + {}·S² MiB (largest miss {} MiB)",
        show(a, 2),
        show(b, 5),
        show(c, 7),
        show(fit.largest, 2)
    )
}
