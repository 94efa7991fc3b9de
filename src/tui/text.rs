//! Fits text to cells: it wraps by words at a display width, cuts and pads. Wrapping also replaces control characters that a file or an
//! engine sent.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::sanitize::{harmful, shown};
use crate::table;

/// Returns the number of columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns the number of columns that spans take together.
pub fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// Returns true if a character is a part of a figure.
fn is_figure(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | ',')
}

/// Returns true if a character is a part of a word or a figure. Bars and drawings have other characters.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "'’(%)".contains(c) || is_figure(c) || matches!(c, '-' | '+' | '_')
}

/// Returns the beginning of a text, at most `columns` wide. `together` says which characters belong together, such as those of a word; where
/// the cut would go through them, all of them are left out.
fn beginning(
    mut letters: impl Iterator<Item = char>,
    columns: usize,
    together: fn(char) -> bool,
) -> String {
    let mut taken = String::new();
    let mut used = 0;
    let first_left_out = letters.find(|letter| {
        used += letter.width().unwrap_or(0);
        let fits = used <= columns;
        if fits {
            taken.push(*letter);
        }
        !fits
    });
    if first_left_out.is_some_and(together) {
        taken.truncate(taken.trim_end_matches(together).len());
    }
    taken
}

/// Cuts a line to `columns`. Words and figures stay whole or are left out. If the first word alone is too wide, the line is shortened in its
/// middle.
pub fn fit(mut line: Line<'_>, columns: usize) -> Line<'_> {
    if line.width() <= columns {
        return line;
    }
    let letters = line.spans.iter().flat_map(|span| span.content.chars());
    let whole_words = beginning(letters, columns, is_word);
    if whole_words.trim_end().is_empty() {
        let style = line.spans.last().map_or(line.style, |span| span.style);
        return Line::styled(shorten(&line.to_string(), columns), style);
    }
    let mut bytes_left = whole_words.len();
    for span in &mut line.spans {
        let kept = bytes_left.min(span.content.len());
        bytes_left -= kept;
        span.content.to_mut().truncate(kept);
    }
    line
}

/// Cuts a text to `columns` after a whole word and marks the cut with `…`. A single long word is shortened in the middle.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    // The mark takes a column.
    let kept_columns = columns.saturating_sub(1);
    match beginning(text.chars(), kept_columns, is_word).trim_end() {
        "" => shorten(text, columns),
        whole_words => format!("{whole_words}…"),
    }
}

/// Shortens a name in the middle to `columns`, as in `flash…_f16`: its beginning and its end tell it from other names.
pub fn shorten(name: &str, columns: usize) -> String {
    if name.width() <= columns {
        return name.to_owned();
    }
    let kept_columns = columns.saturating_sub(1);
    let chars: Vec<char> = name.chars().collect();
    let mut used = 0;
    let tail_length = chars
        .iter()
        .rev()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= kept_columns / 2
        })
        .count();
    let (head, tail) = chars.split_at(chars.len() - tail_length);
    let mut short = beginning(name.chars(), kept_columns - kept_columns / 2, is_figure);
    if columns > 0 {
        short.push('…');
    }
    // A figure that the cut would halve is left out.
    let cuts_figure = head.last().is_some_and(|c| is_figure(*c));
    short.extend(tail.iter().skip_while(|c| cuts_figure && is_figure(**c)));
    short
}

/// Returns a name exactly `columns` wide: shortened in the middle, or padded.
pub fn name(name: &str, columns: usize) -> String {
    left(&shorten(name, columns), columns)
}

/// Returns the text exactly `columns` wide, cut or padded, aligned left.
pub fn left(text: &str, columns: usize) -> String {
    table::padded(&cut(text, columns), columns, false)
}

/// Returns the text exactly `columns` wide, cut or padded, aligned right.
pub fn right(text: &str, columns: usize) -> String {
    table::padded(&cut(text, columns), columns, true)
}

/// Returns a heading inside a rule that is made of `symbol` and is `columns` wide.
pub fn rule(symbol: &str, title: &str, columns: usize) -> String {
    let heading = format!("{symbol}{symbol} {title} ");
    let rest = columns.saturating_sub(width(&heading));
    heading + &symbol.repeat(rest)
}

/// A space that holds two words together on one line.
pub const NO_BREAK: &str = "\u{a0}";

/// Returns true for a space at which a line may end.
fn is_break(c: char) -> bool {
    c.is_whitespace() && !NO_BREAK.contains(c)
}

/// Wraps spans of text into lines of at most `columns`. The first line begins with `first`, the others with `rest`. A word that is longer
/// than a line is broken. Spans without a space between them stay together, and so do words with a no-break space between them.
pub fn wrap(
    spans: &[Span<'_>],
    columns: usize,
    first: impl Into<Span<'static>>,
    rest: impl Into<Span<'static>>,
) -> Vec<Line<'static>> {
    let first_span = first.into();
    let mut page = Page {
        lines: Vec::new(),
        used: first_span.width(),
        line: vec![first_span],
        rest: rest.into(),
        columns: columns.max(1),
        gap: None,
    };
    let mut word: Vec<(&str, Style)> = Vec::new();
    for span in spans {
        for piece in span.content.split_inclusive(is_break) {
            let bare = piece.trim_end_matches(is_break);
            if !bare.is_empty() {
                word.push((bare, span.style));
            }
            if bare.len() < piece.len() {
                page.word(&word);
                word.clear();
                page.gap = Some(span.style);
            }
        }
    }
    page.word(&word);
    page.lines.push(Line::from(page.line));
    page.lines
}

