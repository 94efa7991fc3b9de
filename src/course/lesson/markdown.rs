//! Turns the Markdown of a lesson into sections and blocks, without width or colour, and removes what could control a terminal. The kind of a
//! section is a comment in its heading: `## Why <!-- why -->`. A key is written `<kbd>t</kbd>`, and a figure `{{run.loss_first}}`.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeWithOffset};
use strum::VariantNames;

use super::{Lesson, LessonSection, SectionKind, TextBlock, TextSpan, plain};
use crate::course::config_file::{FileError, line_of};
use crate::course::exercise::names_exercise;
use crate::course::placeholder::{self, TextPiece};
use crate::course::text;
use protocol::config::unknown;

/// A lesson with its faults and references.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedLesson {
    pub lesson: Lesson,
    pub problems: Vec<FileError>,
    pub references: Vec<LessonReference>,
}

/// Something that a lesson refers to and that must exist, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LessonReference {
    pub line: usize,
    pub kind: LessonReferenceKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LessonReferenceKind {
    /// A key: `<kbd>t</kbd>`.
    Key,
    /// A command: inline code, or a line of a `sh` block, that starts with `perflings`.
    Command,
    /// A figure: `{{run.loss_first}}`.
    Placeholder,
    /// The target of a link.
    Link,
    /// An exercise in inline code: `k03-copy`, `k03`.
    Exercise,
    /// A line of a drawing or of code, which cannot be wrapped.
    Code,
}

/// Parses a lesson; `path` is for messages.
pub fn parse(raw: &str, path: &str) -> ParsedLesson {
    let mut parsed = ParsedLesson::default();
    let source = text::cleaned(raw, path, &mut parsed.problems);
    let mut builder = Builder {
        path,
        source: &source,
        parsed,
        ..Builder::default()
    };
    let events = Parser::new_ext(&source, Options::ENABLE_TABLES).into_offset_iter();
    for (event, range) in TextMergeWithOffset::new(events) {
        builder.offset = range.start;
        builder.event(event);
    }
    builder.end_block();
    builder.end_section();
    builder.parsed
}

/// The state of a parse between two events of the Markdown parser.
#[derive(Default)]
struct Builder<'a> {
    path: &'a str,
    source: &'a str,
    /// The byte offset of the current event in `source`.
    offset: usize,
    parsed: ParsedLesson,
    /// The section that is open.
    section: Option<LessonSection>,
    /// The pieces of the block that is open.
    spans: Vec<TextSpan>,
    /// The styles that are open, `TextSpan::Strong` or `TextSpan::Emphasis`. The innermost is the last.
    styles: Vec<fn(String) -> TextSpan>,
    /// The text and the target of the link that is open.
    link: Option<(String, String)>,
    /// True between `<kbd>` and `</kbd>`.
    in_key: bool,
    /// The level of the heading that is open.
    heading: Option<u8>,
    /// The kind of section in the heading's comment.
    kind: Option<SectionKind>,
    /// The language and the text of the code block that is open.
    code: Option<(String, String)>,
    /// The number of quotes around the current event.
    quote_depth: usize,
    /// The next number of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    /// The marker of a list item whose text has not begun.
    marker: Option<String>,
    /// The rows of the table so far, the head first.
    rows: Vec<Vec<Vec<TextSpan>>>,
}

