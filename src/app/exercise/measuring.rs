//! The state of a config exercise: the learner's answers, the progress of the measurement, and its result. `measure.rs` changes it.

use crate::course::exercise::config::Answers;
use crate::course::exercise::{ConfigCheck, Configs};
use crate::course::sweep::SweepTable;
use crate::judge::CriterionResult;

/// The content of the learner's answer file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AnswerFile {
    /// The file has not been read yet.
    #[default]
    Unread,
    /// Answers are missing or not allowed. Each sentence names a line of the file and what to write there.
    Open(Vec<String>),
    /// Every question has an answer. The pairs are the question's key and the answer, with commas between several words.
    Given(Vec<(String, String)>),
}

/// The progress of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The number of the present run or comparison, from 1.
    pub number: usize,
    /// The number of runs and comparisons in all.
    pub of: usize,
    /// The configuration of the present run.
    pub what: String,
    /// The progress of the present run, as in `step 12 of 60`.
    pub done: String,
    pub table: SweepTable,
}

/// A measurement in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measuring {
    /// The measurement has begun. Before that it waits for the stage's run to pause.
    pub begun: bool,
    /// The time of the request, or of the beginning once it has begun, in milliseconds since the program began.
    pub since_ms: u64,
    pub sweep: Sweep,
}

/// The result of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    pub passed: bool,
    /// One line for each criterion, with the answer and the measured result.
    pub lines: Vec<CriterionResult>,
    pub table: SweepTable,
    pub device: String,
    pub seconds: f64,
    /// The reason why the measurement failed. There are no lines then.
    pub failed: Option<String>,
}

impl Measurement {
    /// Makes the result of a measurement that failed for the reason `why`.
    pub fn failed(why: &str) -> Self {
        Self {
            failed: Some(why.to_owned()),
            ..Self::default()
        }
    }
}

/// The words chosen so far, and the marked word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerDraft {
    pub answers: Answers,
    /// The index of the marked word.
    pub at: usize,
}

/// A question with the words that may answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerChoice {
    pub key: String,
    pub ask: String,
    /// The words with the label of each. The label is empty if the word explains itself.
    pub words: Vec<(String, String)>,
    /// The words taken so far, if the answer is an order of several words.
    pub taken: Vec<String>,
    /// The index of the marked word.
    pub at: usize,
}

impl AnswerChoice {
    /// Returns the index of the word `by` places after the marked one, limited to the list.
    pub fn after(&self, by: i32) -> usize {
        let last = self.words.len().saturating_sub(1);
        self.at.saturating_add_signed(by as isize).min(last)
    }
}

impl AnswerDraft {
    /// Returns the words of this check with their labels, and the number of words that an answer consists of. Several words are an order
    /// of the changes under `rank`; their labels say what changes. A single word has an empty label.
    fn words(configs: &Configs, check: &ConfigCheck) -> (Vec<(String, String)>, usize) {
        let single = check.words(configs.sweep.as_ref());
        if single.is_empty() {
            let ranked = configs.letters();
            let count = ranked.len();
            let labels = configs.rank.iter().map(|change| change.label.clone());
            return (ranked.into_iter().zip(labels).collect(), count);
        }
        let unlabelled = single.into_iter().map(|word| (word, String::new()));
        (unlabelled.collect(), 1)
    }

    /// Returns the first question without a complete answer.
    pub fn next(&self, configs: &Configs) -> Option<AnswerChoice> {
        configs.checks.iter().find_map(|check| {
            let (key, ask) = check.answer.as_ref()?;
            let (mut words, wanted) = Self::words(configs, check);
            let taken = self.answers.get(key).cloned().unwrap_or_default();
            words.retain(|(word, _)| !taken.contains(word));
            (taken.len() < wanted && !words.is_empty()).then(|| AnswerChoice {
                key: key.clone(),
                ask: ask.clone(),
                at: self.at.min(words.len() - 1),
                words,
                taken,
            })
        })
    }

    /// Takes the marked word. In an order of words, the last remaining word is taken together with the one before it.
    pub fn take(&mut self, configs: &Configs) {
        let Some(choice) = self.next(configs) else {
            return;
        };
        let answer = self.answers.entry(choice.key).or_default();
        let is_order = choice.words.iter().any(|(_, label)| !label.is_empty());
        answer.push(choice.words[choice.at].0.clone());
        if is_order && choice.words.len() == 2 {
            answer.push(choice.words[1 - choice.at].0.clone());
        }
        self.at = 0;
    }
}
