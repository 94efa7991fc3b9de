//! Free questions of the instructor: their limits, and the lines in which they are written.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::sanitize;

/// The most characters of a question.
const PROMPT: usize = 300;
/// The most characters of a choice.
const CHOICE: usize = 80;
/// The number of choices that a question may have.
const CHOICES: RangeInclusive<usize> = 2..=4;

/// A question of the instructor that belongs to no stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub prompt: String,
    pub choices: Vec<String>,
}

impl Question {
    /// Returns the question, bounded and cleaned.
    ///
    /// # Errors
    /// If it has no text or a wrong number of choices; the error says what to write.
    pub fn cleaned(&self) -> Result<Self, String> {
        let clean = |text: &String, most| sanitize::bounded(text.trim(), most);
        let choices = self.choices.iter();
        let cleaned = Self {
            prompt: clean(&self.prompt, PROMPT),
            choices: choices.map(|choice| clean(choice, CHOICE)).collect(),
        };
        let mut texts = std::iter::once(&cleaned.prompt).chain(&cleaned.choices);
        if texts.all(|text| !text.is_empty()) && CHOICES.contains(&cleaned.choices.len()) {
            return Ok(cleaned);
        }
        Err(format!(
            "a question has a text and {} to {} choices, such as \"Who has seen this?\" yes no \"not sure\"",
            CHOICES.start(),
            CHOICES.end()
        ))
    }

    /// Returns the line that `read` reads.
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.prompt).chain(&self.choices);
        shlex::try_join(words.map(String::as_str)).unwrap_or_default()
    }

    /// Reads a file with a question on each line. Empty lines and those that begin with # are left out.
    ///
    /// # Errors
    /// If a line is no question; the error names the line.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let mut questions = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let question = Self::read(line).map_err(|why| format!("line {number}: {why}"))?;
            questions.push(question);
        }
        Ok(questions)
    }

    /// Reads a line such as `ask "Who has seen this?" yes no`, where the first word may be left out.
    ///
    /// # Errors
    /// If it is no question.
    pub fn read(line: &str) -> Result<Self, String> {
        let mut words = protocol::handle::split_words(line)?;
        if words.first().is_some_and(|word| word == "ask") {
            words.remove(0);
        }
        let mut words = words.into_iter();
        Self {
            prompt: words.next().unwrap_or_default(),
            choices: words.collect(),
        }
        .cleaned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_line() {
        let asked =
            Question::read("ask \"Who has seen this?\" yes no \"not sure\"").expect("whole");
        assert_eq!(asked.prompt, "Who has seen this?");
        assert_eq!(asked.choices, ["yes", "no", "not sure"]);
        assert_eq!(Question::read(&asked.line()), Ok(asked));
        let file = "# at home\n\nask \"a \\\"b\\\"?\" yes no\n";
        let all = Question::read_all(file).expect("whole");
        assert_eq!(Question::read(&all[0].line()), Ok(all[0].clone()));
        let why = Question::read_all("a b c\nask why\n").expect_err("wrong");
        assert!(why.starts_with("line 2: "), "{why}");
        for wrong in [
            "",
            "ask",
            "ask why",
            "ask why yes",
            "ask \"why",
            "ask \"\" yes no",
        ] {
            assert!(Question::read(wrong).is_err(), "{wrong}");
        }
    }
}
