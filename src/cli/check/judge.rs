//! A config exercise's measurement held against what the learner said before it: one line for each criterion.

mod figure;
mod memory;
mod right;

use self::figure::figure;
use self::right::{Truth, of};
use crate::course::check::{Line, Outcome};
use crate::course::exercise::config::Answers;
use crate::course::exercise::{ConfigCheck, ConfigMetric, Configs};
use crate::course::sweep::SweepRuns as Found;
use crate::protocol::Pair;

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
    wanting(configs, answers)
        .into_iter()
        .filter_map(|(check, why)| {
            Some(Line {
                name: check.name.clone(),
                asked: check.answer.as_ref()?.1.clone(),
                measured: format!("{why} in answer.toml, or use --answer"),
                outcome: Outcome::Failed,
                optional: false,
            })
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
                |words| format!("`{}` is no order", words.join(",")),
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
            Some(words) => format!("`{}` is no answer here", words.join(",")),
            None => format!("no answer yet: {key}"),
        };
        Some(format!("{what}; write one of {}", allowed.join(", ")))
    };
    let wrong = |check: &'a ConfigCheck| Some((check, wrong(check)?));
    configs.checks.iter().filter_map(wrong).collect()
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
            answer(asked, format!("{said}{more}"), Outcome::of(passed))
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

fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .and_then(|at| b'a'.checked_add(at))
        .map_or_else(String::new, |c| char::from(c).to_string())
}

#[cfg(test)]
mod tests;
