//! The learner's side of a comparison: A as it was found, B as the learner made it, and the knobs that the learner may change. The
//! panel, the learner's file and every run of B come from this one state. What follows from a change is in `edit.rs`.
//!
//! One value holds A, B, the knobs that the stage offers, and why a value cannot be. The panel, the learner's file, toggles, pairs and checks all
//! read it. A knob that keeps the parameters counts from the next step; others start B again half a second after the last change. A change is
//! written to the learner's file at once, whole or not at all, and only the knobs change there. A file that cannot be read is not written: B keeps
//! its values, and once the file can be read it counts. A change that the engine refuses is taken back. Presenter mode and the shown solution set
//! B to the solution (variant `fixed`).

use std::collections::BTreeSet;

use crate::course::Stage;
use crate::course::named::NamedConfig;
use protocol::config::{KNOBS, Knob, KnobValue, Parameters, Preset, RunConfig, ValueKind};
use protocol::{RunSpec, Slot};

/// A, B and what may be changed.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Number of the stage; 0 without one.
    pub stage: u32,
    /// What A is called.
    pub variant: &'static str,
    pub config_a: RunConfig,
    pub config_b: RunConfig,
    /// In the order of the table.
    pub offers: Vec<&'static Knob>,
    /// A is hidden, because the learner is to find out what is wrong with it.
    pub hidden: bool,
    /// The selected row.
    pub row: usize,
    /// The stage whose file holds B; without one B is written nowhere.
    pub file: Option<String>,
    /// What is wrong with that file, with its line; B keeps its last good values meanwhile.
    pub problem: Option<String>,
    /// Knobs that the learner changed.
    pub touched: BTreeSet<&'static str>,
    /// B is the built-in solution as it was shown.
    pub solved: bool,
    /// The last change that was refused.
    refused: Option<RefusedChange>,
}

/// A change of a knob that no run has confirmed yet.
#[derive(Clone, Debug)]
pub struct KnobChange {
    pub row: usize,
    /// B before the change.
    pub before: RunConfig,
}

#[derive(Clone, Debug)]
struct RefusedChange {
    row: usize,
    value: String,
    why: String,
}

/// A line of the panel.
pub struct KnobRow<'a> {
    pub knob: &'static Knob,
    /// None where it is hidden.
    pub a: Option<String>,
    pub b: Option<String>,
    /// Why the last change of this knob was refused.
    pub refused: Option<&'a str>,
    /// Why it does nothing beside the other values of B.
    pub idle: Option<&'static str>,
}

impl KnobRow<'_> {
    /// Whether the learner gave B another value, as far as it may be known.
    pub fn differs(&self) -> bool {
        self.b.is_some() && self.a != self.b
    }
}

impl Default for Comparison {
    fn default() -> Self {
        Self::new(0, "start", RunConfig::preset(Preset::default()), &[])
    }
}

impl Comparison {
    /// B equals A, and the knobs with these paths may be changed.
    pub fn new(stage: u32, variant: &'static str, found: RunConfig, offers: &[String]) -> Self {
        let offered = |knob: &&Knob| offers.iter().any(|path| path == knob.path);
        Self {
            stage,
            variant,
            config_b: found.clone(),
            config_a: found,
            offers: KNOBS.iter().filter(offered).collect(),
            hidden: false,
            row: 0,
            file: None,
            problem: None,
            touched: BTreeSet::new(),
            solved: false,
            refused: None,
        }
    }

    /// A stage as the learner finds it, at another preset if one is given.
    pub fn of_stage(stage: &Stage, preset: Option<Preset>) -> Self {
        let found = NamedConfig::broken(stage, preset).config;
        Self {
            file: Some(stage.id.clone()),
            ..Self::new(stage.number, "broken", found, &stage.offers)
        }
    }

    /// A run without a stage: every knob may be changed.
    pub fn free(found: RunConfig) -> Self {
        let all: Vec<String> = KNOBS.iter().map(|knob| knob.path.to_owned()).collect();
        Self::new(0, "start", found, &all)
    }

    /// The run of A.
    pub fn run_a(&self) -> RunSpec {
        self.run_of(Slot::A)
    }

    /// The run of B.
    pub fn run_b(&self) -> RunSpec {
        self.run_of(Slot::B)
    }

    /// The run of a slot.
    pub(super) fn run_of(&self, slot: Slot) -> RunSpec {
        let (variant, config) = match slot {
            Slot::A => (self.variant, &self.config_a),
            Slot::B if self.solved => ("fixed", &self.config_b),
            Slot::B => ("custom", &self.config_b),
        };
        RunSpec {
            stage: self.stage,
            variant: variant.to_owned(),
            slot,
            config: config.clone(),
            steps: None,
            sealed: self.hidden,
        }
    }

