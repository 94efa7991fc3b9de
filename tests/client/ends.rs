//! How an engine ends: what is said about its last words, its silence, and its processes.

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
fn a_driver_s_line_is_not_blamed_for_the_end() {
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
fn silence_is_said_once_and_ends_with_the_next_line() {
    let limits = EngineLimits {
        silence: Duration::from_millis(50),
        ..limits()
    };
    // The script continues when the parent sends a command after the silence.
    let script = r#"read x; echo "$HELLO"; read x; echo '{"t":1,"event":"heartbeat"}'; read x"#;
    let mut client = EngineHandle::start(shell(script), limits).expect("sh starts");
    assert!(is_hello(&next(&mut client)));
    assert!(matches!(next(&mut client), EngineMessage::Silent(_)));
    assert_eq!(client.next(Duration::from_millis(120)), None);
    client.send(Command::Probe);
    assert!(matches!(next(&mut client), EngineMessage::Line(..)));
}

#[test]
fn a_long_line_through_a_slow_pipe_is_no_silence() {
    let limits = EngineLimits {
        silence: Duration::from_millis(300),
        ..limits()
    };
    // A line that takes longer than the limit, in pieces.
    let script = r#"read x; echo "$HELLO"; printf '{"t":1,"event":'; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; printf ' '; done; echo '"heartbeat"}'; read x"#;
    let mut client = EngineHandle::start(shell(script), limits).expect("sh starts");
    assert!(is_hello(&next(&mut client)));
    assert!(matches!(next(&mut client), EngineMessage::Line(..)));
    assert!(matches!(next(&mut client), EngineMessage::Silent(_)));
}

#[test]
fn a_dying_engine_is_named_with_its_last_words() {
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
fn killing_says_so_and_a_new_engine_can_take_its_place() {
    let mut client = start_engine(r#"read x; echo "$HELLO"; while read c; do echo "$c" >&2; done"#);
    client.send(Command::Open {
        device: "cpu".to_owned(),
    });
    client.send(start());
    client.kill();
    assert!(matches!(
        next(&mut client),
        EngineMessage::Over(EngineEnd::Killed)
    ));
    assert_eq!(client.next(Duration::ZERO), None);
    client.renew().expect("starts again");
    client.send(start());
    assert!(is_hello(&next(&mut client)));
    let told = match next(&mut client) {
        EngineMessage::Stray(text) => serde_json::from_str::<Command>(&text).ok(),
        _ => None,
    };
    assert_eq!(told, Some(start()));
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_is_left_behind_not_even_a_wrapper_s() {
    // The engine is a child of a wrapper and ignores the end of its input.
    let script = format!(
        r#"sh -c 'read x; echo "$0"; echo $$ >&2; while :; do sleep 60; done' '{HELLO}'; echo unreachable"#
    );
    let mut client = start_engine(&script);
    let mut engine = None;
    while engine.is_none() {
        if let EngineMessage::Stray(text) = next(&mut client) {
            engine = Some(text.parse::<u32>().expect("a process id"));
        }
    }
    let (wrapper, engine) = (client.pid(), engine.expect("told"));
    assert!(is_alive(wrapper) && is_alive(engine));
    drop(client);
    assert!(
        !std::path::Path::new(&format!("/proc/{wrapper}")).exists(),
        "the wrapper was reaped"
    );
    // It was killed with its process group; its new parent reaps it.
    let gone = (0..2000).any(|_| {
        std::thread::yield_now();
        !is_alive(engine) || {
            std::thread::sleep(Duration::from_millis(1));
            false
        }
    });
    assert!(gone, "the engine behind the wrapper ended");
}

#[test]
fn a_reader_that_looked_away_does_not_blame_the_engine() {
    let limits = EngineLimits {
        silence: Duration::from_secs(1),
        ..limits()
    };
    let mut client = EngineHandle::start(shell(r#"read x; echo "$HELLO"; read x; read x"#), limits)
        .expect("sh starts");
    assert!(is_hello(&next(&mut client)));
    // As after ctrl-z and `fg`.
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(client.next(Duration::ZERO), None, "counting begins anew");
}

#[test]
fn a_stack_trace_is_no_last_word() {
    let script = r#"read x; echo "$HELLO"
        printf 'memory allocation of 512 bytes failed\nstack backtrace:\n   0: a::b\n  at src/a.rs:3\nnote: Some details are omitted\n' >&2
        kill -6 $$"#;
    let (heard, over) = until_over(&mut start_engine(script));
    let is_stray = |message: &&EngineMessage| matches!(message, EngineMessage::Stray(_));
    assert_eq!(heard.iter().filter(is_stray).count(), 1, "{heard:?}");
    let why = over.to_string();
    assert!(
        why.contains("`memory allocation of 512 bytes failed`") && why.contains("ulimit -v"),
        "{why}"
    );
}
