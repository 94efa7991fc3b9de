//! Arbitrary events, with texts and numbers that are hard to encode.

use proptest::prelude::*;
use protocol::*;

use super::strategies::{num, number, run, slot, text};

fn phases() -> impl Strategy<Value = PhaseTimes> {
    [number(), number(), number(), number(), number()].prop_map(
        |[forward, backward, optimizer, residual, step]| PhaseTimes {
            forward,
            backward,
            optimizer,
            residual,
            step,
            ..PhaseTimes::default()
        },
    )
}

fn spread() -> impl Strategy<Value = Spread> {
    (number(), number(), number(), number(), any::<u64>()).prop_map(|(median, p25, p75, p95, n)| {
        Spread {
            median,
            p25,
            p75,
            p95,
            n,
        }
    })
}

fn device() -> impl Strategy<Value = Device> {
    (text(), text()).prop_map(|(kind, name)| Device { kind, name })
}

fn state() -> impl Strategy<Value = TimingState> {
    prop_oneof![
        Just(TimingState::Warming),
        Just(TimingState::Settling),
        Just(TimingState::Steady),
        Just(TimingState::Drifting),
        Just(TimingState::Noisy)
    ]
}

fn equal_peaks(peak: f64) -> Peaks {
    let rate = Rate {
        best: peak,
        median: peak,
        p25: peak,
        p75: peak,
        n: 9,
        load: Some(0.5),
    };
    Peaks {
        matrix_cores: None,
        flops: rate,
        bytes: rate,
        clock: "device".to_owned(),
        date: "2026-01-02".to_owned(),
    }
}

fn kernels() -> impl Strategy<Value = StepProfile> {
    let row = (
        text(),
        text(),
        any::<(u32, u32)>(),
        [number(), number(), number()],
    )
        .prop_map(
            |(part, kernel, (layers, calls), [ms, flops, bytes])| KernelRow {
                matrix_cores: false,
                part,
                phase: "forward".to_owned(),
                op: "linear".to_owned(),
                kernel,
                layers,
                calls,
                ms,
                slices: (0..u64::from(calls % 3))
                    .map(|start| (start, u64::from(layers)))
                    .collect(),
                flops: Some(flops),
                bytes: (bytes > 0.0).then_some(bytes),
                work_ms: (ms > 0.0).then_some(bytes),
                no_work: (bytes <= 0.0).then(|| "glue".to_owned()),
            },
        );
    (
        slot(),
        any::<u64>(),
        prop::collection::vec(row, 0..4),
        number(),
        any::<[u32; 3]>(),
        prop::option::of(text()),
    )
        .prop_map(
            |(slot, step, rows, ms, launches_by_phase, reason)| StepProfile {
                slot,
                step,
                rows,
                launches: 3,
                unique: 2,
                device_ms: ms,
                profiled_step_ms: ms,
                step_ms: (ms > 0.0).then_some(ms),
                coverage: ms,
                discarded: 0,
                unbracketed_ms: ms,
                clock: "host".to_owned(),
                launches_by_phase,
                file: reason.clone(),
                reason,
                request: step,
            },
        )
}

fn gradients() -> impl Strategy<Value = Gradients> {
    let row =
        (text(), any::<u64>(), prop::option::of(num())).prop_map(|(name, parameters, norm)| {
            GradientRow {
                name,
                parameters,
                norm,
                zero_pct: norm.map(|_| 12.5),
            }
        });
    (
        slot(),
        any::<u64>(),
        number(),
        num(),
        prop::collection::vec(row, 0..4),
    )
        .prop_map(|(slot, step, params_pct, norm, rows)| Gradients {
            slot,
            step,
            tensors: 38,
            with_grad: 3,
            params_pct,
            norm,
            rows,
            loss_scale: (step % 2 == 1).then_some(65_536.0),
            skipped: (step % 3 == 1).then_some(2),
            exponents: (step % 5 == 1).then(|| Exponents {
                zeros: step,
                counts: vec![step, 1, 0],
            }),
        })
}

fn clocks() -> impl Strategy<Value = StepClocks> {
    (number(), number(), prop::option::of(number())).prop_map(|(enqueue, host_sync, device)| {
        StepClocks {
            enqueue,
            host_sync,
            device,
        }
    })
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let strides =
        prop::collection::vec((text(), prop::collection::vec(any::<usize>(), 0..4)), 0..3);
    (
        slot(),
        prop::option::of(num()),
        prop::collection::vec(num(), 0..4),
        strides,
        prop::option::of(clocks()),
    )
        .prop_map(|(slot, std, rms, strides, clocks)| Evidence {
            slot,
            logit_std: std,
            parity: std,
            rms,
            strides,
            clocks,
            ..Evidence::default()
        })
}

