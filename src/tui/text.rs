//! Text on cells: wrapping by words at a display width, cutting, padding. Everything that came from a file or an
//! engine is made harmless here once more, because this is the last place before the terminal.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::app::clean::harmful;

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text, cut to `columns` with a mark where something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        taken.push(c);
    }
    if columns > 0 {
        taken.push('…');
    }
    taken
}

/// The text, cut or filled up to exactly `columns`, aligned left.
pub fn left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let missing = columns.saturating_sub(text.width());
    text + &" ".repeat(missing)
}

/// The same, aligned right.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    " ".repeat(columns.saturating_sub(text.width())) + &text
}

/// Wraps runs of styled text into lines of at most `columns`. The first line begins with `first`, the others with
/// `rest`; a word longer than a line is broken.
pub fn wrap(
    runs: &[(String, Style)],
    columns: usize,
    first: Span<'static>,
    rest: Span<'static>,
) -> Vec<Line<'static>> {
    let mut out = Wrapped {
        lines: Vec::new(),
        line: vec![first.clone()],
        used: first.width(),
        rest,
        columns: columns.max(1),
        empty: true,
    };
    for (text, style) in runs {
        let mut text = text.as_str();
        while !text.is_empty() {
            let blank = text.starts_with(char::is_whitespace);
            let end = text
                .find(|c: char| c.is_whitespace() != blank)
                .unwrap_or(text.len());
            let (word, after) = text.split_at(end);
            if blank {
                out.blank(word.contains('\n'), *style)
            } else {
                out.word(word, *style)
            }
            text = after;
        }
    }
    out.lines.push(Line::from(std::mem::take(&mut out.line)));
    out.lines
}

struct Wrapped {
    lines: Vec<Line<'static>>,
    line: Vec<Span<'static>>,
    used: usize,
    rest: Span<'static>,
    columns: usize,
    /// Nothing but the beginning stands on the line.
    empty: bool,
}

impl Wrapped {
    fn next_line(&mut self) {
        // A space that ended the line is not carried along.
        if let Some(last) = self.line.last_mut()
            && last.content.trim().is_empty()
            && self.line.len() > 1
        {
            self.line.pop();
        }
        self.lines.push(Line::from(std::mem::replace(
            &mut self.line,
            vec![self.rest.clone()],
        )));
        self.used = self.rest.width();
        self.empty = true;
    }

    fn blank(&mut self, _newline: bool, style: Style) {
        if !self.empty && self.used < self.columns {
            self.line.push(Span::styled(" ", style));
            self.used += 1;
        }
    }

    fn word(&mut self, word: &str, style: Style) {
        let clean: String = word
            .chars()
            .map(|c| if harmful(c) { '·' } else { c })
            .collect();
        let wide = clean.width();
        if !self.empty && self.used + wide > self.columns {
            // Punctuation after a styled word must not start a line of its own when the word could move with it.
            self.next_line();
        }
        if self.used + wide <= self.columns {
            self.push(clean, wide, style);
            return;
        }
        let mut piece = String::new();
        let mut piece_wide = 0;
        for c in clean.chars() {
            let wide = c.width().unwrap_or(0);
            if self.used + piece_wide + wide > self.columns && !(self.empty && piece.is_empty()) {
                self.push(std::mem::take(&mut piece), piece_wide, style);
                self.next_line();
                piece_wide = 0;
            }
            piece.push(c);
            piece_wide += wide;
        }
        self.push(piece, piece_wide, style);
    }

    fn push(&mut self, text: String, wide: usize, style: Style) {
        if !text.is_empty() {
            self.line.push(Span::styled(text, style));
            self.used += wide;
            self.empty = false;
        }
    }
}

/// Wraps one plain text.
pub fn wrap_plain(text: &str, columns: usize, style: Style) -> Vec<Line<'static>> {
    wrap(
        &[(text.to_owned(), style)],
        columns,
        Span::raw(""),
        Span::raw(""),
    )
}

/// Wraps one text behind a marker, the following lines indented under it.
pub fn wrap_item(
    marker: &str,
    marker_style: Style,
    text: &str,
    columns: usize,
    style: Style,
) -> Vec<Line<'static>> {
    let indent = " ".repeat(marker.width());
    wrap(
        &[(text.to_owned(), style)],
        columns,
        Span::styled(marker.to_owned(), marker_style),
        Span::raw(indent),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, columns: usize) -> Vec<String> {
        wrap_plain(text, columns, Style::new())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn wraps_at_words_and_breaks_what_is_too_long() {
        assert_eq!(
            lines("the loss is far too high", 10),
            ["the loss", "is far too", "high"]
        );
        assert_eq!(lines("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(lines("", 4), [""]);
        assert_eq!(lines("x", 0), ["x"]);
    }

    #[test]
    fn wide_characters_count_double() {
        assert_eq!(lines("表表表表", 5), ["表表", "表表"]);
        assert_eq!(cut("表表表", 5), "表表…");
        assert_eq!(left("表", 4), "表  ");
        assert_eq!(right("ab", 4), "  ab");
    }

    #[test]
    fn hostile_text_is_defused() {
        assert_eq!(lines("a\u{1b}[31mb", 20), ["a·[31mb"]);
    }
}