/// Wraps a text that has one style.
pub fn wrapped(text: &str, style: Style, columns: usize) -> Vec<Line<'static>> {
    wrap(&[Span::styled(text, style)], columns, "", "")
}

/// Returns spans as one line, or as several lines where they are wider than `columns`.
pub fn wrapped_if_wide(spans: Vec<Span<'static>>, columns: usize) -> Vec<Line<'static>> {
    if width_of(&spans) <= columns {
        vec![Line::from(spans)]
    } else {
        wrap(&spans, columns, "", "  ")
    }
}

/// Returns the first wording that fits into `columns`. The last wording must be the shortest; it is returned if none fits.
pub fn first_fitting<'a>(
    wordings: impl IntoIterator<Item = impl Into<Line<'a>>>,
    columns: usize,
) -> Line<'a> {
    let mut last = Line::default();
    for wording in wordings {
        last = wording.into();
        if last.width() <= columns {
            break;
        }
    }
    last
}

/// Joins parts to a line. Each part has a rank. While the line is wider than `columns`, the parts of the highest rank are left out; parts of
/// rank 0 always stay.
pub fn ranked(mut parts: Vec<(u8, Span<'static>)>, columns: usize) -> Line<'static> {
    let width =
        |parts: &[(u8, Span<'_>)]| -> usize { parts.iter().map(|(_, part)| part.width()).sum() };
    while width(&parts) > columns
        && let Some(highest @ 1..) = parts.iter().map(|(rank, _)| *rank).max()
    {
        parts.retain(|(rank, _)| *rank < highest);
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Joins as many of the first parts as fit whole into `columns`. Returns an empty text where the first part does not fit.
pub fn joined<'p>(
    parts: impl IntoIterator<Item = &'p str>,
    columns: usize,
    separator: &str,
) -> String {
    let mut by_rank = Vec::new();
    for (rank, part) in (1..).zip(parts) {
        let gap = if rank > 1 { separator } else { "" };
        by_rank.push((rank, Span::raw(format!("{gap}{part}"))));
    }
    ranked(by_rank, columns).to_string()
}

/// The lines that `wrap` has written so far.
struct Page {
    lines: Vec<Line<'static>>,
    /// The line that is being written.
    line: Vec<Span<'static>>,
    /// The columns that this line takes.
    used: usize,
    /// The beginning of every line but the first.
    rest: Span<'static>,
    columns: usize,
    /// The style of a space that is written if another word follows on the line.
    gap: Option<Style>,
}

impl Page {
    /// Returns true if the line has only its beginning, which is one span.
    fn is_fresh(&self) -> bool {
        self.line.len() == 1
    }

    fn next_line(&mut self) {
        let line = std::mem::replace(&mut self.line, vec![self.rest.clone()]);
        self.lines.push(Line::from(line));
        self.used = self.rest.width();
        self.gap = None;
    }

    /// Writes a word, on the next line if it does not fit. The pieces of the word may have different styles.
    fn word(&mut self, pieces: &[(&str, Style)]) {
        let width: usize = pieces.iter().map(|(piece, _)| piece.width()).sum();
        if width == 0 {
            return;
        }
        let gap = usize::from(self.gap.is_some() && !self.is_fresh());
        if !self.is_fresh() && self.used + gap + width > self.columns {
            self.next_line();
        } else if gap == 1
            && let Some(style) = self.gap
        {
            self.push(" ", style);
        }
        self.gap = None;
        for (piece, style) in pieces {
            if self.used + width <= self.columns && !piece.chars().any(harmful) {
                self.push(piece, *style);
                continue;
            }
            // The parts of a long name stay whole where they fit.
            for part in piece.split_inclusive(['-', '_', '/']) {
                let fits = self.rest.width() + part.width() <= self.columns;
                if fits && self.used + part.width() > self.columns && !self.is_fresh() {
                    self.next_line();
                }
                for c in part.chars().map(shown) {
                    if self.used + c.width().unwrap_or(0) > self.columns && !self.is_fresh() {
                        self.next_line();
                    }
                    self.push(c.encode_utf8(&mut [0; 4]), *style);
                }
            }
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        let shown_text = text.replace(NO_BREAK, " ");
        self.used += shown_text.width();
        // The beginning of the line stays a span of its own.
        match self.line.as_mut_slice() {
            [_, .., last] if last.style == style => last.content.to_mut().push_str(&shown_text),
            _ => self.line.push(Span::styled(shown_text, style)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, columns: usize) -> Vec<String> {
        wrap(&[Span::raw(text)], columns, "", "")
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
        assert_eq!(
            lines("a gradient-coverage,", 16),
            ["a", "gradient-", "coverage,"]
        );
        assert_eq!(lines("", 4), [""]);
        assert_eq!(lines("x", 0), ["x"]);
    }

    #[test]
    fn words_with_a_no_break_space_between_them_stay_on_one_line() {
        assert_eq!(lines("a key\u{a0}word", 8), ["a", "key word"]);
        assert_eq!(lines("a key\u{a0}\u{a0} b", 8), ["a key  ", "b"]);
    }

    #[test]
    fn parts_of_the_highest_rank_are_left_out_first_and_those_of_rank_0_stay() {
        let parts = || {
            let texts = [(0, "loss"), (2, " of A"), (1, " 5.1"), (2, " now")];
            texts.map(|(rank, text)| (rank, Span::raw(text))).to_vec()
        };
        let shown = |columns: usize| ranked(parts(), columns).to_string();
        assert_eq!(shown(17), "loss of A 5.1 now");
        assert_eq!(shown(16), "loss 5.1");
        assert_eq!(shown(7), "loss");
        assert_eq!(shown(0), "loss");
        assert_eq!(joined(["ab", "cd", "e"], 5, ", "), "ab");
        assert_eq!(joined(["ab", "cd", "e"], 6, ", "), "ab, cd");
        assert_eq!(joined(["ab", "cd"], 1, ", "), "");
    }

    #[test]
    fn a_cut_never_changes_a_figure() {
        let texts = [
            "rms from 3.00 to 2,500,200 in all",
            "norm 0.0412, -1.5e3 and +99.9 %; 12,345",
            "A 120.4 ms, B 127 ms",
        ];
        let figures = |text: &str| {
            text.split(|c: char| !is_figure(c))
                .map(|word| word.trim_end_matches(['.', ',']).to_owned())
                .filter(|figure| !figure.is_empty())
                .collect::<Vec<_>>()
        };
        for text in texts {
            let all = figures(text);
            for columns in 0..=text.len() {
                let line = fit(
                    Line::from(vec![text[..9].into(), text[9..].into()]),
                    columns,
                );
                let begins = text.starts_with(&line.to_string());
                // A first word that is too wide is shortened.
                let short = line.to_string().contains('…');
                assert!(line.width() <= columns && (begins || short), "{line}");
                for shown in [cut(text, columns), line.to_string()] {
                    for figure in figures(&shown) {
                        assert!(all.contains(&figure), "{figure} in {shown}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_cut_never_goes_through_a_word() {
        let text = "B's cross-entropy (nats) fell to 2.31 ███████";
        let words: Vec<&str> = text.split_whitespace().collect();
        for columns in 0..=text.width() {
            let line = fit(
                Line::from(vec![text[..9].into(), text[9..].into()]),
                columns,
            );
            for shown in [cut(text, columns), line.to_string()] {
                assert!(shown.width() <= columns, "{shown}");
                let mut shown_words = shown.trim_end_matches('…').split_whitespace();
                // A single word may be shortened, and a bar has no words.
                let is_whole = |word: &str| words.contains(&word) || word.contains(['…', '█']);
                let are_whole = columns < 4 || shown_words.all(is_whole);
                assert!(are_whole, "{columns}: {shown}");
            }
        }
    }

    #[test]
    fn a_name_keeps_its_beginning_its_end_and_whole_figures() {
        assert_eq!(shorten("flash_attention_f16", 10), "flash…_f16");
        assert_eq!(shorten("flash_attention_f16", 19), "flash_attention_f16");
        assert_eq!(shorten("matmul_tile_64x1024", 8), "matm…");
        assert_eq!(shorten("layer.12.mlp", 7), "lay…mlp");
        assert_eq!(name("表表表表", 6), "表…表 ");
        for columns in 0..24 {
            let short = shorten("0.attention.o_proj.16", columns);
            assert!(width(&short) <= columns, "{short}");
            let parts = short.split(['…', '.']);
            let is_cut_figure = |part: &str| part.starts_with('6') || part == "1";
            assert!(!parts.into_iter().any(is_cut_figure), "{short}");
        }
    }

    #[test]
    fn wide_characters_count_double() {
        assert_eq!(lines("表表表表", 5), ["表表", "表表"]);
        assert_eq!(cut("表表表", 5), "表…表");
        assert_eq!(left("表", 4), "表  ");
        assert_eq!(right("ab", 4), "  ab");
    }

    #[test]
    fn spans_without_a_space_between_them_stay_together() {
        let bold = Style::new().bold();
        let spans = ["see ".into(), Span::styled("this", bold), ".  Now".into()];
        let lines = wrap(&spans, 8, "", "");
        assert_eq!(
            lines.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["see", "this.", "Now"]
        );
        assert_eq!(lines[1].spans.len(), 3, "beginning, bold, plain");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(lines("a\u{1b}[31mb", 20), ["a·[31mb"]);
    }
}
