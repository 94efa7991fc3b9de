//! Turns Markdown into sections and blocks, without width or colour, and removes what would control a terminal. The kind of a section is a
//! comment in its heading: `## Why <!-- why -->`. A key is written `<kbd>t</kbd>`.

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
    let mut out = ParsedLesson::default();
    let text = text::cleaned(raw, path, &mut out.problems);
    let mut builder = Builder {
        path,
        source: &text,
        out,
        ..Builder::default()
    };
    let events = Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter();
    for (event, range) in TextMergeWithOffset::new(events) {
        builder.at = range.start;
        builder.event(event);
    }
    builder.flush();
    builder.close_section();
    builder.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Strong,
    Emphasis,
}

#[derive(Default)]
struct Builder<'a> {
    path: &'a str,
    source: &'a str,
    /// Byte offset of the current event in `source`.
    at: usize,
    out: ParsedLesson,
    section: Option<LessonSection>,
    spans: Vec<TextSpan>,
    styles: Vec<Style>,
    link: Option<(String, String)>,
    key: bool,
    heading: Option<u8>,
    kind: Option<SectionKind>,
    code: Option<(String, String)>,
    quotes: usize,
    /// The next number of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    marker: Option<String>,
    /// The rows of the table so far, the head first.
    rows: Vec<Vec<Vec<TextSpan>>>,
}

impl Builder<'_> {
    /// Returns the line of the current event, from 1.
    fn line(&self) -> usize {
        line_of(self.source, self.at)
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
            Event::SoftBreak | Event::HardBreak => {
                let soft = matches!(event, Event::SoftBreak);
                self.text(if soft { " " } else { "\n" });
            }
            Event::Rule => self.push(TextBlock::Rule),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.heading = Some(level as u8);
                self.kind = None;
            }
            Tag::Paragraph => self.flush(),
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let info = match &kind {
                    CodeBlockKind::Fenced(info) => info.as_ref(),
                    CodeBlockKind::Indented => "",
                };
                let language = info.split_whitespace().next().unwrap_or_default();
                self.code = Some((language.to_owned(), String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}.", *number - 1)
                    }
                    _ => "•".to_owned(),
                };
                self.marker = Some(marker);
            }
            Tag::Table(_) => self.flush(),
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::Strong => self.styles.push(Style::Strong),
            Tag::Emphasis => self.styles.push(Style::Emphasis),
            Tag::Link { dest_url, .. } => self.link = Some((String::new(), dest_url.into_string())),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::Paragraph | TagEnd::Item => self.flush(),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                if let Some((_, text)) = self.code.take() {
                    let text = text.trim_end_matches('\n').to_owned();
                    self.push(TextBlock::Code { text });
                }
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let spans = std::mem::take(&mut self.spans);
                self.rows.last_mut().unwrap_or(&mut Vec::new()).push(spans);
            }
            TagEnd::Table => {
                let mut rows = std::mem::take(&mut self.rows).into_iter();
                let head = rows.next().unwrap_or_default();
                let rows = rows.collect();
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
                self.close_section();
                let title = plain(&spans).trim().to_owned();
                self.section = Some(LessonSection {
                    title,
                    kind: self.kind.take().unwrap_or_default(),
                    blocks: Vec::new(),
                });
            }
            _ => self.push(TextBlock::Heading(level, spans)),
        }
    }

    /// Ends the block under construction.
    fn flush(&mut self) {
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
        } else if self.quotes > 0 {
            TextBlock::Quote(spans)
        } else {
            TextBlock::Paragraph(spans)
        };
        self.push(block);
    }

    fn push(&mut self, block: TextBlock) {
        // Blocks before the first heading belong to the first page.
        let section = self.section.get_or_insert_with(|| LessonSection {
            kind: SectionKind::Symptom,
            ..LessonSection::default()
        });
        section.blocks.push(block);
    }

    fn close_section(&mut self) {
        if let Some(section) = self.section.take() {
            self.out.lesson.sections.push(section);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((language, code)) = &mut self.code {
            code.push_str(text);
            let is_shell = matches!(language.as_str(), "sh" | "console" | "shell");
            for (i, line) in text.lines().enumerate() {
                let line_number = self.line() + i;
                let command = line.trim_start_matches("$ ").trim();
                if is_shell && command.starts_with("perflings") {
                    self.refer_at(line_number, LessonReferenceKind::Command, command);
                }
                self.refer_at(line_number, LessonReferenceKind::Code, line);
            }
            return;
        }
        if self.key {
            self.refer_to(LessonReferenceKind::Key, text);
            self.spans.push(TextSpan::Code(text.to_owned()));
            return;
        }
        if let Some((label, to)) = &mut self.link {
            label.push_str(text);
            let to = to.clone();
            self.refer_to(LessonReferenceKind::Link, &to);
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
        let style = self.styles.last().copied();
        match (self.spans.last_mut(), style) {
            (Some(TextSpan::Text(before)), None)
            | (Some(TextSpan::Strong(before)), Some(Style::Strong))
            | (Some(TextSpan::Emphasis(before)), Some(Style::Emphasis)) => before.push_str(text),
            (_, None) => self.spans.push(TextSpan::Text(text.to_owned())),
            (_, Some(Style::Strong)) => self.spans.push(TextSpan::Strong(text.to_owned())),
            (_, Some(Style::Emphasis)) => self.spans.push(TextSpan::Emphasis(text.to_owned())),
        }
    }

    fn html(&mut self, html: &str) {
        if html == "<kbd>" || html == "</kbd>" {
            self.key = html == "<kbd>";
            return;
        }
        let comment = html.strip_prefix("<!--");
        let Some(word) = comment.and_then(|rest| rest.strip_suffix("-->")) else {
            self.problem("holds HTML, which is not shown; write Markdown".to_owned());
            return;
        };
        if self.heading.is_none() {
            return;
        }
        let word = word.trim();
        self.kind = word.parse().ok();
        if self.kind.is_none() {
            let known = SectionKind::VARIANTS.iter().copied();
            self.problem(unknown("kind of section", word, known));
        }
    }

    fn refer_to(&mut self, kind: LessonReferenceKind, text: &str) {
        self.refer_at(self.line(), kind, text);
    }

    fn refer_at(&mut self, line: usize, kind: LessonReferenceKind, text: &str) {
        let text = text.to_owned();
        self.out
            .references
            .push(LessonReference { line, kind, text });
    }

    fn problem(&mut self, message: String) {
        let problem = FileError::new(self.path, self.line(), message);
        self.out.problems.push(problem);
    }
}
