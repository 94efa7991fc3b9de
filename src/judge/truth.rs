//! What a measurement says about the questions of a configuration exercise: the bend of a curve, the leading term of the
//! memory, the order of changes, faster or slower.

use crate::course::exercise::{ConfigCheck, ConfigMetric, Configs};
use crate::course::metric;
use crate::course::placeholder::measured;
use crate::course::sweep::SweepRuns;
use crate::profile::fit::{Fit, polynomial};
use crate::protocol::{Pair, Verdict};
use crate::units::show;

/// What the measurement says, in words, and the answer that it makes right; none where it cannot tell.
pub struct Truth {
    pub said: String,
    pub answer: Option<Vec<String>>,
}

pub fn of(configs: &Configs, check: &ConfigCheck, found: &SweepRuns) -> Option<Truth> {
    match &check.metric {
        ConfigMetric::Bend { factor } => bend(configs, found, *factor),
        ConfigMetric::Leads { of } => leads(configs, found, of),
        ConfigMetric::Order { .. } => order(configs, found),
        ConfigMetric::Speed { of } => speed(found, of),
        _ => None,
    }
}

fn bend(configs: &Configs, found: &SweepRuns, factor: f64) -> Option<Truth> {
    let key = configs.sweep.as_ref()?.key.rsplit('.').next()?;
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
            "step time by {key}, each against the one before: {}; the bend is at {bend}",
            said.join(", ")
        ),
        answer: Some(vec![bend.to_owned()]),
    })
}

fn leads(configs: &Configs, found: &SweepRuns, with: &str) -> Option<Truth> {
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

fn order(configs: &Configs, found: &SweepRuns) -> Option<Truth> {
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

fn speed(found: &SweepRuns, of: &str) -> Option<Truth> {
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

/// Peak memory in MiB over the sweep's values, with this setting.
fn memory(found: &SweepRuns, with: &str) -> (Vec<(f64, f64)>, Option<String>) {
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

pub fn fitted(found: &SweepRuns, with: &str) -> Result<(Fit, f64), String> {
    let (points, why) = memory(found, with);
    let largest = points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    polynomial(&points, 2)
        .map(|fit| (fit, largest))
        .map_err(|error| match why {
            Some(why) => format!("not measured: {why}"),
            None => format!("not measured: {error}"),
        })
}

pub fn law(fit: &Fit) -> String {
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

/// `a` for the first change.
pub fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .and_then(|at| b'a'.checked_add(at))
        .map_or_else(String::new, |c| char::from(c).to_string())
}