impl Builder<'_> {
    /// Returns the line of the current event, from 1.
    fn line(&self) -> usize {
        line_of(self.source, self.offset)
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                if text.starts_with("perflings ") {
                    self.refer_to(LessonReferenceKind::Command, &text);
                }
                if names_exercise(&text) {
                    self.refer_to(LessonReferenceKind::Exercise, &text);
                }
                self.spans.push(TextSpan::Code(text.into_string()));
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(html.trim()),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => self.push(TextBlock::Rule),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_block();
                self.heading = Some(level as u8);
                self.kind = None;
            }
            Tag::Paragraph => self.end_block(),
            Tag::BlockQuote(_) => {
                self.end_block();
                self.quote_depth += 1;
            }
            Tag::CodeBlock(kind) => {
                self.end_block();
                let info = match &kind {
                    CodeBlockKind::Fenced(info) => info.as_ref(),
                    CodeBlockKind::Indented => "",
                };
                let language = info.split_whitespace().next().unwrap_or_default();
                self.code = Some((language.to_owned(), String::new()));
            }
            Tag::List(first) => {
                self.end_block();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_block();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}.", *number - 1)
                    }
                    _ => "•".to_owned(),
                };
                self.marker = Some(marker);
            }
            Tag::Table(_) => self.end_block(),
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::Strong => self.styles.push(TextSpan::Strong),
            Tag::Emphasis => self.styles.push(TextSpan::Emphasis),
            Tag::Link { dest_url, .. } => self.link = Some((String::new(), dest_url.into_string())),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::Paragraph | TagEnd::Item => self.end_block(),
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.quote_depth = self.quote_depth.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                if let Some((_, code)) = self.code.take() {
                    let text = code.trim_end_matches('\n').to_owned();
                    self.push(TextBlock::Code { text });
                }
            }
            TagEnd::List(_) => {
                self.end_block();
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let spans = std::mem::take(&mut self.spans);
                self.rows.last_mut().unwrap_or(&mut Vec::new()).push(spans);
            }
            TagEnd::Table => {
                let mut all = std::mem::take(&mut self.rows).into_iter();
                let head = all.next().unwrap_or_default();
                let rows = all.collect();
                self.push(TextBlock::Table { head, rows });
            }
            TagEnd::Strong | TagEnd::Emphasis => {
                self.styles.pop();
            }
            TagEnd::Link => {
                if let Some((text, to)) = self.link.take() {
                    self.spans.push(TextSpan::Link { text, to });
                }
            }
            _ => {}
        }
    }

    fn end_heading(&mut self) {
        let level = self.heading.take().unwrap_or(1);
        let spans = std::mem::take(&mut self.spans);
        // The title of the lesson is the stage's title; sections begin at the second level.
        match level {
            1 => {}
            2 => {
                self.end_section();
                self.section = Some(LessonSection {
                    title: plain(&spans).trim().to_owned(),
                    kind: self.kind.take().unwrap_or_default(),
                    blocks: Vec::new(),
                });
            }
            _ => self.push(TextBlock::Heading(level, spans)),
        }
    }

    /// Ends the block that is open.
    fn end_block(&mut self) {
        let marker = self.marker.take();
        let spans = std::mem::take(&mut self.spans);
        if spans.is_empty() {
            // The marker belongs to the next block: `- ` may be followed by a paragraph.
            self.marker = marker;
            return;
        }
        let depth = u8::try_from(self.lists.len().saturating_sub(1)).unwrap_or(u8::MAX);
        let block = if !self.lists.is_empty() {
            TextBlock::Item {
                depth,
                marker: marker.unwrap_or_default(),
                spans,
            }
        } else if self.quote_depth > 0 {
            TextBlock::Quote(spans)
        } else {
            TextBlock::Paragraph(spans)
        };
        self.push(block);
    }

    /// Adds a block to the section that is open.
    fn push(&mut self, block: TextBlock) {
        // Blocks before the first heading belong to the first page.
        let section = self.section.get_or_insert_with(|| LessonSection {
            kind: SectionKind::Symptom,
            ..LessonSection::default()
        });
        section.blocks.push(block);
    }

    fn end_section(&mut self) {
        self.parsed.lesson.sections.extend(self.section.take());
    }

    fn text(&mut self, text: &str) {
        if let Some((language, code)) = &mut self.code {
            code.push_str(text);
            let is_shell = matches!(language.as_str(), "sh" | "console" | "shell");
            for (number, line) in (self.line()..).zip(text.lines()) {
                let command = line.trim_start_matches("$ ").trim();
                if is_shell && command.starts_with("perflings") {
                    self.refer_at(number, LessonReferenceKind::Command, command);
                }
                self.refer_at(number, LessonReferenceKind::Code, line);
            }
            return;
        }
        if self.in_key {
            self.refer_to(LessonReferenceKind::Key, text);
            self.spans.push(TextSpan::Code(text.to_owned()));
            return;
        }
        if let Some((label, to)) = &mut self.link {
            label.push_str(text);
            let target = to.clone();
            self.refer_to(LessonReferenceKind::Link, &target);
            return;
        }
        for piece in placeholder::pieces(text) {
            match piece {
                TextPiece::Name(name) => {
                    self.refer_to(LessonReferenceKind::Placeholder, name);
                    self.spans.push(TextSpan::Placeholder(name.to_owned()));
                }
                TextPiece::Text(text) => self.plain_text(text),
            }
        }
    }

    /// Adds a text in the current style. It continues the piece before it if that has this style.
    fn plain_text(&mut self, text: &str) {
        let styled = match self.styles.last() {
            Some(style) => style(text.to_owned()),
            None => TextSpan::Text(text.to_owned()),
        };
        match (self.spans.last_mut(), &styled) {
            (Some(TextSpan::Text(before)), TextSpan::Text(_))
            | (Some(TextSpan::Strong(before)), TextSpan::Strong(_))
            | (Some(TextSpan::Emphasis(before)), TextSpan::Emphasis(_)) => before.push_str(text),
            _ => self.spans.push(styled),
        }
    }

    /// Reads a key or the comment of a heading, the only HTML in a lesson.
    fn html(&mut self, html: &str) {
        if html == "<kbd>" || html == "</kbd>" {
            self.in_key = html == "<kbd>";
            return;
        }
        let rest = html.strip_prefix("<!--");
        let Some(comment) = rest.and_then(|rest| rest.strip_suffix("-->")) else {
            self.problem("holds HTML, which is not shown; write Markdown".to_owned());
            return;
        };
        if self.heading.is_some() {
            self.kind = comment.trim().parse().ok();
            if self.kind.is_none() {
                let known = SectionKind::VARIANTS.iter().copied();
                self.problem(unknown("kind of section", comment.trim(), known));
            }
        }
    }

    fn refer_to(&mut self, kind: LessonReferenceKind, text: &str) {
        self.refer_at(self.line(), kind, text);
    }

    fn refer_at(&mut self, line: usize, kind: LessonReferenceKind, text: &str) {
        self.parsed.references.push(LessonReference {
            line,
            kind,
            text: text.to_owned(),
        });
    }

    fn problem(&mut self, message: String) {
        let problem = FileError::new(self.path, self.line(), message);
        self.parsed.problems.push(problem);
    }
}
