//! Plausibility lints on a run: each finds figures that cannot be true, or should not be, and gives the reason and advice. A lint is a
//! function of the run so far, and knows no device and no screen. A lint that needs a part of the description does not apply to a run
//! without it.

use crate::config::{Attention, Data, Loss, RunConfig, Sync};
use crate::story::RunStory;
use crate::thresholds;
use crate::units::{number, parity, percent, rate, show, signed_percent};
use crate::{Lint, PhaseTimes};

/// The number of losses whose mean the lints on training progress compare.
const RECENT: usize = 64;
/// The number of steps after which the loss must have changed, on data that can be learned.
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

/// Returns the latest losses, at most `RECENT`.
fn recent_losses(run: &RunStory) -> Vec<f64> {
    run.loss
        .latest(RECENT)
        .into_iter()
        .map(|bucket| bucket.mean)
        .collect()
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
            "The first loss is {first:.2}; \
             guessing all tokens with equal probability loses only {uniform:.2}."
        ),
        "Look at the logits before the first update: how large are they, and for which token?",
    ))
}

fn not_finite(run: &RunStory) -> Option<LintReason> {
    if run.description.is_foreign()
        && let Some((step, loss)) = run.loss.not_finite
    {
        return Some((
            format!("The loss is {} at step {step}.", number(loss)),
            "Look at the loss just before, at the learning rate, \
             and at what divides or takes a logarithm.",
        ));
    }
    let (step, tensor) = run.not_finite.as_ref()?;
    Some((
        format!("{tensor} holds NaN or infinity at step {step}; the run stopped there."),
        "Look at the loss just before, and at the learning rate and the initial weights.",
    ))
}

fn gradient_coverage(run: &RunStory) -> Option<LintReason> {
    let audit = run.gradients.as_ref()?;
    (audit.with_grad < audit.tensors).then(|| {
        (
            format!(
                "Only {:.1} % of the parameters received a gradient: {} of {} tensors.",
                audit.params_pct, audit.with_grad, audit.tensors
            ),
            "Go back from the loss to the first tensor without a gradient: the graph is cut there.",
        )
    })
}

/// Finds a backward pass that is shorter than its products allow. With the loss in parts, the forward pass also computes the gradients of
/// the head's product.
fn backward_too_short(run: &RunStory) -> Option<LintReason> {
    let config = run.description.config.as_ref()?;
    if config.measure.sync != Sync::PerPhase {
        return None;
    }
    let mut expected = 2.0;
    let mut expectation = "with twice the products it should take 1 to 2".to_owned();
    if config.model.loss == Loss::InParts {
        let all = config.forward_flops();
        let head = config.head_flops();
        expected = 2.0 * (all - head) / (all + 2.0 * head);
        let about = show(expected, 1);
        expectation = format!("without the head's gradients it should take about {about}");
    }
    let phases = run.phases()?;
    let ratio = phases.backward / phases.forward;
    let too_short = phases.forward > 0.0 && ratio < thresholds::BACKWARD_SHORT * expected / 2.0;
    too_short.then(|| {
        (
            format!("Backward takes {ratio:.2} of the forward's time; {expectation}."),
            "Either backward omits work (see the gradients panel), \
             or forward does too much (see the kernels).",
        )
    })
}

/// Finds phases that do not add up to the step. If the host waits once, at the end of a step, phases are times of submitting and need not
/// add up.
fn ledger_open(run: &RunStory) -> Option<LintReason> {
    if run.description.waits_once() {
        return None;
    }
    let foreign = run.description.is_foreign();
    let most = if foreign {
        thresholds::WATCHED_PHASES_MISS_STEP
    } else {
        thresholds::PHASES_MISS_STEP
    };
    let PhaseTimes { step, residual, .. } = run.phases()?;
    let is_open = step > 0.0 && residual.abs() > most * step;
    if !is_open {
        return None;
    }
    let share = 100.0 * residual / step;
    if foreign && residual > 0.0 {
        return Some((
            format!(
                "No phase explains {residual:.1} ms of {step:.1} ms of a step ({} %).",
                percent(share)
            ),
            "Look at what the loop does besides the model: copies, logging, checkpoints. \
             `with run.phase(\"data\"):` gives it a name.",
        ));
    }
    Some((
        format!(
            "Forward, backward and optimizer miss the step by {residual:+.1} ms of {step:.1} ms ({} %).",
            signed_percent(share)
        ),
        "For each timer, find out what it waits for: enqueueing work is not doing it.",
    ))
}

