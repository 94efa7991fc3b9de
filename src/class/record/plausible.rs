//! Finds results in a record that the course does not allow, so that a forged record wins no race.

use super::{Participant, RaceResult, SharedWork};
use crate::course::mystery::{LEVELS, score};
use crate::course::{Course, Stage};
use crate::sanitize;

/// The largest plausible ratio of a kernel or of a stage's fix.
const MOST_RATIO: f64 = 50.0;
/// The largest plausible ratio of a mystery against its known-good configuration, whose speed a solved mystery about equals.
const MOST_MYSTERY_RATIO: f64 = 3.0;
/// The least plausible seconds of a solved mystery: a step of its run is seen and a knob changed before the verdict is asked for.
const LEAST_MYSTERY_S: u64 = 5;

impl Participant {
    /// Removes results that are impossible in this course. Returns a line about them; `None` if there were none.
    pub fn leave_out_implausible(&mut self, course: &Course) -> Option<String> {
        let mut doubts = Vec::new();
        self.races.retain(|task, result| {
            let doubt = result.doubt(task, course);
            doubts.extend(doubt.iter().map(|what| format!("{what} in {task}")));
            doubt.is_none()
        });
        for (id, work) in &mut self.stages {
            if let Some(stage) = course.stage_by_id(id) {
                work.leave_out(stage, &mut doubts);
            }
        }
        let first = sanitize::bounded(doubts.first()?, 160);
        Some(match doubts.len() - 1 {
            0 => format!("shared {first}: left out, because it is not plausible"),
            more => {
                format!("shared {first}, and {more} more: left out, because they are not plausible")
            }
        })
    }
}

impl SharedWork {
    /// Removes figures that are impossible in this stage, and adds what they were to `doubts`.
    fn leave_out(&mut self, stage: &Stage, doubts: &mut Vec<String>) {
        let choices = stage.prediction.choices.len();
        self.vote.take_if(|choice| *choice >= choices);
        self.checks.take_if(|[met, all]| met > all || *all >= 100);
        let scale = stage.estimate.as_ref();
        let is_off_scale = |[low, high]: &mut [f64; 2]| {
            scale.is_none_or(|scale| {
                // The error of rounding at an end of the scale.
                let little = 1e-6 * (scale.to - scale.from).abs();
                let is_on = scale.from - little <= *low && *high <= scale.to + little;
                !is_on || low > high
            })
        };
        if let Some([low, high]) = self.range.take_if(is_off_scale) {
            let ends = scale.map_or_else(String::new, |scale| {
                format!(", whose scale goes from {} to {}", scale.from, scale.to)
            });
            let (low, high) = (short(low), short(high));
            let number = stage.number;
            doubts.push(format!(
                "a range from {low} to {high} in stage {number}{ends}"
            ));
        }
        let most = scale.map_or(0.0, |scale| 1000.0 * scale.to.abs());
        self.measured = self.measured.filter(|value| value.abs() <= most);
        let is_implausible = |ratio: &mut [f64; 3]| !holds(*ratio, MOST_RATIO);
        if let Some([ratio, ..]) = self.ratio.take_if(is_implausible) {
            doubts.push(format!("a ratio of {ratio:.2}x in stage {}", stage.number));
        }
    }
}

impl RaceResult {
    /// Returns the figure that is impossible for that task of the course; `None` if all are possible.
    fn doubt(&self, task: &str, course: &Course) -> Option<String> {
        let doubt_of_ratio = |most| match self.ratio {
            Some(ratio) if holds(ratio, most) => None,
            Some([ratio, ..]) => Some(format!("a result of {ratio:.2}x")),
            None => Some("a result without a ratio".to_owned()),
        };
        let (level, mystery) = match (mystery_of(task), self.mystery) {
            (Some((_, level)), Some(mystery)) => (level, mystery),
            (None, None) if course.exercise_by_id(task).is_some() => {
                return doubt_of_ratio(MOST_RATIO);
            }
            _ => {
                let of = self.ratio.map(|[ratio, ..]| format!(" of {ratio:.2}x"));
                return Some(format!("a result{}", of.unwrap_or_default()));
            }
        };
        let points = mystery.points;
        if points == 0 {
            return self
                .ratio
                .map(|[ratio, ..]| format!("a result of {ratio:.2}x without points"));
        }
        let (seconds, tried) = (mystery.seconds, mystery.configurations);
        // Each fault has a knob of its own.
        let most = score(level, 0, tried.max(usize::from(level)), seconds);
        if tried == 0 {
            Some("a solution without any configuration tried".to_owned())
        } else if seconds < LEAST_MYSTERY_S {
            Some(format!("a solution after {seconds} s"))
        } else if points > most {
            Some(format!(
                "a result of {points} points, with at most {most} possible,"
            ))
        } else {
            doubt_of_ratio(MOST_MYSTERY_RATIO)
        }
    }
}

