//! The watchdog: an engine whose heartbeat continues while its device hangs is reported and replaced.

use perflings::app::{Action, App, Effect, Message, RunState, update};
use protocol::{Command, Event, Slot};

use super::session::{act, hear, solve, train};
use super::{next_move, running, sample, start_of, wanted};

/// Sends two heartbeats and ticks a second, and no other event, for this many seconds. `device_s` returns the seconds since the device's
/// last progress for each second. Returns the effects.
fn heartbeats(app: &mut App, seconds: u64, device_s: impl Fn(u64) -> Option<f64>) -> Vec<Effect> {
    let from_ms = app.clock.now_ms;
    let mut effects = Vec::new();
    for half in 1..=seconds * 2 {
        let heartbeat = Event::Heartbeat {
            device_s: device_s(half / 2),
        };
        effects.extend(hear(app, heartbeat));
        let now_ms = from_ms + half * 500;
        effects.extend(update(app, Message::Tick { now_ms }));
    }
    effects
}

/// A run of 12 steps whose device has hung for 14 s. The heartbeats of some engines do not report the device.
fn hanging(reports_device: bool) -> App {
    let mut app = running(12);
    app.view.notice = None;
    let effects = heartbeats(&mut app, 14, |second| {
        reports_device.then_some(second as f64)
    });
    assert_eq!(effects, []);
    app
}

#[test]
fn a_silent_device_is_reported_and_a_restart_replaces_the_engine() {
    for reports_device in [true, false] {
        let mut app = hanging(reports_device);
        assert_eq!(
            next_move(&app),
            "The engine is alive, but its device has not answered for 14 s. <Restart>: start a new engine"
        );
        let effects = act(&mut app, Action::Restart);
        assert_eq!(effects[0], Effect::Restart);
        assert_eq!(start_of(&effects).1.variant, "broken");
        train(&mut app, 1);
        assert_eq!(app.device_silent_s(), None);
    }
}

#[test]
fn toggles_and_pairs_replace_an_engine_that_hangs() {
    for action in [Action::Pair, Action::Toggle] {
        let mut app = running(12);
        solve(&mut app);
        act(&mut app, Action::Answer(1));
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
        heartbeats(&mut app, 14, |second| Some(second as f64));
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
fn a_device_that_makes_progress_is_not_replaced_during_a_long_step() {
    let mut app = running(1);
    assert_eq!(heartbeats(&mut app, 100, |_| Some(0.4)), []);
    assert_eq!(app.device_silent_s(), None);
    assert_eq!(app.bench.run.state, RunState::Running);
    // A run whose steps take 20 s is not silent after 15 s.
    let mut app = running(1);
    let run = wanted(&app);
    if let Event::Step(mut step) = sample::step(&run, 2) {
        step.ms = 20_000.0;
        hear(&mut app, Event::Step(step));
    }
    heartbeats(&mut app, 15, |second| Some(second as f64));
    assert_eq!(app.device_silent_s(), None);
}

#[test]
fn a_restart_during_a_long_step_gets_a_new_engine_after_eight_seconds() {
    for steps in [1, 12] {
        let mut app = running(steps);
        heartbeats(&mut app, 3, |second| Some(second as f64));
        let asked = act(&mut app, Action::Restart);
        assert!(!asked.contains(&Effect::Restart), "it may end in time");
        let effects = heartbeats(&mut app, 10, |second| Some(3.0 + second as f64));
        assert_eq!(effects.first(), Some(&Effect::Restart), "{steps} steps");
        assert_eq!(start_of(&effects).1, start_of(&asked).1);
        // The new engine has time to open its device.
        assert_eq!(heartbeats(&mut app, 60, |_| None), [], "{steps} steps");
    }
}

#[test]
fn an_unanswered_command_replaces_the_engine_once() {
    let mut app = hanging(true);
    act(&mut app, Action::Pause);
    assert_eq!(app.bench.run.state, RunState::Pausing);
    let effects = heartbeats(&mut app, 30, |second| Some(14.0 + second as f64));
    assert_eq!(effects[0], Effect::Restart, "{effects:?}");
    assert_eq!(app.bench.run.state, RunState::Starting);
    // The new engine hangs as well. It is killed and not replaced again.
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
fn a_pause_and_a_suspended_program_do_not_count_as_silence() {
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
