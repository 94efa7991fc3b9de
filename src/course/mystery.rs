//! Mystery runs: all faults, the faults that can be combined, and the combination that a seed draws. How a mystery is shown and judged is
//! decided elsewhere.
//!
//! A mystery is the version `v3` with one to three faults. A fault is a few keys with faulty values. The number of faults is the level. A
//! seed picks one of all combinations of its level whose faults have no key in common and do not hide each other: seed 7 at level 2 draws
//! `rate-too-low + assumed-layout`. The choice does not depend on the device or the size.
//!
//! `course check` runs each fault alone, and faults of speed only with `--measure`. Combinations need no run: each fault has keys and a
//! criterion of its own, so a combination fails until all its faults are set back, and then it is the known-good configuration.

use protocol::config::{Knob, KnobValue, Preset, RunConfig};
use protocol::random::Rng;

/// The largest number of faults of a mystery.
pub const LEVELS: u8 = 3;
/// The name of the version that is known to be good. Its operations are fast and correct.
const GOOD: &str = "v3";
/// Keys that the panel offers although no mystery has a fault there. Each looks as if it could be a fault.
const DECOYS: &[&str] = &["model.qkv", "measure.warmup", "measure.profile-every"];

/// The outward sign of a fault. Panels tell faults with the same sign apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum Symptom {
    /// The loss is right, every token takes too long.
    #[strum(serialize = "a slow step")]
    Slow,
    /// The loss starts wrong, does not fall, or falls less than it could.
    #[strum(serialize = "a loss that is wrong")]
    BadLoss,
    /// Nothing seems wrong, or it seems better than it can be.
    #[strum(serialize = "nothing wrong, or too good")]
    TooGood,
}

/// The criterion that a fault alone does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum Criterion {
    #[strum(serialize = "the outputs must be those of the reference")]
    Parity,
    #[strum(serialize = "every parameter must get a gradient")]
    Gradients,
    #[strum(serialize = "the times must be true and add up")]
    Ledger,
    #[strum(serialize = "the loss must start near ln V")]
    LossStarts,
    #[strum(serialize = "the loss must fall")]
    LossFalls,
    #[strum(serialize = "each token must take no longer than with the known-good configuration")]
    Speed,
}

/// Keys of a configuration, each with a value.
type Values = &'static [(&'static str, &'static str)];

/// Rows that are long enough to make attention a large part of the step. In short rows, a slow attention hardly shows.
const LONG_ROWS: [(&str, &str); 2] = [("train.batch", "2"), ("train.context", "256")];

/// A fault that a mystery can have.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// A short name for lists and messages, which never changes.
    pub id: &'static str,
    /// Keys and their faulty values.
    pub sets: Values,
    /// Values that the known-good configuration needs for the fault to show.
    pub needs: Values,
    pub symptom: Symptom,
    /// The criterion that a run with this fault does not meet.
    pub criterion: Criterion,
    /// A sentence about the effect, which is shown at the end.
    pub effect: &'static str,
}

// A row has the id, the symptom, the criterion, the faulty values, the values that the fault needs, and the effect.
macro_rules! faults {
    ($($id:literal $symptom:ident $criterion:ident $sets:tt needs $needs:tt $effect:literal;)+) => {
        /// Every fault, in the order of their symptoms.
        pub static FAULTS: &[Fault] = &[$(Fault {
            id: $id, sets: &$sets, needs: &$needs, effect: $effect,
            symptom: Symptom::$symptom, criterion: Criterion::$criterion,
        }),+];
    };
}

