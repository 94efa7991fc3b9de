//! A small course and invented events of its runs, for tests of the screen. The events are the same in every test run, because no engine, clock
//! or file makes them.
#![allow(dead_code, reason = "each test uses a part of it")]

use perflings::app::Panel;
use perflings::course::{
    Course, Estimate, Lesson, LessonSection, PanelPointer, PublishedClaim, Question, SectionKind,
    Stage, StageFile, StageLevel, TextBlock, TextSpan,
};
use protocol::config::{Init, KvLayout, Preset, RunConfig, Sync};
use protocol::*;

fn text(words: &str) -> Vec<TextSpan> {
    vec![TextSpan::Text(words.to_owned())]
}

fn lesson() -> Lesson {
    let sections = vec![
        LessonSection {
            title: "What you see".to_owned(),
            kind: SectionKind::Symptom,
            blocks: vec![
                TextBlock::Paragraph(vec![
                    TextSpan::Text("A model that knows nothing has a loss of ".to_owned()),
                    TextSpan::Code("ln V".to_owned()),
                    TextSpan::Text(" = ".to_owned()),
                    TextSpan::Placeholder("ln_vocab".to_owned()),
                    TextSpan::Text(". This one began at ".to_owned()),
                    TextSpan::Placeholder("broken.loss_first".to_owned()),
                    TextSpan::Text(", so it is ".to_owned()),
                    TextSpan::Strong("sure of the wrong thing".to_owned()),
                    TextSpan::Text(".".to_owned()),
                ]),
                TextBlock::Item {
                    depth: 0,
                    marker: "•".to_owned(),
                    spans: text("It falls, but from far above."),
                },
                TextBlock::Item {
                    depth: 1,
                    marker: "•".to_owned(),
                    spans: text("Nothing is infinite, nothing explodes."),
                },
                TextBlock::Code {
                    text: "embedding ── × ──▶ head\n   └──── same weights ────┘".to_owned(),
                },
            ],
        },
        LessonSection {
            title: "Why".to_owned(),
            kind: SectionKind::Why,
            blocks: vec![
                TextBlock::Paragraph(text(
                    "The embedding is drawn from N(0, 1) and used again as the head.",
                )),
                TextBlock::Table {
                    head: vec![text("initialisation"), text("logits' spread")],
                    rows: vec![
                        vec![text("library default"), text("√hidden, about 11")],
                        vec![text("normal 0.02"), text("0.23")],
                    ],
                },
            ],
        },
        LessonSection {
            title: "Looking back".to_owned(),
            kind: SectionKind::Debrief,
            blocks: vec![TextBlock::Paragraph(vec![
                TextSpan::Text("Broken began at ".to_owned()),
                TextSpan::Placeholder("broken.loss_first".to_owned()),
                TextSpan::Text(", fixed at ".to_owned()),
                TextSpan::Placeholder("fixed.loss_first".to_owned()),
                TextSpan::Text(".".to_owned()),
            ])],
        },
    ];
    Lesson { sections }
}

