//! Plausibility lints on a run: figures that cannot be true, or should not be, with the reason and advice. Each lint is a function of the
//! run so far, and knows no device and no screen. A lint that needs a part of the description does not apply to a run without it.

use crate::Lint;
use crate::config::{Attention, Data, Loss, RunConfig, Sync};
use crate::story::RunStory;
use crate::thresholds;
use crate::units::{number, parity, percent, rate, show, signed_percent};

/// Losses kept for the lints on training progress.
const RECENT: usize = 64;
/// Steps after which the loss must have moved on a chain that can be learned.
const STUCK_AFTER_STEPS: u64 = 300;

/// The reason why a lint applies, and advice.
type LintReason = (String, &'static str);
/// A lint; `None` if it does not apply.
type Rule = fn(&RunStory) -> Option<LintReason>;

/// All lints with their names, in the order in which they are shown.
const LINTS: [(&str, Rule); 16] = [
    ("not-finite", not_finite),
    ("first-loss", first_loss),
    ("gradient-coverage", gradient_coverage),
    ("backward-too-short", backward_too_short),
    ("ledger-open", ledger_open),
    ("waiting-for-data", waiting_for_data),
    ("above-peak", above_peak),
    ("peak-too-low", peak_too_low),
    ("residual-stream", residual_stream),
    ("wrong-logits", wrong_logits),
    ("stuck-at-ln-vocab", stuck_at_ln_vocab),
    ("loss-stuck", loss_stuck),
    ("below-entropy", below_entropy),
    ("no-kernels", no_kernels),
    ("coverage-above-step", coverage_above_step),
    ("attention-composed", attention_composed),
];

/// Returns the names of all lints.
pub fn names() -> impl Iterator<Item = &'static str> {
    LINTS.iter().map(|(name, _)| *name)
}

/// Returns all lints that apply to a run so far.
pub fn lints(run: &RunStory) -> Vec<Lint> {
    let mut lints = Vec::new();
    for (name, rule) in LINTS {
        if let Some((why, next)) = rule(run) {
            lints.push(Lint {
                name: name.to_owned(),
                why,
                next: next.to_owned(),
            });
        }
    }
    lints
}

/// Returns the latest losses, for the lints on training progress.
fn recent(run: &RunStory) -> Vec<f64> {
    let losses = run.loss.latest(RECENT).into_iter();
    losses.map(|bucket| bucket.mean).collect()
}

/// Finds a first loss above that of guessing. A uniform prediction over V tokens loses ln V for every target; only confident wrong
/// predictions lose more.
fn first_loss(run: &RunStory) -> Option<LintReason> {
    let first = run.first_loss().filter(|first| first.is_finite())?;
    let uniform = run.description.ln_vocab?;
    if first <= thresholds::highest_first_loss(uniform) {
        return None;
    }
    Some((
        format!(
            "The first loss is {first:.2}; guessing all tokens with equal probability loses only {uniform:.2}."
        ),
        "Look at the logits before the first update: how large are they, and for which token?",
    ))
}

fn not_finite(run: &RunStory) -> Option<LintReason> {
    if let (true, Some((step, loss))) = (run.description.is_foreign(), run.loss.not_finite) {
        return Some((
            format!("The loss is {} at step {step}.", number(loss)),
            "Look at the loss just before, at the learning rate, and at what divides or takes a logarithm.",
        ));
    }
    let (step, tensor) = run.not_finite.as_ref()?;
    Some((
        format!("{tensor} holds NaN or infinity at step {step}; the run stopped there."),
        "Look at the loss just before, and at the learning rate and the initial weights.",
    ))
}

fn gradient_coverage(run: &RunStory) -> Option<LintReason> {
    let g = run.gradients.as_ref().filter(|g| g.with_grad < g.tensors)?;
    Some((
        format!(
            "Only {:.1} % of the parameters received a gradient: {} of {} tensors.",
            g.params_pct, g.with_grad, g.tensors
        ),
        "Go back from the loss to the first tensor without a gradient: the graph is cut there.",
    ))
}

