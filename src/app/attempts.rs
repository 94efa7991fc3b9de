//! The log of attempts. An attempt is one run of A or B, and its results: curve, first loss, figures, pairs. Each slot shows one attempt; the
//! others are kept, and the learner can go back to them. `protocol::story` decides which run a start goes on from.
//!
//! Curve, first loss, evidence and pairs belong to an attempt and are shown only beside it. Where another attempt has trained the weights since,
//! its loss is the one before (`RunStory::own_loss`).

use super::part::{Follow, Follows};
use super::{Bench, RequestedRun};
use protocol::config::RunConfig;
use protocol::story::RunStory;
use protocol::{Pair, Slot};

impl RequestedRun {
    /// The longest run of A, where A began again and has not come as far yet.
    pub fn longer_a(&self) -> Option<&RunStory> {
        let longest = self.story.longest_a();
        (longest.number != self.slot(Slot::A).number).then_some(longest)
    }

    /// Runs of B that are `wanted`, the latest first.
    fn runs_of_b(&self, wanted: impl Fn(&RunStory) -> bool) -> impl Iterator<Item = &RunStory> {
        let all = self.story.runs().rev();
        all.filter(move |it| it.description.slot == Slot::B && wanted(it))
    }

    /// The result of pairs with this B.
    pub(super) fn pair_of(&self, config: &RunConfig) -> Option<&Pair> {
        let mut of_b = self.runs_of_b(|it| it.description.has(config));
        of_b.find_map(|it| it.pair.as_ref())
    }

    /// The result of an attempt's pairs with A.
    pub fn pair_of_attempt(&self, attempt: &RunStory) -> Option<&Pair> {
        self.pair_of(attempt.description.config.as_ref()?)
    }

    /// A, then every B that ran in this stage, in the order of their starts; the longest run of each configuration.
    pub fn attempts(&self) -> Vec<&RunStory> {
        let mut all: Vec<&RunStory> = self.story.runs().collect();
        all.sort_by_key(|it| (it.description.slot, it.number));
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
    /// The attempt of B that a lesson describes: the present one, or the latest if B equals A again.
    pub(super) fn b_of_lesson(&self) -> &RunStory {
        let latest = self.run.runs_of_b(|it| !it.of_pairs).next();
        let latest = latest.filter(|_| self.comparison.same());
        latest.unwrap_or_else(|| self.run.slot(Slot::B))
    }

    /// The knobs in which an attempt differs from A: `model.norm fused`.
    pub fn knobs_of_attempt(&self, attempt: &RunStory) -> String {
        let config = attempt.description.config.as_ref();
        config.map_or_else(String::new, |config| self.comparison.differences_of(config))
    }

    /// Whether an attempt has B's present configuration.
    pub fn is_present(&self, attempt: &RunStory) -> bool {
        attempt.description.has(&self.comparison.config_b)
    }

    /// Sets B to the configuration of an attempt.
    pub(super) fn back_to_attempt(&mut self, line: usize) -> Option<Follows> {
        let config = self.run.attempts().get(line)?.description.config.clone()?;
        if config == self.comparison.config_b {
            return None;
        }
        self.set_b(config, false);
        let text = match self.comparison.same() {
            true => "B is again the same as A".to_owned(),
            false => format!("B is again: {}", self.comparison.differences()),
        };
        Some(vec![
            self.write_b(),
            Follow::Changed(false),
            Follow::Tell(text),
        ])
    }
}
