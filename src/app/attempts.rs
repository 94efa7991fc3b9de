//! The log of attempts. An attempt is one configuration of A or B with one start, and its results: curve, first loss, figures, pairs.
//! Each slot shows one attempt; the others are kept, and the learner can go back to them.
//!
//! Curve, first loss, evidence and pairs belong to an attempt and are shown only beside it. Where another attempt has trained the weights since,
//! its loss is the one before (`SlotRun::own_loss`).

use super::run::SlotRun;
use super::{App, RequestedRun};
use protocol::config::RunConfig;
use protocol::{Pair, Slot, Started};

/// Most attempts that are kept besides those on the screen.
const KEPT: usize = 48;

impl RequestedRun {
    /// Starts a run, or continues it with changed knobs. A configuration that ran before on the same weights gets its curve and
    /// figures back.
    pub(super) fn begin(&mut self, started: Started, now_ms: u64) {
        let slot = started.run.slot;
        let went_on = started.from_step > 0;
        let trained = self.shown().loss.last().filter(|_| went_on);
        let (before, weights) = match went_on {
            true => (Some(self.active), self.shown().weights),
            false => {
                self.starts += 1;
                (None, self.starts)
            }
        };
        self.active = slot;
        if slot == Slot::B {
            self.show_fullest_a();
        }
        let same = |it: &SlotRun| it.is_of(&started) && it.weights == weights && !it.of_pairs;
        if !same(&self.slots[slot as usize]) {
            self.swap(slot, same);
        }
        let shown = &mut self.slots[slot as usize];
        let own = shown.own_loss();
        shown.left = own.filter(|it| shown.left.is_some() || trained.is_some_and(|to| it.0 < to.0));
        if shown.started.is_none() {
            (shown.weights, shown.went_on_from) = (weights, before);
            shown.began_ms = now_ms;
        }
        shown.begin(started);
    }

    /// Starts one side of a paired measurement. Results of a run with the same configuration stay, because pairs measure times only.
    pub(super) fn begin_paired(&mut self, started: Started, now_ms: u64) {
        let slot = started.run.slot;
        let known = |it: &SlotRun| it.is_of(&started) && !it.of_pairs;
        if !known(&self.slots[slot as usize]) {
            self.swap(slot, known);
        }
        let shown = &mut self.slots[slot as usize];
        if shown.started.is_none() {
            (shown.of_pairs, shown.began_ms) = (true, now_ms);
            shown.started = Some(started);
        }
        if slot == Slot::B {
            self.show_fullest_a();
        }
    }

    /// Keeps the attempt of a slot, and shows there the latest kept attempt that is `wanted`, or nothing.
    fn swap(&mut self, slot: Slot, wanted: impl Fn(&SlotRun) -> bool) {
        let found = self.earlier.iter().rposition(wanted);
        let found = found.map(|at| self.earlier.remove(at));
        let old = std::mem::replace(&mut self.slots[slot as usize], found.unwrap_or_default());
        if old.started.is_some() {
            self.earlier.push(old);
        }
        let oldest = self
            .earlier
            .iter()
            .position(|it| it.slot() == Some(Slot::B));
        if let Some(oldest) = oldest.filter(|_| self.earlier.len() > KEPT) {
            self.earlier.remove(oldest);
        }
    }

    /// Shows the results of this configuration in slot B; results of another B are in the log.
    pub(super) fn show_b(&mut self, config: &RunConfig) {
        let is_b = |it: &SlotRun| it.ran(Slot::B, config);
        if !is_b(&self.slots[1]) {
            self.swap(Slot::B, is_b);
        }
    }

    /// Shows nothing in slot B; its attempt is kept.
    pub(super) fn hide_b(&mut self) {
        if self.slots[1].started.is_some() {
            self.swap(Slot::B, |_| false);
        }
    }

    /// Shows the longest run of A beside B. It began with the same weights and batches as every other run of A.
    fn show_fullest_a(&mut self) {
        let shown = &self.slots[0];
        let longer = |it: &&SlotRun| it.is_like(shown) && it.steps() > shown.steps();
        let longest = self.earlier.iter().filter(longer);
        if let Some(began) = longest.max_by_key(|it| it.steps()).map(|it| it.weights) {
            let like = shown.started.clone();
            self.swap(Slot::A, |it| {
                it.weights == began && like.as_ref().is_some_and(|started| it.is_of(started))
            });
        }
    }

