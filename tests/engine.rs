//! The engine as a process: what it answers, that it stops, that a run can be repeated, that lints name faults and no
//! lint remains after the fix.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use protocol::config::{Knob, KnobValue, Preset, RunConfig};
use protocol::{
    Command, Event, FailedKind, Finished, PROTOCOL, Pair, Roof, RunSpec, Slot, StreamLine, Verdict,
};

/// Far above what a healthy engine needs.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

struct Engine {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<StreamLine>,
}

impl Engine {
    /// Peaks measured while other tests run must not replace the learner's.
    fn start() -> Self {
        Self::start_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// With this folder for caches.
    fn start_in(caches: &Path) -> Self {
        let mut child = Process::new(env!("CARGO_BIN_EXE_perflings"))
            .arg("engine")
            .env("XDG_CACHE_HOME", caches)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the engine starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut engine = Self {
            child,
            input,
            lines,
        };
        engine.send(&Command::Hello {
            protocol: PROTOCOL,
            threads: None,
        });
        engine.until(|event| matches!(event, Event::Hello(_)));
        engine
    }

    fn send(&mut self, command: &Command) {
        let text = serde_json::to_string(command).expect("plain data");
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{text}")
            .and_then(|()| input.flush())
            .expect("the engine reads");
    }

    /// Events up to and including the first that `last` accepts, without heartbeats.
    fn until(&mut self, last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        loop {
            let line = self
                .lines
                .recv_timeout(HANG_TIMEOUT)
                .expect("the engine goes on");
            let stop = last(&line.event);
            if !matches!(line.event, Event::Heartbeat { .. }) {
                seen.push(line.event);
            }
            if stop {
                return seen;
            }
        }
    }

    fn run(&mut self, config: RunConfig, steps: u64) -> (Vec<Event>, Finished) {
        self.send(&Command::Start {
            device: "cpu".into(),
            run: spec(config, Some(steps)),
            request: 0,
        });
        let events = self.until(|event| matches!(event, Event::Finished(_) | Event::Failed(_)));
        match events.last() {
            Some(Event::Finished(finished)) => (events.clone(), (**finished).clone()),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spec(config: RunConfig, steps: Option<u64>) -> RunSpec {
    RunSpec {
        stage: 0,
        variant: "custom".into(),
        slot: Slot::A,
        config,
        steps,
        sealed: false,
    }
}

/// A network of a few thousand parameters.
fn small(knobs: &[(&str, &str)]) -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    (
        config.model.hidden,
        config.model.layers,
        config.model.ffn,
        config.model.vocab,
    ) = (32, 2, 64, 50);
    (config.train.context, config.train.batch) = (16, 4);
    for (path, value) in knobs {
        Knob::find(path)
            .expect("known")
            .set(&mut config, &KnobValue::from_word(value))
            .expect("valid");
    }
    config
}

fn losses(events: &[Event]) -> Vec<f64> {
    events
        .iter()
        .filter_map(|event| {
            if let Event::Step(step) = event {
                step.loss.map(|loss| loss.0)
            } else {
                None
            }
        })
        .collect()
}

fn names(finished: &Finished) -> Vec<&str> {
    finished
        .lints
        .iter()
        .map(|lint| lint.name.as_str())
        .collect()
}

#[test]
fn heartbeats_tell_the_device_s_progress_while_there_is_work() {
    let mut engine = Engine::start();
    let heartbeat = |engine: &mut Engine| loop {
        let line = engine.lines.recv_timeout(HANG_TIMEOUT).expect("goes on");
        if let Event::Heartbeat { device_s } = line.event {
            return device_s;
        }
    };
    assert_eq!(heartbeat(&mut engine), None);
    engine.send(&Command::Start {
        device: "cpu".into(),
        run: spec(small(&[]), None),
        request: 0,
    });
    engine.until(|event| matches!(event, Event::Step(_)));
    heartbeat(&mut engine);
    assert!(heartbeat(&mut engine).is_some_and(|s| s < 60.0));
    engine.send(&Command::Pause);
    engine.until(|event| matches!(event, Event::Paused { .. }));
    heartbeat(&mut engine);
    assert_eq!(heartbeat(&mut engine), None);
}

#[test]
fn a_run_repeats_with_its_seed_and_differs_with_another() {
    let mut engine = Engine::start();
    let (first, summary) = engine.run(small(&[]), 12);
    let (again, _) = engine.run(small(&[]), 12);
    let (other, _) = engine.run(small(&[("train.seed", "43")]), 12);
    assert_eq!(losses(&first), losses(&again));
    assert_ne!(losses(&first), losses(&other));
    assert_eq!(summary.steps, 12);
    assert!(
        summary.grad.tensors == summary.grad.with_grad
            && (summary.grad.params_pct - 100.0).abs() < 1e-9
    );
    assert!(names(&summary).is_empty(), "{:?}", summary.lints);
    assert!(
        summary.kernels.coverage > 0.5 && summary.kernels.coverage <= 1.0,
        "{}",
        summary.kernels.coverage
    );
    assert!(
        summary
            .memory
            .peak_bytes
            .is_some_and(|bytes| bytes > summary.memory.weights + summary.memory.moments)
    );
}

#[test]
fn the_loss_falls_on_learnable_data() {
    let mut engine = Engine::start();
    let (events, summary) = engine.run(small(&[("train.learning-rate", "1e-2")]), 150);
    let losses = losses(&events);
    let late = losses[losses.len() - 20..].iter().sum::<f64>() / 20.0;
    assert!(
        late < 0.9 * summary.ln_vocab,
        "{late} against {}",
        summary.ln_vocab
    );
    assert!(summary.entropy.is_some_and(|entropy| late > entropy));
}

#[test]
fn faults_are_named_by_lints_and_their_fixes_by_none() {
    let mut engine = Engine::start();
    let (_, detached) = engine.run(small(&[("model.gradient", "detached-norm")]), 12);
    assert!(
        names(&detached).contains(&"gradient-coverage"),
        "{:?}",
        names(&detached)
    );
    assert_eq!((detached.grad.with_grad, detached.grad.tensors), (1, 20));
    assert!(detached.memory.moments < detached.memory.weights);

    let (_, unsynced) = engine.run(small(&[("measure.sync", "never")]), 40);
    assert!(
        names(&unsynced).contains(&"ledger-open"),
        "{:?}",
        names(&unsynced)
    );
    assert_eq!(unsynced.clock, "enqueue");
    assert!(unsynced.samples_per_s.is_some() && unsynced.enqueue_samples_per_s.is_some());
    assert_eq!(detached.enqueue_samples_per_s, None);

    let (_, assumed) = engine.run(
        small(&[
            ("model.kv-layout", "assumed"),
            ("model.attention", "kernel"),
        ]),
        12,
    );
    assert!(
        names(&assumed).contains(&"wrong-logits"),
        "{:?}",
        names(&assumed)
    );
    let (_, strided) = engine.run(small(&[("model.kv-layout", "strided")]), 12);
    assert!(
        !names(&strided).contains(&"wrong-logits"),
        "{:?}",
        names(&strided)
    );
}

#[test]
fn a_loss_that_is_not_a_number_stops_the_run_and_names_a_tensor() {
    let mut engine = Engine::start();
    let (_, finished) = engine.run(small(&[("train.learning-rate", "1e30")]), 50);
    assert!(finished.steps < 50);
    assert!(
        finished
            .ended
            .as_deref()
            .is_some_and(|why| why.starts_with("not-finite: ")),
        "{:?}",
        finished.ended
    );
    assert!(names(&finished).contains(&"not-finite"));
}

#[test]
fn a_change_in_mid_run_measures_its_own_peak_of_memory() {
    fn peak(engine: &mut Engine, slot: Slot) -> u64 {
        let of = |event: &Event| matches!(event, Event::Memory(it) if it.slot == slot);
        match engine.until(of).last() {
            Some(Event::Memory(it)) => it.peak_bytes.expect("counted"),
            _ => unreachable!(),
        }
    }
    let mut engine = Engine::start();
    let long = |attention| {
        small(&[
            ("train.context", "256"),
            ("train.batch", "1"),
            ("model.attention", attention),
        ])
    };
    engine.send(&Command::Start {
        device: "cpu".into(),
        run: spec(long("composed"), None),
        request: 0,
    });
    let composed = peak(&mut engine, Slot::A);
    let run = RunSpec {
        slot: Slot::B,
        ..spec(long("flash"), None)
    };
    engine.send(&Command::Apply { run, request: 0 });
    let flash = peak(&mut engine, Slot::B);
    assert!(flash < composed, "{flash} of {composed} bytes");
}

#[test]
fn knobs_that_keep_parameters_change_in_mid_run() {
    let mut engine = Engine::start();
    engine.send(&Command::Start {
        device: "cpu".into(),
        run: spec(small(&[("model.gradient", "detached-norm")]), None),
        request: 0,
    });
    engine.until(|event| matches!(event, Event::Step(step) if step.step >= 5));
    let fixed = RunSpec {
        slot: Slot::B,
        variant: "fixed".into(),
        ..spec(small(&[]), None)
    };
    engine.send(&Command::Apply {
        run: fixed,
        request: 0,
    });
    let events = engine.until(|event| matches!(event, Event::Gradients(g) if g.slot == Slot::B));
    let started = events.iter().find_map(|event| {
        if let Event::Started(started) = event {
            Some(started)
        } else {
            None
        }
    });
    assert!(started.is_some_and(|started| started.from_step > 5 && started.run.variant == "fixed"));
    let Some(Event::Gradients(audit)) = events.last() else {
        panic!("no audit")
    };
    assert_eq!(audit.with_grad, audit.tensors);

    engine.send(&Command::Pause);
    engine.until(|event| matches!(event, Event::Paused { .. }));
    engine.send(&Command::Resume);
    engine.until(|event| matches!(event, Event::Resumed { .. }));
    engine.send(&Command::Stop);
    let events = engine.until(|event| matches!(event, Event::Finished(_)));
    let Some(Event::Finished(finished)) = events.last() else {
        panic!("no summary")
    };
    assert_eq!(finished.ended.as_deref(), Some("stopped"));
}

#[test]
fn a_configuration_compared_with_itself_is_neither_faster_nor_slower() {
    // One of several hundred is told apart wrongly; two in a row are a fault.
    let verdicts = [compare_with_itself(), compare_with_itself()];
    assert!(
        verdicts
            .iter()
            .any(|pair| matches!(pair.verdict, Verdict::Same | Verdict::Unclear)),
        "{verdicts:?}"
    );
}

fn compare_with_itself() -> Pair {
    let mut engine = Engine::start();
    let run = spec(small(&[]), None);
    engine.send(&Command::Pair {
        device: "cpu".into(),
        stage: 0,
        a: run.clone(),
        b: run,
        pairs: 40,
        request: 0,
    });
    let events = engine.until(|event| matches!(event, Event::Finished(_) | Event::Failed(_)));
    let Some(Event::Finished(finished)) = events.last() else {
        panic!("{:?}", events.last())
    };
    let pair = finished.pair.clone().expect("a comparison");
    let planned = events.iter().find_map(|event| match event {
        Event::Pair(pair) => Some(pair),
        _ => None,
    });
    let planned = planned.expect("a plan");
    let looks: Vec<u32> = planned.looks.iter().map(|look| look.pairs).collect();
    assert_eq!(
        (planned.n, planned.limit_pairs, looks),
        (0, 40, vec![10, 20, 40])
    );
    let all = events.iter().filter_map(|event| match event {
        Event::Pair(pair) => Some(pair),
        _ => None,
    });
    for pair in all {
        let limits = (pair.limit_pairs, pair.limit_s);
        assert_eq!(limits, (40, planned.limit_s), "a limit moved");
        assert_eq!(pair.low.is_some(), pair.n >= 10, "{pair:?}");
        if let (Some(low), Some(high)) = (pair.low, pair.high) {
            let medians = pair.a_ms.median / pair.b_ms.median;
            assert!(low <= pair.ratio && pair.ratio <= high, "{pair:?}");
            // Their last digits may differ from those that the interval was made of.
            let off = 1e-9;
            assert!(low <= medians + off && medians <= high + off, "{pair:?}");
        }
    }
    pair
}

#[test]
fn steps_of_more_tokens_are_compared_per_token() {
    let mut engine = Engine::start();
    let a = spec(small(&[]), None);
    let mut b = a.clone();
    b.config.train.batch *= 2;
    let tokens = [&a, &b].map(|run| run.config.tokens_per_step() as u64);
    engine.send(&Command::Pair {
        device: "cpu".into(),
        stage: 0,
        a,
        b,
        pairs: 2,
        request: 0,
    });
    let events = engine.until(|event| matches!(event, Event::Finished(_) | Event::Failed(_)));
    let taken = events
        .iter()
        .skip_while(|event| !matches!(event, Event::Pair(_)));
    let mut ratio = tokens[1] as f64 / tokens[0] as f64;
    for event in taken {
        match event {
            // Of two pairs the ratio is the geometric mean.
            Event::Step(step) if step.slot == Slot::A => ratio *= step.ms.sqrt(),
            Event::Step(step) => ratio /= step.ms.sqrt(),
            _ => {}
        }
    }
    let Some(Event::Finished(finished)) = events.last() else {
        panic!("{:?}", events.last())
    };
    let pair = finished.pair.as_ref().expect("a comparison");
    assert_eq!((pair.n, pair.tokens, pair.low), (2, Some(tokens), None));
    assert!((pair.ratio / ratio - 1.0).abs() < 1e-9, "{pair:?}, {ratio}");
}

/// What each answer is, and the number that it has, without repetitions.
fn answers(events: &[Event]) -> Vec<(&'static str, u64)> {
    let answer = |event: &Event| {
        let name = match event {
            Event::Started(_) => "started",
            Event::Pair(_) => "pair",
            Event::Finished(_) => "finished",
            Event::Failed(_) => "failed",
            Event::Kernels(profile) if profile.request > 0 => "kernels",
            _ => return None,
        };
        Some((name, event.request()))
    };
    let mut answers: Vec<_> = events.iter().filter_map(answer).collect();
    answers.dedup();
    answers
}

fn numbered_start(run: RunSpec, request: u64) -> Command {
    Command::Start {
        device: "cpu".into(),
        run,
        request,
    }
}

#[test]
fn a_late_answer_to_a_change_has_the_change_s_number_and_not_that_of_the_pairs() {
    let mut engine = Engine::start();
    let run = spec(small(&[]), None);
    let b = RunSpec {
        slot: Slot::B,
        ..spec(small(&[("train.learning-rate", "1e-4")]), None)
    };
    engine.send(&numbered_start(run.clone(), 1));
    let mut events = engine.until(|event| matches!(event, Event::Step(_)));
    engine.send(&Command::Apply {
        run: b.clone(),
        request: 2,
    });
    engine.send(&Command::Pair {
        device: "cpu".into(),
        stage: 0,
        a: run,
        b,
        pairs: 2,
        request: 3,
    });
    let over = |event: &Event| matches!(event, Event::Finished(it) if it.pair.is_some());
    events.extend(engine.until(|event| over(event) || matches!(event, Event::Failed(_))));
    assert_eq!(
        answers(&events),
        [
            ("started", 1),
            ("started", 2),
            ("finished", 2),
            ("started", 3),
            ("pair", 3),
            ("finished", 3)
        ]
    );
}

/// A loss that is not finite is a result of the pairs, and no failure of the engine.
#[test]
fn pairs_of_a_run_that_diverges_end_with_the_side_and_its_step() {
    for diverging in [Slot::A, Slot::B] {
        let mut engine = Engine::start();
        let sides = [Slot::A, Slot::B].map(|slot| {
            let rate = if slot == diverging { "1e30" } else { "1e-4" };
            let spec = spec(small(&[("train.learning-rate", rate)]), None);
            RunSpec { slot, ..spec }
        });
        let [a, b] = sides;
        engine.send(&Command::Pair {
            device: "cpu".into(),
            stage: 0,
            a,
            b,
            pairs: 20,
            request: 1,
        });
        let over = |event: &Event| matches!(event, Event::Finished(_) | Event::Failed(_));
        let events = engine.until(over);
        let Some(Event::Finished(finished)) = events.last() else {
            panic!("{:?}", events.last())
        };
        assert_eq!(finished.slot, diverging);
        assert!(finished.pair.as_ref().is_some_and(|pair| !pair.done));
        let ended = finished.ended.as_deref().unwrap_or_default();
        assert!(ended.starts_with("not-finite: loss at step "), "{ended}");
    }
}

#[test]
fn failures_and_profiles_have_the_number_of_what_asked_for_them() {
    let mut engine = Engine::start();
    let failed = |event: &Event| matches!(event, Event::Failed(_));
    let run = spec(small(&[]), None);
    // Without a run. One that has no number stays without an answer, as it always was.
    engine.send(&Command::Profile { request: 0 });
    engine.send(&Command::Profile { request: 1 });
    let mut events = engine.until(failed);
    engine.send(&Command::Apply {
        run: run.clone(),
        request: 2,
    });
    events.extend(engine.until(failed));
    let input = engine.input.as_mut().expect("open");
    writeln!(input, r#"{{"command":"start","request":3}}"#).expect("the engine reads");
    events.extend(engine.until(failed));
    let elsewhere = Command::Start {
        device: "toaster".into(),
        run: run.clone(),
        request: 4,
    };
    engine.send(&elsewhere);
    events.extend(engine.until(failed));
    let named = [1, 2, 3, 4].map(|request| ("failed", request));
    assert_eq!(answers(&events), named);

    engine.send(&numbered_start(run.clone(), 5));
    engine.until(|event| matches!(event, Event::Step(_)));
    // A change does not lose the profile that was asked for before it.
    engine.send(&Command::Profile { request: 6 });
    engine.send(&Command::Apply { run, request: 7 });
    let mut events = engine.until(|event| event.request() == 6);
    events.extend(engine.until(|event| matches!(event, Event::Step(step) if step.step > 20)));
    engine.send(&Command::Stop);
    events.extend(engine.until(|event| matches!(event, Event::Finished(_))));
    let mut found = answers(&events);
    // The profile was taken before the change or after it.
    found.sort_by_key(|(_, request)| *request);
    assert_eq!(found, [("kernels", 6), ("started", 7), ("finished", 7)]);
}

#[test]
fn both_sides_of_a_comparison_say_what_they_are() {
    let mut engine = Engine::start();
    let run = spec(small(&[]), None);
    engine.send(&Command::Pair {
        device: "cpu".into(),
        stage: 0,
        a: run.clone(),
        b: run,
        pairs: 2,
        request: 0,
    });
    let events = engine.until(|event| matches!(event, Event::Finished(_) | Event::Failed(_)));
    let started: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Started(it) => Some((it.run.slot, it.paired, it.from_step, it.tensors > 0)),
            _ => None,
        })
        .collect();
    assert_eq!(
        started,
        [(Slot::A, true, 0, true), (Slot::B, true, 0, true)]
    );
    let at = |wanted: fn(&Event) -> bool| events.iter().position(wanted);
    assert!(at(|it| matches!(it, Event::Started(_))) < at(|it| matches!(it, Event::Step(_))));
}

#[test]
fn three_clocks_are_read_in_every_sync_mode() {
    for sync in ["per-phase", "per-step", "never"] {
        let mut engine = Engine::start();
        let (_, finished) = engine.run(small(&[("measure.sync", sync)]), 24);
        let evidence = finished.evidence.expect("evidence");
        let clocks = evidence
            .clocks
            .unwrap_or_else(|| panic!("no clocks with {sync}"));
        let device = clocks
            .device
            .unwrap_or_else(|| panic!("no device time with {sync}"));
        assert!(
            clocks.enqueue > 0.0 && clocks.host_sync > clocks.enqueue && device > 0.0,
            "{sync}: {clocks:?}"
        );
    }
}

#[test]
fn every_row_has_its_work_or_says_why_not_and_the_device_its_roof() {
    let fixed = [
        ("model.norm", "fused"),
        ("model.attention", "flash"),
        ("model.loss", "fused"),
        ("train.optimizer", "fused"),
    ];
    let naive = [("model.swiglu", "naive-kernel")];
    let in_parts = [("model.loss", "in-parts")];
    for knobs in [&[][..], &fixed, &naive, &in_parts] {
        let mut engine = Engine::start();
        let (events, finished) = engine.run(small(knobs), 4);
        let roof = events.iter().find_map(peaks);
        let roof = roof.expect("on file, or measured after the first step");
        assert!(roof.flops.best > 1e8 && roof.bytes.best > 1e8, "{roof:?}");
        let rows = events.iter().find_map(|event| match event {
            Event::Kernels(it) => Some(it.rows.clone()),
            _ => None,
        });
        for row in rows.expect("a profile") {
            let known = row.flops.is_some() && row.bytes.is_some_and(|bytes| bytes > 0.0);
            assert_eq!(known, row.no_work.is_none(), "{row:?}");
        }
        let top = &finished.kernels.top[0];
        assert!(
            top.roof_share.is_some() && top.gflop_per_s.is_some(),
            "{top:?}"
        );
    }
}

/// Peaks on file when a run starts, or measured after its first step.
fn peaks(event: &Event) -> Option<Roof> {
    match event {
        Event::Started(it) => it.roof.as_deref().cloned(),
        Event::Calibrated { roof, .. } => Some(roof.clone()),
        _ => None,
    }
}

#[test]
fn nobody_waits_for_peaks_before_the_first_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = Engine::start_in(folder.path());
    let (events, _) = engine.run(small(&[]), 4);
    let at = |wanted: fn(&Event) -> bool| events.iter().position(wanted).expect("this event");
    let first_loss = at(|event| matches!(event, Event::Step(_)));
    let measured = at(|event| matches!(event, Event::Calibrated { .. }));
    let profile = at(|event| matches!(event, Event::Kernels(_)));
    assert!(
        first_loss < measured && measured < profile,
        "{first_loss} {measured} {profile}"
    );
    // The next run has them from the start, also that of another engine.
    let mut other = Engine::start_in(folder.path());
    for engine in [&mut engine, &mut other] {
        let (events, _) = engine.run(small(&[]), 1);
        let started = events.iter().find(|it| matches!(it, Event::Started(_)));
        assert!(started.and_then(peaks).is_some(), "{started:?}");
    }
    // A comparison has them before its first pair, also as the first work on a device.
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = Engine::start_in(folder.path());
    let run = spec(small(&[]), None);
    engine.send(&Command::Pair {
        device: "cpu".into(),
        stage: 0,
        a: run.clone(),
        b: run,
        pairs: 2,
        request: 0,
    });
    let events = engine.until(|event| matches!(event, Event::Started(_) | Event::Failed(_)));
    let started = events.last();
    assert!(started.and_then(peaks).is_some(), "{started:?}");
}

#[test]
fn peaks_outlive_a_run_where_no_file_can_be_written_and_a_damaged_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("perflings");
    std::fs::write(&cache, "not a folder").expect("written");
    let mut engine = Engine::start_in(folder.path());
    let (events, _) = engine.run(small(&[]), 2);
    let measured = |event: &Event| matches!(event, Event::Calibrated { .. });
    assert!(events.iter().any(measured), "{events:?}");
    let (events, _) = engine.run(small(&[]), 2);
    let started = events.iter().find(|it| matches!(it, Event::Started(_)));
    assert!(started.and_then(peaks).is_some(), "{started:?}");

