//! The parent's handle on an engine, against small shell scripts that behave and misbehave like one.
#![cfg(unix)]

#[path = "client/ends.rs"]
mod ends;
#[path = "client/work.rs"]
mod work;

use std::time::Duration;

use protocol::config::{Preset, RunConfig};
use protocol::handle::{
    EngineCommand, EngineEnd, EngineHandle, EngineLimits, EngineMessage, MAX_LINE, split_words,
};
use protocol::{Command, Device, Event, Lint, RunSpec, Slot, Started, StreamLine};

const HELLO: &str = r#"{"t":0.0,"event":"hello","protocol":1,"version":"0.1.0","pid":1,"os":"linux","cores":2,"date":"2026-11-21"}"#;
/// A time that only a test waits for that hangs.
const LONG: Duration = Duration::from_secs(20);

fn shell(script: &str) -> EngineCommand {
    EngineCommand::new("sh", ["-c", &format!("HELLO='{HELLO}'; {script}")])
}

fn limits() -> EngineLimits {
    EngineLimits {
        hello: LONG,
        silence: LONG,
        shutdown: Duration::from_millis(500),
        ..EngineLimits::default()
    }
}

fn start_engine(script: &str) -> EngineHandle {
    EngineHandle::start(shell(script), limits()).expect("sh starts")
}

fn next(engine: &mut EngineHandle) -> EngineMessage {
    engine.next(LONG).expect("something within the time")
}

/// Returns all messages until the engine has ended, and the reason of its end.
fn until_over(engine: &mut EngineHandle) -> (Vec<EngineMessage>, EngineEnd) {
    let mut messages = Vec::new();
    loop {
        match next(engine) {
            EngineMessage::Over(over) => return (messages, over),
            other => messages.push(other),
        }
    }
}

fn is_hello(message: &EngineMessage) -> bool {
    matches!(
        message,
        EngineMessage::Line(line, text) if matches!(line.event, Event::Hello(_)) && text == HELLO
    )
}

fn start_command() -> Command {
    let config = RunConfig::preset(Preset::Tiny);
    let run = RunSpec {
        stage: 1,
        variant: "broken".to_owned(),
        slot: Slot::A,
        config,
        steps: Some(3),
        sealed: false,
    };
    Command::Start {
        device: "cpu".to_owned(),
        run,
        request: 0,
    }
}

