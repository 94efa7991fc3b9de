//! Text from outside, with escape sequences, invisible characters and marks that reorder text: none of it reaches a terminal.

use super::*;

/// OSC 52, CSI, a C1 CSI, directions, zero width, a tag.
const NASTY: &str = "a\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{9b}31m\u{202e}b\u{2066}\u{200b}\u{feff}\u{61c}\u{e0041}\u{7f}z";

/// Fails where a terminal would see something else than text. The list does not use the program's own.
#[track_caller]
fn harmless(what: &str, output: &learner::Output) {
    for text in [&output.out, &output.err] {
        for c in text.chars() {
            let fine = match c {
                '\n' | '\t' => true,
                '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => false,
                '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => false,
                '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => false,
                _ => true,
            };
            assert!(fine, "{what}: {c:?} in {text:?}");
        }
    }
    let all = format!("{}{}", output.out, output.err);
    assert!(!all.contains("panicked"), "{what}: {all}");
}

/// Every text in these events is hostile.
fn spoilt(events: &[Event]) -> Vec<Event> {
    fn spoil(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Array(items) => items.iter_mut().for_each(spoil),
            serde_json::Value::Object(fields) => {
                let free = [
                    "name", "why", "next", "text", "reason", "version", "os", "date", "variant",
                    "driver", "level", "latest", "ended", "clock", "kernel", "part", "no_work",
                ];
                for (key, value) in fields {
                    match value {
                        serde_json::Value::String(text) if free.contains(&key.as_str()) => {
                            *text = NASTY.to_owned();
                        }
                        value => spoil(value),
                    }
                }
            }
            _ => {}
        }
    }
    let spoilt = |event: &Event| {
        let mut value = serde_json::to_value(event).expect("plain data");
        spoil(&mut value);
        serde_json::from_value(value).expect("still an event")
    };
    events.iter().map(spoilt).collect()
}

fn log(level: &str) -> Event {
    Event::Log(LogMessage {
        level: level.to_owned(),
        text: NASTY.to_owned(),
    })
}

fn a_hostile_run() -> Vec<Event> {
    let mut events = vec![log("warn"), log("error")];
    events.extend(spoilt(&a_run()));
    events.insert(
        3,
        Event::Kernels(StepProfile {
            rows: vec![KernelRow {
                kernel: format!("=1+1{NASTY}|<b>"),
                part: NASTY.to_owned(),
                ..KernelRow::default()
            }],
            ..StepProfile::default()
        }),
    );
    events
}

#[test]
fn words_of_a_command_line() {
    let learner = Learner::new();
    std::fs::create_dir_all(learner.path(NASTY)).expect("made");
    learner.write(&format!("{NASTY}/{NASTY}"), "x");
    let inside = format!("{NASTY}/{NASTY}");
    let set = format!("model.norm={NASTY}");
    let key = format!("{NASTY}=1");
    let missing = format!("{NASTY}.jsonl");
    #[rustfmt::skip]
    let lines: [&[&str]; 30] = [
        &[NASTY], &["run"], &["run", NASTY], &["run", "1", NASTY], &["run", "1", "--as", NASTY],
        &["run", "1", "--device", NASTY], &["run", "1", "--preset", NASTY], &["run", "1", "--set", &set],
        &["run", "1", "--set", &key], &["run", "1", "--set", NASTY], &["run", "--config", &missing],
        &["run", "--config", NASTY], &["run", "1", "--engine", NASTY], &["run", "1", "--record", NASTY],
        &["compare", NASTY, "v1"], &["bench", "--versions", NASTY], &["bench", "--baseline", &missing],
        &["check", NASTY], &["check", "c01", "--answer", NASTY], &["hint", NASTY], &["reset", NASTY],
        &["list", "--course", NASTY], &["list", "--lang", NASTY], &["init", NASTY], &["replay", &missing],
        &["replay", &inside], &["report", &inside], &["export", &inside, "--format", NASTY], &["--theme", NASTY],
        &["course", "check", "--course", NASTY],
    ];
    for line in lines {
        let output = learner.run(line);
        assert_ne!(output.code, None, "{line:?}");
        harmless(&format!("{line:?}"), &output);
    }
}

#[test]
fn what_an_engine_says() {
    let learner = Learner::new();
    let greeting = spoilt(&[hello(1)]).remove(0);
    let engine = learner.engine_greeting(&greeting, &a_hostile_run());
    let failing = learner.write(
        "failing.jsonl",
        stream(&[log("error"), failed(FailedKind::Device, NASTY)]),
    );
    let stray = learner.write(
        "stray",
        format!("{NASTY}\n{{\"t\":0,\"event\":\"{NASTY}\"}}\n"),
    );
    let first = learner.write("first.jsonl", stream(&[hello(1)]));
    let fails = format!(
        "sh -c 'read x; cat {first}; read x; cat {stray} >&2; cat {stray}; cat {failing}; exit 3'"
    );
    let noise = format!("sh -c 'cat {stray}; cat {stray} >&2; exit 3'");
    let runs: [&[&str]; 5] = [
        &["run", "1"],
        &["run", "1", "--json"],
        &["run", "1", "--record", "run.jsonl"],
        &["check", "1"],
        &["check", "1", "--json"],
    ];
    // The whole engine answers no comparison and names no device.
    let others: [&[&str]; 3] = [&["compare", "v1", "v3"], &["doctor"], &["doctor", "--json"]];
    let all = [&runs[..], &others].concat();
    for (engine, lines) in [(&engine, &runs[..]), (&fails, &all), (&noise, &all)] {
        for line in lines {
            let output = learner.run(&[*line, &["--engine", engine]].concat());
            harmless(&format!("{line:?} with {engine}"), &output);
        }
    }
    let output = learner.run(&["run", "1", "--json", "--engine", &engine]);
    let logs = output.out.lines().filter_map(|line| {
        let line: StreamLine = serde_json::from_str(line).expect("an event");
        match line.event {
            Event::Log(log) => Some(log.text),
            _ => None,
        }
    });
    assert_eq!(
        logs.collect::<Vec<_>>(),
        [NASTY, NASTY],
        "JSON means the same"
    );
}

