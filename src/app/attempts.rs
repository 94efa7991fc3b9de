//! The log of attempts. An attempt is one run of A or B with its results: curve, first loss, figures and pairs. Each slot shows one
//! attempt. The others are kept, and the learner can go back to them. `protocol::story` decides which run a start continues.
//!
//! Curve, first loss, evidence and pairs belong to one attempt and are shown only with it. If another attempt has trained the weights since,
//! an attempt's loss is the last one that it reached itself (`RunStory::own_loss`).

use super::part::{FollowUp, FollowUps};
use super::{Bench, RequestedRun};
use protocol::config::RunConfig;
use protocol::story::RunStory;
use protocol::{Pair, Slot};

impl RequestedRun {
    /// Returns the longest earlier run of A. `None` unless A was restarted and has made fewer steps since.
    pub fn longer_a(&self) -> Option<&RunStory> {
        let longest = self.story.longest_a();
        (longest.number != self.slot(Slot::A).number).then_some(longest)
    }

    /// Iterates over the runs of B, the latest first.
    fn runs_of_b(&self) -> impl Iterator<Item = &RunStory> {
        let latest_first = self.story.runs().rev();
        latest_first.filter(|run| run.description.slot == Slot::B)
    }

    /// Returns the latest result of pairs with this configuration as B.
    pub(super) fn pair_of(&self, config: &RunConfig) -> Option<&Pair> {
        self.runs_of_b()
            .filter(|run| run.description.has(config))
            .find_map(|run| run.pair.as_ref())
    }

    /// Returns the result of an attempt's pairs with A.
    pub fn pair_of_attempt(&self, attempt: &RunStory) -> Option<&Pair> {
        self.pair_of(attempt.description.config.as_ref()?)
    }

    /// Returns A, then every B that ran in this stage, in the order of their starts. Each configuration appears once, with its longest run.
    pub fn attempts(&self) -> Vec<&RunStory> {
        let mut all: Vec<&RunStory> = self.story.runs().collect();
        all.sort_by_key(|run| (run.description.slot, run.number));
        let mut rows: Vec<&RunStory> = Vec::new();
        for attempt in all {
            match rows.iter_mut().find(|row| row.is_like(attempt)) {
                Some(row) if attempt.steps() > row.steps() => *row = attempt,
                Some(_) => {}
                None => rows.push(attempt),
            }
        }
        rows
    }
}

impl Bench {
    /// Returns the attempt of B that a lesson describes: the present one, or the latest one if B equals A again.
    pub(super) fn b_of_lesson(&self) -> &RunStory {
        let present = self.run.slot(Slot::B);
        if !self.comparison.b_equals_a() {
            return present;
        }
        self.run
            .runs_of_b()
            .find(|run| !run.of_pairs)
            .unwrap_or(present)
    }

    /// Returns the knobs in which an attempt differs from A, as in `model.norm fused`.
    pub fn knobs_of_attempt(&self, attempt: &RunStory) -> String {
        let config = attempt.description.config.as_ref();
        config.map_or_else(String::new, |config| self.comparison.differences_of(config))
    }

    /// Returns true if an attempt has B's present configuration.
    pub fn is_present(&self, attempt: &RunStory) -> bool {
        attempt.description.has(&self.comparison.config_b)
    }

    /// Sets B to the configuration of the attempt on this line of the list. `None` if B has it already.
    pub(super) fn back_to_attempt(&mut self, line: usize) -> Option<FollowUps> {
        let config = self.run.attempts().get(line)?.description.config.clone()?;
        if config == self.comparison.config_b {
            return None;
        }
        self.set_b(config, false);
        let text = if self.comparison.b_equals_a() {
            "B equals A again".to_owned()
        } else {
            format!("B is set back to: {}", self.comparison.differences())
        };
        let mut follows = Vec::from_iter(self.write_b());
        follows.push(FollowUp::Changed { delayed: false });
        follows.push(FollowUp::Tell(text));
        Some(follows)
    }
}
