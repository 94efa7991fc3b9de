//! Plays a stage: a learner presses keys, and an engine answers at once.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::app::{App, Effect, Markers, Message, Options, ThemeName, update};
use perflings::tui::keys;
use protocol::config::{Init, RunConfig};
use protocol::story::RunStory;
use protocol::*;

use super::session::{begin, hear, side};
use super::{sample, screen};

/// The work of the engine.
#[derive(Clone)]
pub(super) enum Work {
    Nothing,
    Run(RunSpec),
    /// A, B, and the number of pairs so far.
    Pairs(RunSpec, RunSpec, u32),
}

/// A learner at the keys, and an engine that answers at once.
pub(super) struct Play {
    pub(super) app: App,
    pub(super) work: Work,
    /// The next step of the run.
    step: u64,
    paused: bool,
}

impl Play {
    /// A stage after the prediction, with open knobs. A has trained this many steps.
    pub(super) fn of_stage(number: u32, steps: u64) -> Self {
        let options = Options {
            stage: Some(number),
            ..Options::default()
        };
        let (app, effects) = begin(sample::course(), options);
        let mut play = Self {
            app,
            work: Work::Nothing,
            step: 0,
            paused: false,
        };
        play.answer(effects);
        play.train(steps);
        play.keys("a");
        if number == 1 {
            play.key(KeyCode::Right);
            play.key(KeyCode::Enter);
        }
        play.key(KeyCode::Char('f'));
        play
    }

    /// Presses a key, which must have a meaning.
    pub(super) fn key(&mut self, code: KeyCode) {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        let action =
            keys::action(event, &self.app).unwrap_or_else(|| panic!("{code:?} does nothing"));
        let effects = update(&mut self.app, Message::Action(action));
        self.answer(effects);
    }

    /// Presses the keys of these letters.
    pub(super) fn keys(&mut self, letters: &str) {
        for letter in letters.chars() {
            self.key(KeyCode::Char(letter));
        }
    }

    /// Selects the knob with this path and presses a key there.
    pub(super) fn turn(&mut self, path: &str, key: KeyCode) {
        let offers = &self.app.bench.comparison.offers;
        let row = offers
            .iter()
            .position(|knob| knob.path == path)
            .expect("offered");
        while self.app.bench.comparison.row < row {
            self.key(KeyCode::Down);
        }
        while self.app.bench.comparison.row > row {
            self.key(KeyCode::Up);
        }
        self.key(key);
    }

    /// Lets this many milliseconds pass.
    pub(super) fn wait(&mut self, ms: u64) {
        let now_ms = self.app.clock.now_ms + ms;
        let effects = update(&mut self.app, Message::Tick { now_ms });
        self.answer(effects);
    }

    /// Sends an event of the engine.
    pub(super) fn report(&mut self, event: Event) {
        let effects = hear(&mut self.app, event);
        self.answer(effects);
    }