#[test]
fn a_recording() {
    let learner = Learner::new();
    let mut events = vec![spoilt(&[hello(1)]).remove(0)];
    events.extend(a_hostile_run());
    let whole = learner.write("whole.jsonl", stream(&events));
    // Raw, as no writer of ours would leave it.
    let odd = format!(
        "{}{{\"t\":1,\"event\":\"x{NASTY}\"}}\n{NASTY}\n",
        stream(&[hello(1), started()])
    );
    let odd = learner.write("odd.jsonl", odd);
    for file in [&whole, &odd] {
        #[rustfmt::skip]
        let lines: [&[&str]; 6] = [
            &["replay", file], &["report", file], &["report", file, "--html"], &["export", file, "--format", "csv"],
            &["export", file, "--format", "csv", "--table", "kernels"],
            &["export", file, "--format", "csv", "--out", "out.csv"],
        ];
        for line in lines {
            harmless(&format!("{line:?}"), &learner.run(line));
        }
    }
    let kernels = learner.run(&["export", &whole, "--format", "csv", "--table", "kernels"]);
    assert!(kernels.out.contains(",\"'=1+1a "), "{}", kernels.out);
    let report = learner.run(&["report", &whole]).out;
    assert!(
        report.contains("=1+1a·") && report.contains("\\|\\<b\\>"),
        "{report}"
    );
    let page = learner.run(&["report", &whole, "--html"]).out;
    assert!(
        page.contains("|&lt;b&gt;") && !page.contains("<b>"),
        "{page}"
    );
}

#[test]
fn a_configuration_a_course_and_progress() {
    let learner = Learner::new();
    let escaped: String = NASTY
        .chars()
        .map(|c| format!("\\U{:08X}", c as u32))
        .collect();
    let raw = "\u{202e}\u{200b}\u{9b}\u{feff}";
    for text in [
        format!("[model]\nnorm = \"{escaped}\"\n"),
        format!("[model]\n\"{escaped}\" = 1\n"),
        format!("[\"{escaped}\"]\nx = 1\n"),
        format!("[model]\nnorm = \"{raw}\"\n"),
        format!("{raw} = 1\n"),
        NASTY.to_owned(),
    ] {
        let file = learner.write(&format!("{NASTY}.toml"), text);
        let output = learner.run(&["run", "--config", &file]);
        assert_eq!(output.code, Some(2), "{}", output.err);
        harmless("run --config", &output);
    }

    learner.run(&["init", "copy"]).succeeds(&[]);
    let spoil = |file: &str, from: &str, to: &str| {
        let path = learner.path(&format!("copy/exercises/{file}"));
        let text = std::fs::read_to_string(&path).expect("in the copy");
        assert!(text.contains(from), "{file} has no {from}");
        std::fs::write(path, text.replace(from, to)).expect("written");
    };
    let hostile = format!("title = \"{escaped}{raw}");
    for file in [
        "course.toml",
        "01-broken-init/stage.toml",
        "k01-swiglu/exercise.toml",
    ] {
        spoil(file, "title = \"", &hostile);
    }
    spoil(
        "02-strides/stage.toml",
        "id = \"",
        &format!("id = \"{escaped}"),
    );
    spoil(
        "c01-batch/exercise.toml",
        "hints = [",
        &format!("hints = [\"{escaped}\","),
    );
    let lesson = learner.path("copy/lessons/01-broken-init.md");
    std::fs::write(lesson, format!("# {NASTY}\n\n{NASTY}\n")).expect("written");
    std::fs::create_dir(learner.path(&format!("copy/exercises/{NASTY}"))).expect("made");
    std::fs::create_dir(learner.path(&format!("copy/exercises/k11-{NASTY}"))).expect("made");
    let engine = learner.engine(&a_run());
    #[rustfmt::skip]
    let lines: [&[&str]; 8] = [
        &["list"], &["list", "--json"], &["hint", "1"], &["hint", "k01"], &["hint", "2"], &["check", "c01"],
        &["run", "1", "--engine", &engine], &["reset", "1"],
    ];
    for line in lines {
        harmless(
            &format!("{line:?}"),
            &learner.run(&[line, &["--course", "copy"]].concat()),
        );
    }

    let state = "perflings/tiny-llama";
    std::fs::create_dir_all(learner.path(state)).expect("made");
    let progress =
        format!("current = \"{escaped}\"\n[stage.\"{escaped}\"]\nstate = \"{escaped}\"\n");
    for text in [progress, format!("x = {NASTY}\n"), NASTY.to_owned()] {
        learner.write(&format!("{state}/progress.toml"), text);
        harmless("list", &learner.run(&["list"]));
    }
}

#[test]
fn names_in_other_languages_stay() {
    let learner = Learner::new();
    let output = learner.run(&["run", "--config", "Größe-日本語-👍🏽.toml"]);
    output.fails(2, &["Größe-日本語-👍🏽.toml"]);
    let learner = Learner::new();
    learner.run(&["Größe"]).fails(2, &["Größe"]);
}
