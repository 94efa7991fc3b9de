use super::*;
use crate::config::{Launches, Preset};
use crate::story::RunDescription;
use crate::{Event, Evidence, KernelRow, Num, Step, StepProfile, Throughput};

/// Returns the lints that apply to a run of this configuration after one event.
fn lints_after(config: &RunConfig, event: &Event) -> Vec<Lint> {
    let mut run = RunStory::new(RunDescription {
        config: Some(config.clone()),
        ..RunDescription::default()
    });
    run.on_event(event, 0);
    lints(&run)
}

fn tiny() -> RunConfig {
    RunConfig::preset(Preset::Tiny)
}

fn names_of(lints: Vec<Lint>) -> Vec<String> {
    lints.into_iter().map(|lint| lint.name).collect()
}

/// Returns the names of the lints on a step whose phases explain 3 of its 40 ms.
fn lints_on_open_ledger(sync: Sync, profiled: bool) -> Vec<String> {
    let mut config = tiny();
    config.measure.sync = sync;
    let step = Step {
        ms: 40.0,
        phases: Some(PhaseTimes::from_parts([1.0; 3], 40.0)),
        profiled,
        ..Step::default()
    };
    names_of(lints_after(&config, &Event::Step(step)))
}

#[test]
fn a_first_loss_is_judged_by_what_usual_initial_weights_lose() {
    // burn's text classification into 4 classes, as published, loses 1.68 at first. Weights of size 1 lose about 7.4 with 1000 classes.
    let cases = [
        (4.0_f64, 1.68, false),
        (4.0, 2.0, true),
        (1000.0, 7.2, false),
        (1000.0, 7.7, true),
    ];
    for (classes, first, expected) in cases {
        let mut run = RunStory::new(RunDescription {
            ln_vocab: Some(classes.ln()),
            ..RunDescription::default()
        });
        let step = Step {
            loss: Some(crate::Num(first)),
            ms: 1.0,
            ..Step::default()
        };
        run.on_event(&Event::Step(step), 0);
        let is_reported = lints(&run).iter().any(|lint| lint.name == "first-loss");
        assert_eq!(is_reported, expected, "{first} of {classes} classes");
    }
}

#[test]
fn phases_that_miss_the_step_are_reported() {
    for sync in [Sync::PerPhase, Sync::Never] {
        assert_eq!(lints_on_open_ledger(sync, false), ["ledger-open"]);
    }
}

#[test]
fn phases_need_not_add_up_if_the_host_waits_once() {
    assert!(lints_on_open_ledger(Sync::PerStep, false).is_empty());
}

#[test]
fn phases_of_a_profiled_step_need_not_add_up() {
    assert!(lints_on_open_ledger(Sync::PerPhase, true).is_empty());
}

/// Returns the names of the lints on a profile with 1,000 launches, compared with steps of 8 ms.
fn lints_on_profile(device_ms: f64, discarded: u32, launches: Launches) -> Vec<String> {
    let mut config = tiny();
    config.train.launches = launches;
    let profile = StepProfile {
        rows: vec![KernelRow::default()],
        launches: 1000,
        device_ms,
        step_ms: Some(8.0),
        coverage: device_ms / 8.0,
        discarded,
        ..StepProfile::default()
    };
    names_of(lints_after(&config, &Event::Kernels(profile)))
}

#[test]
fn kernels_that_take_longer_than_the_step_are_reported_if_no_profile_agreed() {
    assert_eq!(
        lints_on_profile(12.0, 8, Launches::EachStep),
        ["coverage-above-step"]
    );
    assert!(lints_on_profile(8.2, 8, Launches::EachStep).is_empty());
    assert!(lints_on_profile(12.0, 0, Launches::EachStep).is_empty());
}

#[test]
fn recorded_launches_may_take_longer_under_the_profiler() {
    assert_eq!(
        lints_on_profile(9.5, 8, Launches::EachStep),
        ["coverage-above-step"]
    );
    assert!(lints_on_profile(9.5, 8, Launches::Recorded).is_empty());
    assert_eq!(
        lints_on_profile(9.7, 8, Launches::Recorded),
        ["coverage-above-step"]
    );
}

/// The phases in milliseconds, data, forward and the rest, of a step that gives no reason for a lint.
const ORDINARY: [f64; 3] = [0.5, 19.0, 0.5];

/// Returns the names of the lints on a training of another program with these losses, whose steps all have these phases.
fn lints_on_watched(
    losses: impl IntoIterator<Item = f64>,
    [data, forward, residual]: [f64; 3],
) -> Vec<String> {
    let mut run = RunStory::new(RunDescription::default());
    for (step, loss) in (0..).zip(losses) {
        let phases = PhaseTimes {
            data: Some(data),
            forward,
            residual,
            step: data + forward + residual,
            ..PhaseTimes::default()
        };
        let event = Event::Step(Step {
            step,
            loss: Some(Num(loss)),
            ms: phases.step,
            phases: Some(phases),
            ..Step::default()
        });
        run.on_event(&event, 0);
    }
    names_of(lints(&run))
}

