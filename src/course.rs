//! A course: its stages, lessons and exercises as checked data. A bad file is skipped and named; the rest still loads.
//! It runs no model and opens no terminal: the checks read what a run reported, the screen decides what is shown when.

pub mod check;
pub mod context;
pub mod embedded;
pub mod exercise;
mod fields;
pub mod formula;
pub mod lesson;
mod load;
pub mod metric;
pub mod named;
pub mod placeholder;
pub mod progress;
pub mod source;
pub mod stage;
pub mod sweep;
pub mod text;
mod translation;
pub mod validate;
pub mod workspace;

pub use check::Check;
pub use exercise::Exercise;
pub use source::Source;

use crate::config::RunConfig;
use crate::config::file::FileError;

/// Everything a learner can go through, in order.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Names the folder of the learner's progress: lower-case letters, digits and `-`.
    pub id: String,
    pub title: String,
    /// Language of the prose that was asked for; stages without it fall back to English.
    pub language: String,
    /// Sorted by number.
    pub stages: Vec<Stage>,
    /// What could not be loaded, and why: shown as a card.
    pub problems: Vec<FileError>,
    /// Kernels to write and runs to set up, beside the stages.
    pub exercises: Vec<Exercise>,
    /// The words of the lessons, side by side in four dialects.
    pub glossary: Option<Lesson>,
    /// Background that belongs to no single stage.
    pub readings: Vec<Reading>,
}

impl Course {
    /// The stage with this number.
    pub fn stage(&self, number: u32) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.number == number)
    }

    /// The stage with this id.
    pub fn stage_by_id(&self, id: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.id == id)
    }
}

/// A text beside the stages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// `counting.md`: what links name.
    pub file: String,
    pub title: String,
    pub lesson: Lesson,
}

/// What a learner is expected to do: look, take apart, write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    Beginner,
    Intermediate,
    Advanced,
}

impl Level {
    pub const NAMES: &'static [&'static str] = &["beginner", "intermediate", "advanced"];

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "beginner" => Some(Self::Beginner),
            "intermediate" => Some(Self::Intermediate),
            "advanced" => Some(Self::Advanced),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Beginner => "beginner",
            Self::Intermediate => "intermediate",
            Self::Advanced => "advanced",
        }
    }
}

/// One fault: seen, predicted, explained, mended, measured.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Key of the learner's progress; never changes once published.
    pub id: String,
    pub number: u32,
    pub title: String,
    pub level: Level,
    /// One or two sentences: what the panels show, unexplained.
    pub symptom: String,
    pub prediction: Question,
    /// How much a figure will change, as the learner's own range.
    pub estimate: Option<Estimate>,
    pub evidence: Vec<Pointer>,
    /// Exactly three; the last all but gives it away.
    pub hints: Vec<String>,
    pub quiz: Vec<Question>,
    pub broken: RunConfig,
    pub fixed: RunConfig,
    /// Paths at which broken and fixed may differ.
    pub varies: Vec<String>,
    pub claims: Vec<Claim>,
    pub checks: Vec<Check>,
    pub lesson: Lesson,
    /// What is wrong: shown only after the prediction.
    pub fault: String,
    /// One line: what `t` toggles.
    pub fix: String,
    /// What a CPU device cannot show of this stage, if anything: shown only after the prediction.
    pub cpu_note: Option<String>,
    /// What the learner edits.
    pub files: Vec<StageFile>,
    /// Steps that `check` trains before it looks.
    pub steps: u64,
    /// The beats of presenter mode.
    pub cues: Vec<Cue>,
    /// Name of its lesson's file: `01-broken-init.md`.
    pub lesson_file: String,
    /// Language of the lesson that was found.
    pub language: String,
    /// Where the stage came from, for messages: `exercises/01-broken-init`.
    pub path: String,
    /// Line of the id in `stage.toml`, for messages.
    pub id_line: usize,
}

/// One beat of presenter mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cue {
    /// The panel to look at, or `lesson`.
    pub show: String,
    /// What the room reads.
    pub say: String,
    pub does: CueDoes,
}

/// What a beat does when it is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CueDoes {
    #[default]
    Nothing,
    /// The fix, while it trains.
    Toggle,
    /// Both in pairs.
    Pair,
    /// The next hint.
    Hint,
}

/// A question with its choices, a first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    pub prompt: String,
    pub choices: Vec<String>,
    /// Index into `choices`.
    pub answer: usize,
    pub explanation: String,
}

/// A figure to guess before it is measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    pub prompt: String,
    /// The placeholder name that holds the truth, such as `pair.ratio`.
    pub of: String,
    pub unit: String,
    /// The scale on which the range is drawn.
    pub from: f64,
    pub to: f64,
    /// Draw the scale logarithmically.
    pub log: bool,
}

/// Where to look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    /// `loss`, `throughput`, `kernels`, `ledger`, `gradients`, `memory`, `evidence` or `lints`.
    pub panel: String,
    pub text: String,
}

/// A number somebody published, never ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    pub text: String,
    /// Who, on what device, when.
    pub source: String,
}

/// A file of a stage: what the learner starts from and what passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageFile {
    /// `config.toml`, `kernel.wgsl`.
    pub name: String,
    pub starter: String,
    pub solution: String,
}

/// The text of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lesson {
    pub sections: Vec<Section>,
}

/// A part of a lesson under its own heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    pub title: String,
    pub kind: SectionKind,
    pub blocks: Vec<Block>,
}

/// What a section is for. `Why` and `Debrief` stay hidden until the prediction was answered or skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
pub enum Block {
    Heading(u8, Vec<Span>),
    Paragraph(Vec<Span>),
    /// One line of a list; `depth` counts from 0, `marker` is `•` or `3.`; an empty marker continues the item above.
    Item {
        depth: u8,
        marker: String,
        spans: Vec<Span>,
    },
    /// Shown as it is: code, or a drawing.
    Code {
        language: String,
        text: String,
    },
    Quote(Vec<Span>),
    Table {
        head: Vec<Vec<Span>>,
        rows: Vec<Vec<Vec<Span>>>,
    },
    Rule,
}

/// A run of text with one meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    Text(String),
    Strong(String),
    Emphasis(String),
    Code(String),
    Link {
        text: String,
        to: String,
    },
    /// The name between `{{` and `}}`: a figure of this learner's run.
    Placeholder(String),
}