fn stage(number: u32, id: &str, title: &str, broken: RunConfig, fixed: RunConfig) -> Stage {
    Stage {
        checks_toml: Vec::new(),
        id: id.to_owned(),
        number,
        title: title.to_owned(),
        level: StageLevel::Beginner,
        symptom: "The loss starts near 122. A model that knows nothing would start at 6.91."
            .to_owned(),
        prediction: Question {
            prompt: "When the initial weights are fixed, what happens to the first loss?"
                .to_owned(),
            choices: vec![
                "It falls to about half.".to_owned(),
                "It falls to about 7, whatever the width of the model.".to_owned(),
                "It stays, but the curve falls faster.".to_owned(),
                "It becomes NaN.".to_owned(),
            ],
            answer: 1,
            explanation: "Small logits give every token the same chance: ln V.".to_owned(),
        },
        estimate: (number == 1).then(|| Estimate {
            prompt: "What will the first loss be once the fault is fixed?".to_owned(),
            of: "fixed.loss_first".to_owned(),
            unit: "nats".to_owned(),
            from: 0.1,
            to: 1000.0,
            log: true,
        }),
        evidence: vec![
            PanelPointer {
                panel: Panel::Evidence,
                row: String::new(),
                shows: true,
                text: "the spread of the logits, and what they predict".to_owned(),
            },
            PanelPointer {
                panel: Panel::Loss,
                row: String::new(),
                shows: true,
                text: "the first loss against ln V".to_owned(),
            },
        ],
        hints: vec![
            "Which tensor is used twice?".to_owned(),
            "What is the spread of a sum of 128 products?".to_owned(),
            "Look at `init` in the configuration.".to_owned(),
        ],
        quiz: vec![Question {
            prompt: "Which layer explodes?".to_owned(),
            choices: vec!["The first".to_owned(), "None".to_owned()],
            answer: 1,
            explanation: "The residual stream is flat.".to_owned(),
        }],
        broken,
        fixed,
        varies: vec!["model.init".to_owned()],
        offers: [
            "model.init",
            "model.qkv",
            "model.norm",
            "model.loss",
            "model.gradient",
            "train.learning-rate",
        ]
        .map(str::to_owned)
        .to_vec(),
        claims: vec![PublishedClaim {
            text: "First loss 942".to_owned(),
            source: "the source workshop, 2025".to_owned(),
        }],
        checks: Vec::new(),
        lesson: lesson(),
        fault: "The tied head multiplies by an embedding of standard deviation 1.".to_owned(),
        fix: "init = \"normal-0.02\" draws every matrix from N(0, 0.02).".to_owned(),
        cpu_note: (number == 2)
            .then(|| "The ratio is small here: the cache holds the whole tensor.".to_owned()),
        file: StageFile {
            name: "config.toml".to_owned(),
            starter: "[model]\ninit = \"library-default\"\n".to_owned(),
            solution: "[model]\ninit = \"normal-0.02\"\n".to_owned(),
        },
        steps: 20,
        cues: Vec::new(),
        hides: Vec::new(),
        lesson_file: format!("{number:02}-{id}.md"),
        path: format!("exercises/0{number}-{id}"),
        id_line: 1,
    }
}

/// Returns a course of three stages: the fix of the first needs new weights, that of the second keeps them, and the third is about clocks.
pub(crate) fn course() -> Course {
    let plain = RunConfig::preset(Preset::Tiny);
    let mut init = plain.clone();
    init.model.init = Init::LibraryDefault;
    let mut layout = plain.clone();
    layout.model.kv_layout = KvLayout::Strided;
    let mut sync = plain.clone();
    sync.measure.sync = Sync::Never;
    Course {
        id: "sample".to_owned(),
        title: "Sample course".to_owned(),
        stages: vec![
            stage(
                1,
                "broken-init",
                "Broken initialisation",
                init,
                plain.clone(),
            ),
            stage(
                2,
                "strides",
                "Non-contiguous tensors",
                layout,
                plain.clone(),
            ),
            stage(3, "missing-sync", "Missing sync", sync, plain),
        ],
        readings: Vec::new(),
        glossary: Some(lesson()),
        ..Course::default()
    }
}

/// Returns the device that all events name.
pub(crate) fn device() -> Device {
    Device {
        kind: "cpu".to_owned(),
        name: "EPYC 9654, 2 threads".to_owned(),
    }
}

/// Returns the measured peaks of the device.
pub(crate) fn peaks() -> Peaks {
    let rate = |best: f64| Rate {
        best,
        median: 0.98 * best,
        p25: 0.97 * best,
        p75: 0.99 * best,
        n: 9,
        load: None,
    };
    Peaks {
        matrix_cores: None,
        flops: rate(98e9),
        bytes: rate(21e9),
        clock: "host".to_owned(),
        date: "2026-01-02".to_owned(),
    }
}

