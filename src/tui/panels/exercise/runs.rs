//! The card of a config exercise: what is asked and how it is answered, how far the measurement is, what it found.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Page;
use crate::app::Action;
use crate::app::exercise::measuring::{Answer, Measured, Measuring};
use crate::app::exercise::{Choice, ExerciseState};
use crate::course::sweep::{Row, Table};
use crate::judge::{self, Outcome};
use crate::tui::panels::question;
use crate::tui::text;

/// Between two columns of the table.
const GAP: usize = 2;
/// Where there is no figure.
const NONE: &str = "–";

impl Page<'_> {
    /// What goes to the foot.
    pub(super) fn runs(&self, desk: &ExerciseState) -> Vec<Line<'static>> {
        if let Some(measuring) = &desk.measuring {
            return self.in_progress(measuring);
        }
        if let Some(found) = &desk.measured {
            return self.found(found, &desk.answer);
        }
        match &desk.answer {
            Answer::Unread => Vec::new(),
            Answer::Open(problems) => self.asked(problems),
            Answer::Given(words) => {
                let mut out = vec![question::rule("your answer", self.columns, self.theme)];
                self.given(words, &mut out);
                let said = "{} measures it; the stage's run waits meanwhile.";
                self.keys(said, &[Action::Pair], &mut out);
                out
            }
        }
    }

    fn given(&self, words: &[(String, String)], out: &mut Vec<Line<'static>>) {
        for (key, word) in words {
            let marker = format!("{} {key}  ", self.theme.symbols.pointer);
            out.extend(text::wrap_item(
                &marker,
                self.theme.key,
                word,
                self.columns,
                self.theme.strong,
            ));
        }
    }

    /// The open question with its words, and where else the answer may be written.
    fn asked(&self, problems: &[String]) -> Vec<Line<'static>> {
        let theme = self.theme;
        let mut out = vec![question::rule(
            "say it before you measure",
            self.columns,
            theme,
        )];
        if let Some(choice) = self.app.picking() {
            self.choice(&choice, &mut out);
        }
        for problem in problems {
            let mark = format!("{} ", theme.symbols.ghost);
            out.extend(text::wrap_item(
                &mark,
                theme.warning,
                problem,
                self.columns,
                theme.dim,
            ));
        }
        out
    }

    fn choice(&self, choice: &Choice, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        let marker = format!("{}: ", choice.key);
        self.item(&marker, theme.key, &choice.ask, out);
        if !choice.taken.is_empty() {
            let so_far = format!("{}, then", choice.taken.join(", "));
            self.item("so far: ", theme.dim, &so_far, out);
        }
        let named = choice.words.iter().any(|(_, label)| !label.is_empty());
        let marked = |at: usize| at == choice.at;
        if named {
            for (at, (word, label)) in choice.words.iter().enumerate() {
                let (mark, style) = if marked(at) {
                    (theme.symbols.pointer, theme.strong)
                } else {
                    (" ", theme.text)
                };
                let marker = format!("{mark} {word}  ");
                out.extend(text::wrap_item(
                    &marker,
                    theme.key,
                    label,
                    self.columns,
                    style,
                ));
            }
        } else {
            let mut runs: Vec<(String, Style)> = Vec::new();
            for (at, (word, _)) in choice.words.iter().enumerate() {
                runs.push(if marked(at) {
                    (format!("{}{word} ", theme.symbols.pointer), theme.selected)
                } else {
                    (format!(" {word} "), theme.text)
                });
                runs.push((" ".to_owned(), theme.text));
            }
            out.extend(text::wrap(
                &runs,
                self.columns,
                Span::raw(""),
                Span::raw(""),
            ));
        }
        let keys = [
            Action::PickOther(-1),
            Action::PickOther(1),
            Action::PickThis,
        ];
        self.keys("{} and {} mark another one, {} takes it.", &keys, out);
    }

    fn in_progress(&self, measuring: &Measuring) -> Vec<Line<'static>> {
        let theme = self.theme;
        let sweep = &measuring.sweep;
        let title = match sweep.of {
            0 => "measuring".to_owned(),
            of => format!("measuring, {} of {of}", sweep.number),
        };
        let mut out = vec![question::rule(&title, self.columns, theme)];
        out.extend(self.table(&sweep.table));
        let seconds = self.app.now_ms.saturating_sub(measuring.since_ms) / 1000;
        let now = match (measuring.begun, sweep.of) {
            (false, _) if self.app.warms_up() => "waits for the GPU that warms up".to_owned(),
            (false, _) => "waits until the stage's run stands still".to_owned(),
            (true, 0) => "an engine starts".to_owned(),
            _ => format!("{}: {}", sweep.what, sweep.done),
        };
        let mark = format!("{} ", theme.symbols.ghost);
        out.extend(text::wrap_item(
            &mark,
            theme.warning,
            &format!("{now}, {seconds} s"),
            self.columns,
            theme.text,
        ));
        self.keys(
            "The stage's run waits. {} stops this.",
            &[Action::StopMeasuring],
            &mut out,
        );
        out
    }

    fn found(&self, found: &Measured, answer: &Answer) -> Vec<Line<'static>> {
        let theme = self.theme;
        let title = match (&found.failed, found.passed) {
            (Some(_), _) => "not measured",
            (None, true) => "passed",
            (None, false) => "not yet",
        };
        let mut out = vec![question::rule(title, self.columns, theme)];
        out.extend(self.table(&found.table));
        if let Some(why) = &found.failed {
            let mark = format!("{} ", theme.symbols.bad);
            out.extend(text::wrap_item(
                &mark,
                theme.bad,
                why,
                self.columns,
                theme.strong,
            ));
            self.keys("{} tries again.", &[Action::Pair], &mut out);
            return out;
        }
        for line in &found.lines {
            self.criterion(line, &mut out);
        }
        let said = format!("measured in {:.1} s on {}", found.seconds, found.device);
        out.extend(text::wrap_plain(&said, self.columns, theme.dim));
        if !found.passed && matches!(answer, Answer::Given(_)) {
            let keys = [Action::OpenEditor, Action::Pair];
            self.keys("{} opens your answer, {} measures again.", &keys, &mut out);
        }
        out
    }

    fn criterion(&self, line: &judge::Line, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        let (mark, mark_style) = match line.outcome {
            Outcome::Passed => (theme.symbols.good, theme.good),
            Outcome::Failed => (theme.symbols.bad, theme.bad),
            Outcome::NotMeasured => (theme.symbols.ghost, theme.dim),
        };
        let mut said = |marker: &str, head: &str, body: &str, style| {
            let runs = [(head.to_owned(), theme.dim), (body.to_owned(), style)];
            out.extend(text::wrap(
                &runs,
                self.columns,
                Span::styled(marker.to_owned(), mark_style),
                Span::raw("  "),
            ));
        };
        said(&format!("{mark} "), "", &line.name, theme.strong);
        said("  ", "asked: ", &line.asked, theme.text);
        said("  ", "measured: ", &line.measured, theme.text);
    }

    /// The table where it fits, else a paragraph for each row.
    fn table(&self, table: &Table) -> Vec<Line<'static>> {
        if table.rows.is_empty() {
            return Vec::new();
        }
        let cell = |row: &Row, at: usize| match at.checked_sub(1) {
            None => row.name.clone(),
            Some(at) => match row.cells.get(at) {
                Some(Some(text)) => text.clone(),
                _ => NONE.to_owned(),
            },
        };
        let wide = |at: usize| {
            let head = table.head.get(at).map_or(0, |head| text::width(head));
            let cells = table.rows.iter().map(|row| text::width(&cell(row, at)));
            cells.max().unwrap_or(0).max(head)
        };
        let widths: Vec<usize> = (0..table.head.len()).map(wide).collect();
        let all = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let mut out = Vec::new();
        if all <= self.columns {
            let place = |at: usize, text: &str| {
                let wide = widths.get(at).copied().unwrap_or(0);
                match at {
                    0 => text::left(text, wide),
                    _ => format!("{}{}", " ".repeat(GAP), text::right(text, wide)),
                }
            };
            let heads = table.head.iter().enumerate();
            let head: String = heads.map(|(at, head)| place(at, head)).collect();
            out.push(Line::styled(head, self.theme.dim));
            for row in &table.rows {
                let cells = (0..widths.len()).map(|at| place(at, &cell(row, at)));
                out.push(Line::styled(cells.collect::<String>(), self.theme.figure));
            }
        } else {
            for row in &table.rows {
                let figures = table.head.iter().skip(1).zip(&row.cells);
                let parts: Vec<String> = figures
                    .filter_map(|(head, cell)| Some(format!("{head} {}", cell.as_ref()?)))
                    .collect();
                if parts.is_empty() && row.why.is_some() {
                    continue;
                }
                let marker = format!("{}  ", row.name);
                self.item(&marker, self.theme.key, &parts.join(", "), &mut out);
            }
        }
        for row in &table.rows {
            if let Some(why) = &row.why {
                let marker = format!("{}  ", row.name);
                self.item(&marker, self.theme.warning, why, &mut out);
            }
        }
        out
    }
}
