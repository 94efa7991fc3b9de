//! The log of attempts. After any keys, each figure on the screen belongs to the configuration that is named with it. An engine in the
//! test answers like the real one.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::app::{
    App, DrawnFrame, Effect, Markers, Message, Options, Overlay, RunState, ThemeName, update,
};
use perflings::course::save_file::ProgressChange;
use perflings::tui::keys;
use protocol::config::{Init, RunConfig};
use protocol::story::RunStory;
use protocol::*;

use super::session::{begin, hear, side};
use super::{sample, screen};

/// The work of the engine.
#[derive(Clone)]
enum Work {
    Nothing,
    Run(RunSpec),
    Pairs(RunSpec, RunSpec, u32),
}

/// A learner at the keys, and an engine that answers at once.
struct Play {
    app: App,
    work: Work,
    step: u64,
    paused: bool,
}

impl Play {
    /// A stage after the prediction, with open knobs. A has trained this many steps.
    fn of_stage(number: u32, steps: u64) -> Self {
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

    fn key(&mut self, code: KeyCode) {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        let action =
            keys::action(event, &self.app).unwrap_or_else(|| panic!("{code:?} does nothing"));
        let effects = update(&mut self.app, Message::Action(action));
        self.answer(effects);
    }

    fn keys(&mut self, letters: &str) {
        for letter in letters.chars() {
            self.key(KeyCode::Char(letter));
        }
    }

    /// Selects the knob with this path and presses a key there.
    fn turn(&mut self, path: &str, key: KeyCode) {
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

    fn wait(&mut self, ms: u64) {
        let now_ms = self.app.clock.now_ms + ms;
        let effects = update(&mut self.app, Message::Tick { now_ms });
        self.answer(effects);
    }

    fn say(&mut self, event: Event) {
        let effects = hear(&mut self.app, event);
        self.answer(effects);
    }

    /// Carries out the commands.
    fn answer(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Effect::Send(command) = effect else {
                continue;
            };
            match command {
                Command::Start { run, .. } => {
                    self.end();
                    self.step = 0;
                    self.paused = false;
                    self.work = Work::Run(run.clone());
                    self.say(sample::started(&run, 0));
                }
                Command::Apply { run, .. } => {
                    self.work = Work::Run(run.clone());
                    self.say(sample::started(&run, self.step));
                }
                Command::Pair { a, b, .. } => {
                    self.end();
                    self.work = Work::Pairs(a.clone(), b.clone(), 0);
                    for run in [a, b] {
                        self.say(side(&run));
                    }
                    self.say(sample::pair(0, false));
                }
                Command::Pause => {
                    self.paused = true;
                    self.say(Event::Paused { slot: Slot::A });
                }
                Command::Resume => {
                    self.paused = false;
                    self.say(Event::Resumed { slot: Slot::A });
                }
                Command::Stop => self.end(),
                _ => {}
            }
        }
    }

    /// Ends the work in progress. Pairs send their summary.
    fn end(&mut self) {
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
        self.say(Event::Finished(Box::new(finished)));
    }

    /// Makes this many steps or pairs.
    fn train(&mut self, steps: u64) {
        for at in 0..steps {
            match self.work.clone() {
                Work::Run(run) if !self.paused => {
                    for event in sample::at_step(&run, self.step) {
                        self.say(event);
                    }
                    if at == 2 {
                        self.say(evidence(&run, self.step));
                    }
                    self.step += 1;
                }
                Work::Pairs(a, b, n) => {
                    let n = n + 1;
                    self.work = Work::Pairs(a, b, n);
                    self.say(sample::pair(n, n >= 40));
                    if n >= 40 {
                        return self.end();
                    }
                }
                _ => {}
            }
        }
    }

    fn slot(&self, slot: Slot) -> &RunStory {
        self.app.bench.run.slot(slot)
    }

    /// Checks that each slot shows one configuration and one start only.
    fn assert_consistent(&self) {
        for slot in [Slot::A, Slot::B] {
            let shown = self.slot(slot);
            let Some(config) = &shown.description.config else {
                continue;
            };
            let present = &self.app.bench.comparison;
            let now = if present.b_equals_a() {
                present.run_a()
            } else {
                present.run_b()
            };
            let settled =
                self.app.bench.run.wanted.as_ref() == Some(&now) && !self.app.bench.pairing();
            if slot == Slot::B && settled {
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
    fn measured(&self, b: &RunConfig) -> bool {
        let run = &self.app.bench.run;
        let mut attempts = run.attempts().into_iter();
        attempts.any(|attempt| attempt.description.has(b) && run.pair_of_attempt(attempt).is_some())
    }

    /// Returns the number of pairs shown. `None` without a result.
    fn pairs_shown(&self) -> Option<u32> {
        self.app.lesson.learner.pair.as_ref().map(|pair| pair.n)
    }

    /// Returns the text of the whole screen.
    fn text_at(&mut self, width: u16, height: u16) -> String {
        let (theme, markers) = (ThemeName::Dark, Markers::Braille);
        screen::text(&screen::screen(
            &mut self.app,
            width,
            height,
            theme,
            markers,
        ))
    }
}

/// Evidence at a step, whose parity falls while a run trains.
fn evidence(run: &RunSpec, step: u64) -> Event {
    let Event::Evidence(evidence) = sample::evidence(run, step) else {
        unreachable!()
    };
    let parity = evidence
        .parity
        .map(|Num(parity)| Num(parity / (step + 1) as f64));
    Event::Evidence(Evidence { parity, ..evidence })
}

fn first_step(run: &RunStory) -> Option<u64> {
    run.loss.first().map(|(step, _)| step)
}

fn last_step(run: &RunStory) -> Option<u64> {
    run.loss.last().map(|(step, _)| step)
}

/// Issue 25, 1.1.
#[test]
fn pairs_restart_with_a_b_that_was_changed_meanwhile() {
    for (measured, later) in [(15, 0), (15, 3), (39, 3)] {
        let mut play = Play::of_stage(1, 20);
        play.turn("model.gradient", KeyCode::Right);
        play.train(10);
        play.keys("T");
        play.train(measured);
        assert_eq!(play.pairs_shown(), Some(measured as u32));
        play.turn("model.norm", KeyCode::Right);
        assert_eq!(play.pairs_shown(), None, "the result was of another B");
        play.train(later);
        assert_eq!(play.pairs_shown(), None, "{later} more of the other B");
        play.wait(600);
        assert!(play.app.bench.pairing(), "{measured}, {later}");
        let Work::Pairs(_, b, 0) = &play.work else {
            panic!("no pairs");
        };
        assert_eq!(b.config, play.app.bench.comparison.config_b);
        play.train(40);
        play.assert_consistent();
        assert!(play.app.pairs_ended() && !play.app.bench.pairing());
        assert_eq!(play.pairs_shown(), Some(40));
    }
}

/// Issue 25, 1.2.
#[test]
fn a_knob_that_restarts_b_and_is_turned_back_loses_nothing_of_a() {
    let mut play = Play::of_stage(2, 120);
    let first = play.slot(Slot::A).first_loss();
    let parity = |play: &Play| {
        let figures = perflings::app::figures::figures(&play.app).expect("a stage");
        let of_a = figures.slots[0].as_ref().expect("A ran");
        let evidence = of_a.evidence.as_ref();
        (of_a.steps, evidence.and_then(|evidence| evidence.parity))
    };
    let before = parity(&play);
    play.turn("model.init", KeyCode::Right);
    play.wait(600);
    play.train(30);
    play.assert_consistent();
    assert!(
        play.slot(Slot::B).first_loss() > first,
        "B has another start"
    );
    play.turn("model.init", KeyCode::Left);
    play.wait(600);
    play.train(10);
    play.assert_consistent();
    assert_eq!(parity(&play), before, "the figures of A stay");
    assert!(super::notice(&play.app).contains("run of 120 steps stays in the chart"));
    let drawn = play.text_at(120, 36);
    assert!(
        drawn.contains(" at step 119"),
        "the earlier run is in the chart: {drawn}"
    );
    play.turn("model.gradient", KeyCode::Right);
    play.train(10);
    play.assert_consistent();
    assert_eq!(play.slot(Slot::B).went_on_from, Some(Slot::A));
    assert_eq!(
        play.app.bench.run.first_loss(),
        first,
        "the first loss is that of the weights that train now"
    );
    assert_eq!(first_step(play.slot(Slot::B)), Some(10));
    assert_eq!(last_step(play.slot(Slot::A)), Some(119));
}

/// Issue 25.
#[test]
fn a_b_that_equals_a_again_shows_no_figures_of_its_earlier_configuration() {
    for path in ["model.init", "model.norm"] {
        let mut play = Play::of_stage(1, 20);
        play.turn(path, KeyCode::Right);
        play.wait(600);
        play.train(80);
        assert!(play.slot(Slot::B).has_begun() && play.app.lesson.learner.report.is_some());
        play.turn(path, KeyCode::Left);
        // The engine still trains the old B.
        play.train(3);
        let report = play.app.lesson.learner.report.as_ref();
        let judged = report.is_some_and(|report| {
            report.lines.iter().any(|line| {
                line.asked.contains("loss")
                    && line.outcome != perflings::judge::Outcome::NotMeasured
            })
        });
        assert!(!judged, "{path}: the old B is judged as the present one");
        play.wait(600);
        play.train(10);
        assert!(play.app.bench.comparison.b_equals_a());
        // The run of A is judged now, because B equals A.
        let report = play.app.lesson.learner.report.as_ref().expect("judged");
        for line in &report.lines {
            assert_ne!(line.measured, "no run yet", "{path}: {}", line.name);
        }
        assert!(!play.slot(Slot::B).has_begun(), "{path}");
        assert_eq!(play.app.bench.run.attempts().len(), 2, "the log keeps it");
        let figures = perflings::app::figures::figures(&play.app).expect("a stage");
        assert!(
            figures.slots[1].is_some(),
            "the lesson still describes the latest B"
        );
        // The earlier configuration gets its figures back.
        play.turn(path, KeyCode::Right);
        play.wait(600);
        play.train(3);
        assert_eq!(play.app.bench.run.attempts().len(), 2);
        play.assert_consistent();
    }
}

/// Issue 25: a stage passed because the loss was low at one step.
#[test]
fn the_last_loss_is_judged_at_the_step_where_the_checks_end() {
    let (mut app, _) = begin(perflings::course::Course::builtin(), Options::default());
    let stage = app.stage().expect("a stage").clone();
    super::session::act(&mut app, perflings::app::Action::Answer(1));
    super::session::solve(&mut app);
    super::session::act(&mut app, perflings::app::Action::Toggle);
    let run = super::session::wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    let outcome = |app: &App| {
        let report = app.lesson.learner.report.as_ref().expect("judged");
        let mut lines = report.lines.iter();
        let line = lines.find(|line| line.asked.starts_with("loss_last"));
        line.expect("a check").outcome
    };
    let mut outcomes = Vec::new();
    for at in 0..stage.steps + 40 {
        let loss = match at {
            0 => 6.93,
            _ if at == stage.steps - 1 => 6.5,
            // Noise around ln V.
            _ => 6.9 + 0.05 * (at % 2) as f64,
        };
        let Event::Step(step) = sample::step(&run, at) else {
            unreachable!()
        };
        hear(
            &mut app,
            Event::Step(Step {
                loss: Some(Num(loss)),
                ..step
            }),
        );
        hear(&mut app, sample::throughput(&run, at));
        outcomes.push(outcome(&app));
    }
    use perflings::judge::Outcome::*;
    let (early, late) = outcomes.split_at(stage.steps as usize - 1);
    assert!(early.iter().all(|outcome| *outcome == NotMeasured));
    assert!(late.iter().all(|outcome| *outcome == Passed));
}

#[test]
fn the_figures_of_a_stay_during_toggles() {
    let mut play = Play::of_stage(2, 40);
    let figures = |play: &Play| {
        let of_a = play.slot(Slot::A);
        let evidence = of_a.evidence.as_ref();
        (
            of_a.first_loss(),
            evidence.and_then(|evidence| evidence.parity),
        )
    };
    let before = figures(&play);
    play.turn("model.norm", KeyCode::Right);
    play.train(20);
    play.keys("t");
    play.train(20);
    assert_eq!(figures(&play), before);
    play.turn("model.norm", KeyCode::Right);
    play.train(20);
    assert_eq!(figures(&play), before, "B equals A again");
    play.assert_consistent();
}

#[test]
fn an_a_that_continues_with_the_weights_of_b_keeps_its_own_last_loss() {
    let mut play = Play::of_stage(2, 40);
    let own = play.slot(Slot::A).own_loss();
    play.turn("model.norm", KeyCode::Right);
    play.train(60);
    play.keys("t");
    play.train(20);
    assert_eq!(play.slot(Slot::A).own_loss(), own);
    assert!(play.slot(Slot::A).loss.last() != own, "A trains");
    let figures = perflings::app::figures::figures(&play.app).expect("a stage");
    let of_a = figures.slots[0].as_ref().expect("A ran");
    let (_, own_loss) = own.expect("a loss");
    let (_, present_loss) = play.slot(Slot::A).loss.last().expect("a loss");
    assert_eq!(of_a.loss_last.0, own_loss);
    let panels = play.text_at(200, 50);
    let both = format!("{own_loss:.2}, then {present_loss:.2} ");
    assert!(panels.contains(&both), "{both}: {panels}");
    play.keys("B");
    let attempts = play.text_at(200, 50);
    assert!(
        attempts.contains(&format!("loss {own_loss:.2} at step 39")),
        "{attempts}"
    );
    // On small screens the knobs cover the panels and show the loss.
    play.key(KeyCode::Esc);
    assert!(play.app.knobs_open());
    let knobs = play.text_at(80, 24);
    assert!(knobs.contains(&format!("A loss {own_loss:.2}")), "{knobs}");
    play.assert_consistent();
}

#[test]
fn each_configuration_of_b_has_its_own_curve() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.train(10);
    let begin_of_norm = first_step(play.slot(Slot::B));
    play.turn("model.loss", KeyCode::Right);
    play.train(10);
    assert_eq!(first_step(play.slot(Slot::B)), Some(30));
    assert_eq!(play.slot(Slot::B).went_on_from, Some(Slot::B));
    play.turn("model.loss", KeyCode::Left);
    play.train(10);
    let shown = play.slot(Slot::B);
    assert_eq!(first_step(shown), begin_of_norm);
    assert_eq!(last_step(shown), Some(49));
    play.assert_consistent();
}

#[test]
fn the_log_leads_back_to_an_attempt_and_to_its_pairs() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.train(10);
    play.keys("T");
    play.train(40);
    play.turn("model.loss", KeyCode::Right);
    play.wait(600);
    play.train(10);
    assert!(play.app.lesson.learner.pair.is_none());
    play.keys("B");
    assert_eq!(play.app.view.overlay, Some(Overlay::Attempts));
    let knobs = |play: &Play| -> Vec<String> {
        let bench = &play.app.bench;
        let attempts = bench.run.attempts().into_iter();
        attempts
            .map(|attempt| bench.knobs_of_attempt(attempt))
            .collect()
    };
    assert_eq!(
        knobs(&play),
        ["", "model.norm fused", "model.norm fused, model.loss fused"]
    );
    assert_eq!(play.app.view.selected, 2, "the present one is marked");
    play.key(KeyCode::Up);
    play.key(KeyCode::Enter);
    play.wait(600);
    assert_eq!(play.app.bench.comparison.differences(), "model.norm fused");
    assert_eq!(play.pairs_shown(), Some(40));
    play.train(10);
    play.assert_consistent();
    // The first line is A, so choosing it undoes all changes.
    play.keys("B");
    play.keys("g");
    play.key(KeyCode::Enter);
    play.wait(600);
    assert!(play.app.bench.comparison.b_equals_a() && play.app.lesson.learner.pair.is_none());
    assert_eq!(knobs(&play).len(), 3, "nothing is forgotten");
}

#[test]
fn after_pairs_the_next_move_says_that_nothing_runs() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.train(10);
    play.keys("T");
    play.train(40);
    assert_eq!(play.app.bench.run.state, RunState::Finished);
    let sentence = super::next_move(&play.app);
    assert!(sentence.contains("nothing runs"), "{sentence}");
}

#[test]
fn no_sequence_of_keys_shows_a_figure_of_another_configuration() {
    let knobs = ["model.init", "model.norm", "model.loss", "model.gradient"];
    for seed in 0..60 {
        let mut random = protocol::random::Rng::named(seed, "keys", 0);
        let mut play = Play::of_stage(1 + (seed % 2) as u32, 20);
        for _ in 0..25 {
            match random.bits() >> 61 {
                0 | 1 => {
                    let knob = knobs[(random.bits() >> 62) as usize];
                    if play.app.knobs_open() {
                        play.turn(knob, KeyCode::Right);
                    }
                }
                2 if !play.app.bench.comparison.b_equals_a() => play.keys("T"),
                3 if !play.app.bench.comparison.b_equals_a() => play.keys("t"),
                4 => play.keys("r"),
                5 => play.wait(600),
                _ => play.train(1 + (random.bits() >> 59)),
            }
            play.assert_consistent();
        }
    }
}

#[test]
fn a_number_is_typed_into_a_knob_and_refused_with_its_reason() {
    let mut play = Play::of_stage(1, 20);
    play.turn("model.norm", KeyCode::Right);
    play.turn("train.learning-rate", KeyCode::Enter);
    play.keys("0.025");
    assert!(play.app.view.typing());
    let drawn = play.text_at(120, 36);
    assert!(drawn.contains("Type a value for B"), "{drawn}");
    play.key(KeyCode::Backspace);
    play.key(KeyCode::Enter);
    assert_eq!(play.app.bench.comparison.config_b.train.learning_rate, 0.02);
    assert!(!play.app.view.typing());
    for (typed, why) in [("abc", "a number"), ("-1", "trains nothing")] {
        play.key(KeyCode::Enter);
        play.keys(typed);
        play.key(KeyCode::Enter);
        let row = play
            .app
            .bench
            .comparison
            .rows()
            .nth(play.app.bench.comparison.row);
        let reason = row.and_then(|row| row.refused).expect("a reason");
        assert!(reason.contains(why), "{reason}");
        assert_eq!(play.app.bench.comparison.config_b.train.learning_rate, 0.02);
    }
    // Letters are keys again after esc.
    play.key(KeyCode::Enter);
    play.keys("9");
    play.key(KeyCode::Esc);
    assert!(play.app.knobs_open() && !play.app.view.typing());
    play.assert_consistent();
}

#[test]
fn a_range_is_placed_before_it_is_kept() {
    let (mut app, _) = begin(sample::course(), Options::default());
    super::session::train(&mut app, 10);
    let mut press = |code| {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        if let Some(action) = keys::action(event, &app) {
            update(&mut app, Message::Action(action));
        }
        let stage = app.stage().expect("a stage").clone();
        (
            app.lesson.learner.range,
            app.lesson.learner.progress_of(&stage).estimate,
        )
    };
    press(KeyCode::Char('a'));
    assert_eq!(press(KeyCode::Enter), (None, None), "no range was placed");
    let (range, kept) = press(KeyCode::Left);
    assert!(range.is_some_and(|range| range.high == 32) && kept.is_none());
    assert!(press(KeyCode::Enter).1.is_some());
}

#[test]
fn the_learner_has_two_tries_to_name_the_panel_with_the_fault() {
    for (panel, right) in [
        (perflings::app::Panel::Loss, true),
        (perflings::app::Panel::Memory, false),
    ] {
        let (mut app, _) = begin(
            sample::course(),
            Options {
                stage: Some(2),
                ..Options::default()
            },
        );
        super::session::train(&mut app, 10);
        super::session::act(&mut app, perflings::app::Action::Answer(0));
        assert!(app.reading().asks_where());
        super::session::act(&mut app, perflings::app::Action::Focus(panel));
        let rows = vec!["weights 1.0 MiB".to_owned()];
        let drawn = DrawnFrame {
            rows,
            ..DrawnFrame::default()
        };
        update(&mut app, Message::Drawn(drawn));
        let press_enter = |app: &mut App| {
            let action = keys::action(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), app);
            update(app, Message::Action(action.expect("an answer")))
        };
        let effects = press_enter(&mut app);
        let saved = effects.iter().any(|effect| matches!(effect, Effect::Save(ProgressChange::Stage(_, progress)) if progress.located == Some(right)));
        assert!(saved && app.reading().asks_where() != right);
        if !right {
            press_enter(&mut app);
        }
        assert!(!app.reading().asks_where() && app.lesson.learner.pointer == Some(0));
        let score = app.lesson.learner.progress.calibration();
        assert_eq!((score.asked_where, score.located), (1, u32::from(right)));
    }
}
