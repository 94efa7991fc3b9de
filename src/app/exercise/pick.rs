//! Answering a config exercise on the screen: one word after the other is marked and taken; an order is taken place by
//! place. The finished answer goes to the learner's file, which stays the one that counts.

use std::sync::Arc;

use super::measuring::Answer;
use crate::app::{App, Effect};
use crate::course::exercise::config::Answers;
use crate::course::exercise::{ConfigCheck, Configs};

/// What has been said so far, and which word is marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    answers: Answers,
    at: usize,
}

/// A question with the words that may answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub key: String,
    pub ask: String,
    /// Each word, and what it stands for.
    pub words: Vec<(String, String)>,
    /// Words taken before it, where the answer is an order.
    pub taken: Vec<String>,
    /// The marked one.
    pub at: usize,
}

impl Draft {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

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
    fn next(&self, configs: &Configs) -> Option<Choice> {
        configs.checks.iter().find_map(|check| {
            let (key, ask) = check.answer.as_ref()?;
            let (mut words, wanted) = Self::words(configs, check);
            let taken = self.answers.get(key).cloned().unwrap_or_default();
            words.retain(|(word, _)| !taken.contains(word));
            (taken.len() < wanted && !words.is_empty()).then(|| Choice {
                key: key.clone(),
                ask: ask.clone(),
                at: self.at.min(words.len() - 1),
                words,
                taken,
            })
        })
    }

    /// Takes the marked word; the last one of an order follows by itself.
    fn take(&mut self, configs: &Configs) {
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

impl App {
    /// The question of the open exercise that can be answered with keys now.
    pub fn picking(&self) -> Option<Choice> {
        let configs = self.configs()?;
        let desk = self.exercises.desk(self.exercise()?)?;
        let asks = desk.measuring.is_none()
            && matches!(desk.answer, Answer::Open(_))
            && self.question().is_none();
        asks.then(|| desk.draft.next(configs)).flatten()
    }

    /// Marks another word.
    pub(in crate::app) fn pick_other(&mut self, by: i32) {
        let Some(choice) = self.picking() else {
            return;
        };
        let last = choice.words.len() - 1;
        let to = (choice.at as i64 + i64::from(by)).clamp(0, last as i64) as usize;
        let course = Arc::clone(&self.course);
        if let Some(exercise) = self.exercises.open.and_then(|at| course.exercises.get(at)) {
            self.exercises.desk_mut(exercise).draft.at = to;
        }
    }

    /// Takes the marked word; with the last one the answer is written to the learner's file.
    pub(in crate::app) fn pick_this(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let open = self.exercises.open.and_then(|at| course.exercises.get(at));
        let (Some(exercise), true) = (open, self.picking().is_some()) else {
            return Vec::new();
        };
        let Some(configs) = exercise.configs() else {
            return Vec::new();
        };
        let draft = &mut self.exercises.desk_mut(exercise).draft;
        draft.take(configs);
        if draft.next(configs).is_some() {
            return Vec::new();
        }
        vec![Effect::WriteAnswers {
            exercise: exercise.id.clone(),
            answers: draft.answers.clone(),
        }]
    }
}
