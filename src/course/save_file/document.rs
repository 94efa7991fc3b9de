//! The file `progress.toml` as a serde structure. It keeps keys that this version does not know, and turns letters of choices into indices:
//! `prediction = "b"` is the choice 1.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toml::Table;

use super::{
    MysteryScore, Prediction, Progress, ProgressChange, StageProgress, StageState, Times,
    choice_of, letter,
};
use crate::sanitize;

/// The file `progress.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Document {
    current: Option<String>,
    /// The id of a stage and the place of a beat in it: `strides 3`.
    presented: Option<String>,
    welcomed: Option<bool>,
    stage: BTreeMap<String, StageEntry>,
    mystery: BTreeMap<String, MysteryScore>,
    #[serde(flatten)]
    unknown: Table,
}

/// A table `[stage.<id>]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct StageEntry {
    state: StageState,
    /// The letter of a choice, or `skipped`.
    prediction: Option<String>,
    prediction_right: Option<bool>,
    /// Seconds since 1970.
    predicted_at: Option<i64>,
    located: Option<bool>,
    estimate: Option<(f64, f64)>,
    estimated_at: Option<i64>,
    measured: Option<f64>,
    ratio: Option<[f64; 3]>,
    found: Option<String>,
    hints: u32,
    solution_shown: bool,
    quiz_answers: Vec<String>,
    /// Seconds since 1970, one for each of `quiz_answers`.
    answered_at: Vec<i64>,
    quiz_right: Vec<usize>,
    #[serde(flatten)]
    unknown: Table,
}

impl Document {
    /// Reads the text of a file.
    pub(super) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    pub(super) fn to_toml(&self) -> Result<String, toml::ser::Error> {
        // A `Table` writes its plain values before its tables, wherever `flatten` puts them.
        Ok(Table::try_from(self)?.to_string())
    }

    pub(super) fn progress(&self) -> Progress {
        let presented = self.presented.as_ref().and_then(|text| {
            let (id, beat) = text.rsplit_once(' ')?;
            Some((sanitize::one_line(id), beat.parse().ok()?))
        });
        Progress {
            current: self.current.as_deref().map(sanitize::one_line),
            presented,
            welcomed: self.welcomed.unwrap_or(false),
            stages: self
                .stage
                .iter()
                .map(|(id, entry)| (id.clone(), entry.read()))
                .collect(),
            mysteries: self.mystery.clone(),
        }
    }

    /// Returns the times at which a stage's prediction, range and answers were given.
    pub(super) fn times(&self, id: &str) -> Times {
        let Some(entry) = self.stage.get(id) else {
            return Times::default();
        };
        Times {
            predicted: entry.predicted_at,
            estimated: entry.estimated_at,
            answered: entry.answered_at.clone(),
        }
    }

    /// Makes a change. First answers and best scores that the file has already stay.
    pub(super) fn apply(&mut self, change: &ProgressChange) {
        match change {
            ProgressChange::Stage(id, stage) => {
                let entry = self.stage.entry(id.clone()).or_default();
                entry.write(&entry.read().merge(stage), seconds_now());
            }
            ProgressChange::Mystery(name, score) => {
                let entry = self.mystery.entry(name.clone()).or_default();
                let best = entry.best.max(score.best);
                *entry = MysteryScore { best, ..*score };
            }
            ProgressChange::Current(id) => self.current = Some(id.clone()),
            ProgressChange::Presented(id, beat) => self.presented = Some(format!("{id} {beat}")),
            ProgressChange::Welcomed => self.welcomed = Some(true),
            ProgressChange::Reset(id) => {
                self.stage.remove(id);
            }
        }
    }
}

impl StageEntry {
    /// Reads the entry. A value that is out of its bounds counts as missing.
    fn read(&self) -> StageProgress {
        let right = self.prediction_right.unwrap_or(false);
        let prediction = self.prediction.as_deref().and_then(|word| match word {
            "skipped" => Some(Prediction::Skipped),
            letter => choice_of(letter).map(|choice| Prediction::Choice { choice, right }),
        });
        let is_positive = |ratio: &[f64; 3]| ratio.iter().all(|x| x.is_finite() && *x > 0.0);
        StageProgress {
            state: self.state,
            prediction,
            located: self.located,
            estimate: self.estimate.filter(|(low, high)| low <= high),
            measured: self.measured.filter(|figure| figure.is_finite()),
            ratio: self.ratio.filter(is_positive),
            found: self.found.as_deref().map(sanitize::one_line),
            hints: self.hints.min(3),
            solution_shown: self.solution_shown,
            answers: self
                .quiz_answers
                .iter()
                .map_while(|letter| choice_of(letter))
                .collect(),
            quiz: self.quiz_right.clone(),
        }
    }

    /// Writes the progress of a stage. Answers that are new get the time `now`, in seconds since 1970.
    fn write(&mut self, stage: &StageProgress, now: i64) {
        let before = self.read();
        if before.prediction.is_none() && stage.prediction.is_some() {
            self.predicted_at = Some(now);
        }
        if before.estimate.is_none() && stage.estimate.is_some() {
            self.estimated_at = Some(now);
        }
        if stage.answers.len() > before.answers.len() {
            self.answered_at.resize(stage.answers.len(), now);
        }
        self.prediction = None;
        self.prediction_right = None;
        match stage.prediction {
            None => {}
            Some(Prediction::Skipped) => self.prediction = Some("skipped".to_owned()),
            Some(Prediction::Choice { choice, right }) => {
                self.prediction = Some(letter(choice));
                self.prediction_right = Some(right);
            }
        }
        self.state = stage.state;
        self.located = stage.located;
        self.estimate = stage.estimate;
        self.measured = stage.measured;
        self.ratio = stage.ratio;
        self.found.clone_from(&stage.found);
        self.hints = stage.hints;
        self.solution_shown = stage.solution_shown;
        self.quiz_answers = stage.answers.iter().map(|choice| letter(*choice)).collect();
        self.quiz_right.clone_from(&stage.quiz);
    }
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs() as i64)
}
