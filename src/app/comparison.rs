//! A as it was found, B as the learner made it, the knobs that the learner may change, and why a value was refused. The panel, the
//! learner's file, toggles, pairs and checks all read this one state. `edit.rs` runs and saves a changed B.
//!
//! A knob that keeps the parameters takes effect at the next step. Any other knob restarts B half a second after the last change. Each change
//! is written to the learner's file at once, whole or not at all, and only the knobs change there. While the file cannot be read, it is not
//! written and B keeps its values. A change that the engine refuses is undone. Presenter mode and the shown solution set B to the solution
//! (variant `fixed`).

use std::collections::BTreeSet;

use crate::course::Stage;
use crate::course::named::NamedConfig;
use protocol::config::{KNOBS, Knob, KnobValue, Parameters, Preset, RunConfig, ValueKind};
use protocol::{RunSpec, Slot};

/// A, B and the knobs that may be changed.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The number of the stage, or 0 without a stage.
    pub stage: u32,
    /// The name of A's configuration, as in `broken`.
    pub variant: &'static str,
    pub config_a: RunConfig,
    pub config_b: RunConfig,
    /// The knobs that the learner may change, in the order of `KNOBS`.
    pub offers: Vec<&'static Knob>,
    /// True if the values of A are hidden, because the learner has to find its fault.
    pub hidden: bool,
    /// The index of the selected knob.
    pub row: usize,
    /// The id of the stage whose file holds B. `None` if B has no file.
    pub file: Option<String>,
    /// The problem with B's file and its line. B keeps its last good values meanwhile.
    pub problem: Option<String>,
    /// The paths of the knobs that the learner changed.
    pub touched: BTreeSet<&'static str>,
    /// True if B is the course's solution, unchanged.
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

/// A value that a knob did not take.
#[derive(Clone, Debug)]
struct RefusedChange {
    row: usize,
    value: String,
    why: String,
}

/// A line of the knobs panel.
pub struct KnobRow<'a> {
    pub knob: &'static Knob,
    /// The value in A. `None` while it is hidden.
    pub a: Option<String>,
    /// The value in B. `None` while it is hidden.
    pub b: Option<String>,
    /// The reason why the last change of this knob was refused.
    pub refused: Option<&'a str>,
    /// The reason why this knob has no effect with the other values of B.
    pub idle: Option<&'static str>,
}

