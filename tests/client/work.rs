//! Commands and measurements end, although the engine hangs, repeats itself without end, or is silent.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use perflings::measure::runner::{EngineTask, Runner};
use protocol::handle::{CommandEnd, Interruption};

use super::*;

#[test]
fn a_heartbeat_is_no_progress_of_the_device() {
    let script = r#"read x; echo "$HELLO"
        echo '{"t":1,"event":"heartbeat","device_s":7.5}'
        echo '{"t":1,"event":"compiling","kernels":1,"latest":"k"}'
        echo '{"t":1,"event":"heartbeat","device_s":9}'; read x; read x"#;
    let mut engine = start_engine(script);
    let started = std::time::Instant::now();
    for _ in 0..4 {
        assert!(matches!(next(&mut engine), EngineMessage::Line(..)));
    }
    // The kernel that was compiled is the last progress, although a later heartbeat reports an earlier one.
    assert!(engine.idle() <= started.elapsed());
    std::thread::sleep(Duration::from_millis(60));
    assert!(engine.idle() >= Duration::from_millis(60));
}

/// Measures a run with the engine of a script. Returns the error with which the measurement ends.
fn error_of_measurement(script: &str, set_limit: impl FnOnce(&mut EngineLimits)) -> String {
    let mut runner = Runner::in_background(shell(script), Arc::default(), Box::new(|_| ()));
    set_limit(&mut runner.limits);
    let task = EngineTask::run("custom", &RunConfig::preset(Preset::Tiny), 3);
    runner
        .measure("cpu", &task, |_, _| Ok(()))
        .expect_err("it ends early")
        .to_string()
}

#[test]
fn a_measurement_ends_where_the_device_hangs_and_the_heartbeat_goes_on() {
    let script = r#"read x; echo "$HELLO"; read x
        while :; do echo '{"t":1,"event":"heartbeat"}'; sleep 0.05; done"#;
    let error = error_of_measurement(script, |limits| limits.device = Duration::from_millis(400));
    assert_eq!(
        error,
        "the engine is alive, but its device made no progress for 0 s, so it was ended"
    );
}

#[test]
fn an_engine_that_repeats_itself_is_given_up() {
    let error_after_repeating = |line: &str| {
        let script = format!(
            r#"read x; echo "$HELLO"; read x; n=0; while :; do n=$((n+1)); echo '{line}' | sed "s/#/$n/"; done"#
        );
        error_of_measurement(&script, |limits| limits.task = Duration::from_millis(500))
    };
    for line in [
        r#"{"t":1,"event":"heartbeat","device_s":0}"#,
        r#"{"t":1,"event":"compiling","kernels":1,"latest":"k"}"#,
        r#"{"t":1,"event":"paused","slot":"a"}"#,
        r#"{"t":1,"event":"step","slot":"a","step":2,"loss":1,"ms":1,"synced":true,"profiled":false,"phases":null}"#,
    ] {
        let error = error_after_repeating(line);
        assert!(error.contains("finished no step in 0 s"), "{line}: {error}");
    }
    let endless = r#"{"t":1,"event":"step","slot":"a","step":#000,"loss":1,"ms":1,"synced":true,"profiled":false,"phases":null}"#;
    let error = error_after_repeating(endless);
    assert!(error.contains("far beyond the steps"), "{error}");
}

/// Drives the start of a run to its end. Returns the end, and true if the engine was reported as slow before.
fn drive_start(
    script: &str,
    limits: EngineLimits,
    interruption: Option<Interruption>,
) -> (CommandEnd, bool) {
    let mut engine = EngineHandle::start(shell(script), limits).expect("sh starts");
    let mut was_reported_slow = false;
    let interrupted = AtomicBool::new(true);
    let interrupt = interruption.map(|interruption| (&interrupted, interruption));
    let end = engine.drive(start_command(), interrupt, |message| {
        was_reported_slow |= matches!(message, EngineMessage::Slow { .. });
        Ok(())
    });
    (end.expect("nothing fails here"), was_reported_slow)
}