#[test]
fn commands_wait_until_the_engine_has_greeted() {
    let mut engine = start_engine(
        r#"read greeting; echo "$HELLO"; read command; echo "$greeting" >&2; echo "$command" >&2; read end"#,
    );
    engine.send(Command::Probe);
    assert!(engine.hello().is_none());
    assert!(is_hello(&next(&mut engine)));
    assert_eq!(engine.hello().expect("greeted").version, "0.1.0");
    assert_eq!(
        next(&mut engine),
        EngineMessage::Stray(r#"{"command":"hello","protocol":1}"#.to_owned())
    );
    assert_eq!(
        next(&mut engine),
        EngineMessage::Stray(r#"{"command":"probe"}"#.to_owned())
    );
}

#[test]
fn the_configuration_of_a_sealed_run_is_received_and_not_recorded() {
    let mut config = RunConfig::preset(Preset::Tiny);
    config.train.learning_rate = 0.15625;
    for sealed in [true, false] {
        let started = Event::Started(Started {
            run: RunSpec {
                sealed,
                ..RunSpec::new("mystery", &config)
            },
            config: config.hash(),
            device: Device::default(),
            parameters: 1,
            tensors: 1,
            ln_vocab: 1.0,
            entropy: None,
            forward_flops: 1.0,
            from_step: 0,
            peaks: None,
            paired: false,
            matrix_cores: false,
            request: 0,
        });
        let lint = Lint {
            name: "flat-loss".to_owned(),
            ..Lint::default()
        };
        let lints = Event::Lints {
            slot: Slot::A,
            lints: vec![lint],
        };
        let sent = [started, lints].map(|event| StreamLine { t: 1.0, event });
        let [first, second] = sent
            .each_ref()
            .map(|line| serde_json::to_string(line).expect("JSON"));
        let mut engine = start_engine(&format!(
            "read x; echo \"$HELLO\"; echo '{first}'; echo '{second}'; read x"
        ));
        assert!(is_hello(&next(&mut engine)));
        for (expected, fault) in sent.iter().zip(["0.15625", "flat-loss"]) {
            let EngineMessage::Line(line, text) = next(&mut engine) else {
                panic!("a line");
            };
            assert_eq!(*line, *expected);
            assert_eq!(text.contains(fault), !sealed, "{text}");
        }
    }
}

#[test]
fn output_of_drivers_is_stray_and_harmless() {
    let mut engine =
        start_engine(r#"printf 'MESA: \033[31mwarning\n' >&2; read x; echo "$HELLO"; read x"#);
    let messages = [next(&mut engine), next(&mut engine)];
    assert!(
        messages.contains(&EngineMessage::Stray("MESA:  [31mwarning".to_owned())),
        "{messages:?}"
    );
}

#[test]
fn a_line_that_is_not_an_event_is_reported_and_the_next_ones_are_read() {
    let mut engine = start_engine(
        r#"read x; echo "Welcome to host"; echo "$HELLO"; echo '{"t":1,"event":"heartbeat"}'; read x"#,
    );
    assert!(
        matches!(next(&mut engine), EngineMessage::Malformed { line, why } if line == "Welcome to host" && why.contains("expected"))
    );
    assert!(is_hello(&next(&mut engine)));
    assert!(
        matches!(next(&mut engine), EngineMessage::Line(line, _) if matches!(line.event, Event::Heartbeat { .. }))
    );
}

#[test]
fn a_line_that_is_nested_too_deeply_is_reported_with_its_number() {
    let deep = format!(r#"{{"t":1,"event":"log","x":{}"#, "[".repeat(200));
    let mut engine = start_engine(&format!(
        r#"read x; echo "$HELLO"; echo '{deep}'; echo '{{"t":1,"event":"heartbeat"}}'; read x"#
    ));
    assert!(is_hello(&next(&mut engine)));
    let message = next(&mut engine);
    assert!(
        matches!(&message, EngineMessage::Malformed { why, .. } if why == "line 2: nested too deeply"),
        "{message:?}"
    );
    assert!(matches!(next(&mut engine), EngineMessage::Line(..)));
}

#[test]
fn an_output_without_any_event_is_refused_with_its_first_line() {
    let (messages, over) = until_over(&mut start_engine("yes nonsense"));
    assert!(
        messages
            .iter()
            .all(|message| matches!(message, EngineMessage::Malformed { .. }))
    );
    let EngineEnd::Refused(reason) = over else {
        panic!("{over:?}")
    };
    assert!(
        reason.contains("does not speak the engine's protocol") && reason.contains("`nonsense`"),
        "{reason}"
    );
}

#[test]
fn unreadable_lines_between_events_do_not_stop_the_engine() {
    let mut engine = start_engine(
        r#"for i in $(seq 150); do echo nonsense; echo "$HELLO"; done; read x; read x"#,
    );
    let messages: Vec<EngineMessage> = (0..300).map(|_| next(&mut engine)).collect();
    let is_unreadable =
        |message: &&EngineMessage| matches!(message, EngineMessage::Malformed { .. });
    assert_eq!(messages.iter().filter(is_unreadable).count(), 150);
    assert_eq!(
        messages.iter().filter(|message| is_hello(message)).count(),
        150
    );
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let script = format!(
        r#"head -c {} /dev/zero | tr '\0' x; echo; echo "$HELLO"; read x; read x"#,
        MAX_LINE + 1
    );
    let mut engine = start_engine(&script);
    assert!(
        matches!(next(&mut engine), EngineMessage::Malformed { why, .. } if why.contains("longer than 8 MiB"))
    );
    assert!(is_hello(&next(&mut engine)));
}

#[test]
fn an_engine_that_prints_nothing_is_refused_after_its_time() {
    let limits = EngineLimits {
        hello: Duration::from_millis(100),
        ..limits()
    };
    let mut engine = EngineHandle::start(shell("cat > /dev/null"), limits).expect("sh starts");
    let (_, over) = until_over(&mut engine);
    assert!(
        over.to_string()
            .contains("did not greet within 0.1 s (it printed nothing)"),
        "{}",
        over.to_string()
    );
    assert!(engine.is_over());
}

#[test]
fn a_newer_protocol_is_refused_with_both_versions() {
    for hello in [
        HELLO.replace(
            "\"protocol\":1,\"version\":\"0.1.0\"",
            "\"protocol\":7,\"version\":\"9.9.9\"",
        ),
        r#"{"event":"hello","protocol":7,"version":"9.9.9","t":"later","extra":[]}"#.to_owned(),
    ] {
        let (_, over) = until_over(&mut start_engine(&format!(
            "read x; echo '{hello}'; read x"
        )));
        let EngineEnd::Refused(reason) = over else {
            panic!("{over:?}")
        };
        assert!(
            reason.contains("perflings 9.9.9 and speaks protocol 7"),
            "{reason}"
        );
        assert!(
            reason.contains("protocol 1") && reason.contains("Update perflings on this machine"),
            "{reason}"
        );
    }
}

#[test]
fn protocol_0_is_refused_on_both_sides() {
    let hello = HELLO.replace("\"protocol\":1", "\"protocol\":0");
    let (_, over) = until_over(&mut start_engine(&format!(
        "read x; echo '{hello}'; read x"
    )));
    let EngineEnd::Refused(reason) = over else {
        panic!("{over:?}")
    };
    assert!(
        reason.contains("speaks protocol 0; there are 1 to 1"),
        "{reason}"
    );
    let script = r#"read x; (echo '{"command":"hello","protocol":0}'
        echo '{"command":"probe"}'; sleep 1) | "$0" engine; exit 3"#;
    let own = env!("CARGO_BIN_EXE_perflings");
    let command = EngineCommand::new("sh", ["-c", script, own]);
    let mut engine = EngineHandle::start(command, limits()).expect("sh starts");
    let (messages, over) = until_over(&mut engine);
    let events: Vec<&Event> = messages
        .iter()
        .filter_map(|message| match message {
            EngineMessage::Line(line, _) => Some(&line.event),
            _ => None,
        })
        .collect();
    let is_refusal = |event: &&Event| match event {
        Event::Failed(failed) => failed.reason.contains("the reader speaks protocol 0"),
        _ => false,
    };
    let is_list_of_devices = |event: &&Event| matches!(event, Event::Devices { .. });
    assert!(events.iter().any(is_refusal), "{events:?}");
    assert!(!events.iter().any(is_list_of_devices), "{events:?}");
    assert!(over.to_string().contains("status 3"), "{over:?}");
}

#[test]
fn an_engine_may_refuse_us() {
    let failed = r#"{"t":0,"event":"failed","kind":"usage","reason":"protocol 1 is too old; update perflings"}"#;
    let (_, over) = until_over(&mut start_engine(&format!(
        "read x; echo '{failed}'; read x"
    )));
    assert_eq!(
        over,
        EngineEnd::Refused(
            "the engine refused the handshake: protocol 1 is too old; update perflings".to_owned()
        )
    );
}

#[test]
fn a_missing_program_is_one_message() {
    let error = EngineHandle::start(
        EngineCommand::parse("no-such-engine --x").expect("splits"),
        limits(),
    )
    .expect_err("cannot start");
    assert!(
        error
            .to_string()
            .contains("Failed to start the engine `no-such-engine --x`"),
        "{error}"
    );
}

/// A script in the place of ssh, srun or docker. It leaves out their own arguments and runs the rest.
const STAND_IN: &str = r#"#!/bin/sh
while case $1 in *perflings) false;; esac; do shift; done
shift
exec "$PERFLINGS" "$@"
"#;

#[test]
fn every_recipe_of_the_documentation_reaches_an_engine() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("docs/remote.md").expect("the documentation");
    let recipes: Vec<&str> = text
        .split("--engine '")
        .skip(1)
        .filter_map(|from_recipe| from_recipe.split('\'').next())
        .collect();
    assert!(recipes.len() >= 8, "{recipes:?}");
    let stand_in = STAND_IN.replace("$PERFLINGS", env!("CARGO_BIN_EXE_perflings"));
    let path = dir.path().join("stand-in");
    std::fs::write(&path, stand_in).expect("written");
    for recipe in recipes {
        let mut words = split_words(recipe).expect("words");
        assert!(words.contains(&"engine".to_owned()), "{recipe}");
        words[0] = path.display().to_string();
        let mut engine =
            EngineHandle::start(EngineCommand::new("sh", words), limits()).expect("sh starts");
        let message = next(&mut engine);
        let greets = matches!(&message, EngineMessage::Line(line, _) if matches!(line.event, Event::Hello(_)));
        assert!(greets, "{recipe}: {message:?}");
    }
}
