//! Where the learner is: `progress.toml` in the course's state folder, keyed by stage id. Written whole, by a temporary
//! file and a rename, under a lock; only the keys of one stage change, so two instances and newer versions lose nothing.
//!
//! Functions take the folder; the one that finds it is `directory`. A damaged file is set aside as
//! `progress.toml.damaged-1` and named; `progress.toml.previous`, the file before the last change, takes its place.

mod document;
mod store;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use store::{Busy, directory, in_words, load, save, save_knowing, times};

/// How far a stage has come.
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
    /// Jumped over in a correct state; never counts as passed.
    Skipped,
    Passed,
}

/// What the learner said would happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Index of the choice, and whether it was right.
    Choice {
        choice: usize,
        right: bool,
    },
    Skipped,
}

/// One stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageProgress {
    pub state: StageState,
    /// The first answer stays.
    pub prediction: Option<Prediction>,
    /// Whether the learner knew, before the cause was told, which panel shows the fault.
    pub located: Option<bool>,
    /// The learner's range for the stage's estimate, and what was measured.
    pub estimate: Option<(f64, f64)>,
    /// The first measurement that judged the range: a later run does not change it.
    pub measured: Option<f64>,
    /// Broken over the learner's own, in pairs, with the ends of its interval: the first that was measured with every check met.
    pub ratio: Option<[f64; 3]>,
    /// What the check that the stage begins with failing said when the stage was passed.
    pub found: Option<String>,
    pub hints: u32,
    pub solution_shown: bool,
    /// First answers to the questions of the quiz, in their order.
    pub answers: Vec<usize>,
    /// Questions of the quiz answered rightly, at the first or a later try.
    pub quiz: Vec<usize>,
}

impl StageProgress {
    /// Notes an answer about a recorded run; the first one stays. After a wrong one a right one is no finding any more, because
    /// few are left: the exercise then counts as seen. The result is whether it is passed.
    pub fn note_finding(&mut self, choice: usize, right: bool) -> bool {
        let first = *self
            .prediction
            .get_or_insert(Prediction::Choice { choice, right });
        let found = matches!(first, Prediction::Choice { right: true, .. });
        if right {
            self.note_tried(found);
        }
        self.state == StageState::Passed
    }

    /// Notes that it was looked at or tried, and whether it passed; what was reached before stays.
    pub fn note_tried(&mut self, passed: bool) {
        let reached = if passed {
            StageState::Passed
        } else {
            StageState::Seen
        };
        self.state = self.state.max(reached);
    }

    /// What is left when an exercise is reset: the first answer about a recorded run, because its answer may have been told.
    pub fn after_reset(&self) -> Option<Self> {
        let prediction = Some(self.prediction?);
        Some(Self {
            prediction,
            ..Self::default()
        })
    }
}

/// When things were said first, in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub predicted: Option<i64>,
    pub estimated: Option<i64>,
    pub answered: Vec<i64>,
}

/// The whole course.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Id of the stage the learner was at.
    pub current: Option<String>,
    /// The beat that was shown last to an audience: the stage's id and its place there.
    pub presented: Option<(String, usize)>,
    /// The welcome was shown.
    pub welcomed: bool,
    pub stages: BTreeMap<String, StageProgress>,
    /// Mysteries that were solved, by seed and level: `7-2`.
    pub mysteries: BTreeMap<String, MysteryScore>,
}

/// Points of a solved mystery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MysteryScore {
    pub last: u32,
    pub best: u32,
}

/// One thing to keep.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgressChange {
    /// What the learner did in a stage or an exercise, by id. Only a reset takes back what was recorded before.
    Stage(String, Box<StageProgress>),
    /// The score of a mystery; the best of all sessions stays.
    Mystery(String, MysteryScore),
    /// Where the learner is.
    Current(String),
    /// Which beat an audience sees.
    Presented(String, usize),
    /// The welcome was shown.
    Welcomed,
    /// Forgets a stage.
    Reset(String),
}

impl ProgressChange {
    /// Whether nothing is left of an earlier change once this one is made.
    pub fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Stage(id, _) | Self::Reset(id), Self::Stage(of, _))
            | (Self::Reset(id), Self::Reset(of)) => id == of,
            (Self::Current(_), Self::Current(_)) | (Self::Presented(..), Self::Presented(..)) => {
                true
            }
            _ => self == earlier,
        }
    }
}

/// How good the predictions are so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Choices made in stages that are passed, and how many were right: before that the score would tell.
    pub answered: u32,
    pub right: u32,
    /// Ranges whose truth was measured, and how many held it.
    pub ranges: u32,
    pub held: u32,
    /// Stages in which a panel was named before the cause was told, and how many of those panels show the fault.
    pub asked_where: u32,
    pub located: u32,
}

impl Calibration {
    /// In a sentence, with points of all that the ranges could earn; what was never asked is left out.
    pub fn said(&self, points: Option<(u32, u32)>) -> String {
        let points = points.map(|(got, of)| format!(", {got} of {of} points"));
        let points = points.unwrap_or_default();
        let parts = [
            (self.right, self.answered, "predictions right", ""),
            (
                self.held,
                self.ranges,
                "ranges contained the measured figure",
                &points,
            ),
            (
                self.located,
                self.asked_where,
                "faults found in a panel before the cause was told",
                "",
            ),
        ];
        let asked = parts.into_iter().filter(|(_, of, ..)| *of > 0);
        let said: Vec<String> = asked
            .map(|(got, of, what, more)| format!("{got} of {of} {what}{more}"))
            .collect();
        match said.is_empty() {
            true => "No prediction was judged yet.".to_owned(),
            false => said.join("; ") + ".",
        }
    }
}

impl Progress {
    /// Whether this is the first visit: no welcome was shown, and no stage was more than looked at.
    pub fn is_first(&self) -> bool {
        let untouched = |stage: &StageProgress| stage.state <= StageState::Seen;
        !self.welcomed && self.current.is_none() && self.stages.values().all(untouched)
    }

    pub fn stage(&self, id: &str) -> StageProgress {
        self.stages.get(id).cloned().unwrap_or_default()
    }

    /// Everything in it, to be written again.
    pub fn as_changes(&self) -> Vec<ProgressChange> {
        let current = self.current.clone().map(ProgressChange::Current);
        let stages = self.stages.iter();
        let stages = stages.map(|(id, it)| ProgressChange::Stage(id.clone(), Box::new(it.clone())));
        let mysteries = self.mysteries.iter();
        let mysteries = mysteries.map(|(name, it)| ProgressChange::Mystery(name.clone(), *it));
        let once = [self.welcomed.then_some(ProgressChange::Welcomed)];
        let once = once.into_iter().flatten();
        once.chain(current).chain(stages).chain(mysteries).collect()
    }

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

/// The choice with this letter: `b` is the second one.
pub fn choice_of(letter: &str) -> Option<usize> {
    match letter.as_bytes() {
        [letter @ b'a'..=b'd'] => Some(usize::from(letter - b'a')),
        _ => None,
    }
}

/// `a` for the first choice.
pub fn letter(choice: usize) -> String {
    char::from(b'a' + u8::try_from(choice.min(25)).unwrap_or(0)).to_string()
}

impl StageProgress {
    /// The further of two records of one stage.
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
