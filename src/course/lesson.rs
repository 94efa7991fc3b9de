//! Markdown to sections and blocks. It knows no width and no colour, and passes nothing on that a terminal would obey.
//! A section's kind is a comment in its heading: `## Why <!-- why -->`; a key is `<kbd>t</kbd>`.

mod builder;

use pulldown_cmark::{Options, Parser, TextMergeWithOffset};

use super::fields::escape_removed;
use super::{Block, Lesson, SectionKind, Span, text};
use crate::config::file::FileError;
use builder::Builder;

/// A lesson with what was wrong with it and what it refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    pub lesson: Lesson,
    pub problems: Vec<FileError>,
    pub marks: Vec<Mark>,
}

/// Something a lesson names that must exist, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub line: usize,
    pub kind: MarkKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// `<kbd>t</kbd>`
    Key,
    /// Inline code or a `sh` block line that begins with `perflings`.
    Command,
    /// `{{run.loss_first}}`
    Placeholder,
    /// The target of a link.
    Link,
    /// Inline code that names an exercise: `k03-copy`, `k03`.
    Exercise,
    /// A line of a drawing or of code, which cannot be wrapped.
    Code,
    /// The words of one block, line breaks kept; names, code, keys and links stand as `\u{fffc}`.
    Prose,
}

const KINDS: &[(&str, SectionKind)] = &[
    ("symptom", SectionKind::Symptom),
    ("evidence", SectionKind::Evidence),
    ("why", SectionKind::Why),
    ("debrief", SectionKind::Debrief),
    ("background", SectionKind::Background),
];

/// Parses a lesson; `path` is for messages.
pub fn parse(raw: &str, path: &str) -> Parsed {
    let (text, removed) = text::clean(raw);
    let mut builder = Builder::new(path, &text);
    builder
        .out
        .problems
        .extend(removed.into_iter().map(|line| escape_removed(path, line)));
    let events = Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter();
    for (event, range) in TextMergeWithOffset::new(events) {
        builder.event(event, &range);
    }
    builder.finish()
}

/// A line of text with inline marks, for the texts of a `stage.toml`.
pub fn spans(text: &str) -> Vec<Span> {
    let parsed = parse(text, "");
    parsed
        .lesson
        .sections
        .into_iter()
        .flat_map(|section| section.blocks)
        .flat_map(|block| match block {
            Block::Paragraph(spans)
            | Block::Quote(spans)
            | Block::Heading(_, spans)
            | Block::Item { spans, .. } => spans,
            Block::Code { text, .. } => vec![Span::Code(text)],
            Block::Table { .. } | Block::Rule => Vec::new(),
        })
        .collect()
}

/// The words of a line without their marks; a placeholder keeps its braces.
pub fn plain(spans: &[Span]) -> String {
    spans
        .iter()
        .map(|span| match span {
            Span::Text(text) | Span::Strong(text) | Span::Emphasis(text) | Span::Code(text) => {
                text.clone()
            }
            Span::Link { text, .. } => text.clone(),
            Span::Placeholder(name) => format!("{{{{{name}}}}}"),
        })
        .collect()
}