/// Returns true if a ratio is in its interval, and the interval below a limit.
fn holds([ratio, low, high]: [f64; 3], most: f64) -> bool {
    0.0 < low && low <= ratio && ratio <= high && high <= most
}

/// Returns a short form of a number of any size.
fn short(number: f64) -> String {
    match number.abs() {
        1e-3..1e6 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

/// Returns the seed and the level of a race's mystery, such as `mystery 7-2`; `None` for another race.
pub fn mystery_of(task: &str) -> Option<(u64, u8)> {
    let (seed, level) = task.strip_prefix("mystery ")?.split_once('-')?;
    let level: u8 = level.parse().ok()?;
    if !(1..=LEVELS).contains(&level) {
        return None;
    }
    Some((seed.parse().ok()?, level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::record::MysteryResult;

    #[test]
    fn what_cannot_have_been_measured_is_left_out() {
        let course = Course::builtin();
        let stage = course.stages[0].id.clone();
        let shared = |range| SharedWork {
            range: Some(range),
            measured: Some(7.0),
            vote: Some(1),
            ..SharedWork::default()
        };
        let result = |ratio, points: Option<u32>| RaceResult {
            ratio: Some(ratio),
            mystery: points.map(|points| MysteryResult {
                points,
                seconds: 60,
                configurations: 1,
            }),
        };
        let kernel = course
            .exercises
            .iter()
            .find(|exercise| exercise.kernels().is_some());
        let kernel = kernel.expect("a kernel exercise").id.clone();
        let mut honest = Participant::default();
        honest.stages.insert(stage.clone(), shared([6.0, 8.0]));
        honest
            .races
            .insert(kernel.clone(), result([4.0, 3.0, 5.0], None));
        let of_mystery = result([1.01, 0.98, 1.05], Some(80));
        honest.races.insert("mystery 7-1".to_owned(), of_mystery);
        let before = honest.clone();
        assert_eq!(honest.leave_out_implausible(&course), None);
        assert_eq!(honest, before);
        for (task, it) in [
            ("mystery 7-1", result([51.0, 48.0, 54.0], Some(90))),
            ("mystery 7-1", result([1.0, 0.9, 1.1], Some(900))),
            ("mystery 7-1", result([1.0, 0.9, 1.1], None)),
            // Even the first minute costs points.
            ("mystery 7-1", result([1.0, 0.9, 1.1], Some(100))),
            ("mystery 7-9", result([1.0, 0.9, 1.1], Some(90))),
            (&kernel, result([51.0, 48.0, 54.0], None)),
            (&kernel, result([1.0, 2.0, 3.0], None)),
            ("nowhere", result([1.0, 0.9, 1.1], None)),
        ] {
            let mut hostile = Participant::default();
            hostile.races.insert(task.to_owned(), it);
            let said = hostile.leave_out_implausible(&course).unwrap_or_default();
            assert!(hostile.races.is_empty() && said.contains(task), "{said}");
        }
        let mut hostile = Participant::default();
        hostile.stages.insert(stage.clone(), shared([-5.0, 1e300]));
        let said = hostile.leave_out_implausible(&course).unwrap_or_default();
        assert!(said.contains("from 1 to 2000"), "{said}");
        assert_eq!(
            (hostile.stages[&stage].range, hostile.stages[&stage].vote),
            (None, Some(1))
        );
    }

    #[test]
    fn a_forged_race_is_named_by_its_figure() {
        let course = Course::builtin();
        let said = |points, seconds, configurations, level| {
            let mut forged = Participant::default();
            let mystery = Some(MysteryResult {
                points,
                seconds,
                configurations,
            });
            let ratio = Some([1.0, 0.9, 1.1]);
            let task = format!("mystery 7-{level}");
            forged.races.insert(task, RaceResult { ratio, mystery });
            forged.leave_out_implausible(&course)
        };
        for (points, seconds, tried, level, figure) in [
            (99, 1, 0, 1, "any configuration"),
            (89, 1, 1, 1, "after 1 s"),
            // One knob for each fault is the least.
            (189, 60, 1, 2, "189 points, with at most 179"),
            (90, 60, 1, 1, "90 points, with at most 89"),
        ] {
            let said = said(points, seconds, tried, level).unwrap_or_default();
            assert!(said.contains(figure), "{figure}: {said}");
        }
        assert_eq!(said(89, 60, 1, 1), None);
        assert_eq!(said(179, 60, 1, 2), None);
    }
}
