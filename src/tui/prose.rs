//! Blocks of a lesson as lines of a given width: text wraps, drawings and code do not. Figures in the text are filled
//! in from the learner's run while drawing, so they are never older than the frame.

use ratatui::style::Style;
use ratatui::text::{Line, Span as Run};

use super::keys;
use super::text::{self, wrap};
use super::theme::Theme;
use crate::app::clean::harmful;
use crate::app::{Action, Overlay};
use crate::course::placeholder::{Lookup, NO_FIGURE, NOT_MEASURED, figure, notice, resolve, told};
use crate::course::{Block, Course, Span};

/// Widest line of text that reads well.
pub const READING: usize = 76;

/// Turns blocks into lines.
pub fn lines(
    blocks: &[Block],
    columns: usize,
    figures: Option<&dyn Lookup>,
    course: Option<&Course>,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let columns = columns.clamp(1, READING);
    let mut out: Vec<Line<'static>> = Vec::new();
    let mut after_item = false;
    let mut before = None;
    for block in blocks {
        let is_item = matches!(block, Block::Item { .. });
        let goes_on = is_item && after_item;
        if !out.is_empty() && !goes_on {
            out.push(Line::default());
        }
        after_item = is_item;
        let page = Page {
            columns,
            in_table: matches!(block, Block::Table { .. }),
            figures,
            course,
            theme,
        };
        let note = page.note(block);
        // Neighbours that wait for the same thing say so once.
        if note.is_some() && note == before {
            while out.last().is_some_and(|line| line.width() == 0) {
                out.pop();
            }
            continue;
        }
        match &note {
            Some(note) => out.extend(wrap(
                &[(note.clone(), theme.dim)],
                columns,
                Run::raw(""),
                Run::raw(""),
            )),
            None => page.block(block, &mut out),
        }
        before = note;
    }
    out
}

struct Page<'a> {
    columns: usize,
    /// A cell of a table: what is missing is a dash there.
    in_table: bool,
    figures: Option<&'a dyn Lookup>,
    course: Option<&'a Course>,
    theme: &'a Theme,
}

impl Page<'_> {
    fn block(&self, block: &Block, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        match block {
            Block::Heading(_, spans) => out.extend(self.wrapped(spans, theme.heading, "", "")),
            Block::Paragraph(spans) => out.extend(self.wrapped(spans, theme.text, "", "")),
            Block::Item {
                depth,
                marker,
                spans,
            } => {
                let indent = "  ".repeat(usize::from((*depth).min(6)));
                let wide = text::width(marker).max(1);
                let first = format!("{indent}{} ", text::left(marker, wide));
                let rest = " ".repeat(text::width(&first));
                out.extend(self.wrapped(spans, theme.text, &first, &rest));
            }
            Block::Code { text: code, .. } => {
                // A drawing that just fits stands at the edge.
                let widest = code.lines().map(text::width).max().unwrap_or(0);
                let indent = if widest + 2 > self.columns { "" } else { "  " };
                out.extend(code.lines().map(|line| {
                    let line: String = line
                        .replace('\t', "    ")
                        .chars()
                        .map(|c| if harmful(c) { '·' } else { c })
                        .collect();
                    Line::styled(format!("{indent}{line}"), theme.code)
                }))
            }
            Block::Quote(spans) => {
                let bar = format!("{} ", theme.symbols.vertical);
                out.extend(self.wrapped(spans, theme.quote, &bar, &bar));
            }
            Block::Table { head, rows } => self.table(head, rows, out),
            Block::Rule => out.push(Line::styled(
                theme.symbols.rule.repeat(self.columns),
                theme.border,
            )),
        }
    }

    /// What stands instead of a text whose figures are still to be measured.
    fn note(&self, block: &Block) -> Option<String> {
        let (Block::Paragraph(spans) | Block::Item { spans, .. }) = block else {
            return None;
        };
        let names = spans.iter().filter_map(named);
        let key = keys::name(Action::Pair).unwrap_or_default();
        notice(names, self.figures?, &key)
    }

    fn runs(&self, spans: &[Span], base: Style) -> Vec<(String, Style)> {
        let theme = self.theme;
        spans
            .iter()
            .map(|span| match span {
                Span::Text(text) => (text.clone(), base),
                Span::Strong(text) => (text.clone(), base.patch(theme.strong)),
                Span::Emphasis(text) => (text.clone(), base.patch(theme.emphasis)),
                Span::Code(text) => (text.clone(), theme.code),
                Span::Link { text, to } => (format!("{text}{}", self.follow(to)), theme.link),
                Span::Placeholder(name) => (self.figure(name), theme.figure),
            })
            .collect()
    }

    /// How a link is followed: the key that goes there.
    fn follow(&self, to: &str) -> String {
        let Some(course) = self.course else {
            return String::new();
        };
        let file = to.split('#').next().unwrap_or(to);
        if let Some(stage) = course.stages.iter().find(|stage| stage.lesson_file == file) {
            return match keys::name(Action::Stage(stage.number)) {
                Some(key) => format!(" (press {key})"),
                None => String::new(),
            };
        }
        let page = course
            .readings
            .iter()
            .position(|reading| reading.file == file);
        let glossary = keys::name(Action::Open(Overlay::Glossary)).unwrap_or_default();
        match page {
            Some(page) => format!(" (press {glossary}, page {})", page + 2),
            None if file == "glossary.md" => format!(" (press {glossary})"),
            None if to.starts_with("https://") => format!(" ({to})"),
            None => String::new(),
        }
    }

    fn figure(&self, name: &str) -> String {
        let Some(figures) = self.figures else {
            return format!("{{{{{name}}}}}");
        };
        if self.in_table && resolve(name, figures) == NOT_MEASURED {
            return NO_FIGURE.to_owned();
        }
        figure(name, figures)
    }

    fn wrapped(&self, spans: &[Span], base: Style, first: &str, rest: &str) -> Vec<Line<'static>> {
        let dim = self.theme.dim;
        let (first, rest) = (
            Run::styled(first.to_owned(), dim),
            Run::styled(rest.to_owned(), dim),
        );
        wrap(&self.runs(spans, base), self.columns, first, rest)
    }

    /// Columns share the width by their longest cell; cells wrap.
    fn table(&self, head: &[Vec<Span>], rows: &[Vec<Vec<Span>>], out: &mut Vec<Line<'static>>) {
        let count = head.len().max(rows.iter().map(Vec::len).max().unwrap_or(0));
        if count == 0 {
            return;
        }
        let natural = |column: usize| {
            let cells =
                std::iter::once(head.get(column)).chain(rows.iter().map(|row| row.get(column)));
            let widths = cells.flatten().map(|cell| {
                self.runs(cell, Style::new())
                    .iter()
                    .map(|(t, _)| text::width(t))
                    .sum()
            });
            widths.max().unwrap_or(1_usize).max(1)
        };
        let mut widths: Vec<usize> = (0..count).map(natural).collect();
        let room = self.columns.saturating_sub(2 * (count - 1)).max(count);
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max_by_key(|w| **w) {
                Some(widest) if *widest > 1 => *widest -= 1,
                _ => break,
            }
        }
        // Markdown asks for a head; one without words is none.
        if head.iter().any(|cell| !cell.is_empty()) {
            self.table_row(head, &widths, self.theme.strong, out);
            let wide = widths.iter().sum::<usize>() + 2 * (count - 1);
            out.push(Line::styled(
                self.theme.symbols.rule.repeat(wide.min(self.columns)),
                self.theme.border,
            ));
        }
        rows.iter()
            .for_each(|row| self.table_row(row, &widths, self.theme.text, out));
        let names = rows.iter().flatten().flatten().filter_map(named);
        let key = keys::name(Action::Pair).unwrap_or_default();
        if let Some(note) = self.figures.and_then(|from| notice(names, from, &key)) {
            let note = format!("{NO_FIGURE} {note}");
            out.extend(text::wrap_plain(&note, self.columns, self.theme.dim));
        }
    }

    fn table_row(
        &self,
        cells: &[Vec<Span>],
        widths: &[usize],
        base: Style,
        out: &mut Vec<Line<'static>>,
    ) {
        let empty = Vec::new();
        let columns: Vec<Vec<Line<'static>>> = widths
            .iter()
            .enumerate()
            .map(|(at, wide)| {
                let runs = self.runs(cells.get(at).unwrap_or(&empty), base);
                wrap(&runs, *wide, Run::raw(""), Run::raw(""))
            })
            .collect();
        for row in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
            let mut spans = Vec::new();
            for (column, wide) in columns.iter().zip(widths) {
                let line = column.get(row).cloned().unwrap_or_default();
                let used = line.width();
                spans.extend(line.spans);
                spans.push(Run::raw(" ".repeat(wide.saturating_sub(used) + 2)));
            }
            spans.pop();
            out.push(Line::from(spans));
        }
    }
}

