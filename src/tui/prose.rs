//! Writes text of a given width line by line: the blocks of lessons and the shorter texts of panels and cards. Text wraps; drawings and code
//! do not. Figures are filled into the text while it is drawn, so they are as new as the frame.

use std::borrow::Cow;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::{keys, text};
use crate::app::figures::{as_found, figures};
use crate::app::guide::{self, SentencePart};
use crate::app::{Action, App, Overlay};
use crate::course::placeholder::{
    FigureSources, NO_FIGURE, NOT_MEASURED, figure, fill, fill_with_notices, notice, resolve,
};
pub use crate::course::validate::READING_WIDTH as READING;
use crate::course::{TextBlock, TextSpan};
use crate::sanitize;
use crate::table;

/// The columns of a panel's borders and padding.
pub const FRAME: usize = 4;

/// A writer of lines that are at most `columns` wide.
pub struct ProseWriter<'a> {
    pub app: &'a App,
    pub theme: &'a Theme,
    pub columns: usize,
    /// The most columns that a text of the course takes.
    pub widest: usize,
    /// The source of the figures in a text. Without a source, placeholders stay as they are written.
    pub figures: Option<&'a FigureSources<'a>>,
    pub lines: Vec<Line<'static>>,
}

impl<'a> ProseWriter<'a> {
    pub fn new(app: &'a App, theme: &'a Theme, columns: impl Into<usize>) -> Self {
        Self {
            app,
            theme,
            columns: columns.into(),
            widest: READING,
            figures: None,
            lines: Vec::new(),
        }
    }

    /// Writes an empty line.
    pub fn blank(&mut self) {
        self.lines.push(Line::default());
    }

    /// Writes one line of any length, without wrapping it.
    pub fn line(&mut self, text: impl Into<Cow<'static, str>>, style: Style) {
        self.lines.push(Line::styled(text, style));
    }

    /// Writes a line of code or of a drawing, without control characters.
    pub fn code(&mut self, indent: &str, line: &str) {
        self.line(format!("{indent}{}", harmless(line)), self.theme.code);
    }