fn pair() -> impl Strategy<Value = Pair> {
    let verdict = prop_oneof![
        Just(Verdict::Faster),
        Just(Verdict::Slower),
        Just(Verdict::Same),
        Just(Verdict::Unclear)
    ];
    (
        any::<(u32, u32, bool)>(),
        number(),
        prop::option::of([number(), number()]),
        verdict,
        spread(),
        prop::collection::vec(text(), 0..3),
    )
        .prop_map(
            |((n, wanted, done), ratio, interval, verdict, ms, differs)| Pair {
                n,
                wanted,
                ratio,
                low: interval.map(|[low, _]| low),
                high: interval.map(|[_, high]| high),
                verdict,
                a_ms: ms,
                b_ms: ms,
                remaining_s: 1.5,
                done,
                differs,
                limit_pairs: wanted,
                limit_s: 2.5,
                looks: vec![Look {
                    pairs: wanted,
                    low: interval.map(|[low, _]| low),
                    high: interval.map(|[_, high]| high),
                }],
                tokens: done.then_some([64, 8]),
                request: u64::from(n),
            },
        )
}

fn memory() -> impl Strategy<Value = Memory> {
    (
        slot(),
        any::<Option<u64>>(),
        any::<[u64; 3]>(),
        prop::option::of(text()),
    )
        .prop_map(
            |(slot, peak, [weights, gradients, moments], reason)| Memory {
                slot,
                peak_bytes: peak,
                current_bytes: peak,
                weights,
                gradients,
                moments,
                reason,
            },
        )
}

fn lints() -> impl Strategy<Value = Vec<Lint>> {
    prop::collection::vec(
        (text(), text(), text()).prop_map(|(name, why, next)| Lint { name, why, next }),
        0..3,
    )
}