/// A script that takes a command, and then sends heartbeats and reads nothing.
const DEAF: &str = r#"read x; echo "$HELLO"; read x
    while :; do echo '{"t":1,"event":"heartbeat"}'; sleep 0.02; done"#;

/// Returns a script that answers its first command with a line.
fn script_that_answers(line: &str) -> String {
    format!(r#"read x; echo "$HELLO"; read x; echo '{line}'; read x"#)
}

/// Returns limits with which an engine that makes no step is given up after 400 ms.
fn impatient() -> EngineLimits {
    EngineLimits {
        task: Duration::from_millis(400),
        ..limits()
    }
}

#[test]
fn a_command_ends_with_its_answer() {
    let finished = StreamLine {
        t: 1.0,
        event: Event::Finished(Box::default()),
    };
    let line = serde_json::to_string(&finished).expect("plain data");
    let (end, _) = drive_start(&script_that_answers(&line), limits(), None);
    assert!(matches!(end, CommandEnd::Answered), "{end:?}");
}

#[test]
fn a_command_that_fails_ends_with_the_reason() {
    let failed = r#"{"t":1,"event":"failed","kind":"device","reason":"lost"}"#;
    let (end, _) = drive_start(&script_that_answers(failed), limits(), None);
    assert!(matches!(&end, CommandEnd::Failed(failed) if failed.reason == "lost"));
    let error = end.answered().expect_err("it failed");
    assert_eq!(error.to_string(), "lost");
}

#[test]
fn an_interrupted_engine_that_does_not_stop_is_ended() {
    let stops_soon = EngineLimits {
        stop: Duration::from_millis(200),
        ..limits()
    };
    let (stopped, _) = drive_start(DEAF, stops_soon, Some(Interruption::Stop));
    assert!(matches!(stopped, CommandEnd::Over(EngineEnd::NotStopped)));
    let (killed, _) = drive_start(DEAF, limits(), Some(Interruption::Kill));
    assert!(matches!(killed, CommandEnd::Over(EngineEnd::Killed)));
}

#[test]
fn an_engine_without_a_step_is_reported_slow_before_it_is_given_up() {
    let (end, was_reported_slow) = drive_start(DEAF, impatient(), None);
    assert!(matches!(end, CommandEnd::Over(EngineEnd::NoStep(_))));
    assert!(was_reported_slow);
}

#[test]
fn an_engine_that_does_not_answer_is_given_up_and_the_next_command_does_not_wait() {
    let mut engine = EngineHandle::start(shell(DEAF), impatient()).expect("sh starts");
    let probe = engine.drive(Command::Probe, None, |_| Ok(()));
    let end = probe.expect("nothing fails here");
    assert!(matches!(end, CommandEnd::Over(EngineEnd::NoAnswer(_))));
    let next = engine.drive(start_command(), None, |_| Ok(()));
    assert!(matches!(next, Ok(CommandEnd::Over(_))), "{next:?}");
}

#[test]
fn a_command_that_is_only_sent_is_not_watched() {
    let mut engine = EngineHandle::start(shell(DEAF), impatient()).expect("sh starts");
    engine.send(start_command());
    let end = std::time::Instant::now() + Duration::from_millis(600);
    while std::time::Instant::now() < end {
        let message = engine.next(Duration::from_millis(10));
        assert!(matches!(message, None | Some(EngineMessage::Line(..))));
    }
}

#[test]
fn a_measurement_ends_where_the_line_is_silent_or_cut() {
    let error_after_greeting = |then: &str| {
        let script = format!(r#"read x; echo "$HELLO"; read x; {then}"#);
        error_of_measurement(&script, |limits| {
            limits.silence = Duration::from_millis(100)
        })
    };
    let silent = error_after_greeting("sleep 600");
    assert!(
        silent.starts_with("nothing more comes from `sh -c")
            && silent.ends_with("see that it answers and run this again"),
        "{silent}"
    );
    let cut = error_after_greeting("exit 255");
    assert_eq!(cut, "the engine exited with status 255");
    // docs/remote.md promises that a broken connection is noticed in five seconds and ends a command in ten.
    assert!(2 * EngineLimits::default().silence <= Duration::from_secs(10));
}
