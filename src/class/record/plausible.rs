//! Removes results from a record that are impossible in the course, so that a forged record wins no race.

use super::{MysteryResult, Participant, RaceResult, SharedWork};
use crate::course::mystery::{LEVELS, score};
use crate::course::{Course, Stage};
use crate::sanitize;

/// The largest plausible ratio of a kernel or of a stage's fix.
const MOST_RATIO: f64 = 50.0;
/// The largest plausible ratio of a mystery. A solved mystery is about as fast as the configuration that it is compared with.
const MOST_MYSTERY_RATIO: f64 = 3.0;
/// The shortest plausible time of a solved mystery, in seconds. Nobody looks at a step of the run, changes a knob and asks for the
/// verdict in less.
const LEAST_MYSTERY_S: u64 = 5;

impl Participant {
    /// Removes results that are impossible in this course. Returns a sentence for the board, without its subject, such as
    /// `shared a result of 51.00x in k04-matmul: left out, because it is not plausible`; `None` if every result is possible.
    pub fn leave_out_implausible(&mut self, course: &Course) -> Option<String> {
        let mut doubts = Vec::new();
        self.races.retain(|task, result| {
            let doubt = result.doubt(task, course);
            doubts.extend(doubt.iter().map(|figure| format!("{figure} in {task}")));
            doubt.is_none()
        });
        for (id, work) in &mut self.stages {
            if let Some(stage) = course.stage_by_id(id) {
                work.remove_implausible(stage, &mut doubts);
            }
        }
        let first = sanitize::bounded(doubts.first()?, 160);
        let reason = match doubts.len() - 1 {
            0 => ": left out, because it is not plausible".to_owned(),
            more => format!(", and {more} more: left out, because they are not plausible"),
        };
        Some(format!("shared {first}{reason}"))
    }
}

impl SharedWork {
    /// Removes figures that are impossible in this stage, and adds a description of each to `doubts`.
    fn remove_implausible(&mut self, stage: &Stage, doubts: &mut Vec<String>) {
        let choices = stage.prediction.choices.len();
        self.vote.take_if(|choice| *choice >= choices);
        self.checks.take_if(|[met, all]| met > all || *all >= 100);
        let scale = stage.estimate.as_ref();
        let is_off_scale = |[low, high]: &mut [f64; 2]| {
            scale.is_none_or(|scale| {
                let rounding_error = 1e-6 * (scale.to - scale.from).abs();
                let low_end = scale.from - rounding_error;
                let high_end = scale.to + rounding_error;
                let is_on_scale = low_end <= *low && low <= high && *high <= high_end;
                !is_on_scale
            })
        };
        if let Some([low, high]) = self.range.take_if(is_off_scale) {
            let ends = scale.map_or_else(String::new, |scale| {
                format!(", whose scale goes from {} to {}", scale.from, scale.to)
            });
            doubts.push(format!(
                "a range from {} to {} in stage {}{ends}",
                short(low),
                short(high),
                stage.number
            ));
        }
        let most = scale.map_or(0.0, |scale| 1000.0 * scale.to.abs());
        self.measured = self.measured.filter(|value| value.abs() <= most);
        let is_implausible = |ratio: &mut [f64; 3]| !is_plausible(*ratio, MOST_RATIO);
        if let Some([ratio, ..]) = self.ratio.take_if(is_implausible) {
            doubts.push(format!("a ratio of {ratio:.2}x in stage {}", stage.number));
        }
    }
}

impl RaceResult {
    /// Returns the first figure of this result that is impossible for a task of the course; `None` if all figures are possible.
    fn doubt(&self, task: &str, course: &Course) -> Option<String> {
        match (mystery_of(task), self.mystery) {
            (Some((_, level)), Some(mystery)) => self.doubt_of_mystery(level, mystery),
            (None, None) if course.exercise_by_id(task).is_some() => {
                self.doubt_of_ratio(MOST_RATIO)
            }
            _ => Some(match self.ratio {
                Some([ratio, ..]) => format!("a result of {ratio:.2}x"),
                None => "a result".to_owned(),
            }),
        }
    }