    /// Carries out the commands among these effects.
    pub(super) fn answer(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Effect::Send(command) = effect else {
                continue;
            };
            match command {
                Command::Start { run, .. } => {
                    self.end_work();
                    self.step = 0;
                    self.paused = false;
                    self.work = Work::Run(run.clone());
                    self.report(sample::started(&run, 0));
                }
                Command::Apply { run, .. } => {
                    self.work = Work::Run(run.clone());
                    self.report(sample::started(&run, self.step));
                }
                Command::Pair { a, b, .. } => {
                    self.end_work();
                    self.work = Work::Pairs(a.clone(), b.clone(), 0);
                    for run in [a, b] {
                        self.report(side(&run));
                    }
                    self.report(sample::pair(0, false));
                }
                Command::Pause => {
                    self.paused = true;
                    self.report(Event::Paused { slot: Slot::A });
                }
                Command::Resume => {
                    self.paused = false;
                    self.report(Event::Resumed { slot: Slot::A });
                }
                Command::Stop => self.end_work(),
                _ => {}
            }
        }
    }

    /// Ends the work in progress. Pairs send their summary.
    pub(super) fn end_work(&mut self) {
        let pair = match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Pairs(_, _, n) => match sample::pair(n, n >= 40) {
                Event::Pair(pair) => Some(pair),
                _ => None,
            },
            _ => return,
        };
        let finished = Finished {
            slot: Slot::B,
            pair,
            ..Finished::default()
        };
        self.report(Event::Finished(Box::new(finished)));
    }

    /// Makes this many steps or pairs.
    pub(super) fn train(&mut self, steps: u64) {
        for at in 0..steps {
            match self.work.clone() {
                Work::Run(run) if !self.paused => {
                    for event in sample::at_step(&run, self.step) {
                        self.report(event);
                    }
                    if at == 2 {
                        self.report(evidence(&run, self.step));
                    }
                    self.step += 1;
                }
                Work::Pairs(a, b, n) => {
                    let n = n + 1;
                    self.work = Work::Pairs(a, b, n);
                    self.report(sample::pair(n, n >= 40));
                    if n >= 40 {
                        return self.end_work();
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn slot(&self, slot: Slot) -> &RunStory {
        self.app.bench.run.slot(slot)
    }

    /// Checks that each slot shows one configuration and one start only.
    pub(super) fn assert_consistent(&self) {
        for slot in [Slot::A, Slot::B] {
            let shown = self.slot(slot);
            let Some(config) = &shown.description.config else {
                continue;
            };
            let bench = &self.app.bench;
            let present = &bench.comparison;
            let requested = if present.b_equals_a() {
                present.run_a()
            } else {
                present.run_b()
            };
            let is_settled = bench.run.wanted.as_ref() == Some(&requested) && !bench.pairing();
            if slot == Slot::B && is_settled {
                assert_eq!(config, &present.config_b, "shown as B");
            }
            if slot == Slot::A {
                assert_eq!(config, &self.app.bench.comparison.config_a);
            }
            // The losses of the sample differ clearly between the two initialisations.
            let high = config.model.init == Init::LibraryDefault;
            for (step, loss) in shown.loss.recent() {
                let other_weights = shown.went_on_from.is_some();
                assert!(
                    (loss > 20.0) == high || other_weights,
                    "{slot:?} {step}: {loss}"
                );
            }
            let steps: Vec<u64> = shown.loss.recent().map(|(step, _)| step).collect();
            assert!(steps.is_sorted(), "{slot:?} goes back: {steps:?}");
        }
        if let Some(pair) = &self.app.lesson.learner.pair {
            let b = &self.app.bench.comparison.config_b;
            assert!(pair.n == 0 || self.app.bench.pairing() || self.measured(b));
        }
    }

    /// Returns true if pairs were measured with this B.
    pub(super) fn measured(&self, b: &RunConfig) -> bool {
        let run = &self.app.bench.run;
        let mut attempts = run.attempts().into_iter();
        attempts.any(|attempt| attempt.description.has(b) && run.pair_of_attempt(attempt).is_some())
    }

    /// Returns the number of pairs shown. `None` without a result.
    pub(super) fn pairs_shown(&self) -> Option<u32> {
        self.app.lesson.learner.pair.as_ref().map(|pair| pair.n)
    }

    /// Returns the text of the whole screen.
    pub(super) fn text_at(&mut self, width: u16, height: u16) -> String {
        let (dark, braille) = (ThemeName::Dark, Markers::Braille);
        let drawn = screen::screen(&mut self.app, width, height, dark, braille);
        screen::text(&drawn)
    }
}

/// Returns the evidence at a step. Its parity falls while a run trains, so that two runs have different figures.
fn evidence(run: &RunSpec, step: u64) -> Event {
    let Event::Evidence(evidence) = sample::evidence(run, step) else {
        unreachable!()
    };
    let parity = evidence
        .parity
        .map(|Num(parity)| Num(parity / (step + 1) as f64));
    Event::Evidence(Evidence { parity, ..evidence })
}
