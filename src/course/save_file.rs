//! The learner's progress: `progress.toml` in the course's state folder, keyed by the ids of stages and exercises. Two programs may save at
//! the same time, and an older version of the program may save after a newer one; neither loses what the other wrote. Therefore a save reads
//! the file under a lock, changes only the keys of one stage, and replaces the file as a whole.
//!
//! A damaged file is renamed to `progress.toml.damaged-1` and reported. The file before the last change, `progress.toml.previous`, then
//! takes its place. Functions take the state folder, which `directory` finds.

mod document;
mod store;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use store::{Busy, directory, explain_write_error, load, save, save_or_restore, times};

/// The state of a stage, from new to passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum StageState {
    #[default]
    New,
    Seen,
    /// The prediction was answered or skipped.
    Predicted,
    /// The learner went past the stage in its correct state. This does not count as passed.
    Skipped,
    Passed,
}

/// The learner's answer to the prediction of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// The index of the choice, and true if it was right.
    Choice {
        choice: usize,
        right: bool,
    },
    Skipped,
}

/// The progress in one stage or exercise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageProgress {
    pub state: StageState,
    /// The first answer. Later answers do not change it.
    pub prediction: Option<Prediction>,
    /// True if the learner named a panel that shows the fault before the cause was explained; `None` if they were not asked.
    pub located: Option<bool>,
    /// The learner's range for the stage's estimate.
    pub estimate: Option<(f64, f64)>,
    /// The first measurement that judged the range. Later runs do not change it.
    pub measured: Option<f64>,
    /// The step time of the starter divided by that of the learner's configuration, measured in pairs, and the two ends of its interval. This
    /// is the first measurement with all checks met.
    pub ratio: Option<[f64; 3]>,
    /// The result of the check that fails on the starter, at the time when the stage was passed.
    pub found: Option<String>,
    /// The number of hints that were shown.
    pub hints: u32,
    pub solution_shown: bool,
    /// The first answers to the questions of the quiz, in their order.
    pub answers: Vec<usize>,
    /// The questions of the quiz that were answered rightly, at the first or a later try.
    pub quiz: Vec<usize>,
}

impl StageProgress {
    /// Records an answer about a recorded run, and returns true if the exercise is passed. Only the first answer can pass it: after a
    /// wrong answer few choices are left, so a right one only counts as seen.
    pub fn record_answer(&mut self, choice: usize, right: bool) -> bool {
        let first = *self
            .prediction
            .get_or_insert(Prediction::Choice { choice, right });
        let was_found = matches!(first, Prediction::Choice { right: true, .. });
        if right {
            self.record_attempt(was_found);
        }
        self.state == StageState::Passed
    }

    /// Records that the stage or exercise was seen, or passed. A state that was reached before stays.
    pub fn record_attempt(&mut self, passed: bool) {
        let reached = if passed {
            StageState::Passed
        } else {
            StageState::Seen
        };
        self.state = self.state.max(reached);
    }

    /// Returns the progress that a reset keeps: the first answer about a recorded run, because the right answer may have been shown.
    pub fn after_reset(&self) -> Option<Self> {
        let prediction = Some(self.prediction?);
        Some(Self {
            prediction,
            ..Self::default()
        })
    }
}

/// The times of the learner's first answers, in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub predicted: Option<i64>,
    pub estimated: Option<i64>,
    /// One time for each question of the quiz that was answered.
    pub answered: Vec<i64>,
}

/// The progress in the whole course.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The id of the stage that the learner was at.
    pub current: Option<String>,
    /// The beat that was shown last to an audience: the id of the stage, and the place of the beat in it.
    pub presented: Option<(String, usize)>,
    /// True if the welcome was shown.
    pub welcomed: bool,
    /// Stages and exercises by id.
    pub stages: BTreeMap<String, StageProgress>,
    /// Solved mysteries by seed and level: `7-2`.
    pub mysteries: BTreeMap<String, MysteryScore>,
}

/// The points for a solved mystery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MysteryScore {
    pub last: u32,
    pub best: u32,
}

/// One change of the progress.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgressChange {
    /// The id of a stage or an exercise, and the learner's work in it. Only a reset takes back what was recorded before.
    Stage(String, Box<StageProgress>),
    /// The seed and level of a mystery, and its score. The best score of all sessions stays.
    Mystery(String, MysteryScore),
    /// The id of the stage that the learner is at.
    Current(String),
    /// The beat that an audience sees: the id of the stage, and the place of the beat in it.
    Presented(String, usize),
    /// The welcome was shown.
    Welcomed,
    /// The stage or exercise with this id is forgotten.
    Reset(String),
}

impl ProgressChange {
    /// Returns true if this change makes an earlier change superfluous.
    pub fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Stage(id, _) | Self::Reset(id), Self::Stage(earlier_id, _))
            | (Self::Reset(id), Self::Reset(earlier_id)) => id == earlier_id,
            (Self::Current(_), Self::Current(_)) | (Self::Presented(..), Self::Presented(..)) => {
                true
            }
            _ => self == earlier,
        }
    }
}