pub(crate) fn started(run: &RunSpec, from_step: u64) -> Event {
    Event::Started(Started {
        run: run.clone(),
        config: run.config.hash(),
        device: device(),
        parameters: run.config.parameters(),
        tensors: 38,
        ln_vocab: run.config.ln_vocab(),
        entropy: Some(2.31),
        forward_flops: run.config.forward_flops(),
        from_step,
        peaks: Some(Box::new(peaks())),
        paired: false,
        matrix_cores: false,
        request: 0,
    })
}

fn broken_init(run: &RunSpec) -> bool {
    run.config.model.init == Init::LibraryDefault
}

/// Returns a plausible step: the loss falls towards a floor, and the times vary a little from step to step.
pub(crate) fn step(run: &RunSpec, step: u64) -> Event {
    // A number from -0.5 to 0.5 that looks random.
    let ripple = ((step * 7919) % 97) as f64 / 97.0 - 0.5;
    let (first, floor, decay_steps) = if broken_init(run) {
        (122.0, 30.0, 60.0)
    } else {
        (6.93, 2.5, 160.0)
    };
    let height: f64 = first - floor;
    let loss = floor + height * (-(step as f64) / decay_steps).exp() + ripple * height * 0.03;
    let ms = if run.config.model.kv_layout == KvLayout::Strided {
        205.0
    } else {
        180.0
    } + 6.0 * ripple;
    let synced = run.config.measure.sync != Sync::Never;
    let whole = if synced { ms } else { 0.9 };
    let phases = if synced {
        PhaseTimes {
            forward: 0.34 * ms,
            backward: 0.61 * ms,
            optimizer: 0.045 * ms,
            residual: 0.005 * ms,
            step: ms,
            ..PhaseTimes::default()
        }
    } else {
        PhaseTimes {
            forward: 0.2,
            backward: 0.5,
            optimizer: 0.1,
            residual: ms - 0.8,
            step: ms,
            ..PhaseTimes::default()
        }
    };
    Event::Step(Step {
        slot: run.slot,
        step,
        loss: Some(loss.into()),
        ms: whole,
        synced,
        profiled: step % 20 == 5,
        phases: Some(phases),
        clocks: step.is_multiple_of(8).then_some(StepClocks {
            enqueue: 0.8,
            host_sync: ms,
            device: Some(0.985 * ms),
        }),
    })
}

pub(crate) fn throughput(run: &RunSpec, step: u64) -> Event {
    let strided = run.config.model.kv_layout == KvLayout::Strided;
    let ms = if strided { 205.0 } else { 180.4 };
    let state = match step {
        0..=5 => TimingState::Warming,
        6..=20 => TimingState::Settling,
        _ => TimingState::Steady,
    };
    Event::Throughput(Throughput {
        slot: run.slot,
        step,
        state,
        step_ms: Spread {
            median: ms,
            p25: ms - 2.4,
            p75: ms + 2.7,
            p95: ms + 9.8,
            n: step,
        },
        samples_per_s: 8000.0 / ms,
        tokens_per_s: 512_000.0 / ms,
        enqueue_samples_per_s: (run.config.measure.sync == Sync::Never).then_some(40_000.0 / ms),
        wall_samples_per_s: 7600.0 / ms,
        phases: None,
        flops: (run.config.measure.sync != Sync::Never).then_some(13.1e9),
        peak_flops: Some(98e9),
        peak_load: None,
        clock: if run.config.measure.sync == Sync::Never {
            "enqueue"
        } else {
            "host-sync"
        }
        .to_owned(),
    })
}

