//! How B is changed: by the knobs, by the learner's file, or by the solution. A change that keeps the weights runs at once; any other
//! one after a short delay in which more changes may come. Each is written to the learner's file.

use super::comparison::{Comparison, KnobChange};
use super::may::SAME;
use super::part::{Follow, Follows};
use super::view::AfterSkip;
use super::{Action, App, Bench, Effect, Panel, ScreenSize, View};
use crate::course::Stage;
use crate::course::at_preset;
use crate::course::named::NamedConfig;
use protocol::Slot;
use protocol::config::{KnobValue, RunConfig};

/// Most letters of a typed value.
const MAX_VALUE_LETTERS: usize = 20;

/// How long B waits for more changes before it starts again.
const SETTLE_MS: u64 = 500;

/// What an action does to a value that is typed.
enum Typing {
    /// None is typed any more.
    None,
    /// It is typed further, or left.
    Goes,
    /// This value is kept.
    Kept(String),
}

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

    /// Carries out an action on the knobs; false for any other action. An action that types no value ends the typing.
    pub(super) fn act_on_knobs(&mut self, action: Action) -> bool {
        let follows = match (self.view.type_value(action), action) {
            (Typing::Kept(value), _) => Some(self.bench.type_knob(&value)),
            (Typing::Goes, _) => Some(Vec::new()),
            (Typing::None, Action::TypeValue) => {
                self.view.value = Some(String::new());
                return true;
            }
            (Typing::None, Action::Knobs) if self.knobs_open() => {
                self.view.knobs = false;
                return true;
            }
            (Typing::None, Action::Knobs) => {
                self.after_prediction(AfterSkip::Knobs);
                return true;
            }
            (Typing::None, _) => self.bench.update(action, self.lesson.stage(&self.mode)),
        };
        self.carry_out(follows)
    }

    /// While B is the same as A, opens the knobs and says so; returns whether it is.
    pub(super) fn open_knobs_if_same(&mut self) -> bool {
        let same = self.bench.comparison.same();
        if same {
            self.view.open_knobs();
            self.tell(SAME, false);
        }
        same
    }

    /// B has changed: drops what was measured with the old one, and runs the new one, `delayed` if more changes may come.
    pub(super) fn b_changed(&mut self, delayed: bool) {
        self.lesson.note_fix_tried(&self.mode);
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
}

impl View {
    /// Carries out an action while a value is typed; any other action ends the typing.
    fn type_value(&mut self, action: Action) -> Typing {
        let Some(mut text) = self.value.take() else {
            return Typing::None;
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
            Action::KeepSearch if !text.is_empty() => return Typing::Kept(text),
            Action::KeepSearch | Action::Close => {}
            _ => return Typing::None,
        }
        Typing::Goes
    }
}

impl Bench {
    /// Carries out an action on the knobs.
    pub(super) fn update(&mut self, action: Action, stage: Option<&Stage>) -> Option<Follows> {
        let comparison = &mut self.comparison;
        match action {
            Action::KnobRow(by) => {
                comparison.select(comparison.row.saturating_add_signed(by as isize));
            }
            Action::KnobAt(row) if row != comparison.row => comparison.select(row),
            Action::KnobAt(_) => return Some(self.change_knob(|it| it.step(1))),
            Action::KnobTurn(by) => return Some(self.change_knob(|it| it.step(by))),
            Action::TakeSolution => {
                let config = NamedConfig::fixed(stage?, self.preset).config;
                self.set_b(config, true);
                return Some(vec![
                    Follow::Card(None),
                    self.write_b(),
                    Follow::Changed(false),
                ]);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Gives the selected knob a value that was typed.
    fn type_knob(&mut self, value: &str) -> Follows {
        let value = KnobValue::from_word(value);
        self.change_knob(|comparison| comparison.set(comparison.row, &value))
    }

    /// Changes B at the selected row. Where `change` is refused, the row says why.
    fn change_knob(&mut self, change: impl FnOnce(&mut Comparison) -> bool) -> Follows {
        let knob = self.comparison.knob();
        let row = self.comparison.row;
        let before = self.comparison.config_b.clone();
        if !change(&mut self.comparison) {
            return Vec::new();
        }
        if before != self.comparison.config_b {
            let first = KnobChange { row, before };
            self.pending.change.get_or_insert(first);
        }
        let delayed = knob.is_some_and(Comparison::starts_again);
        // Earlier notices about B do not apply to this one.
        vec![
            Follow::Untell { warnings: true },
            self.write_b(),
            Follow::Changed(delayed),
        ]
    }

    /// Writes B's knobs to the learner's file, if there is one. A file that cannot be read stays as it is until it can.
    pub(super) fn write_b(&self) -> Follow {
        let comparison = &self.comparison;
        let offers = comparison.offers.iter();
        match (&comparison.file, &comparison.problem) {
            (None, _) => Follow::Nothing,
            (_, Some(problem)) => Follow::Warn(format!("B changed; the file did not: {problem}")),
            (Some(stage), None) => Follow::Effect(Effect::WriteKnobs {
                stage: stage.clone(),
                config: Box::new(comparison.config_b.clone()),
                offers: offers.map(|knob| knob.path.to_owned()).collect(),
            }),
        }
    }

    /// The learner's configuration was saved: it is B from now on.
    pub(super) fn take_saved_file(&mut self, config: Result<Box<RunConfig>, String>) -> Follows {
        let was_unreadable = self.comparison.problem.is_some();
        let config = match self.config_of_file(config) {
            Ok(config) => config,
            Err(what) => return vec![Follow::Warn(what)],
        };
        if self.comparison.config_b == config || self.comparison.offers.is_empty() {
            return Vec::new();
        }
        self.set_b(config, false);
        let text = "The file can be read again: B is what it says";
        let told = was_unreadable.then(|| Follow::tell(text)).into_iter();
        told.chain([Follow::Changed(false)]).collect()
    }

    /// What the learner's file of this stage held when the stage was entered.
    pub(super) fn take_file_at_entry(
        &mut self,
        stage: &str,
        config: Result<Box<RunConfig>, String>,
    ) -> Follows {
        if self.comparison.file.as_deref() != Some(stage) {
            return Vec::new();
        }
        let config = match self.config_of_file(config) {
            Ok(config) => config,
            Err(what) => return vec![Follow::Warn(what)],
        };
        self.set_b(config, false);
        let text = format!("B is as you left it: {}", self.comparison.differences());
        let differs = !self.comparison.same();
        Vec::from_iter(differs.then_some(Follow::Tell(text)))
    }

    /// The configuration in the learner's file, at the requested preset. What is wrong with a file that cannot be read is noted.
    fn config_of_file(
        &mut self,
        config: Result<Box<RunConfig>, String>,
    ) -> Result<RunConfig, String> {
        self.comparison.problem = config.as_ref().err().cloned();
        let config = config?;
        let preset = self.preset;
        Ok(preset.map_or_else(|| *config.clone(), |preset| at_preset(&config, preset)))
    }
}
