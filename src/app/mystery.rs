//! The state of a mystery: A trains with hidden faults, and the learner changes B until it is judged right. `mystery/play.rs` changes
//! this state.
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
    /// In milliseconds since the program began.
    pub began_ms: u64,
    /// The mystery was neither solved nor given up before, so its result counts in a race.
    pub first: bool,
    /// The panels that the learner brought onto the screen.
    pub opened_panels: BTreeSet<Panel>,
    /// The configurations tried so far. The first one is A.
    tried: Vec<RunConfig>,
    /// The number of knobs changed in all tried configurations.
    pub changes: usize,
    /// The configuration of the B that runs, until it counts as tried, and the time when it began, in milliseconds since the program
    /// began.
    present: Option<(RunConfig, u64)>,
    pub judging: Option<JudgeStep>,
    /// The time when the judge's present work began, in milliseconds since the program began. `None` while it rests.
    judging_since_ms: Option<u64>,
    /// The length of the judge's earlier work, in milliseconds.
    judged_ms: u64,
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
            judging_since_ms: None,
            judged_ms: 0,
            paired_with_good: false,
            report: None,
            end: None,
            mystery,
        }
    }

    /// Returns the seconds since the mystery began, without those of the judge.
    pub fn seconds(&self, now_ms: u64) -> u64 {
        let present_ms = self
            .judging_since_ms
            .map_or(0, |since| now_ms.saturating_sub(since));
        now_ms.saturating_sub(self.began_ms + self.judged_ms + present_ms) / 1000
    }

    /// Returns the number of configurations that were tried after A.
    pub fn configurations(&self) -> usize {
        self.tried.len() - 1
    }

    /// Sets the judge's present measurement. `None` means that the judge has ended.
    pub(super) fn set_judging(&mut self, step: Option<JudgeStep>, now_ms: u64) {
        if step.is_some() {
            self.judging_since_ms.get_or_insert(now_ms);
        } else if let Some(since) = self.judging_since_ms.take() {
            self.judged_ms += now_ms.saturating_sub(since);
        }
        self.judging = step;
    }

    /// Counts a tried configuration. It costs the number of knobs in which it differs from the nearest one tried before.
    pub(super) fn count_tried(&mut self, config: &RunConfig) {
        let distances = self
            .tried
            .iter()
            .map(|earlier| earlier.differences(config).len());
        if let Some(distance @ 1..) = distances.min() {
            self.changes += distance;
            self.tried.push(config.clone());
        }
    }

    /// Returns the name of the mystery in the progress.
    pub fn name(&self) -> String {
        name(self.mystery.seed, self.mystery.level())
    }
}

/// Returns the name of a mystery in the progress: seed and level, as in `7-2`.
fn name(seed: u64, level: u8) -> String {
    format!("{seed}-{level}")
}

/// Returns the first seed of the level that the learner has not solved.
pub fn unsolved(progress: &Progress, level: u8) -> u64 {
    (1..)
        .find(|seed| !progress.mysteries.contains_key(&name(*seed, level)))
        .unwrap_or(1)
}

/// The number of solved mysteries of a level after which the list offers the next level.
const SOLVED_FOR_NEXT_LEVEL: usize = 3;

/// Returns the level that the list offers.
pub fn next_level(progress: &Progress) -> u8 {
    let solved = |level: &u8| {
        let end = format!("-{level}");
        let names = progress.mysteries.keys();
        names.filter(|name| name.ends_with(&end)).count()
    };
    (1..LEVELS)
        .find(|level| solved(level) < SOLVED_FOR_NEXT_LEVEL)
        .unwrap_or(LEVELS)
}
