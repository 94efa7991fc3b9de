//! The words inside a block: runs of one style, keys, links and placeholders, and the marks that note what they refer to.

use std::ops::Range;

use super::{Builder, OBJECT, Style};
use crate::config::file::{FileError, line_of};
use crate::config::nearest;
use crate::course::Span;
use crate::course::lesson::{KINDS, Mark, MarkKind};
use crate::course::placeholder::{self, Piece};

impl Builder<'_> {
    pub(super) fn text(&mut self, text: &str, range: &Range<usize>) {
        if let Some((language, code)) = &mut self.code {
            let shell = matches!(language.as_str(), "sh" | "console" | "shell");
            code.push_str(text);
            for (i, line) in text.lines().enumerate() {
                let line_number = line_of(self.source, range.start) + i;
                let command = line.trim_start_matches("$ ").trim();
                if shell && command.starts_with("perflings") {
                    self.out.marks.push(Mark {
                        line: line_number,
                        kind: MarkKind::Command,
                        text: command.to_owned(),
                    });
                }
                self.out.marks.push(Mark {
                    line: line_number,
                    kind: MarkKind::Code,
                    text: line.to_owned(),
                });
            }
            return;
        }
        if self.key {
            self.words(range, OBJECT);
            self.mark(range, MarkKind::Key, text);
            self.spans.push(Span::Code(text.to_owned()));
            return;
        }
        if let Some((label, to)) = &mut self.link {
            label.push_str(text);
            let to = to.clone();
            self.words(range, OBJECT);
            self.mark(range, MarkKind::Link, &to);
            return;
        }
        for piece in placeholder::pieces(text) {
            match piece {
                Piece::Name(name) => {
                    self.words(range, OBJECT);
                    self.mark(range, MarkKind::Placeholder, name);
                    self.spans.push(Span::Placeholder(name.to_owned()));
                }
                Piece::Text(text) => {
                    // A line break was noted as one already.
                    if !matches!(text, " " | "\n") {
                        self.words(range, text);
                    }
                    self.plain_text(text);
                }
            }
        }
    }

    /// Adds to the run of text before it where the style is the same.
    fn plain_text(&mut self, text: &str) {
        let style = self.styles.last().copied();
        match (self.spans.last_mut(), style) {
            (Some(Span::Text(before)), None)
            | (Some(Span::Strong(before)), Some(Style::Strong))
            | (Some(Span::Emphasis(before)), Some(Style::Emphasis)) => before.push_str(text),
            (_, None) => self.spans.push(Span::Text(text.to_owned())),
            (_, Some(Style::Strong)) => self.spans.push(Span::Strong(text.to_owned())),
            (_, Some(Style::Emphasis)) => self.spans.push(Span::Emphasis(text.to_owned())),
        }
    }

    pub(super) fn html(&mut self, html: &str, range: &Range<usize>) {
        match html {
            "<kbd>" => self.key = true,
            "</kbd>" => self.key = false,
            _ => {
                let Some(word) = html
                    .strip_prefix("<!--")
                    .and_then(|rest| rest.strip_suffix("-->"))
                    .map(str::trim)
                else {
                    self.problem(
                        range,
                        "holds HTML, which is not shown; write Markdown".to_owned(),
                    );
                    return;
                };
                if self.heading.is_none() {
                    return;
                }
                self.kind = KINDS
                    .iter()
                    .find(|(name, _)| *name == word)
                    .map(|(_, kind)| *kind);
                if self.kind.is_none() {
                    let near = nearest(word, KINDS.iter().map(|(name, _)| *name));
                    self.problem(
                        range,
                        format!(
                            "unknown kind of section `{word}`; the nearest known one is `{near}`"
                        ),
                    );
                }
            }
        }
    }

    /// Adds to the block's words.
    pub(super) fn words(&mut self, range: &Range<usize>, text: &str) {
        if self.prose.1.is_empty() {
            self.prose.0 = line_of(self.source, range.start);
        }
        self.prose.1.push_str(text);
    }

    pub(super) fn end_prose(&mut self) {
        let (line, text) = std::mem::take(&mut self.prose);
        if !text.trim().is_empty() {
            self.out.marks.push(Mark {
                line,
                kind: MarkKind::Prose,
                text,
            });
        }
    }

    pub(super) fn mark(&mut self, range: &Range<usize>, kind: MarkKind, text: &str) {
        let line = line_of(self.source, range.start);
        self.out.marks.push(Mark {
            line,
            kind,
            text: text.to_owned(),
        });
    }

    fn problem(&mut self, range: &Range<usize>, what: String) {
        let line = line_of(self.source, range.start);
        self.out.problems.push(FileError {
            path: self.path.to_owned(),
            line,
            what,
        });
    }
}

/// `k03`, `c01-batch`: a letter and two digits, and perhaps a name.
pub(super) fn names_exercise(text: &str) -> bool {
    let head = text.split('-').next().unwrap_or(text);
    let mut chars = head.chars();
    chars.next().is_some_and(|c| "kcd".contains(c))
        && head.len() == 3
        && chars.all(|c| c.is_ascii_digit())
}