/// Finds a backward pass that is shorter than its products allow. With the loss in parts, the forward pass also computes the gradients of
/// the head's product.
fn backward_too_short(run: &RunStory) -> Option<LintReason> {
    let config = run.description.config.as_ref()?;
    if config.measure.sync != Sync::PerPhase {
        return None;
    }
    let mut expected = 2.0;
    let mut said = "with twice the products it should take 1 to 2".to_owned();
    if config.model.loss == Loss::InParts {
        let all = config.forward_flops();
        let head = config.head_flops();
        expected = 2.0 * (all - head) / (all + 2.0 * head);
        let about = show(expected, 1);
        said = format!("without the head's gradients it should take about {about}");
    }
    let p = run.phases().filter(|p| {
        p.forward > 0.0 && p.backward / p.forward < thresholds::BACKWARD_SHORT * expected / 2.0
    })?;
    Some((
        format!(
            "Backward takes {:.2} of the forward's time; {said}.",
            p.backward / p.forward
        ),
        "Either backward omits work (see the gradients panel), or forward does too much (see the kernels).",
    ))
}

/// Finds phases that do not add up to the step. If the host waits once, at the end of a step, phases are times of submitting and need not
/// add up.
fn ledger_open(run: &RunStory) -> Option<LintReason> {
    if run.description.waits_once() {
        return None;
    }
    let foreign = run.description.is_foreign();
    let most = match foreign {
        true => thresholds::WATCHED_PHASES_MISS_STEP,
        false => thresholds::PHASES_MISS_STEP,
    };
    let p = run
        .phases()
        .filter(|p| p.step > 0.0 && p.residual.abs() > most * p.step)?;
    if foreign && p.residual > 0.0 {
        return Some((
            format!(
                "No phase explains {:.1} ms of {:.1} ms of a step ({} %).",
                p.residual,
                p.step,
                percent(100.0 * p.residual / p.step)
            ),
            "Look at what the loop does besides the model: copies, logging, checkpoints. `with run.phase(\"data\"):` gives it a name.",
        ));
    }
    Some((
        format!(
            "Forward, backward and optimizer miss the step by {:+.1} ms of {:.1} ms ({} %).",
            p.residual,
            p.step,
            signed_percent(100.0 * p.residual / p.step)
        ),
        "For each timer, find out what it waits for: enqueueing work is not doing it.",
    ))
}

/// A step that waits for its batch computes nothing meanwhile.
fn waiting_for_data(run: &RunStory) -> Option<LintReason> {
    let p = run.phases()?;
    let data = p
        .data
        .filter(|data| *data > thresholds::WAITS_FOR_DATA * p.step)?;
    Some((
        format!(
            "{:.1} ms of {:.1} ms of a step are spent waiting for the next batch ({} %).",
            data,
            p.step,
            percent(100.0 * data / p.step)
        ),
        "Prepare batches beside the training: more workers of the loader, less work for each sample, or data prepared beforehand.",
    ))
}

/// Returns the FLOP/s that the step times claim if they are above the peak, the peak in FLOP/s, and the load of other programs while it
/// was measured.
fn claimed(run: &RunStory) -> Option<(f64, f64, Option<f64>)> {
    let t = run.throughput.as_ref()?;
    let reached = match t.flops {
        Some(flops) => flops,
        None => 3.0 * run.description.forward_flops? / (t.step_ms.median * 1e-3),
    };
    let (peak, load) = run.peak_flops()?;
    (reached > 1.05 * peak).then_some((reached, peak, load))
}

/// Finds a peak that is too low because other programs ran while it was measured.
fn peak_too_low(run: &RunStory) -> Option<LintReason> {
    let (reached, peak, load) = claimed(run)?;
    let load = load?;
    Some((
        format!(
            "{} are above the peak of {}, which was measured while other programs used {:.0} % of this machine.",
            rate(reached, "FLOP/s"),
            rate(peak, "FLOP/s"),
            100.0 * load
        ),
        "The peak is too low: close the other programs and restart the run, or `perflings doctor --calibrate`.",
    ))
}

