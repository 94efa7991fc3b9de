//! Arbitrary commands, with texts and numbers that are hard to encode.

use proptest::prelude::*;
use protocol::config::{KNOBS, KnobValue, Preset, RunConfig, ValueKind};
use protocol::*;

/// Numbers of up to fifteen digits, which the JSON reader reads back to the last bit. Numbers with more digits may be off by the last bit.
pub(crate) fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1_000_000_000_000_i64..1_000_000_000_000).prop_map(|n| n as f64 / 1e3),
        (-1_000_000_000_i64..1_000_000_000).prop_map(|n| n as f64 / 1e6),
        Just(0.0),
        Just(-0.0),
        Just(1e-6)
    ]
}

pub(crate) fn num() -> impl Strategy<Value = Num> {
    prop_oneof![
        4 => number().prop_map(Num),
        1 => Just(Num(f64::INFINITY)),
        1 => Just(Num(f64::NEG_INFINITY))
    ]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z.-]{0,12}",
        any::<String>(),
        Just("\"\\\n\u{1b}[31m\u{0}".to_owned())
    ]
}

pub(crate) fn slot() -> impl Strategy<Value = Slot> {
    prop_oneof![Just(Slot::A), Just(Slot::B)]
}

pub(crate) fn config() -> impl Strategy<Value = RunConfig> {
    let presets = prop_oneof![
        Just(Preset::Tiny),
        Just(Preset::Small),
        Just(Preset::Medium)
    ];
    (
        presets,
        prop::collection::vec((0..KNOBS.len(), any::<u64>(), number()), 0..8),
    )
        .prop_map(|(preset, changes)| {
            let mut config = RunConfig::preset(preset);
            for (index, pick, x) in changes {
                let knob = &KNOBS[index];
                let value = match knob.kind {
                    ValueKind::Choice(names) => {
                        KnobValue::Text(names[pick as usize % names.len()].to_owned())
                    }
                    ValueKind::Whole { least, most } => {
                        KnobValue::Integer((least + pick % (most - least + 1)) as i64)
                    }
                    ValueKind::Number => KnobValue::Number(x),
                };
                knob.set(&mut config, &value)
                    .expect("a value that the key takes");
            }
            config
        })
}

pub(crate) fn run() -> impl Strategy<Value = RunSpec> {
    (any::<u32>(), text(), slot(), config(), any::<Option<u64>>()).prop_map(
        |(stage, variant, slot, config, steps)| RunSpec {
            stage,
            variant,
            slot,
            config,
            steps,
            sealed: false,
        },
    )
}

pub(crate) fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (any::<u32>(), any::<Option<u32>>())
            .prop_map(|(protocol, threads)| Command::Hello { protocol, threads }),
        Just(Command::Probe),
        text().prop_map(|device| Command::Open { device }),
        (text(), run(), any::<u64>()).prop_map(|(device, run, request)| Command::Start {
            device,
            run,
            request
        }),
        (run(), any::<u64>()).prop_map(|(run, request)| Command::Apply { run, request }),
        (text(), any::<u32>(), run(), run(), any::<u32>()).prop_map(
            |(device, stage, a, b, pairs)| Command::Pair {
                device,
                stage,
                a,
                b,
                pairs,
                request: u64::from(pairs)
            }
        ),
        Just(Command::Pause),
        Just(Command::Resume),
        any::<u64>().prop_map(|request| Command::Profile { request }),
        Just(Command::Stop),
        Just(Command::Quit),
    ]
}