/// The quality of the learner's predictions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// The number of choices in passed stages. In other stages the score would reveal the answer.
    pub answered: u32,
    /// The number of these choices that were right.
    pub right: u32,
    /// The number of ranges whose figure was measured.
    pub ranges: u32,
    /// The number of these ranges that contain the figure.
    pub held: u32,
    /// The number of stages in which the learner named a panel before the cause was explained.
    pub asked_where: u32,
    /// The number of these panels that show the fault.
    pub located: u32,
}

impl Calibration {
    /// Returns a sentence with the counts: "3 of 4 predictions right; 1 of 2 ranges contained the measured figure." `points` are those that
    /// the ranges earned, and those that they could have earned. Questions that were never asked are left out.
    pub fn sentence(&self, points: Option<(u32, u32)>) -> String {
        let earned = match points {
            Some((points, possible)) => format!(", {points} of {possible} points"),
            None => String::new(),
        };
        let counts = [
            (self.right, self.answered, "predictions right", ""),
            (
                self.held,
                self.ranges,
                "ranges contained the measured figure",
                &earned,
            ),
            (
                self.located,
                self.asked_where,
                "faults found in a panel before the cause was told",
                "",
            ),
        ];
        let mut parts: Vec<String> = Vec::new();
        for (count, all, meaning, more) in counts {
            if all > 0 {
                parts.push(format!("{count} of {all} {meaning}{more}"));
            }
        }
        if parts.is_empty() {
            return "No prediction was judged yet.".to_owned();
        }
        parts.join("; ") + "."
    }
}

impl Progress {
    /// Returns true at the first visit: no welcome was shown, and the learner answered nothing.
    pub fn is_first(&self) -> bool {
        let untouched = |stage: &StageProgress| stage.state <= StageState::Seen;
        !self.welcomed && self.current.is_none() && self.stages.values().all(untouched)
    }

    /// Returns the progress in a stage or exercise, which is empty for an unknown id.
    pub fn stage(&self, id: &str) -> StageProgress {
        self.stages.get(id).cloned().unwrap_or_default()
    }

    /// Returns the changes that make this progress out of an empty one.
    pub fn as_changes(&self) -> Vec<ProgressChange> {
        let mut changes = Vec::new();
        if self.welcomed {
            changes.push(ProgressChange::Welcomed);
        }
        changes.extend(self.current.clone().map(ProgressChange::Current));
        for (id, stage) in &self.stages {
            changes.push(ProgressChange::Stage(id.clone(), Box::new(stage.clone())));
        }
        for (name, score) in &self.mysteries {
            changes.push(ProgressChange::Mystery(name.clone(), *score));
        }
        changes
    }

    /// Counts the predictions and ranges that were right.
    pub fn calibration(&self) -> Calibration {
        let mut score = Calibration::default();
        for stage in self.stages.values() {
            if stage.state == StageState::Passed
                && let Some(Prediction::Choice { right, .. }) = stage.prediction
            {
                score.answered += 1;
                score.right += u32::from(right);
            }
            score.asked_where += u32::from(stage.located.is_some());
            score.located += u32::from(stage.located == Some(true));
            if let (Some((low, high)), Some(truth)) = (stage.estimate, stage.measured) {
                score.ranges += 1;
                score.held += u32::from((low..=high).contains(&truth));
            }
        }
        score
    }
}

/// Returns the index of the choice with this letter: 1 for `b`.
pub fn choice_of(letter: &str) -> Option<usize> {
    match letter.as_bytes() {
        [letter @ b'a'..=b'd'] => Some(usize::from(letter - b'a')),
        _ => None,
    }
}

/// Returns the letter of the choice with this index: `a` for 0.
pub fn letter(choice: usize) -> String {
    char::from(b'a' + u8::try_from(choice.min(25)).unwrap_or(0)).to_string()
}

impl StageProgress {
    /// Merges two records of one stage: what was reached or answered first stays.
    fn merge(self, new: &Self) -> Self {
        let mut quiz = [self.quiz, new.quiz.clone()].concat();
        quiz.sort_unstable();
        quiz.dedup();
        let mut answers = self.answers;
        answers.extend(new.answers.iter().skip(answers.len()));
        Self {
            state: self.state.max(new.state),
            prediction: self.prediction.or(new.prediction),
            located: self.located.or(new.located),
            estimate: self.estimate.or(new.estimate),
            measured: self.measured.or(new.measured),
            ratio: self.ratio.or(new.ratio),
            found: self.found.or_else(|| new.found.clone()),
            hints: self.hints.max(new.hints),
            solution_shown: self.solution_shown || new.solution_shown,
            answers,
            quiz,
        }
    }
}