/// Finds steps that spend much of their time on waiting for their batch, in which they compute nothing.
fn waiting_for_data(run: &RunStory) -> Option<LintReason> {
    let phases = run.phases()?;
    let step = phases.step;
    let data = phases.data?;
    (data > thresholds::WAITS_FOR_DATA * step).then(|| {
        (
            format!(
                "{data:.1} ms of {step:.1} ms of a step are spent waiting for the next batch ({} %).",
                percent(100.0 * data / step)
            ),
            "Prepare batches beside the training: more workers of the loader, \
             less work for each sample, or data prepared beforehand.",
        )
    })
}

/// Returns the FLOP/s that the step times claim, the peak in FLOP/s, and the load of other programs while the peak was measured; `None` if
/// the claim is not above the peak.
fn claim_above_peak(run: &RunStory) -> Option<(f64, f64, Option<f64>)> {
    let throughput = run.throughput.as_ref()?;
    let reached = match throughput.flops {
        Some(flops) => flops,
        None => 3.0 * run.description.forward_flops? / (throughput.step_ms.median * 1e-3),
    };
    let (peak, load) = run.peak_flops()?;
    (reached > 1.05 * peak).then_some((reached, peak, load))
}

/// Finds a peak that is too low because other programs ran while it was measured.
fn peak_too_low(run: &RunStory) -> Option<LintReason> {
    let (reached, peak, load) = claim_above_peak(run)?;
    Some((
        format!(
            "{} are above the peak of {}, \
             which was measured while other programs used {:.0} % of this machine.",
            rate(reached, "FLOP/s"),
            rate(peak, "FLOP/s"),
            100.0 * load?
        ),
        "The peak is too low: close the other programs and restart the run, \
         or `perflings doctor --calibrate`.",
    ))
}

fn above_peak(run: &RunStory) -> Option<LintReason> {
    let (reached, peak, load) = claim_above_peak(run)?;
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
    let large = evidence
        .rms
        .iter()
        .map(|rms| rms.0)
        .find(|rms| rms.is_nan() || *rms > thresholds::STREAM_LARGE)?;
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
    let difference = run.evidence.as_ref()?.parity?.0;
    if difference <= config.rounding() {
        return None;
    }
    Some((
        format!(
            "The logits differ from the plain reference's by {} of the largest; \
             rounding in {} stays below {:.0e}.",
            parity(difference),
            config.train.precision,
            config.rounding()
        ),
        "The loss may still look right. Compare what the operation reads with what is in memory.",
    ))
}

fn stuck_at_ln_vocab(run: &RunStory) -> Option<LintReason> {
    let config = run.description.config.as_ref();
    let can_be_learned = config.is_none_or(|config| config.train.data == Data::Markov);
    let losses = recent_losses(run);
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
            "After {steps} steps the loss is still {mean:.3}. \
             Guessing gives {uniform:.3}, and this data can be learned."
        ),
        "Check that gradients arrive and that the optimizer changes the weights.",
    ))
}