fn finished() -> impl Strategy<Value = Finished> {
    let figures = (
        prop::option::of(number()),
        prop::option::of(spread()),
        prop::option::of(phases()),
        state(),
    );
    (
        text(),
        slot(),
        [num(), num()],
        figures,
        (
            memory(),
            prop::option::of(evidence()),
            lints(),
            prop::option::of(pair()),
            prop::option::of(text()),
        ),
    )
        .prop_map(
            |(
                variant,
                slot,
                [loss_first, loss_last],
                (speed, step_ms, phases_ms, state),
                (memory, evidence, lints, pair, ended),
            )| Finished {
                stage: 1,
                variant,
                slot,
                loss_first,
                loss_last,
                samples_per_s: speed,
                tokens_per_s: speed,
                entropy: speed,
                step_ms,
                phases_ms,
                state,
                memory,
                evidence,
                lints,
                pair,
                ended,
                ..Finished::default()
            },
        )
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let started = (
        run(),
        device(),
        number(),
        prop::option::of(number()),
        any::<(u64, u32)>(),
    )
        .prop_map(|(run, device, ln_vocab, entropy, (parameters, tensors))| {
            let config = run.config.hash();
            Started {
                run,
                config,
                device,
                parameters,
                tensors,
                ln_vocab,
                entropy,
                forward_flops: 1e12,
                from_step: parameters,
                peaks: entropy.map(equal_peaks).map(Box::new),
                paired: tensors % 2 == 1,
                matrix_cores: tensors % 3 == 1,
                request: u64::from(tensors),
            }
        });
    let step = (
        slot(),
        any::<u64>(),
        num(),
        number(),
        any::<(bool, bool)>(),
        prop::option::of(phases()),
        prop::option::of(clocks()),
    )
        .prop_map(
            |(slot, step, loss, ms, (synced, profiled), phases, clocks)| Step {
                slot,
                step,
                loss: Some(loss),
                ms,
                synced,
                profiled,
                phases,
                clocks,
            },
        );
    let throughput = (
        slot(),
        any::<u64>(),
        state(),
        spread(),
        number(),
        prop::option::of(number()),
    )
        .prop_map(|(slot, step, state, step_ms, speed, flops)| Throughput {
            slot,
            step,
            state,
            step_ms,
            samples_per_s: speed,
            flops,
            peak_flops: flops,
            peak_load: flops,
            clock: "host-sync".to_owned(),
            ..Throughput::default()
        });
    let info =
        (text(), device(), text(), any::<bool>()).prop_map(|(select, device, note, timestamps)| {
            DeviceInfo {
                select,
                device,
                backend: "Vulkan".to_owned(),
                driver: note.clone(),
                timestamps,
                note,
                peaks: None,
            }
        });
    let failed_kind = prop_oneof![
        Just(FailedKind::Usage),
        Just(FailedKind::Refused),
        Just(FailedKind::Device),
        Just(FailedKind::Internal)
    ];
    prop_oneof![
        (text(), any::<[u32; 3]>()).prop_map(|(version, [protocol, pid, cores])| Event::Hello(
            Hello {
                protocol,
                version,
                pid,
                os: "linux".to_owned(),
                cores,
                date: "2026-11-21".to_owned(),
                ..Hello::default()
            }
        )),
        proptest::option::of(number()).prop_map(|device_s| Event::Heartbeat { device_s }),
        (
            prop::option::of(number()),
            any::<bool>(),
            prop::option::of(text())
        )
            .prop_map(|(others, busy, reason)| Event::Load(Load {
                others,
                busy,
                reason
            })),
        (text(), text()).prop_map(|(level, text)| Event::Log(LogMessage { level, text })),
        prop::collection::vec(info, 0..3).prop_map(|devices| Event::Devices { devices }),
        device().prop_map(|device| Event::DeviceReady { device }),
        (any::<u32>(), text()).prop_map(|(kernels, latest)| Event::Compiling { kernels, latest }),
        started.prop_map(Event::Started),
        step.prop_map(Event::Step),
        throughput.prop_map(Event::Throughput),
        kernels().prop_map(Event::Kernels),
        gradients().prop_map(Event::Gradients),
        evidence().prop_map(Event::Evidence),
        memory().prop_map(Event::Memory),
        (slot(), lints()).prop_map(|(slot, lints)| Event::Lints { slot, lints }),
        pair().prop_map(Event::Pair),
        slot().prop_map(|slot| Event::Paused { slot }),
        slot().prop_map(|slot| Event::Resumed { slot }),
        finished().prop_map(|summary| Event::Finished(Box::new(summary))),
        (failed_kind, text(), any::<u64>()).prop_map(|(kind, reason, request)| {
            Event::Failed(Failed {
                kind,
                reason,
                request,
            })
        }),
    ]
}

/// A throughput of an older version, which has no rate of submitting.
const OLD_THROUGHPUT: &str = r#"{"t":0.77,"event":"throughput","slot":"a","step":9,"state":"settling","step_ms":{"median":62.7,"p25":46.8,"p75":63.1,"p95":63.4,"n":4},"samples_per_s":255.2,"tokens_per_s":510.4,"wall_samples_per_s":200.0,"phases":null,"flops":null,"peak_flops":null,"clock":"enqueue"}"#;

fn read_throughput(line: &str) -> Throughput {
    match read::<StreamLine>(line).expect("a line").event {
        Event::Throughput(throughput) => throughput,
        other => panic!("{other:?} is no throughput"),
    }
}

#[test]
fn an_old_throughput_of_steps_that_were_only_submitted_gets_the_rate_by_wall_time() {
    let throughput = read_throughput(OLD_THROUGHPUT);
    assert_eq!(throughput.samples_per_s, 200.0);
    assert_eq!(throughput.tokens_per_s, 400.0);
    assert_eq!(throughput.enqueue_samples_per_s, Some(255.2));
}

#[test]
fn an_old_throughput_of_synced_steps_keeps_its_rate() {
    let throughput = read_throughput(&OLD_THROUGHPUT.replace("enqueue", "host-sync"));
    assert_eq!(throughput.samples_per_s, 255.2);
}

#[test]
fn an_old_summary_of_steps_that_were_only_submitted_loses_its_rate() {
    let finished = Finished {
        samples_per_s: Some(255.2),
        clock: ENQUEUE.to_owned(),
        ..Finished::default()
    };
    let event = Event::Finished(Box::new(finished));
    let text = serde_json::to_string(&StreamLine { t: 0.0, event }).expect("plain data");

    let line: StreamLine = read(&text).expect("a line");

    let Event::Finished(finished) = line.event else {
        panic!("{line:?} is no summary");
    };
    assert_eq!(finished.samples_per_s, None);
    assert_eq!(finished.enqueue_samples_per_s, Some(255.2));
}
