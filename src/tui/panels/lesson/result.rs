//! The pages of results: how the prediction and its range fared, the pairs, the measured checks, the quiz.

use ratatui::text::Line;

use super::Sheet;
use crate::app::figures::letter;
use crate::course::progress::Prediction;
use crate::judge::Outcome;
use crate::tui::panels::{cards, question};
use crate::tui::prose;

impl Sheet<'_> {
    pub(super) fn prediction(&self, out: &mut Vec<Line<'static>>) {
        self.heading("Your prediction", out);
        let question = &self.stage.prediction;
        match self.app.study.of(self.stage).prediction {
            Some(Prediction::Choice { choice, right }) => {
                let said = question.choices.get(choice).map_or("", String::as_str);
                self.item(&format!("You said {}: ", letter(choice)), said, out);
                self.estimate(out);
                if !self.app.study.tried(self.stage) {
                    return;
                }
                let (mark, style, word) = if right {
                    (self.theme.symbols.good, self.theme.good, "It was so. ")
                } else {
                    (self.theme.symbols.bad, self.theme.bad, "It was not so. ")
                };
                let marker = format!("{mark} {word}");
                out.extend(prose::item(
                    &marker,
                    style,
                    &question.explanation,
                    self.columns,
                    self.theme.text,
                    self.figures,
                ));
            }
            _ => {
                out.push(Line::styled(
                    "Skipped; it does not count in your score.",
                    self.theme.dim,
                ));
                if self.app.study.tried(self.stage) {
                    let truth = letter(question.answer);
                    self.item(
                        &format!("The answer is {truth}. "),
                        &question.explanation,
                        out,
                    );
                }
            }
        }
    }

    /// The range the learner gave, and the truth in it or beside it.
    fn estimate(&self, out: &mut Vec<Line<'static>>) {
        let known = self.app.study.of(self.stage);
        if let (Some(of), Some(range)) = (&self.stage.estimate, known.estimate) {
            self.item("How much: ", &of.prompt, out);
            out.extend(question::scale(
                of,
                range,
                known.measured,
                self.columns,
                self.theme,
            ));
        }
    }

    /// The stage's criteria, as far as they are measured.
    pub(super) fn checks(&self, out: &mut Vec<Line<'static>>) {
        let verdict = cards::verdict(self.app, self.columns, self.theme);
        if !verdict.is_empty() {
            self.heading("In pairs", out);
            out.extend(verdict);
        }
        let Some(report) = &self.app.study.report else {
            return;
        };
        self.heading("Measured checks", out);
        for line in &report.lines {
            let (mark, style) = match line.outcome {
                Outcome::Passed => (self.theme.symbols.good, self.theme.good),
                Outcome::Failed => (self.theme.symbols.bad, self.theme.bad),
                Outcome::NotMeasured => (self.theme.symbols.ghost, self.theme.dim),
            };
            let optional = if line.optional { " (optional)" } else { "" };
            let found = match line.outcome {
                Outcome::NotMeasured => line.measured.clone(),
                _ => format!("measured: {}", line.measured),
            };
            let text = format!("{}{optional}: {}; {found}", line.name, line.asked);
            out.extend(prose::item(
                &format!("{mark} "),
                style,
                &text,
                self.columns,
                self.theme.text,
                self.figures,
            ));
        }
    }

    /// What the learner answered in this sitting, the latest first: right or not, and why.
    pub(super) fn quiz(&self, out: &mut Vec<Line<'static>>) {
        let answers = self.app.study.quiz_answers(self.stage);
        let asked = self.stage.quiz.iter().zip(answers);
        let right = asked
            .clone()
            .filter(|(it, said)| it.answer == **said)
            .count();
        let title = format!(
            "Questions: {} of {} answered, {right} right",
            answers.len(),
            self.stage.quiz.len()
        );
        self.heading(&title, out);
        for (question, said) in asked.rev() {
            out.push(Line::default());
            self.item("", &question.prompt, out);
            let (mark, style) = if question.answer == *said {
                (self.theme.symbols.good, self.theme.good)
            } else {
                (self.theme.symbols.bad, self.theme.bad)
            };
            let choice = |at: usize| question.choices.get(at).map_or("", String::as_str);
            let verdict = if question.answer == *said {
                format!("{}: {}", letter(*said), choice(*said))
            } else {
                let (said, truth) = (letter(*said), question.answer);
                format!(
                    "You said {said}. It is {}: {}",
                    letter(truth),
                    choice(truth)
                )
            };
            for (marker, text) in [
                (format!("{mark} "), verdict.as_str()),
                ("  ".to_owned(), &question.explanation),
            ] {
                out.extend(prose::item(
                    &marker,
                    style,
                    text,
                    self.columns,
                    self.theme.text,
                    self.figures,
                ));
            }
        }
    }
}
