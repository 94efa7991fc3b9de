//! Turns the parser's events into sections and blocks, and notes what the text refers to.

mod words;

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use self::words::names_exercise;
use super::{MarkKind, Parsed, plain};
use crate::course::{Block, Section, SectionKind, Span};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Strong,
    Emphasis,
}

#[derive(Default)]
pub struct Builder<'a> {
    path: &'a str,
    source: &'a str,
    pub out: Parsed,
    section: Option<Section>,
    spans: Vec<Span>,
    styles: Vec<Style>,
    link: Option<(String, String)>,
    key: bool,
    heading: Option<u8>,
    kind: Option<SectionKind>,
    code: Option<(String, String)>,
    quotes: usize,
    /// Next number of each open list, `None` where it is not numbered.
    lists: Vec<Option<u64>>,
    marker: Option<String>,
    table: Option<(Vec<Cell>, Vec<Vec<Cell>>)>,
    row: Vec<Cell>,
    /// Words of the block so far, and the line they began at.
    prose: (usize, String),
}

/// What stands in `MarkKind::Prose` for anything but words.
const OBJECT: &str = "\u{fffc}";

type Cell = Vec<Span>;

impl<'a> Builder<'a> {
    pub fn new(path: &'a str, source: &'a str) -> Self {
        Self {
            path,
            source,
            ..Self::default()
        }
    }

    pub fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, range),
            Event::Code(text) => {
                if text.starts_with("perflings ") {
                    self.mark(range, MarkKind::Command, &text);
                }
                if names_exercise(&text) {
                    self.mark(range, MarkKind::Exercise, &text);
                }
                self.words(range, OBJECT);
                self.spans.push(Span::Code(text.into_string()));
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(html.trim(), range),
            Event::SoftBreak => {
                self.words(range, "\n");
                self.text(" ", range);
            }
            Event::HardBreak => {
                self.words(range, "\n");
                self.text("\n", range);
            }
            Event::Rule => self.push(Block::Rule),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.heading = Some(depth(level));
                self.kind = None;
            }
            Tag::Paragraph => self.flush(),
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split_whitespace().next().unwrap_or("").to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
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
            Tag::Table(_) => {
                self.flush();
                self.table = Some((Vec::new(), Vec::new()));
            }
            Tag::TableHead | Tag::TableRow => self.row.clear(),
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
                if let Some((language, text)) = self.code.take() {
                    self.push(Block::Code {
                        language,
                        text: text.trim_end_matches('\n').to_owned(),
                    });
                }
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::TableCell => {
                self.end_prose();
                let spans = std::mem::take(&mut self.spans);
                self.row.push(spans);
            }
            TagEnd::TableHead => {
                if let Some((head, _)) = &mut self.table {
                    *head = std::mem::take(&mut self.row);
                }
            }
            TagEnd::TableRow => {
                if let Some((_, rows)) = &mut self.table {
                    rows.push(std::mem::take(&mut self.row));
                }
            }
            TagEnd::Table => {
                if let Some((head, rows)) = self.table.take() {
                    self.push(Block::Table { head, rows });
                }
            }
            TagEnd::Strong | TagEnd::Emphasis => {
                self.styles.pop();
            }
            TagEnd::Link => {
                if let Some((text, to)) = self.link.take() {
                    self.spans.push(Span::Link { text, to });
                }
            }
            _ => {}
        }
    }

    fn end_heading(&mut self) {
        let level = self.heading.take().unwrap_or(1);
        self.prose.1.clear();
        let spans = std::mem::take(&mut self.spans);
        // The title of the lesson is the stage's title; sections begin at the second level.
        match level {
            1 => {}
            2 => {
                self.close_section();
                let title = plain(&spans).trim().to_owned();
                self.section = Some(Section {
                    title,
                    kind: self.kind.take().unwrap_or_default(),
                    blocks: Vec::new(),
                });
            }
            _ => self.push(Block::Heading(level, spans)),
        }
    }

    /// Ends the block under construction.
    fn flush(&mut self) {
        self.end_prose();
        let marker = self.marker.take();
        let spans = std::mem::take(&mut self.spans);
        if spans.is_empty() {
            // The marker belongs to what follows: `- ` and then a paragraph.
            self.marker = marker;
            return;
        }
        let depth = u8::try_from(self.lists.len().saturating_sub(1)).unwrap_or(u8::MAX);
        let block = if !self.lists.is_empty() {
            Block::Item {
                depth,
                marker: marker.unwrap_or_default(),
                spans,
            }
        } else if self.quotes > 0 {
            Block::Quote(spans)
        } else {
            Block::Paragraph(spans)
        };
        self.push(block);
    }

    fn push(&mut self, block: Block) {
        self.section.get_or_insert_default().blocks.push(block);
    }

    fn close_section(&mut self) {
        if let Some(section) = self.section.take() {
            self.out.lesson.sections.push(section);
        }
    }

    pub fn finish(mut self) -> Parsed {
        self.flush();
        self.close_section();
        self.out
    }
}

fn depth(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