faults! {
    "naive-kernel" Slow Speed [("model.swiglu", "naive-kernel")] needs []
        "One thread computes each element of the feed-forward block and reads both matrices for \
         it: one row of the kernel list takes most of the step.";
    "scores-in-memory" Slow Speed [("model.attention", "composed")] needs LONG_ROWS
        "Attention writes its scores to memory and reads them again, in place of one kernel that \
         keeps them in tiles.";
    "strided-attention" Slow Speed [("model.attention", "kernel")] needs LONG_ROWS
        "A plain attention kernel, one row at a time, does what flash attention does in tiles.";
    "nothing-fused" Slow Speed [
        ("model.attention", "composed"),
        ("model.norm", "composed"),
        ("model.loss", "composed"),
        ("train.optimizer", "library"),
    ] needs LONG_ROWS
        "Norms, attention, loss and optimizer run as many small operations, each of which reads \
         and writes memory.";
    "one-row" Slow Speed [("train.batch", "1")] needs []
        "One row a step: launches and the optimizer cost as much as for many rows, so every token \
         takes longer.";
    "few-tokens" Slow Speed [("train.batch", "2"), ("train.context", "32")] needs []
        "Two short rows a step: launches and the optimizer cost as much as for many tokens, so \
         every token takes longer.";
    "short-rows" Slow Speed [("train.context", "8")] needs []
        "Eight tokens a row: launches and the optimizer cost as much as for long rows, so every \
         token takes longer.";
    "library-init" BadLoss LossStarts [("model.init", "library-default")] needs []
        "The library's initial weights make confident wrong predictions: the first loss lies far \
         above ln V.";
    "rate-too-high" BadLoss LossFalls [("train.learning-rate", "0.3")] needs []
        "Every update overshoots: the loss jumps and stays about where it began.";
    "rate-far-too-high" BadLoss LossFalls [("train.learning-rate", "3")] needs []
        "Every update overshoots by far: the loss rises above the one of guessing.";
    "rate-too-low" BadLoss LossFalls [("train.learning-rate", "1e-7")] needs []
        "Updates are too small to change anything: the loss stays at ln V.";
    "noise" BadLoss LossFalls [("train.data", "noise")] needs []
        "The tokens are noise: their entropy is ln V, so no model can lose less.";
    "detached" BadLoss Gradients [("model.gradient", "detached-norm")] needs []
        "The final norm is cut from the graph: only the output layer gets a gradient, and \
         backward is suspiciously short.";
    "assumed-layout" TooGood Parity [("model.kv-layout", "assumed")]
        needs [("model.attention", "kernel")]
        "The attention kernel reads keys and values as if they were contiguous: the loss looks \
         right, the outputs are not those of the reference.";
    "no-sync" TooGood Ledger [("measure.sync", "never")] needs []
        "Nothing waits for the device: the clock measures how fast work is submitted, and the \
         phases miss the step.";
}

/// Pairs of faults of which one hides the other.
const HIDE_EACH_OTHER: &[(&str, &str)] = &[
    // On noise no learning rate can be judged.
    ("noise", "rate-too-high"),
    ("noise", "rate-far-too-high"),
    ("noise", "rate-too-low"),
];

impl Fault {
    /// Returns the keys that the fault sets or needs.
    fn keys(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.sets.iter().chain(self.needs).map(|(key, _)| *key)
    }

    /// Returns true if a configuration has every faulty value.
    pub fn is_in(&self, config: &RunConfig) -> bool {
        let mut faulty = config.clone();
        set(&mut faulty, self.sets);
        faulty == *config
    }

    /// Returns true if both faults can show in one run.
    fn goes_with(&self, other: &Self) -> bool {
        let shares_key = self
            .keys()
            .any(|key| other.keys().any(|other_key| other_key == key));
        let hide_each_other = HIDE_EACH_OTHER.contains(&(self.id, other.id))
            || HIDE_EACH_OTHER.contains(&(other.id, self.id));
        !shares_key && !hide_each_other
    }
}

/// One to three faults, and the configurations with and without them.
#[derive(Clone, Debug, PartialEq)]
pub struct Mystery {
    pub seed: u64,
    pub faults: Vec<&'static Fault>,
    /// The known-good configuration, without the faults.
    pub good: RunConfig,
    /// The configuration with the faults, which the learner starts from.
    pub broken: RunConfig,
}

impl Mystery {
    /// Draws the mystery of a seed. The result does not depend on the machine.
    pub fn draw(seed: u64, level: u8, preset: Preset) -> Self {
        let mut all = combinations(level);
        let index = Rng::named(seed, "mystery", u64::from(level)).below(all.len());
        Self::with_faults(seed, all.swap_remove(index), preset)
    }

