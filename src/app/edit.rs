//! How B is changed: by the knobs, by the learner's file, or by the solution. A change that keeps the weights runs at once; any other
//! one after a short delay in which more changes may come. Each is written to the learner's file.

use super::comparison::Comparison;
use super::may::SAME;
use super::view::AfterSkip;
use super::{Action, App, Effect, Panel, ScreenSize};
use crate::course::at_preset;
use crate::course::named::NamedConfig;
use protocol::Slot;
use protocol::config::{KnobValue, RunConfig};

/// Most letters of a typed value.
const MAX_VALUE_LETTERS: usize = 20;

/// How long B waits for more changes before it starts again.
const SETTLE_MS: u64 = 500;

impl App {
    /// Whether the knobs can be opened: there is something to change, and it can run.
    pub fn can_edit(&self) -> bool {
        self.mode.compares() && !self.bench.comparison.offers.is_empty()
    }

    /// Whether the knobs are on the screen.
    pub fn knobs_open(&self) -> bool {
        let view = &self.view;
        let covered = view.expanded && view.focus != Some(Panel::Lesson);
        view.knobs && !covered && self.can_edit() && view.screen_size() > ScreenSize::Numbers
    }

    /// Carries out an action on the knobs; false for any other action.
    pub(super) fn act_on_knobs(&mut self, action: Action) -> bool {
        if let Some(text) = self.view.value.take() {
            return self.type_value(text, action);
        }
        match action {
            Action::TypeValue => self.view.value = Some(String::new()),
            Action::Knobs if self.knobs_open() => self.view.knobs = false,
            Action::Knobs => self.after_prediction(AfterSkip::Knobs),
            Action::KnobRow(by) => {
                let row = self.bench.comparison.row.saturating_add_signed(by as isize);
                self.bench.comparison.select(row);
            }
            Action::KnobTurn(by) => self.change_knob(|comparison| comparison.step(by)),
            Action::KnobAt(row) if row == self.bench.comparison.row => {
                self.change_knob(|comparison| comparison.step(1));
            }
            Action::KnobAt(row) => self.bench.comparison.select(row),
            Action::TakeSolution => self.take_solution(),
            _ => return false,
        }
        true
    }

    pub(super) fn open_knobs(&mut self) {
        let view = &mut self.view;
        (view.knobs, view.expanded, view.lesson_open) = (true, false, false);
        (view.overlay, view.focus) = (None, Some(Panel::Lesson));
    }

    /// While B is the same as A, opens the knobs and says so; returns whether it is.
    pub(super) fn open_knobs_if_same(&mut self) -> bool {
        let same = self.bench.comparison.same();
        if same {
            self.open_knobs();
            self.tell(SAME, false);
        }
        same
    }

    /// Carries out an action while a value is typed. Any other action ends the typing and is carried out as usual.
    fn type_value(&mut self, mut text: String, action: Action) -> bool {
        match action {
            Action::Type(letter) => {
                if letter.is_ascii_graphic() && text.len() < MAX_VALUE_LETTERS {
                    text.push(letter);
                }
                self.view.value = Some(text);
            }
            Action::Erase => {
                text.pop();
                self.view.value = Some(text);
            }
            Action::KeepSearch if !text.is_empty() => {
                let value = KnobValue::from_word(&text);
                self.change_knob(|comparison| comparison.set(comparison.row, &value));
            }
            Action::KeepSearch | Action::Close => {}
            _ => return self.act_on_knobs(action),
        }
        true
    }

    /// Changes B at the selected row. Where `change` is refused, the row says why.
    fn change_knob(&mut self, change: impl FnOnce(&mut Comparison) -> bool) {
        let knob = self.bench.comparison.knob();
        if !change(&mut self.bench.comparison) {
            return;
        }
        // Earlier notices about B do not apply to this one.
        self.view.notice = None;
        self.write_b();
        self.b_changed(knob.is_some_and(Comparison::starts_again));
    }

    /// B was replaced as a whole: the learner's file and the run follow.
    pub(super) fn b_replaced(&mut self) {
        self.write_b();
        self.b_changed(false);
    }