fn above_peak(run: &RunStory) -> Option<LintReason> {
    let (reached, peak, load) = claimed(run)?;
    load.is_none().then(|| {
        (
            format!(
                "{} claimed; the most this device was measured to do is {}.",
                rate(reached, "FLOP/s"),
                rate(peak, "FLOP/s")
            ),
            "This is impossible: either the clock is read too early, or work is missing.",
        )
    })
}

/// Finds a residual stream that is too large. The logits do not show this, because there is a norm before each layer.
fn residual_stream(run: &RunStory) -> Option<LintReason> {
    let evidence = run.evidence.as_ref()?;
    let mut sizes = evidence.rms.iter().map(|rms| rms.0);
    let large = sizes.find(|rms| rms.is_nan() || *rms > thresholds::STREAM_LARGE)?;
    Some((
        format!(
            "The residual stream has a size (rms) of {} at step {}; below {:.0} is ordinary.",
            number(large),
            evidence.step,
            thresholds::STREAM_LARGE
        ),
        "Look at the learning rate and at the initial weights.",
    ))
}

fn wrong_logits(run: &RunStory) -> Option<LintReason> {
    let config = run.description.config.as_ref()?;
    let parity_of = run.evidence.as_ref()?.parity;
    let far = parity_of.filter(|p| p.0.is_nan() || p.0 > config.rounding())?;
    Some((
        format!(
            "The logits differ from the plain reference's by {} of the largest; rounding in {} stays below {:.0e}.",
            parity(far.0),
            config.train.precision,
            config.rounding()
        ),
        "The loss may still look right. Compare what the operation reads with what is in memory.",
    ))
}

fn stuck_at_ln_vocab(run: &RunStory) -> Option<LintReason> {
    let config = run.description.config.as_ref();
    let can_be_learned = config.is_none_or(|config| config.train.data == Data::Markov);
    let losses = recent(run);
    let steps = run.loss.last()?.0.saturating_add(1);
    if !can_be_learned || steps < STUCK_AFTER_STEPS || losses.len() < RECENT {
        return None;
    }
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let uniform = run.description.ln_vocab?;
    if (mean - uniform).abs() > thresholds::LOSS_STUCK * uniform {
        return None;
    }
    Some((
        format!(
            "After {steps} steps the loss is still {mean:.3}. Guessing gives {uniform:.3}, and this data can be learned."
        ),
        "Check that gradients arrive and that the optimizer changes the weights.",
    ))
}

/// Whatever the loss is: a training from step 0 moves it. Where guessing is known, `stuck_at_ln_vocab` says more.
fn loss_stuck(run: &RunStory) -> Option<LintReason> {
    let (losses, steps) = (recent(run), run.loss.last()?.0.saturating_add(1));
    let whole = run.first_loss().is_some() && steps >= STUCK_AFTER_STEPS;
    if !run.description.is_foreign() || !whole || stuck_at_ln_vocab(run).is_some() {
        return None;
    }
    let first: Vec<f64> = run
        .loss
        .all()
        .iter()
        .take(RECENT)
        .map(|it| it.mean)
        .collect();
    if losses.len() < RECENT || first.len() < RECENT {
        return None;
    }
    let ((before, error_before), (now, error_now)) =
        (mean_and_error(&first), mean_and_error(&losses));
    let moved = (now - before).abs();
    if moved > 3.0 * error_before.hypot(error_now) || moved > thresholds::LOSS_STUCK * before.abs()
    {
        return None;
    }
    Some((
        format!(
            "After {steps} steps the loss is still {now:.3}. At first it was {before:.3}; both are means of {RECENT} steps."
        ),
        "Check that gradients arrive, that the optimizer has these parameters, and the learning rate.",
    ))
}

