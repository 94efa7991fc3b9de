//! The parent's handle on an engine, against small shell scripts that behave and misbehave like one.
#![cfg(unix)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use perflings::measure::runner::{EngineTask, Runner};
use protocol::config::{Preset, RunConfig};
use protocol::handle::{
    CommandEnd, EngineCommand, EngineEnd, EngineHandle, EngineLimits, EngineMessage, Interruption,
    MAX_LINE, split_words,
};
use protocol::{Command, Device, Event, Lint, RunSpec, Slot, Started, StreamLine};

const HELLO: &str = r#"{"t":0.0,"event":"hello","protocol":1,"version":"0.1.0","pid":1,"os":"linux","cores":2,"date":"2026-11-21"}"#;
/// Only a test that hangs waits this long.
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

fn next(client: &mut EngineHandle) -> EngineMessage {
    client.next(LONG).expect("something within the time")
}

/// Everything heard until the engine has ended, and why it ended.
fn until_over(client: &mut EngineHandle) -> (Vec<EngineMessage>, EngineEnd) {
    let mut heard = Vec::new();
    loop {
        match next(client) {
            EngineMessage::Over(over) => return (heard, over),
            other => heard.push(other),
        }
    }
}

fn is_hello(heard: &EngineMessage) -> bool {
    matches!(heard, EngineMessage::Line(line, text) if matches!(line.event, Event::Hello(_)) && text == HELLO)
}

#[cfg(target_os = "linux")]
fn is_alive(pid: u32) -> bool {
    // A zombie counts as dead; its parent has to reap it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z')
}

fn start() -> Command {
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
fn greets_and_keeps_commands_until_the_engine_has_greeted() {
    let mut client = start_engine(
        r#"read greeting; echo "$HELLO"; read command; echo "$greeting" >&2; echo "$command" >&2; read end"#,
    );
    client.send(Command::Probe);
    assert!(client.hello().is_none());
    assert!(is_hello(&next(&mut client)));
    assert_eq!(client.hello().expect("greeted").version, "0.1.0");
    assert_eq!(
        next(&mut client),
        EngineMessage::Stray(r#"{"command":"hello","protocol":1}"#.to_owned())
    );
    assert_eq!(
        next(&mut client),
        EngineMessage::Stray(r#"{"command":"probe"}"#.to_owned())
    );
}

#[test]
fn the_configuration_of_a_sealed_run_is_heard_and_not_recorded() {
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
            roof: None,
            paired: false,
            matrix_cores: false,
            request: 0,
        });
        let lint = Lint {
            name: "flat-loss".to_owned(),
            ..Lint::default()
        };
        let (slot, lints) = (Slot::A, vec![lint]);
        let sent =
            [started, Event::Lints { slot, lints }].map(|event| StreamLine { t: 1.0, event });
        let [first, second] = [0, 1].map(|at| serde_json::to_string(&sent[at]).expect("JSON"));
        let mut client = start_engine(&format!(
            "read x; echo \"$HELLO\"; echo '{first}'; echo '{second}'; read x"
        ));
        assert!(is_hello(&next(&mut client)));
        for (expected, fault) in sent.iter().zip(["0.15625", "flat-loss"]) {
            let EngineMessage::Line(line, text) = next(&mut client) else {
                panic!("a line");
            };
            assert_eq!(*line, *expected);
            assert_eq!(text.contains(fault), !sealed, "{text}");
        }
    }
}