    /// The run that shows the present B: A's while both are the same.
    pub(super) fn run_now(&self) -> RunSpec {
        self.run_of(if self.same() { Slot::A } else { Slot::B })
    }

    /// Whether B is still what A is, as far as it may be known.
    pub fn same(&self) -> bool {
        match self.hidden {
            true => self.touched.is_empty(),
            false => self.config_a == self.config_b,
        }
    }

    /// What the learner changed: `model.loss fused, train.batch 16`.
    pub fn differences(&self) -> String {
        self.differences_of(&self.config_b)
    }

    /// The same of another configuration that was B.
    pub(super) fn differences_of(&self, config: &RunConfig) -> String {
        if !self.hidden {
            return config.beside(&self.config_a);
        }
        let changed = KNOBS.iter().filter(|it| self.touched.contains(it.path));
        let named = changed.map(|knob| format!("{} {}", knob.path, (knob.get)(config)));
        named.collect::<Vec<_>>().join(", ")
    }

    /// The lines of the panel.
    pub fn rows(&self) -> impl Iterator<Item = KnobRow<'_>> {
        self.offers.iter().enumerate().map(|(at, knob)| {
            let shown = !self.hidden || self.touched.contains(knob.path);
            let refused = self.refused.as_ref().filter(|it| it.row == at);
            KnobRow {
                knob,
                a: (!self.hidden).then(|| (knob.get)(&self.config_a)),
                b: shown.then(|| (knob.get)(&self.config_b)),
                refused: refused.map(|it| it.why.as_str()),
                // The reason would reveal hidden values.
                idle: knob.idle(&self.config_b).filter(|_| !self.hidden),
            }
        })
    }

    /// The selected knob.
    pub fn knob(&self) -> Option<&'static Knob> {
        self.offers.get(self.row).copied()
    }

    /// Whether a change of this knob needs another start, at step 0 from the run's seed.
    pub fn starts_again(knob: &Knob) -> bool {
        knob.parameters == Parameters::New
    }

    /// Whether A is hidden and a changed knob needs another start: weights that stay would tell that its value is A's. Between
    /// two Bs that counts for the selected knob only.
    pub(super) fn begins_again(&self, other_slot: bool) -> bool {
        let selected = self.knob().map(|knob| knob.path);
        let mut changed = self
            .offers
            .iter()
            .filter(|it| self.touched.contains(it.path));
        let counts = |path| other_slot || selected == Some(path);
        self.hidden && changed.any(|it| Self::starts_again(it) && counts(it.path))
    }

    /// Selects another row.
    pub fn select(&mut self, row: usize) {
        self.row = row.min(self.offers.len().saturating_sub(1));
    }

    /// Gives B the next or previous value of the selected knob. A value that is refused is noted with its reason; B keeps the old one,
    /// and the next step continues from the refused one. Returns whether B changed.
    pub fn step(&mut self, by: i32) -> bool {
        let Some(knob) = self.knob() else {
            return false;
        };
        let known = !self.hidden || self.touched.contains(knob.path);
        let refused = self.refused.take().filter(|it| it.row == self.row);
        let from = match refused {
            Some(refused) => refused.value,
            None => (knob.get)(&self.config_b),
        };
        let next = match (known, knob.kind) {
            // The first value says nothing about the hidden one.
            (false, ValueKind::Choice(names)) => {
                names.first().map(|it| KnobValue::Text((*it).to_owned()))
            }
            (false, _) => {
                let plain = (knob.get)(&RunConfig::preset(self.config_b.preset));
                Some(KnobValue::from_word(&plain))
            }
            (true, _) => knob.after(&from, by),
        };
        match next {
            Some(value) => self.set(self.row, &value),
            None => {
                self.refuse(self.row, from, "there is no value beyond this one");
                false
            }
        }
    }

    /// Gives B this value of the knob on a row. Returns whether B changed.
    pub fn set(&mut self, row: usize, value: &KnobValue) -> bool {
        let Some(knob) = self.offers.get(row) else {
            return false;
        };
        let mut changed = self.config_b.clone();
        let done = knob.set(&mut changed, value);
        let problem = changed.problems().into_iter().next();
        let wrong = done.err().or(problem.map(|problem| problem.what));
        if let Some(why) = wrong {
            self.refuse(row, (knob.get)(&changed), &why);
            return false;
        }
        self.refused = None;
        let first = self.touched.insert(knob.path);
        if changed == self.config_b {
            return first && self.hidden;
        }
        self.config_b = changed;
        self.solved = false;
        true
    }

    fn refuse(&mut self, row: usize, value: String, why: &str) {
        let why = why.to_owned();
        self.refused = Some(RefusedChange { row, value, why });
    }

    /// B is another configuration as a whole: the learner's file, or the solution.
    pub fn set_b(&mut self, config: RunConfig, solved: bool) {
        let changed = config.differences(&self.config_b);
        self.touched.extend(changed);
        (self.config_b, self.solved) = (config, solved);
        self.refused = None;
    }

    /// The engine could not run B, for this reason: B is what it was before the change, and the changed row says why.
    pub(super) fn take_back(&mut self, change: KnobChange, why: &str) {
        let tried = self.offers.get(change.row);
        let tried = tried.map(|knob| (knob.get)(&self.config_b));
        self.config_b = change.before;
        self.refuse(change.row, tried.unwrap_or_default(), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::KvLayout;

    fn comparison(paths: &[&str]) -> Comparison {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        Comparison::new(0, "start", RunConfig::preset(Preset::Tiny), &paths)
    }

    #[test]
    fn a_knob_goes_through_its_values_and_back_to_what_was_found() {
        let mut comparison = comparison(&["model.norm", "train.batch"]);
        assert!(comparison.same() && comparison.differences().is_empty());
        assert!(comparison.step(1) && !comparison.same());
        assert_eq!(comparison.differences(), "model.norm fused");
        assert_eq!(comparison.run_b().variant, "custom");
        assert!(comparison.step(1) && comparison.same(), "choices go round");
        comparison.select(9);
        assert!(comparison.step(-1));
        assert_eq!(comparison.config_b.train.batch, 4);
    }

    #[test]
    fn a_knob_that_does_nothing_beside_the_others_says_so() {
        let mut comparison = comparison(&["model.kv-layout", "model.attention"]);
        let idle = |comparison: &Comparison| {
            comparison
                .rows()
                .map(|row| row.idle.is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(idle(&comparison), [false, false]);
        comparison.config_b.model.kv_layout = protocol::config::KvLayout::Strided;
        assert_eq!(idle(&comparison), [false, true]);
        comparison.config_b.model.attention = protocol::config::Attention::Flash;
        assert_eq!(idle(&comparison), [true, false]);
        comparison.hidden = true;
        assert_eq!(
            idle(&comparison),
            [false, false],
            "it would name a hidden value"
        );
    }

    #[test]
    fn what_cannot_be_is_said_on_its_row_and_stepped_over() {
        let mut comparison = comparison(&["model.kv-heads", "model.norm"]);
        assert!(comparison.step(1), "2 to 4");
        assert!(!comparison.step(1), "8 do not divide 4 heads");
        assert_eq!(comparison.config_b.model.kv_heads, 4);
        let said = |comparison: &Comparison| {
            comparison
                .rows()
                .next()
                .and_then(|row| row.refused.map(str::to_owned))
        };
        assert!(said(&comparison).is_some_and(|why| why.contains("do not divide heads")));
        assert!(!comparison.step(-1), "back from it to the value that B has");
        assert_eq!(said(&comparison), None);
        assert!(comparison.step(-1), "4 to 2");
    }

    #[test]
    fn a_refusal_of_the_engine_takes_the_change_back() {
        let mut comparison = comparison(&["model.kv-layout"]);
        let before = comparison.config_b.clone();
        assert!(comparison.step(1));
        assert_eq!(comparison.config_b.model.kv_layout, KvLayout::Strided);
        comparison.take_back(KnobChange { row: 0, before }, "this device has no room");
        assert!(comparison.same());
        assert_eq!(
            comparison.rows().next().and_then(|row| row.refused),
            Some("this device has no room")
        );
        assert!(comparison.step(1), "goes on behind it");
        assert_eq!(comparison.config_b.model.kv_layout, KvLayout::Assumed);
    }

    #[test]
    fn hidden_values_are_not_told_by_steps() {
        let mut comparison = comparison(&["model.norm", "train.batch"]);
        (
            comparison.hidden,
            comparison.config_a.train.batch,
            comparison.config_b.train.batch,
        ) = (true, 1, 1);
        assert!(
            comparison
                .rows()
                .all(|row| row.a.is_none() && row.b.is_none())
        );
        assert!(comparison.step(-1), "changed, whatever it was");
        let shown: Vec<Option<String>> = comparison.rows().map(|row| row.b).collect();
        assert_eq!(shown, [Some("composed".to_owned()), None]);
        assert!(!comparison.same());
        comparison.select(1);
        assert!(comparison.step(1));
        assert_eq!(
            comparison.config_b.train.batch, 8,
            "the preset's, not twice what was hidden"
        );
    }
}
