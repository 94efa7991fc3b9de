//! The state of a mystery: A trains with hidden faults, and the learner changes B until it is judged right.
//! This file holds plain data; `mystery/play.rs` changes it.
//!
//! The screen shows a run without a stage. Its `Comparison` hides A's values in the knobs, and B's values until they are turned. Lints, the
//! marks of the top line and reports are hidden too. Figures, kernel names and marks inside the panels stay visible: they are the evidence.
//!
//! Three things cost points: panels that the learner brings onto the screen; knobs, counted for each configuration that ran for two seconds
//! as the difference from the nearest one tried before; and minutes, except those of the judge.

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
    /// The mystery was neither solved nor given up before, so its result counts in a race.
    pub first: bool,
    /// The panels that the learner brought onto the screen.
    pub opened_panels: BTreeSet<Panel>,
    /// The configurations tried so far. The first one is A.
    tried: Vec<RunConfig>,
    /// The number of knobs changed in all tried configurations.
    pub changes: usize,
    /// The B that runs and the time when it began, in milliseconds.
    present: Option<(RunConfig, u64)>,
    pub judging: Option<JudgeStep>,
    /// The time when the judge began, if it is at work, and the length of its earlier work, both in milliseconds.
    judged: (Option<u64>, u64),
    /// The last pairs had the known-good configuration as A.
    pub paired_with_good: bool,
    /// The last verdict.
    pub report: Option<StageReport>,
    pub end: Option<MysteryEnd>,
}

/// The measurement that the judge makes now.
#[derive(Clone, Debug)]
pub enum JudgeStep {
    /// A fresh run of B.
    Run,
    /// Pairs of the known-good configuration and B, with the summary of the fresh run before.
    Pairs(Box<Finished>),
}

/// The end of a mystery.
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
            opened_panels: BTreeSet::new(),
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

    /// Returns the seconds since the mystery began, without those of the judge.
    pub fn seconds(&self, now_ms: u64) -> u64 {
        let (since, before) = self.judged;
        let judged = before + since.map_or(0, |since| now_ms.saturating_sub(since));
        now_ms.saturating_sub(self.began_ms + judged) / 1000
    }

    /// Returns the number of configurations that were tried after A.
    pub fn configurations(&self) -> usize {
        self.tried.len() - 1
    }

    /// Notes the judge's present measurement. `None` means that the judge has ended.
    pub(super) fn set_judging(&mut self, step: Option<JudgeStep>, now_ms: u64) {
        let (since, before) = self.judged;
        self.judged = match (&step, since) {
            (Some(_), None) => (Some(now_ms), before),
            (None, Some(since)) => (None, before + now_ms.saturating_sub(since)),
            _ => self.judged,
        };
        self.judging = step;
    }

    /// Notes a tried configuration. It costs the number of knobs in which it differs from the nearest one tried before.
    pub(super) fn note_tried(&mut self, config: &RunConfig) {
        let distances = self
            .tried
            .iter()
            .map(|earlier| earlier.differences(config).len());
        if let Some(distance @ 1..) = distances.min() {
            self.changes += distance;
            self.tried.push(config.clone());
        }
    }

    /// Returns the name of the mystery in the progress: seed and level, as in `7-2`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.mystery.seed, self.mystery.level())
    }
}

/// Returns the first seed of the level that the learner has not solved.
pub fn unsolved(progress: &Progress, level: u8) -> u64 {
    let solved = |seed: &u64| progress.mysteries.contains_key(&format!("{seed}-{level}"));
    (1..).find(|seed| !solved(seed)).unwrap_or(1)
}

/// The number of solved mysteries of a level after which the list offers the next level.
const ENOUGH: usize = 3;

/// Returns the level that the list offers.
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
