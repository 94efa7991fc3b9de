//! The last request is measured even if the engine answers late. The tests press two keys at several delays; the engine's answers come late
//! and in order.

use std::collections::VecDeque;

use perflings::app::bench::Asked;
use perflings::app::{Action, App, Effect, Message, Options, Overlay, RunState, update};
use protocol::*;

use super::sample;
use super::session::{act, answer, begin, hear, side};

/// A key that requests something.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    /// A knob that keeps the weights.
    Knob,
    /// A knob that restarts B.
    RestartKnob,
    Toggle,
    Pairs,
    Restart,
    Pause,
    Device,
}

use Key::*;

const KEYS: [Key; 7] = [Knob, RestartKnob, Toggle, Pairs, Restart, Pause, Device];
/// Milliseconds between two turns of the engine.
const TURN_MS: u64 = 25;

/// The work of the engine.
#[derive(Clone, Debug)]
enum Work {
    Nothing,
    Run(RunSpec),
    /// The two sides, and the number of pairs so far.
    Pairs([RunSpec; 2], u32),
}

/// A learner at the keys, and an engine whose answers arrive late.
#[derive(Clone)]
struct LateSession {
    app: App,
    /// The delay of each event.
    late_ms: u64,
    work: Work,
    /// The number of the request that the engine answers.
    request: u64,
    /// The next step of the run.
    step: u64,
    paused: bool,
    /// The events on their way to the screen, each with the time of its arrival in milliseconds.
    arriving: VecDeque<(u64, Event)>,
    /// The notices that the learner saw.
    notices: Vec<String>,
}

impl LateSession {
    /// Stage 2 after the prediction. B differs from A and has run for a while.
    fn new(late_ms: u64) -> Self {
        let options = Options {
            stage: Some(2),
            ..Options::default()
        };
        let (app, effects) = begin(sample::course(), options);
        let mut session = Self {
            app,
            late_ms,
            work: Work::Nothing,
            request: 0,
            step: 0,
            paused: false,
            arriving: VecDeque::new(),
            notices: Vec::new(),
        };
        session.carry_out(effects);
        session.wait(1_000);
        let devices = ["cpu", "vulkan-cpu"]
            .map(|select| DeviceInfo {
                select: select.to_owned(),
                device: sample::device(),
                ..DeviceInfo::default()
            })
            .to_vec();
        hear(&mut session.app, Event::Devices { devices });
        session.act(Action::Answer(0));
        session.turn("model.gradient");
        session.wait(2_000);
        assert!(!session.app.bench.comparison.b_equals_a() && session.settled());
        session.notices.clear();
        session
    }

    /// Carries out an action, and the commands that follow.
    fn act(&mut self, action: Action) {
        let effects = act(&mut self.app, action);
        self.collect_notice();
        self.carry_out(effects);
    }

    /// Turns the knob with this path once.
    fn turn(&mut self, path: &str) {
        let offers = &self.app.bench.comparison.offers;
        let row = offers.iter().position(|knob| knob.path == path);
        self.app.bench.comparison.select(row.expect("offered"));
        self.act(Action::KnobTurn(1));
    }

    fn press(&mut self, key: Key) {
        match key {
            Knob => self.turn("model.norm"),
            RestartKnob => self.turn("model.init"),
            Toggle => self.act(Action::Toggle),
            Pairs => self.act(Action::Pair),
            Restart => self.act(Action::Restart),
            Pause => self.act(Action::Pause),
            Device => {
                let devices = &self.app.devices;
                let is_other = |info: &DeviceInfo| info.select != devices.using;
                let line = devices.known.iter().position(is_other);
                self.act(Action::Open(Overlay::Devices));
                self.act(Action::ChooseLine(line.expect("another device")));
            }
        }
    }

    /// Adds the notice on the screen to those that the learner saw.
    fn collect_notice(&mut self) {
        if let Some(notice) = &self.app.view.notice
            && self.notices.last() != Some(&notice.text)
        {
            self.notices.push(notice.text.clone());
        }
    }

    /// Sends an event, which arrives after the delay.
    fn report(&mut self, event: Event) {
        let at_ms = self.app.clock.now_ms + self.late_ms;
        self.arriving
            .push_back((at_ms, answer(event, self.request)));
    }

    /// Lets this many milliseconds pass. The engine works every 50 ms.
    fn wait(&mut self, ms: u64) {
        for _ in 0..ms / TURN_MS {
            let now_ms = self.app.clock.now_ms + TURN_MS;
            let effects = update(&mut self.app, Message::Tick { now_ms });
            self.carry_out(effects);
            while self
                .arriving
                .front()
                .is_some_and(|(at_ms, _)| *at_ms <= now_ms)
            {
                let (_, event) = self.arriving.pop_front().expect("there is one");
                let effects = hear(&mut self.app, event);
                self.carry_out(effects);
            }
            self.collect_notice();
            if now_ms.is_multiple_of(50) {
                self.make_step();
            }
        }
    }

    /// Makes the next step or pair.
    fn make_step(&mut self) {
        match &mut self.work {
            Work::Run(run) if !self.paused => {
                let event = sample::step(run, self.step);
                self.step += 1;
                self.report(event);
            }
            Work::Pairs(_, n) => {
                *n += 1;
                let event = sample::pair((*n).min(30), false);
                self.report(event);
            }
            Work::Run(_) | Work::Nothing => {}
        }
    }