    /// Writes spans of text that wrap. The first line begins with `first`, the others with `rest`.
    pub fn runs(
        &mut self,
        spans: &[Span<'_>],
        first: impl Into<Span<'static>>,
        rest: impl Into<Span<'static>>,
    ) {
        let lines = text::wrap(spans, self.columns, first, rest);
        self.lines.extend(lines);
    }

    /// Writes a text that wraps.
    pub fn plain(&mut self, text: &str, style: Style) {
        self.lines.extend(text::wrapped(text, style, self.columns));
    }

    /// Writes a text that wraps, in the style of most text.
    pub fn text(&mut self, text: &str) {
        self.plain(text, self.theme.text);
    }

    /// Writes a text that wraps, in the style of text that matters less.
    pub fn dim(&mut self, text: &str) {
        self.plain(text, self.theme.dim);
    }

    /// Writes a text after a marker. Its other lines are indented by the width of the marker.
    pub fn item(&mut self, marker: &str, marker_style: Style, text: &str) {
        self.item_in(marker, marker_style, text, self.theme.text);
    }

    /// Writes a text after a marker, in this style.
    pub fn item_in(&mut self, marker: &str, marker_style: Style, text: &str, style: Style) {
        let first = Span::styled(marker.to_owned(), marker_style);
        let rest = " ".repeat(first.width());
        self.runs(&[Span::styled(text, style)], first, rest);
    }

    /// Writes a text after a mark and a blank.
    pub fn marked(&mut self, (mark, mark_style): (&str, Style), text: &str, style: Style) {
        self.item_in(&format!("{mark} "), mark_style, text, style);
    }

    /// Writes a text of the course after a marker, with its figures. After a long marker the other lines are indented by only two columns,
    /// because the marker would take half of a narrow text.
    pub fn course_text(&mut self, marker: &str, marker_style: Style, body: &str) {
        self.course_text_in(marker, marker_style, body, self.theme.text);
    }

    /// Writes a text of the course after a marker, in this style.
    pub fn course_text_in(&mut self, marker: &str, marker_style: Style, body: &str, style: Style) {
        let filled_body = match self.figures {
            Some(figures) => fill_with_notices(body, figures, &pair_key()),
            None => body.to_owned(),
        };
        let first = Span::styled(marker.to_owned(), marker_style);
        let indent = match first.width() {
            width @ 0..=5 => " ".repeat(width),
            _ => "  ".to_owned(),
        };
        let columns = self.columns.clamp(1, self.widest.max(1));
        let lines = text::wrap(&[Span::styled(filled_body, style)], columns, first, indent);
        self.lines.extend(lines);
    }

    /// Writes a text of the course without a marker.
    pub fn body(&mut self, body: &str, style: Style) {
        self.course_text_in("", self.theme.dim, body, style);
    }

    /// Writes a text of the course after the mark for right or wrong.
    pub fn judged(&mut self, (mark, style): (&str, Style), body: &str) {
        self.course_text(&format!("{mark} "), style, body);
    }

    /// Writes hint number `index`, counted from 0, after its number.
    pub fn hint(&mut self, index: usize, hints: &[String]) {
        let marker = format!("Hint {}/{}  ", index + 1, hints.len());
        self.course_text(&marker, self.theme.warning, &hints[index]);
    }

    /// Writes a heading after an empty line, or nothing where the heading is empty.
    pub fn heading(&mut self, title: &str) {
        if !title.is_empty() {
            self.blank();
            self.plain(title, self.theme.heading);
        }
    }

    /// Writes a heading inside a rule across the whole width.
    pub fn rule(&mut self, title: &str) {
        let rule = text::rule(self.theme.symbols.rule, title, self.columns);
        self.line(rule, self.theme.border_focused);
    }

    /// Writes a sentence that wraps. Each `{}` in it becomes the key of the next action.
    pub fn keys(&mut self, text: &str, actions: &[Action]) {
        let pieces = guide::sentence(text, actions);
        let line = sentence(&pieces, self.app, self.theme, self.theme.dim);
        self.runs(&line.spans, "", "");
    }

    /// Writes a sentence of the guide on one line.
    pub fn sentence(&mut self, pieces: &[SentencePart], style: Style) {
        let line = sentence(pieces, self.app, self.theme, style);
        self.lines.push(line);
    }

    /// Writes blocks of a lesson, with an empty line between two blocks that are not items of one list.
    pub fn blocks(&mut self, blocks: &[TextBlock]) {
        let columns = self.columns;
        self.columns = columns.clamp(1, READING);
        let begin = self.lines.len();
        let mut after_item = false;
        let mut last_note = None;
        let has_text = blocks.iter().any(|block| self.note(block).is_none());
        for block in blocks {
            let is_item = matches!(block, TextBlock::Item { .. });
            if self.lines.len() > begin && !(is_item && after_item) {
                self.blank();
            }
            after_item = is_item;
            let note = self.note(block);
            match &note {
                // A note is written once for neighbouring blocks that wait for the same figures. On a page with other texts, it is
                // written once for the whole page.
                Some(sentence) if note == last_note || has_text && self.contains(sentence) => {
                    while self.lines.last().is_some_and(|line| line.width() == 0) {
                        self.lines.pop();
                    }
                    continue;
                }
                Some(note) => self.dim(note),
                None => self.block(block),
            }
            last_note = note;
        }
        self.columns = columns;
    }

    fn block(&mut self, block: &TextBlock) {
        let theme = self.theme;
        match block {
            TextBlock::Heading(_, spans) => self.wrapped(spans, theme.heading, "", ""),
            TextBlock::Paragraph(spans) => self.wrapped(spans, theme.text, "", ""),
            TextBlock::Item {
                depth,
                marker,
                spans,
            } => {
                let indent = "  ".repeat(usize::from((*depth).min(6)));
                let marker_width = text::width(marker).max(1);
                let first = format!("{indent}{} ", text::left(marker, marker_width));
                let rest = " ".repeat(text::width(&first));
                self.wrapped(spans, theme.text, &first, &rest);
            }
            TextBlock::Code { text: code, .. } => {
                // A drawing that just fits is not indented.
                let widest = code.lines().map(text::width).max().unwrap_or(0);
                let indent = if widest + 2 > self.columns { "" } else { "  " };
                for line in code.lines() {
                    self.code(indent, line);
                }
                if widest > self.columns {
                    self.note_cut(widest);
                }
            }
            TextBlock::Quote(spans) => {
                let bar = format!("{} ", theme.symbols.vertical);
                self.wrapped(spans, theme.quote, &bar, &bar);
            }
            TextBlock::Table { head, rows } => self.table(head, rows),
            TextBlock::Rule => self.line(theme.symbols.rule.repeat(self.columns), theme.border),
        }
    }

    /// Writes how to see the whole of a drawing that is cut, because it is wider than the area.
    fn note_cut(&mut self, widest: usize) {
        let needed = widest + FRAME;
        if usize::from(self.app.view.size.0) >= needed {
            let text = "The drawing is cut here; {} shows it whole.";
            self.keys(text, &[Action::Expand]);
        } else {
            self.dim(&format!(
                "The drawing is cut here; a terminal of {needed} columns shows it whole."
            ));
        }
    }

    /// Returns true if the page already contains a sentence.
    fn contains(&self, sentence: &str) -> bool {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| line.to_string().trim().to_owned())
            .collect();
        lines.join(" ").contains(sentence)
    }