    std::fs::remove_file(&cache).expect("removed");
    std::fs::create_dir(&cache).expect("made");
    std::fs::write(cache.join("roofs.json"), "{ damaged").expect("written");
    let (events, _) = Engine::start_in(folder.path()).run(small(&[]), 2);
    let aside = |it: &Event| matches!(it, Event::Log(it) if it.text.contains("it was set aside"));
    assert!(events.iter().any(aside), "{events:?}");
}

#[test]
fn a_device_is_measured_again_when_asked() {
    let mut engine = Engine::start();
    engine.send(&Command::Calibrate {
        device: "cpu".into(),
    });
    let events = engine.until(|event| matches!(event, Event::Calibrated { .. } | Event::Failed(_)));
    let Some(Event::Calibrated { device, roof }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!((device.kind.as_str(), roof.clock.as_str()), ("cpu", "host"));
    engine.send(&Command::Probe);
    let events = engine.until(|event| matches!(event, Event::Devices { .. }));
    let Some(Event::Devices { devices }) = events.last() else {
        unreachable!()
    };
    let known = devices[0].roof.as_ref().map(|it| it.date.clone());
    assert_eq!(known.as_ref(), Some(&roof.date));
    engine.send(&Command::Calibrate {
        device: "toaster".into(),
    });
    engine.until(|event| matches!(event, Event::Failed(_)));
}

#[test]
fn what_cannot_run_is_refused_with_a_reason_and_the_engine_goes_on() {
    let mut engine = Engine::start();
    let mut huge = small(&[]);
    (huge.model.hidden, huge.model.ffn, huge.model.layers) = (65_536, 262_144, 1024);
    for (config, device, needle) in [
        (huge, "cpu", "iB are free"),
        (
            small(&[("train.precision", "f16")]),
            "cpu",
            "loss-scaling = \"none\"",
        ),
        (small(&[]), "gpu:99", "gpu:99"),
        (small(&[]), "toaster", "unknown device `toaster`"),
    ] {
        engine.send(&Command::Start {
            device: device.into(),
            run: spec(config, Some(1)),
            request: 0,
        });
        let events = engine.until(|event| matches!(event, Event::Finished(_) | Event::Failed(_)));
        let Some(Event::Failed(failed)) = events.last() else {
            panic!("{device} was not refused")
        };
        assert!(failed.reason.contains(needle), "{}", failed.reason);
    }
    assert_eq!(engine.run(small(&[]), 2).1.steps, 2);
}

#[test]
fn a_b_that_cannot_run_leaves_the_run_in_progress_as_it_is() {
    let mut engine = Engine::start();
    let start = |run| Command::Start {
        device: "cpu".into(),
        run,
        request: 0,
    };
    engine.send(&start(spec(small(&[]), None)));
    engine.until(|event| matches!(event, Event::Step(_)));
    let mut huge = spec(small(&[]), None);
    huge.slot = Slot::B;
    let model = &mut huge.config.model;
    (model.hidden, model.ffn, model.layers) = (65_536, 262_144, 1024);
    engine.send(&start(huge));
    let events = engine.until(|event| matches!(event, Event::Failed(_)));
    let ended = |event: &Event| matches!(event, Event::Finished(_));
    assert!(!events.iter().any(ended), "{events:?}");
    let Some(Event::Failed(failed)) = events.last() else {
        unreachable!()
    };
    assert_eq!(failed.kind, FailedKind::Refused, "{}", failed.reason);
    let events = engine.until(|event| matches!(event, Event::Step(_)));
    let Some(Event::Step(step)) = events.last() else {
        unreachable!()
    };
    assert!(step.step > 0 && step.slot == Slot::A, "{step:?}");
}

#[test]
fn nonsense_on_the_input_is_answered_and_the_end_of_input_ends_the_process() {
    let mut engine = Engine::start();
    let input = engine.input.as_mut().expect("open");
    writeln!(input, "{{\"command\":\"fly\"}}\nnot json at all").expect("the engine reads");
    engine.until(|event| matches!(event, Event::Failed(_)));
    engine.until(|event| matches!(event, Event::Failed(_)));
    // A run without a last step, whose reader goes away.
    engine.send(&Command::Start {
        device: "cpu".into(),
        run: spec(small(&[]), None),
        request: 0,
    });
    engine.until(|event| matches!(event, Event::Step(_)));
    drop(engine.input.take());
    let status = engine.child.wait().expect("the engine ends");
    assert!(status.success(), "{status}");
}

/// Without a factor an overflow ends the run, and the run says where.
#[test]
fn an_overflow_at_scale_1_names_the_tensor() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Process::new(env!("CARGO_BIN_EXE_perflings"))
        .env("XDG_CACHE_HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .args([
            "run", "7", "--as", "fixed", "--device", "cpu", "--steps", "20",
        ])
        .args([
            "--set",
            "train.precision=f16",
            "--set",
            "train.loss-scaling=none",
        ])
        .args(["--set", "train.learning-rate=1e4", "--set", "train.batch=4"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(said.contains("not-finite: the "), "{said}");
}