    /// Carries out the commands like the engine's session.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Effect::Send(command) = effect else {
                continue;
            };
            match command {
                Command::Start { run, request, .. } => {
                    self.end_work();
                    self.request = request;
                    self.step = 0;
                    self.paused = false;
                    self.report(sample::started(&run, 0));
                    self.work = Work::Run(run);
                }
                Command::Apply { run, request } if matches!(self.work, Work::Run(_)) => {
                    self.request = request;
                    self.report(sample::started(&run, self.step));
                    self.work = Work::Run(run);
                }
                Command::Apply { request, .. } => {
                    self.request = request;
                    self.report(Event::Failed(Failed {
                        kind: FailedKind::Usage,
                        reason: "nothing is running that could change".to_owned(),
                        request,
                    }));
                }
                Command::Pair { a, b, request, .. } => {
                    self.end_work();
                    self.request = request;
                    self.paused = false;
                    for run in [&a, &b] {
                        self.report(side(run));
                    }
                    self.report(sample::pair(0, false));
                    self.work = Work::Pairs([a, b], 0);
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

    /// Ends the work in progress and sends its summary.
    fn end_work(&mut self) {
        let pair = match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing => return,
            Work::Run(_) => None,
            Work::Pairs(..) => Some(Pair::default()),
        };
        self.report(Event::Finished(Box::new(Finished {
            slot: Slot::B,
            steps: self.step,
            pair,
            ..Finished::default()
        })));
    }

    /// Returns true if nothing is awaited.
    fn settled(&self) -> bool {
        let pending = &self.app.bench.pending;
        let done = match &pending.asked {
            Asked::Nothing => true,
            Asked::Pairs { to_begin } => to_begin.is_empty(),
            Asked::Start { .. } | Asked::Change | Asked::Leave => false,
        };
        done && pending.due_ms.is_none()
    }

    /// Checks that the engine does what the last of these keys requested, and that the screen shows it.
    fn assert_last_request(&self, keys: [Key; 2], case: &str) {
        let bench = &self.app.bench;
        let b = &bench.comparison.config_b;
        assert!(self.settled(), "{case}: {:?}", bench.pending);
        // Only a toggle ends pairs; any other key repeats or moves them.
        let paired = match keys {
            [_, Pairs] => true,
            [Pairs, last] => last != Toggle,
            _ => false,
        };
        match &self.work {
            Work::Pairs(sides, n) => {
                assert!(paired && bench.pairing(), "{case}: unexpected pairs");
                assert_eq!(sides[0].config, bench.comparison.config_a, "{case}");
                assert_eq!(sides[1].config, *b, "{case}");
                let shown = self.app.lesson.learner.pair.as_ref();
                let counted = shown.map_or(0, |pair| pair.n);
                assert!(counted > 0, "{case}: {n} pairs, none counts");
            }
            Work::Run(run) => {
                assert!(!paired && !bench.pairing(), "{case}: the pairs are lost");
                assert_eq!(bench.run.wanted.as_ref(), Some(run), "{case}");
                let shown = bench.run.shown().description.spec();
                assert_eq!(shown.as_ref(), Some(run), "{case}");
                let configs = [&bench.comparison.config_a, b];
                assert_eq!(&run.config, configs[run.slot as usize], "{case}");
                if matches!(keys[1], Knob | RestartKnob) {
                    assert_eq!(run.slot, Slot::B, "{case}: the change does not run");
                }
                let is_paused = matches!(bench.run.state, RunState::Paused);
                assert_eq!(is_paused, self.paused, "{case}: {:?}", bench.run.state);
            }
            Work::Nothing => panic!("{case}: nothing runs"),
        }
        if keys == [Pairs, Toggle] {
            let warned = self.notices.iter().any(|text| text.contains("pairs ended"));
            assert!(warned, "{case}: no notice: {:?}", self.notices);
        }
    }
}

#[test]
fn the_last_request_is_measured_even_if_the_engine_answers_late() {
    for late_ms in [0, 120, 400] {
        let ready = LateSession::new(late_ms);
        for first in KEYS {
            for second in KEYS {
                for delay_ms in (0..=500).step_by(100) {
                    let mut session = ready.clone();
                    session.press(first);
                    session.wait(delay_ms);
                    session.press(second);
                    session.wait(2_000);
                    let case = format!("{first:?}, {delay_ms} ms, {second:?}; {late_ms} ms late");
                    session.assert_last_request([first, second], &case);
                }
            }
        }
    }
}

#[test]
fn pairs_after_two_changes_compare_the_last_one() {
    for delay_ms in (0..=500).step_by(50) {
        let mut session = LateSession::new(300);
        session.press(Knob);
        session.wait(delay_ms);
        session.turn("model.loss");
        session.wait(delay_ms);
        session.press(Pairs);
        session.wait(2_000);
        session.assert_last_request([Knob, Pairs], &format!("{delay_ms} ms"));
    }
}

/// The learner may be at a question when the pairs end.
#[test]
fn the_end_of_pairs_turns_no_page_and_names_the_page_of_the_result() {
    let mut session = LateSession::new(50);
    session.press(Pairs);
    session.wait(1_000);
    session.act(Action::TurnPage(-1));
    let page = session.app.reading().page().0;
    session.report(sample::pair(40, true));
    session.work = Work::Nothing;
    session.wait(200);
    assert!(session.app.pairs_ended());
    assert_eq!(session.app.reading().page().0, page);
    let named = session
        .notices
        .iter()
        .any(|text| text.contains("of the lesson shows the result"));
    assert!(named, "{:?}", session.notices);
}