pub(crate) fn kernels(run: &RunSpec, step: u64) -> Event {
    let row = |op: &str, part: &str, phase: &str, calls: u32, ms: f64, [flops, bytes]: [f64; 2]| {
        KernelRow {
            part: part.to_owned(),
            phase: phase.to_owned(),
            op: op.to_owned(),
            kernel: format!("{op}_cpu"),
            layers: 4,
            calls,
            ms,
            flops: Some(flops),
            bytes: Some(bytes),
            ..KernelRow::default()
        }
    };
    let attention = if run.config.model.kv_layout == KvLayout::Strided {
        31.0
    } else {
        7.4
    };
    let rows = vec![
        row("linear", "mlp.gate", "backward", 8, 38.2, [5.4e8, 9.6e6]),
        row("linear", "mlp.down", "backward", 8, 31.9, [5.4e8, 9.6e6]),
        row("linear", "mlp.gate", "forward", 4, 18.7, [2.7e8, 4.9e6]),
        row("linear", "mlp.down", "forward", 4, 17.9, [2.7e8, 4.9e6]),
        row(
            "attention",
            "attention",
            "forward",
            4,
            attention,
            [6.7e7, 6.3e6],
        ),
        row("cross-entropy", "head", "forward", 1, 11.2, [1.3e8, 2.8e6]),
        row("rms-norm", "norm1", "backward", 4, 4.1, [3.7e6, 5.2e6]),
        row("adamw", "optimizer", "optimizer", 38, 6.4, [1.3e7, 3.1e7]),
    ];
    let device_ms: f64 = rows.iter().map(|row| row.ms).sum();
    Event::Kernels(StepProfile {
        slot: run.slot,
        step,
        device_ms,
        rows,
        launches: 398,
        unique: 21,
        profiled_step_ms: device_ms + 9.1,
        step_ms: Some(device_ms + 9.1),
        coverage: device_ms / (device_ms + 9.1),
        discarded: 0,
        unbracketed_ms: 9.1,
        clock: "host".to_owned(),
        launches_by_phase: [96, 226, 76],
        reason: None,
        request: 0,
        file: None,
    })
}

pub(crate) fn gradients(run: &RunSpec, step: u64, missing: bool) -> Event {
    let row = |name: &str, parameters: u64, norm: Option<f64>| GradientRow {
        name: name.to_owned(),
        parameters,
        norm: norm.map(Num),
        zero_pct: norm.map(|_| 0.0),
    };
    let norm = |x: f64| if missing { None } else { Some(x) };
    Event::Gradients(Gradients {
        slot: run.slot,
        step,
        tensors: 38,
        with_grad: if missing { 1 } else { 38 },
        params_pct: if missing { 11.5 } else { 100.0 },
        norm: 1.84.into(),
        rows: vec![
            row("embedding.weight", 128_000, Some(1.2)),
            row("layers.0.mlp.gate.weight", 65_536, norm(0.41)),
            row("layers.0.attention.query.weight", 16_384, norm(0.09)),
            row("layers.3.norm2.gain", 128, norm(0.002)),
        ],
        exponents: Some(Exponents {
            zeros: 90_000,
            // A bell around 2^-18.
            counts: (Exponents::LOWEST..=Exponents::HIGHEST)
                .map(|e| 40_000 / (1 + u64::from((e + 18).unsigned_abs()).pow(2)))
                .collect(),
        }),
        ..Gradients::default()
    })
}

pub(crate) fn evidence(run: &RunSpec, step: u64) -> Event {
    let broken = broken_init(run);
    let strided = run.config.model.kv_layout == KvLayout::Strided;
    let strides = if strided {
        vec![8192, 32, 128, 1]
    } else {
        vec![8192, 2048, 32, 1]
    };
    Event::Evidence(Evidence {
        slot: run.slot,
        step,
        logit_std: Some(if broken { 11.3 } else { 0.23 }.into()),
        logit_min: Some(if broken { -44.1 } else { -0.9 }.into()),
        logit_max: Some(if broken { 128.0 } else { 0.95 }.into()),
        argmax_is_input: Some(if broken { 0.98 } else { 0.02 }),
        rms: [1.0, 1.01, 1.03, 1.02, 1.04]
            .map(|x| Num(if broken { x } else { 0.02 * x }))
            .to_vec(),
        parity: Some(if strided { 0.31 } else { 3.0e-7 }.into()),
        strides: vec![("k".to_owned(), strides.clone()), ("v".to_owned(), strides)],
        clocks: Some(StepClocks {
            enqueue: 0.9,
            host_sync: 180.4,
            device: None,
        }),
    })
}