    /// Returns the note that stands in place of a block whose figures are still to be measured; `None` where the block can be shown.
    fn note(&self, block: &TextBlock) -> Option<String> {
        let (TextBlock::Paragraph(spans) | TextBlock::Item { spans, .. }) = block else {
            return None;
        };
        notice(
            spans.iter().filter_map(placeholder_name),
            self.figures?,
            &pair_key(),
        )
    }

    /// Returns spans as styled text. In a table, a missing figure is a dash.
    fn styled(&self, spans: &[TextSpan], base: Style, in_table: bool) -> Vec<Span<'static>> {
        let theme = self.theme;
        let styled = |span: &TextSpan| match span {
            TextSpan::Text(text) => Span::styled(text.clone(), base),
            TextSpan::Strong(text) => Span::styled(text.clone(), base.patch(theme.strong)),
            TextSpan::Emphasis(text) => Span::styled(text.clone(), base.patch(theme.emphasis)),
            TextSpan::Code(text) => Span::styled(text.clone(), theme.code),
            TextSpan::Link { text, to } => {
                Span::styled(format!("{text}{}", self.how_to_follow(to)), theme.link)
            }
            TextSpan::Placeholder(name) => Span::styled(self.figure(name, in_table), theme.figure),
        };
        spans.iter().map(styled).collect()
    }

    /// Returns the words that follow a link: the key that opens its target, or the address. They are empty if nothing opens the target.
    fn how_to_follow(&self, to: &str) -> String {
        let course = &self.app.lesson.course;
        let file = to.split('#').next().unwrap_or(to);
        if let Some(stage) = course.stages.iter().find(|stage| stage.lesson_file == file) {
            let key = keys::name(Action::Stage(stage.number));
            return key.map_or_else(String::new, |key| format!(" (press {key})"));
        }
        let page = course.readings.iter().position(|text| text.file == file);
        let glossary = keys::name(Action::Open(Overlay::Glossary)).unwrap_or_default();
        match page {
            Some(page) => format!(" (press {glossary}, page {})", page + 2),
            None if file == "glossary.md" => format!(" (press {glossary})"),
            None if to.starts_with("https://") => format!(" ({to})"),
            None => String::new(),
        }
    }

    fn figure(&self, name: &str, in_table: bool) -> String {
        match self.figures {
            None => format!("{{{{{name}}}}}"),
            Some(sources) if in_table && resolve(name, sources) == NOT_MEASURED => {
                NO_FIGURE.to_owned()
            }
            Some(sources) => figure(name, sources),
        }
    }

    fn wrapped(&mut self, spans: &[TextSpan], base: Style, first: &str, rest: &str) {
        let dim = |text: &str| Span::styled(text.to_owned(), self.theme.dim);
        self.runs(&self.styled(spans, base, false), dim(first), dim(rest));
    }

    /// Writes a table. Each column is as wide as its longest cell; where all columns together are too wide, the widest shrink and their cells
    /// wrap.
    pub fn table(&mut self, head: &[Vec<TextSpan>], rows: &[Vec<Vec<TextSpan>>]) {
        let column_count = head.len().max(rows.iter().map(Vec::len).max().unwrap_or(0));
        if column_count == 0 {
            return;
        }
        let width = |cell: &Vec<TextSpan>| {
            let spans = self.styled(cell, Style::new(), true);
            text::width_of(&spans).max(1)
        };
        let lines = rows.iter().map(Vec::as_slice).chain([head]);
        let mut widths = table::widths(lines, column_count, width);
        let gaps = 2 * (column_count - 1);
        let available = self.columns.saturating_sub(gaps);
        table::shrink(&mut widths, available.max(column_count));
        // Markdown requires a head; an empty head is not shown.
        if head.iter().any(|cell| !cell.is_empty()) {
            self.table_row(head, &widths, self.theme.strong);
            let width = (widths.iter().sum::<usize>() + gaps).min(self.columns);
            self.line(self.theme.symbols.rule.repeat(width), self.theme.border);
        }
        for row in rows {
            self.table_row(row, &widths, self.theme.text);
        }
        let names = rows.iter().flatten().flatten().filter_map(placeholder_name);
        if let Some(figures) = self.figures
            && let Some(note) = notice(names, figures, &pair_key())
        {
            self.dim(&format!("{NO_FIGURE} {note}"));
        }
    }

    fn table_row(&mut self, cells: &[Vec<TextSpan>], widths: &[usize], base: Style) {
        let empty = Vec::new();
        let wrapped_cell = |(index, width): (usize, &usize)| {
            let spans = self.styled(cells.get(index).unwrap_or(&empty), base, true);
            text::wrap(&spans, *width, "", "")
        };
        let columns: Vec<Vec<Line<'static>>> =
            widths.iter().enumerate().map(wrapped_cell).collect();
        for row in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
            let mut spans = Vec::new();
            for (column, width) in columns.iter().zip(widths) {
                let line = column.get(row).cloned().unwrap_or_default();
                let used = line.width();
                spans.extend(line.spans);
                spans.push(Span::raw(" ".repeat(width.saturating_sub(used) + 2)));
            }
            spans.pop();
            self.lines.push(Line::from(spans));
        }
    }
}

