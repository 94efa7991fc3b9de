//! Plausibility lints on a run: what cannot be true, or should not be, with the reason and what to look at next.
//! Each is a function of the facts so far; none knows a device or a screen.

use std::collections::VecDeque;

use crate::config::{Attention, Data, Loss, RunConfig, Sync};
use crate::thresholds;
use crate::units::{parity, rate, show, signed_percent};
use crate::{Event, Evidence, Gradients, Lint, PhaseTimes, StepProfile, Throughput};

/// Losses kept for the lints on training progress.
const RECENT: usize = 64;
/// Steps after which the loss must have moved on a chain that can be learned.
const STUCK_AFTER_STEPS: u64 = 300;

/// Why a lint holds, and what to look at next.
type LintReason = (String, &'static str);
/// Says whether a lint holds.
type Rule = fn(&RunFacts) -> Option<LintReason>;

/// Every lint there is: its name, and the function that says whether it holds. Shown in this order.
const LINTS: [(&str, Rule); 13] = [
    ("not-finite", not_finite),
    ("first-loss", first_loss),
    ("gradient-coverage", gradient_coverage),
    ("backward-too-short", backward_too_short),
    ("ledger-open", ledger_open),
    ("above-peak", above_peak),
    ("peak-too-low", peak_too_low),
    ("wrong-logits", wrong_logits),
    ("stuck-at-ln-vocab", stuck_at_ln_vocab),
    ("below-entropy", below_entropy),
    ("no-kernels", no_kernels),
    ("coverage-above-step", coverage_above_step),
    ("attention-composed", attention_composed),
];

/// The names of all lints.
pub fn names() -> impl Iterator<Item = &'static str> {
    LINTS.iter().map(|(name, _)| *name)
}

/// What is known about a run.
#[derive(Clone, Debug)]
pub struct RunFacts {
    config: RunConfig,
    entropy: Option<f64>,
    steps: u64,
    losses: VecDeque<f64>,
    first_loss: Option<f64>,
    phases: Option<PhaseTimes>,
    throughput: Option<Throughput>,
    gradients: Option<Gradients>,
    kernels: Option<StepProfile>,
    evidence: Option<Evidence>,
    not_finite: Option<(u64, String)>,
}

impl RunFacts {
    /// Before the first event.
    pub fn new(config: &RunConfig, entropy: Option<f64>) -> Self {
        Self {
            config: config.clone(),
            entropy,
            steps: 0,
            losses: VecDeque::new(),
            first_loss: None,
            phases: None,
            throughput: None,
            gradients: None,
            kernels: None,
            evidence: None,
            not_finite: None,
        }
    }

    /// Notes an event of this run.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::Step(step) => {
                self.steps = self.steps.max(step.step + 1);
                if self.losses.len() == RECENT {
                    self.losses.pop_front();
                }
                self.losses.push_back(step.loss.0);
                if step.step == 0 {
                    self.first_loss = Some(step.loss.0);
                }
                if step.phases.is_some() && !step.profiled {
                    self.phases = step.phases;
                }
            }
            Event::Throughput(throughput) => self.throughput = Some(throughput.clone()),
            Event::Gradients(gradients) => self.gradients = Some(gradients.clone()),
            Event::Kernels(kernels) => self.kernels = Some(kernels.clone()),
            Event::Evidence(evidence) => self.evidence = Some(evidence.clone()),
            _ => {}
        }
    }

    /// The first tensor that was not finite, and when.
    pub fn stopped_at(&mut self, step: u64, tensor: &str) {
        self.not_finite = Some((step, tensor.to_owned()));
    }

    /// Every lint that holds.
    pub fn lints(&self) -> Vec<Lint> {
        let holds = |(name, lint): &(&str, Rule)| {
            let (why, next) = lint(self)?;
            Some(Lint {
                name: (*name).to_owned(),
                why,
                next: next.to_owned(),
            })
        };
        LINTS.iter().filter_map(holds).collect()
    }

    /// Typical phases where there are some, else those of the last measured step.
    fn ledger(&self) -> Option<PhaseTimes> {
        self.throughput
            .as_ref()
            .and_then(|t| t.phases)
            .or(self.phases)
    }
}