#[test]
fn what_drivers_write_is_stray_and_harmless() {
    let mut client =
        start_engine(r#"printf 'MESA: \033[31mwarning\n' >&2; read x; echo "$HELLO"; read x"#);
    let heard = [next(&mut client), next(&mut client)];
    assert!(
        heard.contains(&EngineMessage::Stray("MESA:  [31mwarning".to_owned())),
        "{heard:?}"
    );
}

#[test]
fn a_line_that_is_not_an_event_is_reported_and_the_next_ones_are_read() {
    let mut client = start_engine(
        r#"read x; echo "Welcome to host"; echo "$HELLO"; echo '{"t":1,"event":"heartbeat"}'; read x"#,
    );
    assert!(
        matches!(next(&mut client), EngineMessage::Malformed { line, why } if line == "Welcome to host" && why.contains("expected"))
    );
    assert!(is_hello(&next(&mut client)));
    assert!(
        matches!(next(&mut client), EngineMessage::Line(line, _) if matches!(line.event, Event::Heartbeat { .. }))
    );
}

#[test]
fn a_line_that_is_nested_too_deeply_is_told_with_its_number() {
    let deep = format!(r#"{{"t":1,"event":"log","x":{}"#, "[".repeat(200));
    let mut client = start_engine(&format!(
        r#"read x; echo "$HELLO"; echo '{deep}'; echo '{{"t":1,"event":"heartbeat"}}'; read x"#
    ));
    assert!(is_hello(&next(&mut client)));
    let heard = next(&mut client);
    assert!(
        matches!(&heard, EngineMessage::Malformed { why, .. } if why == "line 2: nested too deeply"),
        "{heard:?}"
    );
    assert!(matches!(next(&mut client), EngineMessage::Line(..)));
}

#[test]
fn an_output_without_any_event_is_refused_with_its_first_line() {
    let (heard, over) = until_over(&mut start_engine("yes nonsense"));
    assert!(
        heard
            .iter()
            .all(|h| matches!(h, EngineMessage::Malformed { .. }))
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
    let mut client = start_engine(
        r#"for i in $(seq 150); do echo nonsense; echo "$HELLO"; done; read x; read x"#,
    );
    let heard: Vec<EngineMessage> = (0..300).map(|_| next(&mut client)).collect();
    let unreadable = heard.iter();
    let unreadable = unreadable.filter(|it| matches!(it, EngineMessage::Malformed { .. }));
    assert_eq!(unreadable.count(), 150);
    assert_eq!(heard.iter().filter(|it| is_hello(it)).count(), 150);
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let script = format!(
        r#"head -c {} /dev/zero | tr '\0' x; echo; echo "$HELLO"; read x; read x"#,
        MAX_LINE + 1
    );
    let mut client = start_engine(&script);
    assert!(
        matches!(next(&mut client), EngineMessage::Malformed { why, .. } if why.contains("longer than 8 MiB"))
    );
    assert!(is_hello(&next(&mut client)));
}

#[test]
fn an_engine_that_says_nothing_is_refused_after_its_time() {
    let limits = EngineLimits {
        hello: Duration::from_millis(100),
        ..limits()
    };
    let mut client = EngineHandle::start(shell("cat > /dev/null"), limits).expect("sh starts");
    let (_, over) = until_over(&mut client);
    assert!(
        over.to_string()
            .contains("did not greet within 0.1 s (it printed nothing)"),
        "{}",
        over.to_string()
    );
    assert!(client.is_over());
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
    let mut client = EngineHandle::start(command, limits()).expect("sh starts");
    let (heard, over) = until_over(&mut client);
    let events = heard.iter().filter_map(|heard| match heard {
        EngineMessage::Line(line, _) => Some(&line.event),
        _ => None,
    });
    let events: Vec<_> = events.collect();
    let refuses = |event: &&&Event| matches!(event, Event::Failed(failed) if failed.reason.contains("the reader speaks protocol 0"));
    assert!(events.iter().any(|event| refuses(&event)), "{events:?}");
    let probed = |event: &&Event| matches!(event, Event::Devices { .. });
    assert!(!events.iter().any(probed), "{events:?}");
    assert!(over.to_string().contains("status 3"), "{over:?}");
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
fn a_device_that_hangs_is_told_apart_from_its_heartbeat() {
    let script = r#"read x; echo "$HELLO"
        echo '{"t":1,"event":"heartbeat","device_s":7.5}'
        echo '{"t":1,"event":"compiling","kernels":1,"latest":"k"}'
        echo '{"t":1,"event":"heartbeat","device_s":9}'; read x; read x"#;
    let mut client = start_engine(script);
    let started = std::time::Instant::now();
    for _ in 0..4 {
        assert!(matches!(next(&mut client), EngineMessage::Line(..)));
    }
    // The kernel that was compiled is the last progress, whatever a late heartbeat says.
    assert!(client.idle() <= started.elapsed());
    std::thread::sleep(Duration::from_millis(60));
    assert!(client.idle() >= Duration::from_millis(60));
}

#[test]
fn a_measurement_ends_where_the_device_hangs_and_the_heartbeat_goes_on() {
    let script = r#"read x; echo "$HELLO"; read x
        while :; do echo '{"t":1,"event":"heartbeat"}'; sleep 0.05; done"#;
    let mut runner = Runner::in_background(shell(script), Arc::default(), Box::new(|_| ()));
    runner.limits.device = Duration::from_millis(400);
    let work = EngineTask::run("custom", &RunConfig::preset(Preset::Tiny), 3);
    let error = runner
        .measure("cpu", &work, |_, _| Ok(()))
        .expect_err("it hangs");
    assert_eq!(
        error.to_string(),
        "the engine is alive, but its device made no progress for 0 s, so it was ended"
    );
}

#[test]
fn an_engine_that_talks_and_brings_nothing_further_is_given_up() {
    let ends = |line: &str| {
        let script = format!(
            r#"read x; echo "$HELLO"; read x; n=0; while :; do n=$((n+1)); echo '{line}' | sed "s/#/$n/"; done"#
        );
        let mut runner = Runner::in_background(shell(&script), Arc::default(), Box::new(|_| ()));
        runner.limits.task = Duration::from_millis(500);
        let work = EngineTask::run("custom", &RunConfig::preset(Preset::Tiny), 3);
        let error = runner.measure("cpu", &work, |_, _| Ok(()));
        error.expect_err("it ends").to_string()
    };
    for line in [
        r#"{"t":1,"event":"heartbeat","device_s":0}"#,
        r#"{"t":1,"event":"compiling","kernels":1,"latest":"k"}"#,
        r#"{"t":1,"event":"paused","slot":"a"}"#,
        r#"{"t":1,"event":"step","slot":"a","step":2,"loss":1,"ms":1,"synced":true,"profiled":false,"phases":null}"#,
    ] {
        let said = ends(line);
        assert!(
            said.contains("came no step further in 0 s"),
            "{line}: {said}"
        );
    }
    let endless = r#"{"t":1,"event":"step","slot":"a","step":#000,"loss":1,"ms":1,"synced":true,"profiled":false,"phases":null}"#;
    let said = ends(endless);
    assert!(said.contains("far beyond the steps"), "{said}");
}

/// A run's command through the handle alone: how it ends, and whether it was told before that it is slow.
fn driven(
    script: &str,
    limits: EngineLimits,
    interruption: Option<Interruption>,
) -> (CommandEnd, bool) {
    let mut engine = EngineHandle::start(shell(script), limits).expect("sh starts");
    let mut slow = false;
    let flag = AtomicBool::new(true);
    let unless = interruption.map(|interruption| (&flag, interruption));
    let outcome = engine.drive(start(), unless, |heard| {
        slow |= matches!(heard, EngineMessage::Slow { .. });
        Ok(())
    });
    (outcome.expect("nothing fails here"), slow)
}

#[test]
fn a_command_is_driven_to_its_answer_or_to_what_went_wrong() {
    let finished = StreamLine {
        t: 1.0,
        event: Event::Finished(Box::default()),
    };
    let finished = serde_json::to_string(&finished).expect("plain data");
    let failed = r#"{"t":1,"event":"failed","kind":"device","reason":"lost"}"#;
    let answers = |line: &str| format!(r#"read x; echo "$HELLO"; read x; echo '{line}'; read x"#);
    let (outcome, _) = driven(&answers(&finished), limits(), None);
    assert!(matches!(outcome, CommandEnd::Answered), "{outcome:?}");
    let (outcome, _) = driven(&answers(failed), limits(), None);
    assert!(matches!(&outcome, CommandEnd::Failed(it) if it.reason == "lost"));
    let why = outcome.answered().expect_err("it failed").to_string();
    assert_eq!(why, "lost");

    // It takes the command and goes on being alive, whatever it is asked afterwards.
    let deaf = r#"read x; echo "$HELLO"; read x
        while :; do echo '{"t":1,"event":"heartbeat"}'; sleep 0.02; done"#;
    let short = Duration::from_millis(200);
    let stops = EngineLimits {
        stop: short,
        ..limits()
    };
    let (outcome, _) = driven(deaf, stops, Some(Interruption::Stop));
    assert!(matches!(outcome, CommandEnd::Over(EngineEnd::NotStopped)));
    let (outcome, _) = driven(deaf, limits(), Some(Interruption::Kill));
    assert!(matches!(outcome, CommandEnd::Over(EngineEnd::Killed)));
    let slow = EngineLimits {
        task: 2 * short,
        ..limits()
    };
    let (outcome, told) = driven(deaf, slow, None);
    assert!(matches!(outcome, CommandEnd::Over(EngineEnd::NoStep(_))));
    assert!(told, "it is said before");
    let mut other = EngineHandle::start(shell(deaf), slow).expect("sh starts");
    let outcome = other.drive(Command::Probe, None, |_| Ok(()));
    let outcome = outcome.expect("nothing fails here");
    assert!(matches!(outcome, CommandEnd::Over(EngineEnd::NoAnswer(_))));
    // What was only sent is not watched, and a handle whose engine is gone does not wait for an answer.
    let mut sent = EngineHandle::start(shell(deaf), slow).expect("sh starts");
    sent.send(start());
    let until = std::time::Instant::now() + 3 * short;
    while std::time::Instant::now() < until {
        let heard = sent.next(Duration::from_millis(10));
        assert!(matches!(heard, None | Some(EngineMessage::Line(..))));
    }
    let outcome = other.drive(start(), None, |_| Ok(()));
    assert!(matches!(outcome, Ok(CommandEnd::Over(_))), "{outcome:?}");
}

#[test]
fn a_stack_trace_is_no_last_word() {
    let script = r#"read x; echo "$HELLO"
        printf 'memory allocation of 512 bytes failed\nstack backtrace:\n   0: a::b\n  at src/a.rs:3\nnote: Some details are omitted\n' >&2
        kill -6 $$"#;
    let (heard, over) = until_over(&mut start_engine(script));
    let strays = heard
        .iter()
        .filter(|it| matches!(it, EngineMessage::Stray(_)));
    assert_eq!(strays.count(), 1, "{heard:?}");
    let why = over.to_string();
    assert!(
        why.contains("`memory allocation of 512 bytes failed`") && why.contains("ulimit -v"),
        "{why}"
    );
}

#[test]
fn a_measurement_ends_where_the_line_is_silent_or_cut() {
    let ends = |then: &str| {
        let script = format!(r#"read x; echo "$HELLO"; read x; {then}"#);
        let mut runner = Runner::in_background(shell(&script), Arc::default(), Box::new(|_| ()));
        runner.limits.silence = Duration::from_millis(100);
        let work = EngineTask::run("custom", &RunConfig::preset(Preset::Tiny), 3);
        let error = runner.measure("cpu", &work, |_, _| Ok(()));
        error.expect_err("it ends").to_string()
    };
    let silent = ends("sleep 600");
    assert!(
        silent.starts_with("nothing more comes from `sh -c")
            && silent.ends_with("see that it answers and run this again"),
        "{silent}"
    );
    assert_eq!(ends("exit 255"), "the engine exited with status 255");
    // Noticed, and once more as long: that is the promise of docs/remote.md.
    assert!(2 * EngineLimits::default().silence <= Duration::from_secs(10));
}

/// What stands in for ssh, srun, docker: it leaves out what is its own and runs the rest.
const STAND_IN: &str = r#"#!/bin/sh
while case $1 in *perflings) false;; esac; do shift; done
shift
exec "$PERFLINGS" "$@"
"#;

#[test]
fn every_recipe_of_the_documentation_reaches_an_engine() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("docs/remote.md").expect("the documentation");
    let recipes = text.split("--engine '").skip(1);
    let recipes: Vec<&str> = recipes.filter_map(|it| it.split('\'').next()).collect();
    assert!(recipes.len() >= 8, "{recipes:?}");
    let stand_in = STAND_IN.replace("$PERFLINGS", env!("CARGO_BIN_EXE_perflings"));
    let path = dir.path().join("stand-in");
    std::fs::write(&path, stand_in).expect("written");
    for recipe in recipes {
        let mut words = split_words(recipe).expect("words");
        assert!(words.contains(&"engine".to_owned()), "{recipe}");
        words[0] = path.display().to_string();
        let mut client =
            EngineHandle::start(EngineCommand::new("sh", words), limits()).expect("sh starts");
        let heard = next(&mut client);
        let greets =
            matches!(&heard, EngineMessage::Line(line, _) if matches!(line.event, Event::Hello(_)));
        assert!(greets, "{recipe}: {heard:?}");
    }
}
