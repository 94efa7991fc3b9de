//! What is known of a mystery run: A trains with faults that nobody names, the learner changes B until it is judged right.
//! Plain data; `mystery/play.rs` changes it.

mod play;

use std::collections::BTreeSet;

use crate::course::mystery::{LEVELS, Mystery};
use crate::course::progress::Progress;
use crate::judge::Report;
use crate::panel::Panel;
use crate::protocol::Finished;

/// What is known of the open mystery.
#[derive(Clone, Debug)]
pub struct MysteryRun {
    pub mystery: Mystery,
    pub began_ms: u64,
    /// Nobody has solved or given it up here before: its result counts in a race.
    pub first: bool,
    /// Panels that were brought into focus.
    pub looked: BTreeSet<Panel>,
    /// Configurations of B that ran, by hash.
    pub tried: BTreeSet<String>,
    pub judging: Option<JudgeStep>,
    /// The last pairs had the known-good configuration as A.
    pub in_pairs: bool,
    /// The last verdict.
    pub report: Option<Report>,
    pub end: Option<MysteryEnd>,
}

/// What the judge measures now.
#[derive(Clone, Debug)]
pub enum JudgeStep {
    /// So many steps of B from its beginning.
    Run,
    /// The known-good configuration against B; what the run before has shown.
    Pairs(Box<Finished>),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MysteryEnd {
    Solved { points: u32, seconds: u64 },
    GivenUp,
}

impl MysteryRun {
    pub(super) fn new(mystery: Mystery, began_ms: u64, first: bool) -> Self {
        Self {
            mystery,
            began_ms,
            first,
            looked: BTreeSet::new(),
            tried: BTreeSet::new(),
            judging: None,
            in_pairs: false,
            report: None,
            end: None,
        }
    }

    pub fn seconds(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.began_ms) / 1000
    }

    /// The name of its line in the progress: `7-2`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.mystery.seed, self.mystery.level())
    }
}

/// The first seed of the level that the learner has not solved.
pub fn unsolved(progress: &Progress, level: u8) -> u64 {
    let solved = |seed: &u64| progress.mysteries.contains_key(&format!("{seed}-{level}"));
    (1..).find(|seed| !solved(seed)).unwrap_or(1)
}

/// Solved mysteries of a level after which the list offers the next level.
const ENOUGH: usize = 3;

/// The level that the list offers.
pub fn next_level(progress: &Progress) -> u8 {
    let solved = |level: &u8| {
        let end = format!("-{level}");
        let names = progress.mysteries.keys();
        names.filter(|name| name.ends_with(&end)).count()
    };
    (1..LEVELS)
        .find(|level| solved(level) < ENOUGH)
        .unwrap_or(LEVELS)
}