impl KnobRow<'_> {
    /// Returns true if B's value differs from A's. False while B's value is hidden.
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
    /// Makes a comparison in which B equals A and the knobs with these paths may be changed.
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

    /// Makes the comparison of a stage as the learner finds it, at another preset if one is given.
    pub fn of_stage(stage: &Stage, preset: Option<Preset>) -> Self {
        let found = NamedConfig::broken(stage, preset).config;
        Self {
            file: Some(stage.id.clone()),
            ..Self::new(stage.number, "broken", found, &stage.offers)
        }
    }

    /// Makes the comparison of a run without a stage, in which every knob may be changed.
    pub fn free(found: RunConfig) -> Self {
        let all: Vec<String> = KNOBS.iter().map(|knob| knob.path.to_owned()).collect();
        Self::new(0, "start", found, &all)
    }

    /// Returns the run of A.
    pub fn run_a(&self) -> RunSpec {
        self.run_of(Slot::A)
    }

    /// Returns the run of B.
    pub fn run_b(&self) -> RunSpec {
        self.run_of(Slot::B)
    }

    /// Returns the run of a slot.
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

    /// Returns the run that shows the present B. This is A's run while B equals A.
    pub(super) fn run_now(&self) -> RunSpec {
        let slot = if self.b_equals_a() { Slot::A } else { Slot::B };
        self.run_of(slot)
    }

    /// Returns true if B equals A. While A is hidden, returns true if no knob was turned.
    pub fn b_equals_a(&self) -> bool {
        if self.hidden {
            self.touched.is_empty()
        } else {
            self.config_a == self.config_b
        }
    }

    /// Returns the knobs in which B differs from A, as in `model.loss fused, train.batch 16`.
    pub fn differences(&self) -> String {
        self.differences_of(&self.config_b)
    }

    /// Returns the knobs in which `config`, an earlier B, differs from A. While A is hidden, returns the knobs that were turned.
    pub(super) fn differences_of(&self, config: &RunConfig) -> String {
        if !self.hidden {
            return config.values_unlike(&self.config_a);
        }
        let turned: Vec<String> = KNOBS
            .iter()
            .filter(|knob| self.touched.contains(knob.path))
            .map(|knob| format!("{} {}", knob.path, (knob.get)(config)))
            .collect();
        turned.join(", ")
    }

    /// Returns the lines of the panel.
    pub fn rows(&self) -> impl Iterator<Item = KnobRow<'_>> {
        self.offers.iter().enumerate().map(|(row, knob)| {
            let refused = self.refused.as_ref().filter(|change| change.row == row);
            KnobRow {
                knob,
                a: (!self.hidden).then(|| (knob.get)(&self.config_a)),
                b: self.shows_b(knob).then(|| (knob.get)(&self.config_b)),
                refused: refused.map(|change| change.why.as_str()),
                // The reason would reveal hidden values.
                idle: if self.hidden {
                    None
                } else {
                    knob.why_no_effect(&self.config_b)
                },
            }
        })
    }

    /// Returns true if B's value of a knob is shown. While A is hidden, B's value is hidden until the knob is turned.
    fn shows_b(&self, knob: &Knob) -> bool {
        !self.hidden || self.touched.contains(knob.path)
    }

    /// Returns the selected knob. `None` if no knob is offered.
    pub fn knob(&self) -> Option<&'static Knob> {
        self.offers.get(self.row).copied()
    }

    /// Returns true if a change of this knob restarts the run at step 0, from the run's seed.
    pub fn needs_restart(knob: &Knob) -> bool {
        knob.parameters == Parameters::New
    }

    /// Returns true if B has to restart because A is hidden: weights that stay would reveal that the value of a changed knob equals A's.
    /// After a change from the other slot every changed knob counts; after a change of B only the selected knob counts.
    pub(super) fn restarts_because_hidden(&self, from_other_slot: bool) -> bool {
        let selected = self.knob().map(|knob| knob.path);
        self.hidden
            && self.offers.iter().any(|knob| {
                self.touched.contains(knob.path)
                    && Self::needs_restart(knob)
                    && (from_other_slot || selected == Some(knob.path))
            })
    }

    /// Selects another row.
    pub fn select(&mut self, row: usize) {
        self.row = row.min(self.offers.len().saturating_sub(1));
    }

    /// Gives B the next or previous value of the selected knob, and returns true if B changed. If the value is refused, B keeps the old
    /// one, the row shows the reason, and the next step continues from the refused value.
    pub fn step(&mut self, by: i32) -> bool {
        let Some(knob) = self.knob() else {
            return false;
        };
        let from = match self.refused.take() {
            Some(refused) if refused.row == self.row => refused.value,
            _ => (knob.get)(&self.config_b),
        };
        let next = if self.shows_b(knob) {
            knob.after(&from, by)
        } else {
            self.first_value(knob)
        };
        match next {
            Some(value) => self.set(self.row, &value),
            None => {
                self.refuse(self.row, from, "there is no value beyond this one");
                false
            }
        }
    }

    /// Returns the value that a hidden knob gets when it is turned for the first time: its first choice, or the preset's number. This
    /// reveals nothing about the hidden value.
    fn first_value(&self, knob: &Knob) -> Option<KnobValue> {
        if let ValueKind::Choice(names) = knob.kind {
            let name = names.first()?;
            return Some(KnobValue::Text((*name).to_owned()));
        }
        let value = (knob.get)(&RunConfig::preset(self.config_b.preset));
        Some(KnobValue::from_word(&value))
    }

    /// Gives B this value of the knob on a row. Returns true if B changed.
    pub fn set(&mut self, row: usize, value: &KnobValue) -> bool {
        let Some(knob) = self.offers.get(row) else {
            return false;
        };
        let mut changed = self.config_b.clone();
        let invalid = knob.set(&mut changed, value).err();
        let problem = changed.problems().into_iter().next();
        if let Some(why) = invalid.or(problem.map(|problem| problem.message)) {
            self.refuse(row, (knob.get)(&changed), &why);
            return false;
        }
        self.refused = None;
        let is_first_turn = self.touched.insert(knob.path);
        if changed == self.config_b {
            // While B's value was hidden, turning the knob shows it for the first time.
            return is_first_turn && self.hidden;
        }
        self.config_b = changed;
        self.solved = false;
        true
    }

    fn refuse(&mut self, row: usize, value: String, why: &str) {
        self.refused = Some(RefusedChange {
            row,
            value,
            why: why.to_owned(),
        });
    }

    /// Replaces B's whole configuration, by the learner's file, an attempt, or the solution (`solved`).
    pub fn set_b(&mut self, config: RunConfig, solved: bool) {
        let changed = config.differences(&self.config_b);
        self.touched.extend(changed);
        self.config_b = config;
        self.solved = solved;
        self.refused = None;
    }

    /// Undoes a change that the engine refused for the reason `why`, which the row of the change shows.
    pub(super) fn undo(&mut self, change: KnobChange, why: &str) {
        let tried = self
            .offers
            .get(change.row)
            .map(|knob| (knob.get)(&self.config_b));
        self.config_b = change.before;
        self.refuse(change.row, tried.unwrap_or_default(), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::KvLayout;

    fn comparison(paths: &[&str]) -> Comparison {
        let offers: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        Comparison::new(0, "start", RunConfig::preset(Preset::Tiny), &offers)
    }

    #[test]
    fn a_knob_goes_through_its_values_and_back_to_what_was_found() {
        let mut comparison = comparison(&["model.norm", "train.batch"]);
        assert!(comparison.b_equals_a() && comparison.differences().is_empty());
        assert!(comparison.step(1) && !comparison.b_equals_a());
        assert_eq!(comparison.differences(), "model.norm fused");
        assert_eq!(comparison.run_b().variant, "custom");
        assert!(
            comparison.step(1) && comparison.b_equals_a(),
            "choices go round"
        );
        comparison.select(9);
        assert!(comparison.step(-1));
        assert_eq!(comparison.config_b.train.batch, 4);
    }

    #[test]
    fn a_knob_without_effect_says_so() {
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
    fn a_refused_value_shows_its_reason_and_the_next_step_passes_it() {
        let mut comparison = comparison(&["model.kv-heads", "model.norm"]);
        assert!(comparison.step(1), "2 to 4");
        assert!(!comparison.step(1), "8 do not divide 4 heads");
        assert_eq!(comparison.config_b.model.kv_heads, 4);
        let reason = |comparison: &Comparison| {
            comparison
                .rows()
                .next()
                .and_then(|row| row.refused.map(str::to_owned))
        };
        assert!(reason(&comparison).is_some_and(|why| why.contains("do not divide heads")));
        assert!(
            !comparison.step(-1),
            "back from 8 to 4, which B has already"
        );
        assert_eq!(reason(&comparison), None);
        assert!(comparison.step(-1), "4 to 2");
    }

    #[test]
    fn a_change_that_the_engine_refuses_is_undone() {
        let mut comparison = comparison(&["model.kv-layout"]);
        let before = comparison.config_b.clone();
        assert!(comparison.step(1));
        assert_eq!(comparison.config_b.model.kv_layout, KvLayout::Strided);
        comparison.undo(KnobChange { row: 0, before }, "this device has no room");
        assert!(comparison.b_equals_a());
        assert_eq!(
            comparison.rows().next().and_then(|row| row.refused),
            Some("this device has no room")
        );
        assert!(comparison.step(1), "goes on after the refused value");
        assert_eq!(comparison.config_b.model.kv_layout, KvLayout::Assumed);
    }

    #[test]
    fn stepping_a_knob_does_not_reveal_its_hidden_value() {
        let mut comparison = comparison(&["model.norm", "train.batch"]);
        comparison.hidden = true;
        comparison.config_a.train.batch = 1;
        comparison.config_b.train.batch = 1;
        assert!(
            comparison
                .rows()
                .all(|row| row.a.is_none() && row.b.is_none())
        );
        assert!(comparison.step(-1), "changed, whatever it was");
        let shown: Vec<Option<String>> = comparison.rows().map(|row| row.b).collect();
        assert_eq!(shown, [Some("composed".to_owned()), None]);
        assert!(!comparison.b_equals_a());
        comparison.select(1);
        assert!(comparison.step(1));
        assert_eq!(
            comparison.config_b.train.batch, 8,
            "the preset's, not twice what was hidden"
        );
    }
}