/// The mean of values, and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n * (n - 1.0))).sqrt())
}

fn below_entropy(run: &RunStory) -> Option<LintReason> {
    let entropy = run.description.entropy?;
    let losses = recent(run);
    if losses.len() < RECENT / 2 {
        return None;
    }
    let (mean, error) = mean_and_error(&losses);
    if mean + 4.0 * error >= entropy {
        return None;
    }
    Some((
        format!(
            "The loss is {mean:.3}; the data's entropy rate is {entropy:.3}, and nothing can predict better than that."
        ),
        "The answer leaks into the input. Check the mask, and what attention can see.",
    ))
}

fn no_kernels(run: &RunStory) -> Option<LintReason> {
    let k = run.kernels.as_ref().filter(|k| k.rows.is_empty())?;
    Some((
        format!(
            "Steps ran, but the profile is empty: {}.",
            k.reason.as_deref().unwrap_or("no reason given")
        ),
        "Absent is not zero: check that the profiler saw this device.",
    ))
}

/// Finds a run in which the composed version of attention computes because no flash kernel fits its shape.
fn attention_composed(run: &RunStory) -> Option<LintReason> {
    let model = &run.description.config.as_ref()?.model;
    let rows = &run.kernels.as_ref()?.rows;
    let mut of_attention = rows.iter().filter(|row| row.op == "attention").peekable();
    of_attention.peek()?;
    let composed = of_attention.all(|row| !row.kernel.contains("flash"));
    (model.attention == Attention::Flash && composed).then(|| {
        (
            format!(
                "model.attention is flash, but no flash kernel of this device takes heads of {} values: the composed version ran.",
                model.hidden / model.heads
            ),
            "Use heads of at most 128 values, in multiples of 4: model.heads sets their number.",
        )
    })
}

/// Returns the longest possible time of all kernels of a step in ms, if the device's clock is constant. Under the profiler, launches follow
/// each other less closely than `recorded` launches that are replayed: by 0.4 to 1.4 µs each on an H100.
pub fn longest_kernels_ms(recorded: bool, launches: u32, step_ms: f64) -> f64 {
    let apart = if recorded { 1.2e-3 } else { 0.0 };
    1.05 * step_ms + apart * f64::from(launches)
}