fn named(span: &Span) -> Option<&str> {
    match span {
        Span::Placeholder(name) => Some(name.as_str()),
        _ => None,
    }
}

/// One text with figures in it, wrapped behind a marker.
pub fn item(
    marker: &str,
    marker_style: Style,
    body: &str,
    columns: usize,
    style: Style,
    figures: Option<&dyn Lookup>,
) -> Vec<Line<'static>> {
    let key = keys::name(Action::Pair).unwrap_or_default();
    let body = figures.map_or_else(|| body.to_owned(), |figures| told(body, figures, &key));
    // Under a short marker the text aligns; a long one would take half a narrow column.
    let indent = if text::width(marker) <= 5 {
        text::width(marker)
    } else {
        2
    };
    wrap(
        &[(body, style)],
        columns.clamp(1, READING),
        Run::styled(marker.to_owned(), marker_style),
        Run::raw(" ".repeat(indent)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Markers, ThemeName};
    use crate::config::{Preset, RunConfig};
    use crate::course::placeholder::Figures;
    use crate::tui::theme::{Colours, Terminal};

    #[test]
    fn paragraphs_that_wait_for_the_same_figures_say_so_once() {
        let config = RunConfig::preset(Preset::Tiny);
        let none = Figures::none(&config);
        let told = |name: &str| {
            Block::Paragraph(vec![
                Span::Text("It takes ".to_owned()),
                Span::Placeholder(name.to_owned()),
            ])
        };
        let blocks = [
            told("run.step_ms"),
            told("run.parity"),
            told("pair.ratio"),
            told("prediction.choice"),
        ];
        let plain = Terminal {
            colours: Colours::None,
            background: None,
            ascii: false,
        };
        let theme = Theme::new(ThemeName::Mono, Markers::Braille, plain);
        let text: Vec<String> = lines(&blocks, READING, Some(&none), None, &theme)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            text,
            [
                "(The figures of this run appear here once it has made enough steps.)",
                "",
                "(T measures both runs in turns; then the figures appear here.)",
                "",
                "It takes (skipped)",
            ]
        );
    }
}