pub(crate) fn memory(run: &RunSpec) -> Event {
    let weights = run.config.parameters() * 4;
    Event::Memory(Memory {
        slot: run.slot,
        peak_bytes: Some(7 * weights),
        current_bytes: Some(5 * weights),
        weights,
        gradients: weights,
        moments: 2 * weights,
        reason: None,
    })
}

pub(crate) fn lints(run: &RunSpec) -> Event {
    let lint = |name: &str, why: &str, next: &str| Lint {
        name: name.to_owned(),
        why: why.to_owned(),
        next: next.to_owned(),
    };
    let lints = if broken_init(run) {
        vec![lint(
            "loss-above-ln-vocab",
            "the first loss, 122.0, is 17 times ln(1000) = 6.91: the model is sure of the wrong token",
            "look at the spread of the logits, then at how the weights begin",
        )]
    } else if run.config.measure.sync == Sync::Never {
        vec![lint(
            "ledger-does-not-close",
            "99.5 % of the step is in no phase",
            "end every phase with a device sync before its time is read",
        )]
    } else {
        Vec::new()
    };
    Event::Lints {
        slot: run.slot,
        lints,
    }
}

pub(crate) fn pair(n: u32, done: bool) -> Event {
    let spread = |median: f64| Spread {
        median,
        p25: median - 2.0,
        p75: median + 2.0,
        p95: median + 8.0,
        n: u64::from(n),
    };
    let planned = [
        (10, (0.991, 1.262)),
        (20, (1.083, 1.207)),
        (40, (1.121, 1.154)),
        (80, (0.0, 0.0)),
    ];
    let looks = planned.map(|(pairs, (low, high))| Look {
        pairs,
        low: (n >= pairs).then_some(low),
        high: (n >= pairs).then_some(high),
    });
    let latest = looks.iter().rev().find(|look| look.low.is_some());
    Event::Pair(Pair {
        n,
        wanted: looks
            .iter()
            .map(|look| look.pairs)
            .find(|pairs| *pairs > n)
            .unwrap_or(n),
        ratio: 1.138,
        low: latest.and_then(|look| look.low),
        high: latest.and_then(|look| look.high),
        verdict: if n >= 20 {
            Verdict::Faster
        } else {
            Verdict::Unclear
        },
        a_ms: spread(205.0),
        b_ms: spread(180.1),
        remaining_s: f64::from(80 - n.min(80)) * 0.4,
        done,
        differs: vec!["model.kv-layout".to_owned()],
        limit_pairs: 80,
        limit_s: 48.0,
        looks: looks.to_vec(),
        tokens: None,
        request: 0,
    })
}

/// Returns the events of a run from its start to the step `last`.
pub(crate) fn until(run: &RunSpec, last: u64) -> Vec<Event> {
    let mut events = vec![started(run, 0)];
    for number in 0..=last {
        events.extend(at_step(run, number));
    }
    events
}

/// Returns the events of one step.
pub(crate) fn at_step(run: &RunSpec, number: u64) -> Vec<Event> {
    let mut events = vec![step(run, number)];
    if number == 0 {
        events.extend([
            memory(run),
            evidence(run, 0),
            gradients(run, 0, false),
            lints(run),
        ]);
    }
    if number % 20 == 5 {
        events.push(kernels(run, number));
    }
    if number >= 5 && number.is_multiple_of(5) {
        events.push(throughput(run, number));
    }
    events
}