    /// Returns the mystery with these faults.
    pub fn with_faults(seed: u64, faults: Vec<&'static Fault>, preset: Preset) -> Self {
        let mut good = RunConfig::version(GOOD).unwrap_or_else(|| RunConfig::preset(preset));
        good.set_preset(preset);
        for fault in &faults {
            set(&mut good, fault.needs);
        }
        let mut broken = good.clone();
        for fault in &faults {
            set(&mut broken, fault.sets);
        }
        Self {
            seed,
            faults,
            good,
            broken,
        }
    }

    /// Returns the number of faults.
    pub fn level(&self) -> u8 {
        u8::try_from(self.faults.len()).unwrap_or(LEVELS)
    }

    /// Returns the names of all faults: `scores-in-memory + noise`.
    pub fn name(&self) -> String {
        let ids: Vec<&str> = self.faults.iter().map(|fault| fault.id).collect();
        ids.join(" + ")
    }
}

/// Returns every combination of `level` faults that a seed can draw, in the order of the table of faults.
pub fn combinations(level: u8) -> Vec<Vec<&'static Fault>> {
    let mut found: Vec<Vec<&'static Fault>> = vec![Vec::new()];
    for _ in 0..level.clamp(1, LEVELS) {
        let mut longer = Vec::new();
        for faults in &found {
            let first_after = faults.last().map_or(0, |last| index(last) + 1);
            for next in &FAULTS[first_after..] {
                if faults.iter().all(|fault| fault.goes_with(next)) {
                    longer.push([faults.as_slice(), &[next]].concat());
                }
            }
        }
        found = longer;
    }
    found
}

/// Returns every possible mystery; single faults come first.
pub fn all(preset: Preset) -> Vec<Mystery> {
    (1..=LEVELS)
        .flat_map(combinations)
        .map(|faults| Mystery::with_faults(0, faults, preset))
        .collect()
}

/// Returns the keys that the knobs panel offers in every mystery, in the order of the table of knobs: all keys that can be faulty, and
/// some that never are.
pub fn offers() -> impl Iterator<Item = &'static Knob> {
    protocol::config::KNOBS.iter().filter(|knob| {
        let mut faulty = FAULTS.iter().flat_map(Fault::keys);
        faulty.any(|key| key == knob.path) || DECOYS.contains(&knob.path)
    })
}

/// Returns the index of a fault in the table.
fn index(fault: &Fault) -> usize {
    FAULTS.iter().position(|row| row == fault).unwrap_or(0)
}

/// Sets keys to values. A test proves that the keys take the values of all faults.
fn set(config: &mut RunConfig, values: Values) {
    for (path, word) in values {
        if let Some(knob) = Knob::known(path) {
            let _ = knob.set(config, &KnobValue::from_word(word));
        }
    }
}

/// The points for a fault before costs.
pub const FAULT_POINTS: u32 = 100;
/// The points for a fault that costs cannot take away.
const LEAST_POINTS: u32 = 10;
/// The cost of each panel that was brought onto the screen, in points.
const PANEL_COST: u64 = 1;
/// The cost of each knob that was changed in a configuration that was tried.
const KNOB_COST: u64 = 10;
/// The cost of each minute that was begun.
const MINUTE_COST: u64 = 1;

/// Returns the points for a solved mystery of this level, after `looks` at panels, `changes` of knobs and `seconds`.
pub fn score(level: u8, looks: usize, changes: usize, seconds: u64) -> u32 {
    let minutes = seconds.div_ceil(60);
    let cost = PANEL_COST * looks as u64 + KNOB_COST * changes as u64 + MINUTE_COST * minutes;
    let faults = u32::from(level);
    (FAULT_POINTS * faults)
        .saturating_sub(u32::try_from(cost).unwrap_or(u32::MAX))
        .max(LEAST_POINTS * faults)
}