    /// B has changed: drops what was measured with the old one, and runs the new one, `delayed` if more changes may come.
    fn b_changed(&mut self, delayed: bool) {
        self.with_stage(|app, stage| app.lesson.study.note_fix_tried(stage));
        self.lesson.study.report = None;
        self.lesson.study.pair = self.bench.pairs_of_b();
        // A B that runs is shown until the changed one takes over from it.
        if self.bench.run.active == Slot::A || !self.bench.run.state.is_active() {
            self.show_present_b();
        }
        let waits = self.bench.pairing() || !self.bench.is_current();
        let wait = delayed || waits || self.bench.pending.due_ms.is_some();
        self.bench.pending.due_ms = wait.then_some(self.clock.now_ms + SETTLE_MS);
        if !wait {
            self.run_current_b();
        }
    }

    /// Runs B once no more changes have come for `SETTLE_MS`.
    pub(super) fn run_when_due(&mut self) {
        let now_ms = self.clock.now_ms;
        let due = self.bench.pending.due_ms.is_some_and(|due| due <= now_ms);
        // While a recorded run is watched, the live one waits.
        if due && self.mode.is_live() {
            self.view.revision += 1;
            self.run_current_b();
        }
    }

    fn run_current_b(&mut self) {
        self.bench.pending.due_ms = None;
        let pairing = self.bench.pairing();
        if pairing && !self.bench.comparison.same() {
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

    /// Writes B's knobs to the learner's file. A file that cannot be read stays as it is until it can.
    pub(super) fn write_b(&mut self) {
        let comparison = &self.bench.comparison;
        let Some(stage) = comparison.file.clone() else {
            return;
        };
        if let Some(problem) = &comparison.problem {
            let text = format!("B changed; the file did not: {problem}");
            return self.tell(&text, true);
        }
        let offers = comparison.offers.iter();
        self.effects.push(Effect::WriteKnobs {
            stage,
            config: Box::new(comparison.config_b.clone()),
            offers: offers.map(|knob| knob.path.to_owned()).collect(),
        });
    }

    /// The learner's configuration was saved: it is B from now on.
    pub(super) fn take_saved_file(&mut self, config: Result<Box<RunConfig>, String>) {
        let was_unreadable = self.bench.comparison.problem.is_some();
        let Some(config) = self.config_of_file(config) else {
            return;
        };
        if self.bench.comparison.config_b == config || self.bench.comparison.offers.is_empty() {
            return;
        }
        if was_unreadable {
            self.tell("The file can be read again: B is what it says", false);
        }
        self.bench.comparison.set_b(config, false);
        match self.may_move_run() {
            Ok(()) => self.b_changed(false),
            Err(refusal) => self.tell_refusal(&refusal),
        }
    }

    /// What the learner's file held when the stage was entered.
    pub(super) fn take_file_at_entry(
        &mut self,
        stage: &str,
        config: Result<Box<RunConfig>, String>,
    ) {
        let there = self.bench.comparison.file.as_deref() == Some(stage);
        if !there || self.presenter.presentation.is_some() {
            return;
        }
        if let Some(config) = self.config_of_file(config) {
            let comparison = &mut self.bench.comparison;
            comparison.set_b(config, false);
            if !comparison.same() {
                let text = format!("B is as you left it: {}", comparison.differences());
                self.tell(&text, false);
            }
        }
    }

    /// The configuration in the learner's file, at the requested preset. A file that cannot be read is reported and noted.
    fn config_of_file(&mut self, config: Result<Box<RunConfig>, String>) -> Option<RunConfig> {
        self.bench.comparison.problem = config.as_ref().err().cloned();
        match (config, self.bench.preset) {
            (Ok(config), Some(preset)) => Some(at_preset(&config, preset)),
            (Ok(config), None) => Some(*config),
            (Err(what), _) => {
                self.tell(&what, true);
                None
            }
        }
    }

    /// Makes the shown solution B.
    fn take_solution(&mut self) {
        self.with_stage(|app, stage| {
            app.view.overlay = None;
            let config = NamedConfig::fixed(stage, app.bench.preset).config;
            app.bench.comparison.set_b(config, true);
            app.b_replaced();
        });
    }
}