    fn doubt_of_mystery(&self, level: u8, mystery: MysteryResult) -> Option<String> {
        let points = mystery.points;
        if points == 0 {
            return self
                .ratio
                .map(|[ratio, ..]| format!("a result of {ratio:.2}x without points"));
        }
        let seconds = mystery.seconds;
        let tried = mystery.configurations;
        // A mystery of this level has this number of faults, and each fault is in a knob of its own.
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
            self.doubt_of_ratio(MOST_MYSTERY_RATIO)
        }
    }

    fn doubt_of_ratio(&self, most: f64) -> Option<String> {
        match self.ratio {
            Some(ratio) if is_plausible(ratio, most) => None,
            Some([ratio, ..]) => Some(format!("a result of {ratio:.2}x")),
            None => Some("a result without a ratio".to_owned()),
        }
    }
}

/// Returns true if a ratio is within its interval, and the interval is above 0 and not above `most`.
fn is_plausible([ratio, low, high]: [f64; 3], most: f64) -> bool {
    0.0 < low && low <= ratio && ratio <= high && high <= most
}

/// Returns a number with few digits: `2000`, `1e300`.
fn short(number: f64) -> String {
    match number.abs() {
        1e-3..1e6 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

/// Returns the seed and the level of the mystery that a race is about: 7 and 2 for `mystery 7-2`. `None` if the race is about an
/// exercise.
pub fn mystery_of(task: &str) -> Option<(u64, u8)> {
    let (seed_text, level_text) = task.strip_prefix("mystery ")?.split_once('-')?;
    let seed = seed_text.parse().ok()?;
    let level = level_text.parse().ok()?;
    (1..=LEVELS).contains(&level).then_some((seed, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_results_are_left_out_and_possible_ones_stay() {
        let course = Course::builtin();
        let stage = course.stages[0].id.clone();
        let work_with_range = |range| SharedWork {
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
            .find(|exercise| exercise.kernels().is_some())
            .map(|exercise| exercise.id.clone())
            .expect("a kernel exercise");
        let mut honest = Participant::default();
        honest
            .stages
            .insert(stage.clone(), work_with_range([6.0, 8.0]));
        honest
            .races
            .insert(kernel.clone(), result([4.0, 3.0, 5.0], None));
        honest.races.insert(
            "mystery 7-1".to_owned(),
            result([1.01, 0.98, 1.05], Some(80)),
        );
        let before = honest.clone();
        assert_eq!(honest.leave_out_implausible(&course), None);
        assert_eq!(honest, before);
        for (task, result) in [
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
            hostile.races.insert(task.to_owned(), result);
            let doubt = hostile.leave_out_implausible(&course).unwrap_or_default();
            assert!(hostile.races.is_empty() && doubt.contains(task), "{doubt}");
        }
        let mut hostile = Participant::default();
        hostile
            .stages
            .insert(stage.clone(), work_with_range([-5.0, 1e300]));
        let doubt = hostile.leave_out_implausible(&course).unwrap_or_default();
        assert!(doubt.contains("from 1 to 2000"), "{doubt}");
        assert_eq!(
            (hostile.stages[&stage].range, hostile.stages[&stage].vote),
            (None, Some(1))
        );
    }

    #[test]
    fn a_forged_mystery_is_doubted_by_its_impossible_figure() {
        let course = Course::builtin();
        let doubt = |points, seconds, configurations, level| {
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
            // Two faults take at least two configurations.
            (189, 60, 1, 2, "189 points, with at most 179"),
            (90, 60, 1, 1, "90 points, with at most 89"),
        ] {
            let text = doubt(points, seconds, tried, level).unwrap_or_default();
            assert!(text.contains(figure), "{figure}: {text}");
        }
        assert_eq!(doubt(89, 60, 1, 1), None);
        assert_eq!(doubt(179, 60, 1, 2), None);
    }
}
