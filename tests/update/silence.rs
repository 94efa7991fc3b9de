//! An engine whose heartbeat goes on while its device hangs: what is said, and what replaces it.

use perflings::app::guide::{SentencePart, next_move};
use perflings::app::{Action, App, Effect, Message, RunState, update};
use protocol::{Command, Event, Slot};

use super::session::{act, hear, solve, train};
use super::{running, sample, start_of, wanted};

/// So many seconds of heartbeats and nothing else.
fn heartbeats(app: &mut App, seconds: u64, device_s: impl Fn(u64) -> Option<f64>) -> Vec<Effect> {
    let from = app.clock.now_ms;
    (1..=seconds * 2)
        .flat_map(|half| {
            let heartbeat = Event::Heartbeat {
                device_s: device_s(half / 2),
            };
            let mut effects = hear(app, heartbeat);
            let now_ms = from + half * 500;
            effects.extend(update(app, Message::Tick { now_ms }));
            effects
        })
        .collect()
}

fn said(app: &App) -> String {
    let pieces = next_move(app).into_iter();
    pieces
        .map(|piece| match piece {
            SentencePart::Text(text) => text,
            SentencePart::Key(_) => "_".to_owned(),
        })
        .collect()
}

/// A run of 12 steps whose device then hangs; an engine of another kind may say nothing about its device.
fn hanging(tells: bool) -> App {
    let mut app = running(12);
    app.view.notice = None;
    let effects = heartbeats(&mut app, 14, |s| tells.then_some(s as f64));
    assert_eq!(effects, []);
    app
}

#[test]
fn what_is_silent_is_named_and_a_restart_replaces_the_process() {
    for tells in [true, false] {
        let mut app = hanging(tells);
        assert_eq!(
            said(&app),
            "The engine is alive, but its device has not answered for 14 s: _ starts a new one"
        );
        let effects = act(&mut app, Action::Restart);
        assert_eq!(effects[0], Effect::Restart);
        assert_eq!(start_of(&effects).1.variant, "broken");
        train(&mut app, 1);
        assert_eq!(app.device_silent_s(), None);
    }
}

#[test]
fn everything_that_begins_a_run_replaces_an_engine_that_hangs() {
    for action in [Action::Pair, Action::Toggle] {
        let mut app = running(12);
        solve(&mut app);
        act(&mut app, Action::Answer(1));
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
        heartbeats(&mut app, 14, |s| Some(s as f64));
        let effects = act(&mut app, action);
        let restart = effects.iter().position(|effect| *effect == Effect::Restart);
        let work = |effect: &Effect| {
            matches!(
                effect,
                Effect::Send(Command::Start { .. } | Command::Pair { .. })
            )
        };
        let begins = effects.iter().position(work);
        assert!(
            restart.is_some() && restart < begins,
            "{action:?}: {effects:?}"
        );
    }
}

#[test]
fn a_device_that_gets_on_is_left_alone_however_long_a_step_takes() {
    let mut app = running(1);
    assert_eq!(heartbeats(&mut app, 100, |_| Some(0.4)), []);
    assert_eq!(app.device_silent_s(), None);
    assert_eq!(app.bench.run.state, RunState::Running);
    // A run whose steps take 20 s is not silent after 15.
    let mut app = running(1);
    let run = wanted(&app);
    if let Event::Step(mut step) = sample::step(&run, 2) {
        step.ms = 20_000.0;
        hear(&mut app, Event::Step(step));
    }
    heartbeats(&mut app, 15, |s| Some(s as f64));
    assert_eq!(app.device_silent_s(), None);
}

/// A step that takes minutes is left at the next key that asks for something else, whatever the state of its run.
#[test]
fn a_long_step_is_left_for_what_was_asked() {
    for steps in [1, 12] {
        let mut app = running(steps);
        heartbeats(&mut app, 3, |s| Some(s as f64));
        let asked = act(&mut app, Action::Restart);
        assert!(!asked.contains(&Effect::Restart), "it may end in time");
        let effects = heartbeats(&mut app, 10, |s| Some(3.0 + s as f64));
        assert_eq!(effects.first(), Some(&Effect::Restart), "{steps} steps");
        assert_eq!(start_of(&effects).1, start_of(&asked).1);
        // The new engine opens its device first.
        let effects = heartbeats(&mut app, 60, |_| None);
        assert_eq!(effects, [], "{steps} steps");
    }
}

#[test]
fn an_unanswered_command_replaces_the_engine_once() {
    let mut app = hanging(true);
    act(&mut app, Action::Pause);
    assert_eq!(app.bench.run.state, RunState::Pausing);
    let effects = heartbeats(&mut app, 30, |s| Some(14.0 + s as f64));
    assert_eq!(effects[0], Effect::Restart, "{effects:?}");
    assert_eq!(app.bench.run.state, RunState::Starting);
    // The new one hangs as well: it is ended, and nothing goes round in circles.
    let effects = heartbeats(&mut app, 130, |_| None);
    assert_eq!(effects, [Effect::Kill]);
    let RunState::EngineGone { reason } = &app.bench.run.state else {
        panic!("{:?}", app.bench.run.state)
    };
    assert!(
        reason.contains("has not answered for 120 s either"),
        "{reason}"
    );
}

#[test]
fn a_pause_and_a_suspended_screen_are_no_silence() {
    let mut app = running(12);
    act(&mut app, Action::Pause);
    hear(&mut app, Event::Paused { slot: Slot::A });
    assert_eq!(heartbeats(&mut app, 200, |_| None), []);
    act(&mut app, Action::Pause);
    assert_eq!(heartbeats(&mut app, 4, |_| Some(0.1)), []);
    assert_eq!(app.bench.run.state, RunState::Resuming);
    let mut app = running(12);
    let now_ms = app.clock.now_ms + 600_000;
    assert_eq!(update(&mut app, Message::Tick { now_ms }), []);
    assert_eq!(app.device_silent_s(), None);
}