/// Returns the lines of a text of the course, as wide as `columns`, with the figures of the stage's run as it was found (A).
pub fn lines_as_found(
    (app, theme, columns): (&App, &Theme, u16),
    (marker, marker_style): (&str, Style),
    body: &str,
    style: Style,
) -> Vec<Line<'static>> {
    let current = figures(app);
    let found = current.as_ref().map(|current| as_found(app, current));
    let mut writer = ProseWriter::new(app, theme, columns);
    writer.widest = writer.columns;
    writer.figures = found.as_ref();
    writer.course_text_in(marker, marker_style, body, style);
    writer.lines
}

/// Fills the figures of the stage's run as it was found (A) into a text. `None` before there are figures.
pub fn filled_as_found(app: &App, text: &str) -> Option<String> {
    let current = figures(app)?;
    Some(fill(text, &as_found(app, &current)))
}

/// Returns a sentence of the guide as a line, with the names of its keys from the table.
pub fn sentence(pieces: &[SentencePart], app: &App, theme: &Theme, plain: Style) -> Line<'static> {
    pieces
        .iter()
        .map(|piece| match piece {
            SentencePart::Text(text) => Span::styled(text.clone(), plain),
            SentencePart::Key(action) => Span::styled(keys::label(*action, app), theme.key),
        })
        .collect()
}

/// Returns a line of a file without characters that could move the cursor.
pub fn harmless(line: &str) -> String {
    sanitize::plain(&line.replace('\t', "    "))
}

/// Returns the name of the key that measures pairs.
fn pair_key() -> String {
    keys::name(Action::Pair).unwrap_or_default()
}

fn placeholder_name(span: &TextSpan) -> Option<&str> {
    match span {
        TextSpan::Placeholder(name) => Some(name.as_str()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Markers, Options};
    use crate::course::Course;
    use crate::course::save_file::Progress;
    use protocol::config::{Preset, RunConfig};

    #[test]
    fn neighbouring_paragraphs_that_wait_for_the_same_figures_share_one_note() {
        let config = RunConfig::preset(Preset::Tiny);
        let no_figures = FigureSources::none(&config);
        let names = [
            "run.step_ms",
            "run.parity",
            "pair.ratio",
            "prediction.choice",
        ];
        let blocks = names.map(|name| {
            let figure = TextSpan::Placeholder(name.to_owned());
            TextBlock::Paragraph(vec![TextSpan::Text("It takes ".to_owned()), figure])
        });
        let theme = Theme::plain(Markers::Braille);
        let (app, _) = App::new(Course::default(), Progress::default(), Options::default());
        let mut writer = ProseWriter::new(&app, &theme, READING);
        writer.figures = Some(&no_figures);
        writer.blocks(&blocks);
        let text: Vec<String> = writer.lines.iter().map(ToString::to_string).collect();
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
