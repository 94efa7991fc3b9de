//! The text of a stage: sections and blocks without width or colour.

mod markdown;

pub use markdown::{LessonReference, LessonReferenceKind, ParsedLesson, parse};

/// The text of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lesson {
    pub sections: Vec<LessonSection>,
}

/// A part of a lesson under its own heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LessonSection {
    pub title: String,
    pub kind: SectionKind,
    pub blocks: Vec<TextBlock>,
}

/// The purpose of a section. `Why` and `Debrief` stay hidden until the prediction was answered or skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum SectionKind {
    Symptom,
    Evidence,
    Why,
    Debrief,
    #[default]
    Background,
}

/// A block of text, without width or colour.
#[derive(Clone, Debug, PartialEq)]
pub enum TextBlock {
    /// The level, from 3, and the text.
    Heading(u8, Vec<TextSpan>),
    Paragraph(Vec<TextSpan>),
    /// One line of a list. `depth` counts from 0. `marker` is `•` or `3.`; if it is empty, the line continues the item above.
    Item {
        depth: u8,
        marker: String,
        spans: Vec<TextSpan>,
    },
    /// Code or a drawing, which is shown unchanged.
    Code {
        text: String,
    },
    Quote(Vec<TextSpan>),
    Table {
        head: Vec<Vec<TextSpan>>,
        rows: Vec<Vec<Vec<TextSpan>>>,
    },
    Rule,
}

/// A piece of text with one meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSpan {
    Text(String),
    Strong(String),
    Emphasis(String),
    Code(String),
    Link {
        text: String,
        to: String,
    },
    /// A figure of this learner's run: the name between `{{` and `}}`.
    Placeholder(String),
}

/// Returns the text of a line without its styles. A placeholder keeps its braces.
pub fn plain(spans: &[TextSpan]) -> String {
    spans
        .iter()
        .map(|span| match span {
            TextSpan::Text(text)
            | TextSpan::Strong(text)
            | TextSpan::Emphasis(text)
            | TextSpan::Code(text)
            | TextSpan::Link { text, .. } => text.clone(),
            TextSpan::Placeholder(name) => format!("{{{{{name}}}}}"),
        })
        .collect()
}