/// A uniform prediction over V tokens loses ln V for every target; only confident wrong predictions lose more.
fn first_loss(f: &RunFacts) -> Option<LintReason> {
    let first = f.first_loss.filter(|first| first.is_finite())?;
    let uniform = f.config.ln_vocab();
    if first <= thresholds::FIRST_LOSS_HIGH * uniform {
        return None;
    }
    Some((
        format!(
            "The first loss is {first:.2}; guessing all tokens with equal probability loses only {uniform:.2}."
        ),
        "Look at the logits before the first update: how large are they, and for which token?",
    ))
}

fn not_finite(f: &RunFacts) -> Option<LintReason> {
    let (step, tensor) = f.not_finite.as_ref()?;
    Some((
        format!("{tensor} holds NaN or infinity at step {step}; the run stopped there."),
        "Look at the loss just before, and at the learning rate and the initial weights.",
    ))
}

fn gradient_coverage(f: &RunFacts) -> Option<LintReason> {
    let g = f.gradients.as_ref().filter(|g| g.with_grad < g.tensors)?;
    Some((
        format!(
            "Only {:.1} % of the parameters received a gradient: {} of {} tensors.",
            g.params_pct, g.with_grad, g.tensors
        ),
        "Find the first tensor, counted from the loss, that has none: the graph is cut between the two.",
    ))
}