fn falling_losses() -> impl Iterator<Item = f64> {
    (0..400).map(|step| 4.0 - 0.005 * f64::from(step))
}

/// Returns losses whose mean falls by `slope` in each step from 4 on.
fn noisy_losses(slope: f64) -> impl Iterator<Item = f64> {
    (0..400).map(move |step| 4.0 + 0.2 * f64::from(step % 7 - 3) - slope * f64::from(step))
}

#[test]
fn the_loop_of_another_program_may_do_more_than_train() {
    assert!(lints_on_watched(falling_losses(), ORDINARY).is_empty());
    assert!(lints_on_watched(falling_losses(), [0.5, 17.5, 2.0]).is_empty());
    assert_eq!(
        lints_on_watched(falling_losses(), [0.5, 14.5, 5.0]),
        ["ledger-open"]
    );
}

#[test]
fn a_step_that_waits_for_its_batch_is_reported() {
    assert_eq!(
        lints_on_watched(falling_losses(), [5.0, 14.5, 0.5]),
        ["waiting-for-data"]
    );
}

#[test]
fn a_loss_that_stays_is_reported_after_300_steps() {
    assert_eq!(
        lints_on_watched(noisy_losses(0.0), ORDINARY),
        ["loss-stuck"]
    );
    assert!(lints_on_watched(noisy_losses(0.0).take(200), ORDINARY).is_empty());
}

#[test]
fn a_loss_that_falls_slowly_is_not_stuck() {
    assert!(lints_on_watched(noisy_losses(5e-4), ORDINARY).is_empty());
}

#[test]
fn a_loss_of_another_program_that_is_nan_is_reported() {
    let losses = falling_losses().chain([f64::NAN]);
    assert_eq!(lints_on_watched(losses, ORDINARY), ["not-finite"]);
}

fn lints_on_stream(rms: [f64; 2]) -> Vec<Lint> {
    let evidence = Evidence {
        rms: rms.map(Num).to_vec(),
        ..Evidence::default()
    };
    lints_after(&tiny(), &Event::Evidence(evidence))
}

#[test]
fn a_residual_stream_that_is_too_large_is_reported() {
    assert_eq!(lints_on_stream([0.02, 3.0]), []);
    assert_eq!(lints_on_stream([f64::NAN, 1.0]).len(), 1);

    let lints = lints_on_stream([0.02, 1.5e15]);

    let why = &lints[0].why;
    assert!(why.contains("a size (rms) of 1.5e15 at step 0"), "{why}");
}

/// Returns the names of the lints on a profile in which attention runs these kernels.
fn lints_on_attention(attention: Attention, kernels: &[&str]) -> Vec<String> {
    let mut config = tiny();
    config.model.attention = attention;
    let rows = kernels.iter().map(|kernel| KernelRow {
        op: "attention".to_owned(),
        kernel: (*kernel).to_owned(),
        ..KernelRow::default()
    });
    let profile = StepProfile {
        rows: rows.collect(),
        ..StepProfile::default()
    };
    names_of(lints_after(&config, &Event::Kernels(profile)))
}

#[test]
fn flash_attention_that_runs_composed_is_reported() {
    assert_eq!(
        lints_on_attention(Attention::Flash, &["MatmulEntry", "SoftmaxKernel"]),
        ["attention-composed"]
    );
    for kernels in [&["flash_attention", "SumOfParts"][..], &["flash"]] {
        assert!(lints_on_attention(Attention::Flash, kernels).is_empty());
    }
    assert!(lints_on_attention(Attention::Composed, &["MatmulEntry"]).is_empty());
}

/// Returns the lints on a run that reaches these FLOP/s on a device with a peak of 65 GFLOP/s.
fn lints_on_speed(flops: f64, peak_load: Option<f64>) -> Vec<Lint> {
    let throughput = Throughput {
        flops: Some(flops),
        peak_flops: Some(65e9),
        peak_load,
        ..Throughput::default()
    };
    lints_after(&tiny(), &Event::Throughput(throughput))
}

#[test]
fn a_speed_below_the_peak_is_plausible() {
    assert_eq!(lints_on_speed(60e9, None), []);
    assert_eq!(lints_on_speed(60e9, Some(0.6)), []);
}

#[test]
fn a_speed_above_the_peak_is_reported() {
    assert_eq!(names_of(lints_on_speed(140e9, None)), ["above-peak"]);
}

#[test]
fn a_speed_above_a_disturbed_peak_accuses_the_peak() {
    let lints = lints_on_speed(140e9, Some(0.6));

    assert_eq!(lints.len(), 1);
    assert_eq!(lints[0].name, "peak-too-low");
    assert_eq!(
        lints[0].why,
        "140.0 GFLOP/s are above the peak of 65.00 GFLOP/s, which was measured while other programs used 60 % of this machine."
    );
    assert!(lints[0].next.contains("doctor --calibrate"));
}