fn coverage_above_step(run: &RunStory) -> Option<LintReason> {
    // This profile was kept although it does not agree with the steps around it, because none did.
    let k = run.kernels.as_ref().filter(|k| k.discarded > 0)?;
    let step_ms = k.step_ms?;
    let config = run.description.config.as_ref();
    let recorded = config.is_some_and(RunConfig::records);
    (k.device_ms > longest_kernels_ms(recorded, k.launches, step_ms)).then(|| {
        let kernels = show(k.device_ms, 2);
        let step = show(step_ms, 2);
        let tried = k.discarded + 1;
        (
            format!("Kernels take {kernels} ms of a step of {step} ms, in {tried} profiles in a row."),
            "The device's clock keeps changing: let it run for a minute, and check what else uses it.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Launches, Preset};
    use crate::story::RunDescription;
    use crate::{Event, Evidence, KernelRow, PhaseTimes, Step, StepProfile, Throughput};

    fn story(config: &RunConfig) -> RunStory {
        RunStory::new(RunDescription {
            config: Some(config.clone()),
            ..RunDescription::default()
        })
    }

    #[test]
    fn a_first_loss_is_judged_by_what_usual_initial_weights_lose() {
        // 4 classes: burn's text classification, as published, loses 1.68 at first. 1000 classes: weights of size 1.
        let cases = [
            (4.0_f64, 1.68, false),
            (4.0, 2.0, true),
            (1000.0, 7.2, false),
            (1000.0, 7.7, true),
        ];
        for (classes, first, is_told) in cases {
            let mut run = RunStory::new(RunDescription {
                ln_vocab: Some(classes.ln()),
                ..RunDescription::default()
            });
            let step = Step {
                loss: Some(crate::Num(first)),
                ms: 1.0,
                ..Step::default()
            };
            run.note(&Event::Step(step), 0);
            let told = lints(&run).iter().any(|lint| lint.name == "first-loss");
            assert_eq!(told, is_told, "{first} of {classes} classes");
        }
    }

    #[test]
    fn phases_that_are_times_of_handing_over_are_no_fault_where_the_step_ends_at_a_wait() {
        let said = |sync, profiled| {
            let mut config = RunConfig::preset(Preset::Tiny);
            config.measure.sync = sync;
            let mut run = story(&config);
            let phases = PhaseTimes {
                forward: 1.0,
                backward: 1.0,
                optimizer: 1.0,
                residual: 37.0,
                step: 40.0,
                ..PhaseTimes::default()
            };
            let event = Event::Step(Step {
                phases: Some(phases),
                profiled,
                ..Step::default()
            });
            run.note(&event, 0);
            lints(&run).iter().any(|it| it.name == "ledger-open")
        };
        assert!(said(Sync::PerPhase, false) && said(Sync::Never, false));
        assert!(!said(Sync::PerStep, false));
        assert!(!said(Sync::PerPhase, true), "the profiler's own waits");
    }

    #[test]
    fn kernels_that_take_longer_than_the_step_are_told_once_nothing_better_was_found() {
        let said = |device_ms: f64, discarded, launches| {
            let mut config = RunConfig::preset(Preset::Tiny);
            config.train.launches = launches;
            let mut run = story(&config);
            let event = Event::Kernels(StepProfile {
                rows: vec![KernelRow::default()],
                launches: 1000,
                device_ms,
                step_ms: Some(8.0),
                coverage: device_ms / 8.0,
                discarded,
                ..StepProfile::default()
            });
            run.note(&event, 0);
            lints(&run)
                .into_iter()
                .map(|lint| lint.name)
                .collect::<Vec<_>>()
        };
        let (each, recorded) = (Launches::EachStep, Launches::Recorded);
        assert_eq!(said(12.0, 8, each), ["coverage-above-step"]);
        assert_eq!(said(8.2, 8, each), Vec::<String>::new());
        assert_eq!(said(12.0, 0, each), Vec::<String>::new());
        // 1.2 µs for each of 1,000 launches.
        assert_eq!(said(9.5, 8, each), ["coverage-above-step"]);
        assert_eq!(said(9.5, 8, recorded), Vec::<String>::new());
        assert_eq!(said(9.7, 8, recorded), ["coverage-above-step"]);
    }

    /// The lints that hold for the training of another program with these losses and phases (data, forward, rest).
    fn of_another(losses: &[f64], [data, forward, residual]: [f64; 3]) -> Vec<String> {
        let mut run = RunStory::new(RunDescription::default());
        for (step, loss) in losses.iter().enumerate() {
            let phases = PhaseTimes {
                data: Some(data),
                forward,
                residual,
                step: data + forward + residual,
                ..PhaseTimes::default()
            };
            let event = Event::Step(Step {
                step: step as u64,
                loss: Some(crate::Num(*loss)),
                phases: Some(phases),
                ..Step::default()
            });
            run.note(&event, 0);
        }
        lints(&run).into_iter().map(|lint| lint.name).collect()
    }

    #[test]
    fn the_training_of_another_program_is_judged_without_a_configuration() {
        let falls: Vec<f64> = (0..400).map(|step| 4.0 - 0.005 * f64::from(step)).collect();
        let waves = |mean: f64| (0..400).map(move |step| mean + 0.2 * f64::from(step % 7 - 3));
        let stays: Vec<f64> = waves(4.0).collect();
        let none = Vec::<String>::new();
        assert_eq!(of_another(&falls, [0.5, 19.0, 0.5]), none);
        assert_eq!(
            of_another(&falls, [0.5, 17.5, 2.0]),
            none,
            "a loop does more than train"
        );
        assert_eq!(of_another(&falls, [0.5, 14.5, 5.0]), ["ledger-open"]);
        assert_eq!(of_another(&falls, [5.0, 14.5, 0.5]), ["waiting-for-data"]);
        assert_eq!(of_another(&stays, [0.5, 19.0, 0.5]), ["loss-stuck"]);
        assert_eq!(
            of_another(&stays[..200], [0.5, 19.0, 0.5]),
            none,
            "too early to say"
        );
        let slow: Vec<f64> = waves(4.0)
            .zip(0..)
            .map(|(loss, step)| loss - 5e-4 * f64::from(step))
            .collect();
        assert_eq!(
            of_another(&slow, [0.5, 19.0, 0.5]),
            none,
            "it moves, if slowly"
        );
        let breaks: Vec<f64> = falls.iter().copied().chain([f64::NAN]).collect();
        assert_eq!(of_another(&breaks, [0.5, 19.0, 0.5]), ["not-finite"]);
    }

    /// Each figure of the evidence that cannot be right has its lint.
    #[test]
    fn a_stream_that_no_norm_can_save_is_told() {
        let said = |rms: [f64; 2]| {
            let mut run = story(&RunConfig::preset(Preset::Tiny));
            let rms = rms.map(Into::into).to_vec();
            let evidence = Evidence {
                rms,
                ..Evidence::default()
            };
            run.note(&Event::Evidence(evidence), 0);
            lints(&run).pop().map(|lint| lint.why)
        };
        assert_eq!(said([0.02, 3.0]), None);
        let why = said([0.02, 1.5e15]).expect("told");
        assert!(why.contains("a size (rms) of 1.5e15 at step 0"), "{why}");
        assert!(said([f64::NAN, 1.0]).is_some());
    }

    #[test]
    fn attention_that_runs_composed_is_told() {
        let said = |attention, kernels: &[&str]| {
            let mut config = RunConfig::preset(Preset::Tiny);
            config.model.attention = attention;
            let mut run = story(&config);
            let row = |kernel: &&str| KernelRow {
                op: "attention".to_owned(),
                kernel: (*kernel).to_owned(),
                ..KernelRow::default()
            };
            let event = Event::Kernels(StepProfile {
                rows: kernels.iter().map(row).collect(),
                ..StepProfile::default()
            });
            run.note(&event, 0);
            let lints = lints(&run).into_iter();
            lints.filter(|it| it.name == "attention-composed").count()
        };
        assert_eq!(said(Attention::Flash, &["MatmulEntry", "SoftmaxKernel"]), 1);
        assert_eq!(
            said(Attention::Flash, &["flash_attention", "SumOfParts"]),
            0
        );
        assert_eq!(said(Attention::Flash, &["flash"]), 0);
        assert_eq!(said(Attention::Composed, &["MatmulEntry"]), 0);
    }

    #[test]
    fn a_disturbed_peak_accuses_nobody() {
        let said = |flops: f64, peak_load: Option<f64>| {
            let mut run = story(&RunConfig::preset(Preset::Tiny));
            let event = Event::Throughput(Throughput {
                flops: Some(flops),
                peak_flops: Some(65e9),
                peak_load,
                ..Throughput::default()
            });
            run.note(&event, 0);
            lints(&run)
        };
        assert_eq!(said(60e9, None), []);
        assert_eq!(said(60e9, Some(0.6)), []);
        assert_eq!(said(140e9, None)[0].name, "above-peak");
        let lints = said(140e9, Some(0.6));
        assert_eq!(lints.len(), 1);
        assert_eq!(lints[0].name, "peak-too-low");
        let why = "140.0 GFLOP/s are above the peak of 65.00 GFLOP/s, which was measured while other programs used 60 % of this machine.";
        assert_eq!(lints[0].why, why);
        assert!(lints[0].next.contains("doctor --calibrate"));
    }
}