/// Returns a sentence that explains the points for a mystery of this level.
pub fn scoring(level: u8) -> String {
    let whole = FAULT_POINTS * u32::from(level);
    format!(
        "{whole}, less {PANEL_COST} for each panel that you bring onto the screen, \
         {KNOB_COST} for each knob changed in what you try, \
         and {MINUTE_COST} for each minute that has begun."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_always_draws_the_same_mystery_whatever_the_size() {
        for (seed, level, name) in [
            (1, 1, "strided-attention"),
            (2, 1, "noise"),
            (14, 1, "rate-too-low"),
            (7, 2, "rate-too-low + assumed-layout"),
            (2026, 2, "noise + no-sync"),
            (7, 3, "scores-in-memory + detached + no-sync"),
            (2026, 3, "naive-kernel + few-tokens + assumed-layout"),
        ] {
            for preset in [Preset::Tiny, Preset::Small] {
                let mystery = Mystery::draw(seed, level, preset);
                assert_eq!((mystery.name().as_str(), mystery.level()), (name, level));
            }
        }
    }

    #[test]
    fn every_fault_is_drawn_by_some_seed() {
        let drawn: BTreeSet<String> = (0..200)
            .map(|seed| Mystery::draw(seed, 1, Preset::Tiny).name())
            .collect();
        assert_eq!(drawn.len(), FAULTS.len());
    }

    #[test]
    fn every_mystery_differs_from_its_known_good_configuration_at_each_fault() {
        for preset in [Preset::Tiny, Preset::Small, Preset::Medium] {
            let all = all(preset);
            let distinct: BTreeSet<String> =
                all.iter().map(|mystery| mystery.broken.hash()).collect();
            assert_eq!(distinct.len(), all.len(), "no two mysteries are the same");
            assert!(all.len() >= 40, "{}", all.len());
            for mystery in &all {
                let name = mystery.name();
                let differs = mystery.good.differences(&mystery.broken);
                let wanted: usize = mystery.faults.iter().map(|fault| fault.sets.len()).sum();
                assert_eq!(differs.len(), wanted, "{name}: {differs:?}");
                for fault in &mystery.faults {
                    assert!(
                        fault.is_in(&mystery.broken) && !fault.is_in(&mystery.good),
                        "{name}"
                    );
                }
                assert!(mystery.good.problems().is_empty(), "{name}");
                assert!(mystery.broken.problems().is_empty(), "{name}");
                // Setting every faulty key back is a solution.
                let mut fixed = mystery.broken.clone();
                for knob in mystery.good.differing(&mystery.broken) {
                    let value = KnobValue::from_word(&(knob.get)(&mystery.good));
                    knob.set(&mut fixed, &value).expect("its own value");
                    let is_offered = offers().any(|offer| offer.path == knob.path);
                    assert!(is_offered, "{}", knob.path);
                }
                assert_eq!(fixed, mystery.good, "{name}");
            }
        }
    }

    #[test]
    fn faults_that_hide_each_other_are_not_drawn_together() {
        let find = |id: &str| {
            FAULTS
                .iter()
                .find(|fault| fault.id == id)
                .expect("in the table")
        };
        for (a, b) in HIDE_EACH_OTHER {
            assert!(!find(a).goes_with(find(b)));
            assert!(!find(b).goes_with(find(a)));
        }
        // Another attention does not read the layout at all.
        let sets_attention =
            |fault: &Fault| fault.sets.iter().any(|(key, _)| *key == "model.attention");
        for pair in combinations(2) {
            if pair.iter().any(|fault| fault.id == "assumed-layout") {
                assert!(!pair.iter().any(|fault| sets_attention(fault)));
            }
        }
    }

    #[test]
    fn the_docs_explain_the_points_in_the_words_of_the_screen() {
        let whole = format!("Points: {FAULT_POINTS} for each fault, ");
        let sentence = scoring(1);
        let (_, costs) = sentence.split_once(", ").expect("what it costs");
        for text in [
            include_str!("../../docs/mystery.md"),
            include_str!("../../docs/instructor.md"),
        ] {
            let words: Vec<&str> = text.split_whitespace().collect();
            let on_one_line = words.join(" ");
            let expected = format!("{whole}{costs}");
            assert!(on_one_line.contains(&expected), "{on_one_line}");
        }
    }

    #[test]
    fn looks_at_panels_cost_less_than_changes_of_knobs() {
        assert_eq!(score(1, 3, 1, 61), 100 - 3 - 10 - 2);
        assert_eq!(score(2, 0, 40, 0), 20, "at least 10 for each fault");
        assert!(score(1, 9, 1, 0) > score(1, 0, 3, 0));
    }
}
