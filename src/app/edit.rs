//! Changes of B by the knobs, the learner's file, or the solution. A change that keeps the weights runs at once. Any other change runs
//! after a short delay in which more changes may come. Each change is written to the learner's file.

use super::comparison::{Comparison, KnobChange};
use super::may::B_EQUALS_A;
use super::part::{FollowUp, FollowUps};
use super::view::AfterSkip;
use super::{Action, App, Bench, Effect, Panel, ScreenSize, View};
use crate::course::Stage;
use crate::course::at_preset;
use crate::course::named::NamedConfig;
use protocol::Slot;
use protocol::config::{KnobValue, RunConfig};

/// The longest value that can be typed, in letters.
const MAX_VALUE_LETTERS: usize = 20;

/// How long B waits for more changes before it restarts.
const SETTLE_MS: u64 = 500;

/// The effect of an action on a value that is being typed.
enum Typing {
    /// The action is not about typing. Nothing is typed any more.
    Ended,
    /// The action changed the typed value, or cancelled it.
    Handled,
    /// The learner confirmed this value.
    Confirmed(String),
}

impl App {
    /// Returns true if the knobs can be opened: the mode compares A and B, and knobs are offered.
    pub fn can_edit(&self) -> bool {
        self.mode.compares() && !self.bench.comparison.offers.is_empty()
    }

    /// Returns true if the knobs are on the screen.
    pub fn knobs_open(&self) -> bool {
        let view = &self.view;
        let is_covered = view.expanded && view.focus != Some(Panel::Lesson);
        view.knobs && !is_covered && self.can_edit() && view.screen_size() > ScreenSize::Numbers
    }

    /// Carries out an action on the knobs. Returns false for any other action, which also ends the typing of a value.
    pub(super) fn act_on_knobs(&mut self, action: Action) -> bool {
        let follows = match (self.view.type_value(action), action) {
            (Typing::Confirmed(value), _) => Some(self.bench.set_typed(&value)),
            (Typing::Handled, _) => Some(Vec::new()),
            (Typing::Ended, Action::TypeValue) => {
                self.view.value = Some(String::new());
                return true;
            }
            (Typing::Ended, Action::Knobs) if self.knobs_open() => {
                self.view.knobs = false;
                return true;
            }
            (Typing::Ended, Action::Knobs) => {
                self.after_prediction(AfterSkip::Knobs);
                return true;
            }
            (Typing::Ended, _) => self.bench.update(action, self.lesson.stage(&self.mode)),
        };
        self.carry_out(follows)
    }

    /// Opens the knobs and tells the learner so if B equals A. Returns true in this case.
    pub(super) fn open_knobs_if_b_equals_a(&mut self) -> bool {
        let b_equals_a = self.bench.comparison.b_equals_a();
        if b_equals_a {
            self.view.open_knobs();
            self.tell(B_EQUALS_A, false);
        }
        b_equals_a
    }

    /// Handles a change of B: drops the results of the old B and runs the new one, with a delay if more changes may come (`delayed`).
    pub(super) fn b_changed(&mut self, delayed: bool) {
        self.lesson.mark_fix_tried(&self.mode);
        self.lesson.learner.report = None;
        self.lesson.learner.pair = self.bench.pairs_of_b();
        // While the old B runs, it stays on the screen until the new one takes over.
        if self.bench.run.active == Slot::A || !self.bench.run.state.is_active() {
            self.show_present_b();
        }
        let waits = delayed
            || self.bench.pairing()
            || !self.bench.is_current()
            || self.bench.pending.due_ms.is_some();
        self.bench.pending.due_ms = waits.then_some(self.clock.now_ms + SETTLE_MS);
        if !waits {
            self.run_current_b();
        }
    }

    /// Runs B once no change has come for `SETTLE_MS`.
    pub(super) fn run_when_due(&mut self) {
        let now_ms = self.clock.now_ms;
        let is_due = self.bench.pending.due_ms.is_some_and(|due| due <= now_ms);
        // While a recorded run is watched, the live one waits.
        if is_due && self.mode.is_live() {
            self.view.revision += 1;
            self.run_current_b();
        }
    }

    /// Runs the present B at once: as pairs if pairs are in progress, else as a changed or restarted run.
    fn run_current_b(&mut self) {
        self.bench.pending.due_ms = None;
        let pairing = self.bench.pairing();
        if pairing && !self.bench.comparison.b_equals_a() {
            return self.pair();
        }
        if !pairing {
            self.cancel_verdict();
        }
        let run = self.bench.comparison.run_now();
        if self.bench.run.wanted.as_ref() != Some(&run) || pairing {
            self.change_to(run);
        } else {
            self.show_present_b();
        }
    }
}

impl View {
    /// Applies an action to the value that is being typed. Any other action ends the typing.
    fn type_value(&mut self, action: Action) -> Typing {
        let Some(mut text) = self.value.take() else {
            return Typing::Ended;
        };
        match action {
            Action::Type(letter) => {
                if letter.is_ascii_graphic() && text.len() < MAX_VALUE_LETTERS {
                    text.push(letter);
                }
                self.value = Some(text);
            }
            Action::Erase => {
                text.pop();
                self.value = Some(text);
            }
            Action::KeepSearch if !text.is_empty() => return Typing::Confirmed(text),
            Action::KeepSearch | Action::Close => {}
            _ => return Typing::Ended,
        }
        Typing::Handled
    }
}