/// With the loss in parts, the forward pass also computes the gradients of the head's product.
fn backward_too_short(f: &RunFacts) -> Option<LintReason> {
    if f.config.measure.sync != Sync::PerPhase {
        return None;
    }
    let (all, head) = (f.config.forward_flops(), f.config.head_flops());
    let (expected, said) = match f.config.model.loss {
        Loss::InParts => {
            let expected = 2.0 * (all - head) / (all + 2.0 * head);
            let about = show(expected, 1);
            let said = format!("without the head's gradients it should take about {about}");
            (expected, said)
        }
        _ => (
            2.0,
            "with twice the products it should take about 2".to_owned(),
        ),
    };
    let p = f.ledger().filter(|p| {
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

/// Where the host waits once, at the end of a step, phases are times of submitting and need not add up.
fn ledger_open(f: &RunFacts) -> Option<LintReason> {
    if f.config.measure.sync == Sync::PerStep {
        return None;
    }
    let p = f
        .ledger()
        .filter(|p| p.step > 0.0 && p.residual.abs() > thresholds::PHASES_MISS_STEP * p.step)?;
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

/// FLOP/s that the step times claim, where they are above the peak, and that peak.
fn claimed(f: &RunFacts, t: &Throughput) -> Option<(f64, f64)> {
    let reached = match t.flops {
        Some(flops) => flops,
        None => 3.0 * f.config.forward_flops() / (t.step_ms.median * 1e-3),
    };
    let peak = t.peak_flops.filter(|peak| reached > 1.05 * peak)?;
    Some((reached, peak))
}

/// A peak that was measured beside other programs proves nothing.
fn peak_too_low(f: &RunFacts) -> Option<LintReason> {
    let t = f.throughput.as_ref()?;
    let load = t.peak_load?;
    let (reached, peak) = claimed(f, t)?;
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

fn above_peak(f: &RunFacts) -> Option<LintReason> {
    let t = f.throughput.as_ref().filter(|t| t.peak_load.is_none())?;
    let (reached, peak) = claimed(f, t)?;
    Some((
        format!(
            "{} claimed; the most this device was measured to do is {}.",
            rate(reached, "FLOP/s"),
            rate(peak, "FLOP/s")
        ),
        "This is impossible: either the clock is read too early, or work is missing.",
    ))
}

fn wrong_logits(f: &RunFacts) -> Option<LintReason> {
    let far = f
        .evidence
        .as_ref()?
        .parity
        .filter(|p| p.0.is_nan() || p.0 > f.config.rounding())?;
    Some((
        format!(
            "The logits differ from the plain reference's by {} of the largest; rounding in {} stays below {:.0e}.",
            parity(far.0),
            f.config.train.precision,
            f.config.rounding()
        ),
        "The loss may still look right. Compare what the operation reads with what is in memory.",
    ))
}

fn stuck_at_ln_vocab(f: &RunFacts) -> Option<LintReason> {
    if f.config.train.data != Data::Markov || f.steps < STUCK_AFTER_STEPS || f.losses.len() < RECENT
    {
        return None;
    }
    let mean = f.losses.iter().sum::<f64>() / f.losses.len() as f64;
    let uniform = f.config.ln_vocab();
    if (mean - uniform).abs() > thresholds::LOSS_STUCK * uniform {
        return None;
    }
    Some((
        format!(
            "After {} steps the loss is still {mean:.3}, the {uniform:.3} of guessing, on data that can be learned.",
            f.steps
        ),
        "Check that gradients arrive and that the optimizer changes the weights.",
    ))
}

fn below_entropy(f: &RunFacts) -> Option<LintReason> {
    let entropy = f.entropy?;
    if f.losses.len() < RECENT / 2 {
        return None;
    }
    let n = f.losses.len() as f64;
    let mean = f.losses.iter().sum::<f64>() / n;
    let error = (f.losses.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt();
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

fn no_kernels(f: &RunFacts) -> Option<LintReason> {
    let k = f.kernels.as_ref().filter(|k| k.rows.is_empty())?;
    Some((
        format!(
            "Steps ran, but the profile is empty: {}.",
            k.reason.as_deref().unwrap_or("no reason given")
        ),
        "Absent is not zero: check that the profiler saw this device.",
    ))
}

/// Where no flash kernel fits a shape, the composed version computes instead.
fn attention_composed(f: &RunFacts) -> Option<LintReason> {
    let rows = &f.kernels.as_ref()?.rows;
    let mut of_attention = rows.iter().filter(|row| row.op == "attention").peekable();
    of_attention.peek()?;
    let composed = of_attention.all(|row| !row.kernel.contains("flash"));
    (f.config.model.attention == Attention::Flash && composed).then(|| {
        let model = &f.config.model;
        (
            format!(
                "model.attention is flash, but no flash kernel of this device takes heads of {} values: the composed version ran.",
                model.hidden / model.heads
            ),
            "Use heads of at most 128 values, in multiples of 4: model.heads sets their number.",
        )
    })
}

/// The longest time of all kernels of a step: more is impossible while the device's clock is constant. Under the profiler launches do not
/// follow each other as closely as replayed ones: 0.4 to 1.4 µs each on an H100.
pub fn longest_kernels_ms(config: &RunConfig, launches: u32, step_ms: f64) -> f64 {
    let apart = if config.records() { 1.2e-3 } else { 0.0 };
    1.05 * step_ms + apart * f64::from(launches)
}

fn coverage_above_step(f: &RunFacts) -> Option<LintReason> {
    // This profile was kept although it does not agree with the steps around it, because none did.
    let k = f.kernels.as_ref().filter(|k| k.discarded > 0)?;
    let step_ms = k.step_ms?;
    (k.device_ms > longest_kernels_ms(&f.config, k.launches, step_ms)).then(|| {
        let (kernels, step) = (show(k.device_ms, 2), show(step_ms, 2));
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
    use crate::{KernelRow, Step};

    #[test]
    fn phases_that_are_times_of_handing_over_are_no_fault_where_the_step_ends_at_a_wait() {
        let said = |sync, profiled| {
            let mut config = RunConfig::preset(Preset::Tiny);
            config.measure.sync = sync;
            let mut facts = RunFacts::new(&config, None);
            let phases = PhaseTimes {
                forward: 1.0,
                backward: 1.0,
                optimizer: 1.0,
                residual: 37.0,
                step: 40.0,
            };
            facts.observe(&Event::Step(Step {
                phases: Some(phases),
                profiled,
                ..Step::default()
            }));
            facts.lints().iter().any(|it| it.name == "ledger-open")
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
            let mut facts = RunFacts::new(&config, None);
            facts.observe(&Event::Kernels(StepProfile {
                rows: vec![KernelRow::default()],
                launches: 1000,
                device_ms,
                step_ms: Some(8.0),
                coverage: device_ms / 8.0,
                discarded,
                ..StepProfile::default()
            }));
            facts
                .lints()
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

    #[test]
    fn attention_that_runs_composed_is_told() {
        let said = |attention, kernels: &[&str]| {
            let mut config = RunConfig::preset(Preset::Tiny);
            config.model.attention = attention;
            let mut facts = RunFacts::new(&config, None);
            let row = |kernel: &&str| KernelRow {
                op: "attention".to_owned(),
                kernel: (*kernel).to_owned(),
                ..KernelRow::default()
            };
            facts.observe(&Event::Kernels(StepProfile {
                rows: kernels.iter().map(row).collect(),
                ..StepProfile::default()
            }));
            let lints = facts.lints().into_iter();
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
            let mut facts = RunFacts::new(&RunConfig::preset(Preset::Tiny), None);
            facts.observe(&Event::Throughput(Throughput {
                flops: Some(flops),
                peak_flops: Some(65e9),
                peak_load,
                ..Throughput::default()
            }));
            facts.lints()
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
