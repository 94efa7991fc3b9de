//! The state of a mystery run: A trains with hidden faults; the learner changes B until it is judged right.
//! Plain data; `mystery/play.rs` changes it.
//!
//! The screen shows a run without a stage, and its `Comparison` hides what was not found yet. Hidden are A's values in the knobs, B's until they
//! are turned, lints, the marks of the top line, and reports. Not hidden, because they are evidence, are every figure, the kernels' names and
//! the marks inside the panels.
//!
//! The score counts panels that were not on the screen anyway, knobs by which a configuration that ran for two seconds differs from the nearest
//! one tried before, and minutes without those of the judge.

pub(super) mod play;

use std::collections::BTreeSet;

use crate::course::mystery::{LEVELS, Mystery};
use crate::course::save_file::Progress;
use crate::judge::StageReport;
use crate::panel::Panel;
use protocol::Finished;
use protocol::config::RunConfig;

/// The state of the open mystery.
#[derive(Clone, Debug)]
pub struct MysteryRun {
    pub mystery: Mystery,
    pub began_ms: u64,
    /// It was neither solved nor given up before: its result counts in a race.
    pub first: bool,
    /// Panels that were brought onto the screen.
    pub looked: BTreeSet<Panel>,
    /// Configurations that were tried, A as it was found first.
    tried: Vec<RunConfig>,
    /// Knobs that were changed from one of them to the next.
    pub changes: usize,
    /// The B that runs, and since when.
    present: Option<(RunConfig, u64)>,
    pub judging: Option<JudgeStep>,
    /// When the judge began, and how long it took before.
    judged: (Option<u64>, u64),
    /// The last pairs had the known-good configuration as A.
    pub paired_with_good: bool,
    /// The last verdict.
    pub report: Option<StageReport>,
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
            began_ms,
            first,
            looked: BTreeSet::new(),
            tried: vec![mystery.broken.clone()],
            changes: 0,
            present: None,
            judging: None,
            judged: (None, 0),
            paired_with_good: false,
            report: None,
            end: None,
            mystery,
        }
    }

    /// Seconds so far, without those of the judge.
    pub fn seconds(&self, now_ms: u64) -> u64 {
        let (since, before) = self.judged;
        let judged = before + since.map_or(0, |since| now_ms.saturating_sub(since));
        now_ms.saturating_sub(self.began_ms + judged) / 1000
    }

    /// Configurations that were tried.
    pub fn configurations(&self) -> usize {
        self.tried.len() - 1
    }

    /// Notes what the judge measures now, or that it has ended.
    pub(super) fn set_judging(&mut self, step: Option<JudgeStep>, now_ms: u64) {
        let (since, before) = self.judged;
        self.judged = match (&step, since) {
            (Some(_), None) => (Some(now_ms), before),
            (None, Some(since)) => (None, before + now_ms.saturating_sub(since)),
            _ => self.judged,
        };
        self.judging = step;
    }

    /// Notes a configuration that was tried. It costs the knobs in which it differs from the nearest one that was tried before.
    pub(super) fn note_tried(&mut self, config: &RunConfig) {
        let known = self.tried.iter();
        let apart = known.map(|it| it.differences(config).len()).min();
        if let Some(apart @ 1..) = apart {
            self.changes += apart;
            self.tried.push(config.clone());
        }
    }

    /// Its name in the progress: `7-2`.
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