impl Bench {
    /// Carries out an action on the knobs. `None` for any other action.
    pub(super) fn update(&mut self, action: Action, stage: Option<&Stage>) -> Option<FollowUps> {
        let comparison = &mut self.comparison;
        match action {
            Action::KnobRow(by) => {
                comparison.select(comparison.row.saturating_add_signed(by as isize));
            }
            Action::KnobAt(row) if row != comparison.row => comparison.select(row),
            Action::KnobAt(_) => return Some(self.turn_knob(1)),
            Action::KnobTurn(by) => return Some(self.turn_knob(by)),
            Action::TakeSolution => {
                let config = NamedConfig::fixed(stage?, self.preset).config;
                self.set_b(config, true);
                let mut follows = vec![FollowUp::Card(None)];
                follows.extend(self.write_b());
                follows.push(FollowUp::Changed { delayed: false });
                return Some(follows);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Gives the selected knob the value `by` places further on.
    fn turn_knob(&mut self, by: i32) -> FollowUps {
        self.change_knob(|comparison| comparison.step(by))
    }

    /// Gives the selected knob the value that the learner typed.
    fn set_typed(&mut self, text: &str) -> FollowUps {
        let value = KnobValue::from_word(text);
        self.change_knob(|comparison| comparison.set(comparison.row, &value))
    }

    /// Changes B at the selected row. `change` returns false if B stays as it is.
    fn change_knob(&mut self, change: impl FnOnce(&mut Comparison) -> bool) -> FollowUps {
        let knob = self.comparison.knob();
        let row = self.comparison.row;
        let before = self.comparison.config_b.clone();
        if !change(&mut self.comparison) {
            return Vec::new();
        }
        if before != self.comparison.config_b {
            let change = KnobChange { row, before };
            self.pending.change.get_or_insert(change);
        }
        let delayed = knob.is_some_and(Comparison::needs_restart);
        // Earlier notices were about the old B.
        let mut follows = vec![FollowUp::ClearNotice { warnings: true }];
        follows.extend(self.write_b());
        follows.push(FollowUp::Changed { delayed });
        follows
    }

    /// Returns the follow-up that writes B's knobs to the learner's file. A file that cannot be read is not written; a warning names its
    /// problem. `None` if B has no file.
    pub(super) fn write_b(&self) -> Option<FollowUp> {
        let comparison = &self.comparison;
        let stage = comparison.file.clone()?;
        if let Some(problem) = &comparison.problem {
            let text = format!("B changed, but its file did not: {problem}");
            return Some(FollowUp::Warn(text));
        }
        let offers = comparison.offers.iter().map(|knob| knob.path.to_owned());
        Some(FollowUp::Effect(Effect::WriteKnobs {
            stage,
            config: Box::new(comparison.config_b.clone()),
            offers: offers.collect(),
        }))
    }

    /// Sets B to the configuration in the learner's file, after the file was saved.
    pub(super) fn on_file_saved(&mut self, config: Result<Box<RunConfig>, String>) -> FollowUps {
        let was_unreadable = self.comparison.problem.is_some();
        let config = match self.config_of_file(config) {
            Ok(config) => config,
            Err(problem) => return vec![FollowUp::Warn(problem)],
        };
        if self.comparison.config_b == config || self.comparison.offers.is_empty() {
            return Vec::new();
        }
        self.set_b(config, false);
        let mut follows = FollowUps::new();
        if was_unreadable {
            follows.push(FollowUp::tell("The file is valid again; B now uses it"));
        }
        follows.push(FollowUp::Changed { delayed: false });
        follows
    }

    /// Sets B to the configuration in the learner's file, after its stage was entered. Does nothing if the learner has left the stage since.
    pub(super) fn on_file_read(
        &mut self,
        stage: &str,
        config: Result<Box<RunConfig>, String>,
    ) -> FollowUps {
        if self.comparison.file.as_deref() != Some(stage) {
            return Vec::new();
        }
        let config = match self.config_of_file(config) {
            Ok(config) => config,
            Err(problem) => return vec![FollowUp::Warn(problem)],
        };
        self.set_b(config, false);
        if self.comparison.b_equals_a() {
            return Vec::new();
        }
        let differences = self.comparison.differences();
        vec![FollowUp::Tell(format!(
            "B is as you left it: {differences}"
        ))]
    }

    /// Returns the configuration in the learner's file, at the requested preset. Stores the problem of a file that cannot be read.
    fn config_of_file(
        &mut self,
        content: Result<Box<RunConfig>, String>,
    ) -> Result<RunConfig, String> {
        self.comparison.problem = content.as_ref().err().cloned();
        let config = content?;
        Ok(match self.preset {
            Some(preset) => at_preset(&config, preset),
            None => *config,
        })
    }
}