/// Finds a training of another program from step 0 whose loss has not changed. If the loss of guessing is known, `stuck_at_ln_vocab` has
/// the better reason.
fn loss_stuck(run: &RunStory) -> Option<LintReason> {
    let steps = run.loss.last()?.0.saturating_add(1);
    let from_step_0 = run.first_loss().is_some();
    if !run.description.is_foreign()
        || !from_step_0
        || steps < STUCK_AFTER_STEPS
        || stuck_at_ln_vocab(run).is_some()
    {
        return None;
    }
    let all = run.loss.all();
    let first: Vec<f64> = all.iter().take(RECENT).map(|bucket| bucket.mean).collect();
    let latest = recent_losses(run);
    if latest.len() < RECENT || first.len() < RECENT {
        return None;
    }
    let (before, error_before) = mean_and_error(&first);
    let (now, error_now) = mean_and_error(&latest);
    let moved = (now - before).abs();
    if moved > 3.0 * error_before.hypot(error_now) || moved > thresholds::LOSS_STUCK * before.abs()
    {
        return None;
    }
    Some((
        format!(
            "After {steps} steps the loss is still {now:.3}. At first it was {before:.3}; \
             both are means of {RECENT} steps."
        ),
        "Check that gradients arrive, that the optimizer has these parameters, \
         and the learning rate.",
    ))
}

/// Returns the mean of some values and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n * (n - 1.0))).sqrt())
}

fn below_entropy(run: &RunStory) -> Option<LintReason> {
    let entropy = run.description.entropy?;
    let losses = recent_losses(run);
    if losses.len() < RECENT / 2 {
        return None;
    }
    let (mean, error) = mean_and_error(&losses);
    if mean + 4.0 * error >= entropy {
        return None;
    }
    Some((
        format!(
            "The loss is {mean:.3}; the data's entropy rate is {entropy:.3}, \
             and nothing can predict better than that."
        ),
        "The answer leaks into the input. Check the mask, and what attention can see.",
    ))
}

fn no_kernels(run: &RunStory) -> Option<LintReason> {
    let profile = run.kernels.as_ref()?;
    profile.rows.is_empty().then(|| {
        let reason = profile.reason.as_deref().unwrap_or("no reason given");
        (
            format!("Steps ran, but the profile is empty: {reason}."),
            "Absent is not zero: check that the profiler saw this device.",
        )
    })
}

/// Finds a run in which the composed version of attention computes because no flash kernel fits its shape.
fn attention_composed(run: &RunStory) -> Option<LintReason> {
    let model = &run.description.config.as_ref()?.model;
    let rows = &run.kernels.as_ref()?.rows;
    let kernels: Vec<&str> = rows
        .iter()
        .filter(|row| row.op == "attention")
        .map(|row| row.kernel.as_str())
        .collect();
    let composed = !kernels.is_empty() && kernels.iter().all(|kernel| !kernel.contains("flash"));
    (model.attention == Attention::Flash && composed).then(|| {
        (
            format!(
                "model.attention is flash, \
                 but no flash kernel of this device takes heads of {} values: the composed version ran.",
                model.hidden / model.heads
            ),
            "Use heads of at most 128 values, in multiples of 4: model.heads sets their number.",
        )
    })
}

/// Returns the longest plausible time of all kernels of a step in milliseconds, if the device's clock is constant. `recorded` launches are
/// replayed in ordinary steps, and the profiler takes them one by one: on an H100 each takes 0.4 to 1.4 µs more.
pub fn longest_kernels_ms(recorded: bool, launches: u32, step_ms: f64) -> f64 {
    let profiling = if recorded { 1.2e-3 } else { 0.0 };
    1.05 * step_ms + profiling * f64::from(launches)
}

/// Finds a profile that does not agree with the steps around it. It was kept because no other profile did.
fn coverage_above_step(run: &RunStory) -> Option<LintReason> {
    let profile = run.kernels.as_ref()?;
    let step_ms = profile.step_ms?;
    let config = run.description.config.as_ref();
    let recorded = config.is_some_and(RunConfig::records);
    let longest = longest_kernels_ms(recorded, profile.launches, step_ms);
    (profile.discarded > 0 && profile.device_ms > longest).then(|| {
        let kernels = show(profile.device_ms, 2);
        let step = show(step_ms, 2);
        let tried = profile.discarded + 1;
        (
            format!(
                "Kernels take {kernels} ms of a step of {step} ms, \
                 in {tried} profiles in a row."
            ),
            "The device's clock keeps changing: let it run for a minute, \
             and check what else uses it.",
        )
    })
}

#[cfg(test)]
mod tests;
