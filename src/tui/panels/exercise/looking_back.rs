//! What an exercise shows once something was done in it: the solution's own lines, answers explained, a fault named.

use ratatui::text::Line;

use super::Page;
use crate::app::figures::letter;
use crate::course::exercise::Body;
use crate::course::placeholder::{Figures, Lookup};
use crate::tui::{prose, text};

impl Page<'_> {
    /// Once it is passed: the lines in which the course's solution differs from the starter.
    pub(super) fn look_back(&self, out: &mut Vec<Line<'static>>) {
        let passed = self
            .desk
            .and_then(|desk| desk.report.as_ref())
            .is_some_and(|report| report.passed);
        let (true, Some(kernels)) = (passed, self.exercise.kernels()) else {
            return;
        };
        out.push(Line::default());
        out.push(Line::styled("Looking back", self.theme.heading));
        self.item(
            "",
            self.theme.dim,
            "The course's solution has these lines where the starter had others. Is yours the same idea?",
            out,
        );
        for kernel in &kernels.kernels {
            for line in new_lines(&kernel.file.starter, &kernel.file.solution) {
                let line = format!("  {}", line.trim());
                out.extend(text::wrap_plain(&line, self.columns, self.theme.code));
            }
        }
    }

    /// Once runs were measured: what to see in their figures.
    pub(super) fn debrief(&self, out: &mut Vec<Line<'static>>) {
        let measured = self.app.looked_at(self.exercise);
        if let (true, Some(said)) = (measured, &self.exercise.debrief) {
            out.push(Line::default());
            out.push(Line::styled("Looking back", self.theme.heading));
            self.item("", self.theme.text, said.trim(), out);
        }
    }

    /// Questions that were answered, and why.
    pub(super) fn answers(&self, out: &mut Vec<Line<'static>>) {
        let given = self.desk.map_or(&[][..], |desk| &desk.quiz);
        for (question, choice) in self.exercise.quiz.iter().zip(given) {
            let (mark, style) = if *choice == question.answer {
                (self.theme.symbols.good, self.theme.good)
            } else {
                (self.theme.symbols.bad, self.theme.bad)
            };
            out.push(Line::default());
            self.item(&format!("{mark} "), style, &question.explanation, out);
        }
    }

    /// A recorded run's fault, once it was named: whether rightly, and what shows it.
    pub(super) fn named(&self, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        let Body::Detective(detective) = &self.exercise.body else {
            return;
        };
        out.push(Line::default());
        let said = format!(
            "Recorded on {}. The lints are left out: find what they would have found.",
            detective.badge()
        );
        self.item("", theme.dim, &said, out);
        let given = self.desk.map_or(&[][..], |desk| &desk.quiz);
        let Some(choice) = given.last() else {
            return;
        };
        let question = &detective.question;
        out.push(Line::default());
        if self.app.riddle() {
            let hint = self.exercise.hints.get(given.len() - 1);
            let said = hint.map_or("", String::as_str);
            let marker = format!(
                "{} It is not {}. Look again: ",
                theme.symbols.bad,
                letter(*choice)
            );
            self.item(&marker, theme.bad, said, out);
            return;
        }
        let (mark, style, word) = if *choice == question.answer {
            (theme.symbols.good, theme.good, "It is so: ")
        } else {
            (theme.symbols.bad, theme.bad, "It is not so. It is: ")
        };
        let truth = question.choices.get(question.answer);
        let marker = format!("{mark} {word}");
        out.extend(prose::item(
            &marker,
            style,
            truth.map_or("", String::as_str),
            self.columns,
            theme.strong,
            None,
        ));
        let (finished, config) = (detective.finished(), detective.config());
        let figures = config.as_ref().map(|config| Figures {
            run: finished.as_ref(),
            ..Figures::none(config)
        });
        out.push(Line::default());
        out.extend(prose::item(
            "",
            theme.dim,
            question.explanation.trim(),
            self.columns,
            theme.text,
            figures.as_ref().map(|it| it as &dyn Lookup),
        ));
    }
}

/// Lines of `new` that `old` has not, without what only closes a block.
pub fn new_lines<'a>(old: &'a str, new: &'a str) -> impl Iterator<Item = &'a str> {
    new.lines().filter(move |line| {
        line.trim().len() > 1 && !old.lines().any(|known| known.trim() == line.trim())
    })
}
