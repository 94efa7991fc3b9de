//! What is known of a config exercise: what the learner expects, how far the measurement has come, and what it found.
//! Plain data; `measure.rs` changes it.

use crate::course::check::Line;
use crate::course::sweep::Table;

/// What the learner's answer file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// It was not read yet.
    #[default]
    Unread,
    /// Something is to write first: where, and what.
    Open(Vec<String>),
    /// Every question has an answer: its key, and the words.
    Given(Vec<(String, String)>),
}

/// How far a measurement has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Which of how many runs and comparisons.
    pub number: usize,
    pub of: usize,
    /// What the present one is about, and how far it is.
    pub what: String,
    pub done: String,
    pub table: Table,
}

/// A measurement in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measuring {
    /// It has begun; until then it waits for the stage's run to stand still.
    pub begun: bool,
    /// The stage's run was paused for it and goes on afterwards.
    pub paused: bool,
    pub since_ms: u64,
    pub sweep: Sweep,
}

/// What a measurement found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub passed: bool,
    /// Each criterion: what was asked, what was measured.
    pub lines: Vec<Line>,
    pub table: Table,
    pub device: String,
    pub seconds: f64,
    /// Why it broke off. Then there are no lines.
    pub failed: Option<String>,
}
