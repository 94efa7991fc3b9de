//! The end of an engine: the reason that is reported, silence before it, and the processes that must not stay.

use super::*;

#[cfg(target_os = "linux")]
fn is_alive(pid: u32) -> bool {
    // A zombie counts as dead; its parent has to reap it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z')
}

#[test]
fn a_line_of_a_driver_does_not_count_as_the_reason_of_the_end() {
    for line in [
        "lavapipe is not a conformant vulkan implementation, testing use only",
        "MESA: warning: something else",
    ] {
        let script = format!(r#"read x; echo "$HELLO"; echo '{line}' >&2; kill -9 $$"#);
        let (_, over) = until_over(&mut start_engine(&script));
        let text =
            "the engine was ended by signal 9 (kill; the system does this when memory runs out)";
        assert_eq!(over, EngineEnd::Ended(text.to_owned()));
    }
    let script = r#"read x; echo "$HELLO"; echo 'WARNING: lavapipe is not a conformant vulkan implementation, testing use only' >&2; exit 3"#;
    let (_, over) = until_over(&mut start_engine(script));
    assert_eq!(
        over,
        EngineEnd::Ended("the engine exited with status 3".to_owned())
    );
}

#[test]
fn silence_is_reported_once_and_ends_with_the_next_line() {
    let limits = EngineLimits {
        silence: Duration::from_millis(50),
        ..limits()
    };
    // The script continues when the parent sends a command after the silence.
    let script = r#"read x; echo "$HELLO"; read x; echo '{"t":1,"event":"heartbeat"}'; read x"#;
    let mut engine = EngineHandle::start(shell(script), limits).expect("sh starts");
    assert!(is_hello(&next(&mut engine)));
    assert!(matches!(next(&mut engine), EngineMessage::Silent(_)));
    assert_eq!(engine.next(Duration::from_millis(120)), None);
    engine.send(Command::Probe);
    assert!(matches!(next(&mut engine), EngineMessage::Line(..)));
}

#[test]
fn a_long_line_through_a_slow_pipe_is_no_silence() {
    let limits = EngineLimits {
        silence: Duration::from_millis(300),
        ..limits()
    };
    // A line that takes longer than the limit, in pieces.
    let script = r#"read x; echo "$HELLO"; printf '{"t":1,"event":'; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; printf ' '; done; echo '"heartbeat"}'; read x"#;
    let mut engine = EngineHandle::start(shell(script), limits).expect("sh starts");
    assert!(is_hello(&next(&mut engine)));
    assert!(matches!(next(&mut engine), EngineMessage::Line(..)));
    assert!(matches!(next(&mut engine), EngineMessage::Silent(_)));
}

#[test]
fn the_end_of_an_engine_is_reported_with_its_last_output() {
    let (_, over) = until_over(&mut start_engine(
        r#"read x; echo "$HELLO"; echo 'device lost' >&2; exit 3"#,
    ));
    assert_eq!(
        over,
        EngineEnd::Ended(
            "the engine exited with status 3; its last output was `device lost`".to_owned()
        )
    );
    let (_, over) = until_over(&mut start_engine(r#"read x; echo "$HELLO"; kill -9 $$"#));
    assert!(
        over.to_string().contains("was ended by signal 9 (kill"),
        "{over:?}"
    );
    let (_, over) = until_over(&mut start_engine(
        "echo 'ssh: no route to host' >&2; exit 255",
    ));
    let EngineEnd::Refused(reason) = over else {
        panic!("{over:?}")
    };
    assert!(
        reason.contains("exited with status 255 before its greeting"),
        "{reason}"
    );
    assert!(reason.contains("no route to host"), "{reason}");
}

#[test]
fn an_engine_that_closes_its_output_is_stopped() {
    let (_, over) = until_over(&mut start_engine(
        r#"read x; echo "$HELLO"; exec >&- 2>&-; read x; read x"#,
    ));
    assert_eq!(
        over,
        EngineEnd::Ended("the engine closed its output and was stopped".to_owned())
    );
}

#[test]
fn a_killed_engine_is_reported_and_a_new_one_can_take_its_place() {
    let mut engine = start_engine(r#"read x; echo "$HELLO"; while read c; do echo "$c" >&2; done"#);
    engine.send(Command::Open {
        device: "cpu".to_owned(),
    });
    engine.send(start_command());
    engine.kill();
    assert!(matches!(
        next(&mut engine),
        EngineMessage::Over(EngineEnd::Killed)
    ));
    assert_eq!(engine.next(Duration::ZERO), None);
    engine.renew().expect("starts again");
    engine.send(start_command());
    assert!(is_hello(&next(&mut engine)));
    let received = match next(&mut engine) {
        EngineMessage::Stray(text) => serde_json::from_str::<Command>(&text).ok(),
        _ => None,
    };
    assert_eq!(received, Some(start_command()));
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_is_left_behind_not_even_a_wrapper_s() {
    // The engine is a child of a wrapper and ignores the end of its input.
    let script = format!(
        r#"sh -c 'read x; echo "$0"; echo $$ >&2; while :; do sleep 60; done' '{HELLO}'; echo unreachable"#
    );
    let mut engine = start_engine(&script);
    let engine_pid = loop {
        if let EngineMessage::Stray(text) = next(&mut engine) {
            break text.parse::<u32>().expect("a process id");
        }
    };
    let wrapper = engine.pid();
    assert!(is_alive(wrapper) && is_alive(engine_pid));

    drop(engine);

    assert!(
        !std::path::Path::new(&format!("/proc/{wrapper}")).exists(),
        "the wrapper was reaped"
    );
    // It was killed with its process group; its new parent reaps it.
    let gone = (0..2000).any(|_| {
        std::thread::yield_now();
        !is_alive(engine_pid) || {
            std::thread::sleep(Duration::from_millis(1));
            false
        }
    });
    assert!(gone, "the engine behind the wrapper ended");
}

#[test]
fn an_engine_was_not_silent_while_its_reader_was_suspended() {
    let limits = EngineLimits {
        silence: Duration::from_secs(1),
        ..limits()
    };
    let mut engine = EngineHandle::start(shell(r#"read x; echo "$HELLO"; read x; read x"#), limits)
        .expect("sh starts");
    assert!(is_hello(&next(&mut engine)));
    // A reader that is suspended with ctrl-z asks for no message until `fg`.
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(engine.next(Duration::ZERO), None, "counting begins anew");
}

#[test]
fn a_stack_trace_does_not_count_as_the_last_output() {
    let script = r#"read x; echo "$HELLO"
        printf 'memory allocation of 512 bytes failed\nstack backtrace:\n   0: a::b\n  at src/a.rs:3\nnote: Some details are omitted\n' >&2
        kill -6 $$"#;
    let (messages, over) = until_over(&mut start_engine(script));
    let is_stray = |message: &&EngineMessage| matches!(message, EngineMessage::Stray(_));
    assert_eq!(messages.iter().filter(is_stray).count(), 1, "{messages:?}");
    let why = over.to_string();
    assert!(
        why.contains("`memory allocation of 512 bytes failed`") && why.contains("ulimit -v"),
        "{why}"
    );
}