    /// The longest run of A; later runs of A repeat it from the start.
    pub(super) fn fullest_a(&self) -> &SlotRun {
        let shown = self.slot(Slot::A);
        let others = self.earlier.iter().filter(|it| it.is_like(shown));
        others.fold(
            shown,
            |best, it| if it.steps() > best.steps() { it } else { best },
        )
    }

    /// The longest run of A, where A began again and has not come as far yet.
    pub fn longer_a(&self) -> Option<&SlotRun> {
        let fullest = self.fullest_a();
        (!std::ptr::eq(fullest, self.slot(Slot::A))).then_some(fullest)
    }

    /// The latest attempt of B that ran alone.
    fn latest_b(&self) -> Option<&SlotRun> {
        let all = self.slots.iter().chain(self.earlier.iter().rev());
        all.filter(|it| !it.of_pairs)
            .find(|it| it.slot() == Some(Slot::B))
    }

    /// Removes all attempts, because figures of another stage or device are not compared.
    pub(super) fn forget(&mut self) {
        (self.slots, self.earlier) = Default::default();
    }

    /// The result of pairs with this B.
    pub(super) fn pair_of(&self, config: &RunConfig) -> Option<&Pair> {
        let all = self.earlier.iter().chain(&self.slots).rev();
        let mut of_b = all.filter(|it| it.ran(Slot::B, config));
        of_b.find_map(|it| it.pair.as_ref())
    }
}

impl App {
    /// A, then every B that ran in this stage, in the order of their starts; the longest run of each configuration.
    pub fn attempts(&self) -> Vec<&SlotRun> {
        let run = &self.bench.run;
        let mut all: Vec<&SlotRun> = run.earlier.iter().chain(&run.slots).collect();
        all.retain(|it| it.started.is_some());
        all.sort_by_key(|it| (it.slot() != Some(Slot::A), it.began_ms));
        let mut rows: Vec<&SlotRun> = Vec::new();
        for attempt in all {
            match rows.iter_mut().find(|row| row.is_like(attempt)) {
                Some(row) if attempt.steps() > row.steps() => *row = attempt,
                Some(_) => {}
                None => rows.push(attempt),
            }
        }
        rows
    }

    /// The attempt of B that a lesson describes: the present one, or the latest if B equals A again.
    pub(super) fn b_of_lesson(&self) -> &SlotRun {
        let bench = self.shown_bench();
        let latest = bench.run.latest_b().filter(|_| bench.comparison.same());
        latest.unwrap_or_else(|| bench.run.slot(Slot::B))
    }

    /// The result of an attempt's pairs with A.
    pub fn pair_of_attempt(&self, attempt: &SlotRun) -> Option<&Pair> {
        let started = attempt.started.as_ref()?;
        self.bench.run.pair_of(&started.run.config)
    }

    /// The knobs in which an attempt differs from A: `model.norm fused`.
    pub fn knobs_of_attempt(&self, attempt: &SlotRun) -> String {
        let Some(started) = &attempt.started else {
            return String::new();
        };
        self.bench.comparison.differences_of(&started.run.config)
    }

    /// Whether an attempt has B's present configuration.
    pub fn is_present(&self, attempt: &SlotRun) -> bool {
        let config = attempt.started.as_ref().map(|it| &it.run.config);
        config == Some(&self.bench.comparison.config_b)
    }

    /// Whether the log can be opened: there are attempts, and they are not hidden.
    pub fn has_attempts(&self) -> bool {
        self.can_edit()
            && !self.bench.comparison.hidden
            && self.presenter.presentation.is_none()
            && self.bench.run.slot(Slot::A).started.is_some()
    }

    /// Sets B to the configuration of an attempt.
    pub(super) fn back_to_attempt(&mut self, line: usize) {
        let attempts = self.attempts();
        let chosen = attempts.get(line).and_then(|it| it.started.as_ref());
        let Some(config) = chosen.map(|it| it.run.config.clone()) else {
            return;
        };
        self.view.overlay = None;
        if self.waits_for_measurement() || config == self.bench.comparison.config_b {
            return;
        }
        self.bench.comparison.set_b(config, false);
        let text = match self.bench.comparison.same() {
            true => "B is again the same as A".to_owned(),
            false => format!("B is again: {}", self.bench.comparison.differences()),
        };
        self.b_replaced();
        self.tell(&text, false);
    }
}
