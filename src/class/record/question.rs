//! Free questions of the instructor, and the lines in which they are written: `ask "Who has seen this?" yes no "not sure"`.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::sanitize;

/// The most characters of a question.
const MOST_PROMPT_CHARS: usize = 300;
/// The most characters of an answer to choose from.
const MOST_CHOICE_CHARS: usize = 80;
/// The number of answers that a question may have.
const CHOICES: RangeInclusive<usize> = 2..=4;

/// A question of the instructor that belongs to no stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub prompt: String,
    pub choices: Vec<String>,
}

impl Question {
    /// Returns the question with texts of bounded length and without control characters.
    ///
    /// # Errors
    /// If a text is empty, or the number of answers is not 2 to 4; the error says what to write.
    pub fn cleaned(&self) -> Result<Self, String> {
        let clean = |choice: &String| sanitize::bounded(choice.trim(), MOST_CHOICE_CHARS);
        let prompt = sanitize::bounded(self.prompt.trim(), MOST_PROMPT_CHARS);
        let choices: Vec<String> = self.choices.iter().map(clean).collect();
        let has_empty_text = prompt.is_empty() || choices.iter().any(String::is_empty);
        if has_empty_text || !CHOICES.contains(&choices.len()) {
            return Err(format!(
                "a question has a text and {} to {} choices, \
                 such as \"Who has seen this?\" yes no \"not sure\"",
                CHOICES.start(),
                CHOICES.end()
            ));
        }
        Ok(Self { prompt, choices })
    }

    /// Returns the question as a line that `read` understands.
    pub fn line(&self) -> String {
        let texts = std::iter::once(&self.prompt).chain(&self.choices);
        shlex::try_join(texts.map(String::as_str)).unwrap_or_default()
    }

    /// Reads a file with a question on each line. Empty lines and lines that begin with # are skipped.
    ///
    /// # Errors
    /// If a line is no question; the error names the line.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let mut questions = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let question = Self::read(line).map_err(|why| format!("line {number}: {why}"))?;
            questions.push(question);
        }
        Ok(questions)
    }

    /// Reads a line such as `ask "Who has seen this?" yes no`, where the word `ask` may be left out.
    ///
    /// # Errors
    /// If a quote is not closed, or if `cleaned` refuses the question.
    pub fn read(line: &str) -> Result<Self, String> {
        let mut words = protocol::handle::split_words(line)?.into_iter().peekable();
        words.next_if(|word| word == "ask");
        let question = Self {
            prompt: words.next().unwrap_or_default(),
            choices: words.collect(),
        };
        question.cleaned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_written_as_one_line_and_a_wrong_line_is_named() {
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
