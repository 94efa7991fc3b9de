//! The state of a config exercise: what the learner expects, how far the measurement has come, and what it found.
//! Plain data; `measure.rs` changes it.

use crate::course::exercise::config::Answers;
use crate::course::exercise::{ConfigCheck, Configs};
use crate::course::sweep::SweepTable;
use crate::judge::CriterionResult;

/// What the learner's answer file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AnswerFile {
    /// Not read yet.
    #[default]
    Unread,
    /// Answers are missing or wrong: where, and what to write.
    Open(Vec<String>),
    /// Every question has an answer: its key, and the words.
    Given(Vec<(String, String)>),
}

/// How far a measurement has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Which of how many runs and comparisons.
    pub number: usize,
    pub of: usize,
    /// What the present one is about, and how far it is.
    pub what: String,
    pub done: String,
    pub table: SweepTable,
}

/// A measurement in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measuring {
    /// It has begun; before, it waits for the stage's run to pause.
    pub begun: bool,
    pub since_ms: u64,
    pub sweep: Sweep,
}

/// What a measurement found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    pub passed: bool,
    /// Each criterion: what was asked, what was measured.
    pub lines: Vec<CriterionResult>,
    pub table: SweepTable,
    pub device: String,
    pub seconds: f64,
    /// Why it failed; then there are no lines.
    pub failed: Option<String>,
}

impl Measurement {
    /// It failed.
    pub fn failed(why: &str) -> Self {
        Self {
            failed: Some(why.to_owned()),
            ..Self::default()
        }
    }
}

/// The words chosen so far, and which word is marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerDraft {
    pub answers: Answers,
    /// Index of the marked word.
    pub at: usize,
}

/// A question with the words that may answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerChoice {
    pub key: String,
    pub ask: String,
    /// Each word, and what it stands for.
    pub words: Vec<(String, String)>,
    /// Words taken before it, where the answer is an order.
    pub taken: Vec<String>,
    /// The marked one.
    pub at: usize,
}

impl AnswerChoice {
    /// The place of the word `by` places from the marked one, as far as there are words.
    pub fn after(&self, by: i32) -> usize {
        let last = self.words.len().saturating_sub(1);
        self.at.saturating_add_signed(by as isize).min(last)
    }
}

impl AnswerDraft {
    /// The words of this check, and how many of them make an answer.
    fn words(configs: &Configs, check: &ConfigCheck) -> (Vec<(String, String)>, usize) {
        let ranked = configs.letters();
        let plain = check.words(configs.sweep.as_ref());
        if plain.is_empty() {
            let count = ranked.len();
            let labels = configs.rank.iter().map(|change| change.label.clone());
            return (ranked.into_iter().zip(labels).collect(), count);
        }
        let unnamed = plain.into_iter().map(|word| (word, String::new()));
        (unnamed.collect(), 1)
    }

    /// The first question without a whole answer.
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

    /// Takes the marked word. In an order, the last word that is left is taken with the one before it.
    pub fn take(&mut self, configs: &Configs) {
        let Some(choice) = self.next(configs) else {
            return;
        };
        let known = self.answers.entry(choice.key).or_default();
        let ranked = choice.words.iter().any(|(_, label)| !label.is_empty());
        known.push(choice.words[choice.at].0.clone());
        if ranked && choice.words.len() == 2 {
            known.push(choice.words[1 - choice.at].0.clone());
        }
        self.at = 0;
    }
}
