//! The summary of a run in a dozen lines of plain text. In place of a figure that was not measured stands the reason.

use std::fmt::Write;

use crate::pages::report::{in_words, loss_in_words};
use crate::table;
use protocol::machine;
use protocol::stats::operations;
use protocol::stats::typical::step_of;
use protocol::units::{Digits, bytes, percent, show, signed_percent};
use protocol::{ENQUEUE, Finished, GradSummary, PhaseTimes, Slot};

/// Returns the summary without a line break at its end. `with_lints` is false for an exercise about a recorded run, whose fault the lints
/// would reveal.
pub(super) fn text(f: &Finished, with_lints: bool) -> String {
    let name = match f.stage {
        0 if f.slot == Slot::B => format!("B: {}", f.variant),
        0 => f.variant.clone(),
        stage => format!("stage {stage} {}", f.variant),
    };
    let ended = match &f.ended {
        Some(why) => format!(", ended early: {why}"),
        None => String::new(),
    };
    let entropy = match f.entropy {
        Some(entropy) => format!(", entropy of the data {:.3}", Digits(entropy)),
        None => String::new(),
    };
    let [first, last] = [f.loss_first, f.loss_last].map(loss_in_words);
    let device = match &f.device {
        device if device.name.is_empty() => "an unknown device".to_owned(),
        device => format!("{} ({})", device.name, device.kind),
    };
    let loss = format!(
        "{first} first, {last} last; ln V {:.3}{entropy}",
        Digits(f.ln_vocab)
    );
    let mut rows = vec![row("loss", loss), row("speed", speed(f))];
    if let Some(phases) = &f.phases_ms {
        rows.push(row("phases", ledger(phases)));
    }
    rows.extend([row("gradients", gradients(f)), row("kernels", kernels(f))]);
    for kernel in longest_kernels(f) {
        rows.push(row("", format!("  {kernel}")));
    }
    rows.push(row("memory", memory(f)));
    if let Some(share) = f.others.filter(|share| machine::disturbs(*share)) {
        let percent = Digits(100.0 * share);
        let text =
            format!("other programs used {percent:.0} % of it: times are longer than necessary");
        rows.push(row("machine", text));
    }
    match f.lints.as_slice() {
        _ if !with_lints => rows.push(row("lints", "left out: they would reveal the fault")),
        [] => rows.push(row("lints", "none")),
        lints => rows.extend(lints.iter().map(|lint| row("lint", in_words(lint)))),
    }
    let mut text = format!("{name} on {device}: {} steps{ended}", f.steps);
    for line in table::lines(&rows, false) {
        text += &format!("\n  {line}");
    }
    text
}

fn row(name: &str, text: impl Into<String>) -> Vec<String> {
    vec![name.to_owned(), text.into()]
}

fn speed(f: &Finished) -> String {
    let clock = match f.enqueue_samples_per_s {
        Some(rate) => format!(
            "wall time; these steps were only submitted, at {} samples/s",
            show(rate, 2)
        ),
        None => f.clock.clone(),
    };
    let Some(rate) = f.samples_per_s else {
        let why = if f.clock == ENQUEUE {
            "no step waited for the device"
        } else {
            "no synchronised, unprofiled step after warm-up; run more steps"
        };
        return format!("not measured: {why}");
    };
    let step = match &f.step_ms {
        Some(ms) => {
            let [median, p25, p75, p95] = [ms.median, ms.p25, ms.p75, ms.p95].map(|ms| show(ms, 2));
            format!("; step {median} ms [{p25}, {p75}], p95 {p95}, n = {}", ms.n)
        }
        None => String::new(),
    };
    format!("{} samples/s{step} ({}, {clock})", show(rate, 2), f.state)
}

/// Returns the times of a step's phases as a sum. The part of the step that no phase accounts for may be negative.
fn ledger(p: &PhaseTimes) -> String {
    let share = if p.step > 0.0 {
        format!(
            "; unaccounted {} % of the step",
            signed_percent(100.0 * p.residual / p.step)
        )
    } else {
        String::new()
    };
    format!(
        "forward {:.2} + backward {:.2} + optimizer {:.2} + unaccounted {:+.2} = {:.2} ms{share}",
        Digits(p.forward),
        Digits(p.backward),
        Digits(p.optimizer),
        Digits(p.residual),
        Digits(p.step)
    )
}

/// Returns the result of the gradient audit in the profiled step.
fn gradients(f: &Finished) -> String {
    let grad = &f.grad;
    let unseen = GradSummary {
        tensors: grad.tensors,
        ..GradSummary::default()
    };
    // An audit may find no gradient at all, but it always comes with a measurement of memory.
    if *grad == unseen && f.memory.weights == 0 {
        return "not measured: no step was profiled".to_owned();
    }
    let GradSummary {
        with_grad, tensors, ..
    } = grad;
    let share = Digits(grad.params_pct);
    let mut text = format!("{with_grad} of {tensors} tensors, {share:.1} % of the parameters");
    if let Some(zeros) = grad.zero_pct.filter(|zeros| *zeros > 0.0) {
        text.push_str(&format!(
            "; {} % of their elements are zero",
            percent(zeros)
        ));
    }
    if let Some((factor, skipped)) = grad.loss_scale.zip(grad.skipped) {
        text.push_str(&format!(
            "; loss scale {}, {skipped} steps left out",
            show(factor, 0)
        ));
    }
    text
}

fn kernels(f: &Finished) -> String {
    let k = &f.kernels;
    if let Some(reason) = &k.reason {
        return format!("not measured: {reason}");
    }
    let mut text = format!(
        "{} launches a step, {} kinds, {} ms, {:.0} % of {}",
        show(f64::from(k.launches_per_step), 0),
        k.unique,
        show(k.device_ms, 2),
        Digits(100.0 * k.coverage),
        step_of(k.coverage)
    );
    if k.discarded > 0 {
        let _ = write!(
            text,
            "; profiles not used, because the device's clock changed: {}",
            k.discarded
        );
    }
    text
}

/// Returns the kernels with the largest share of the profiled step, one line each.
fn longest_kernels(f: &Finished) -> Vec<String> {
    let mut rows = Vec::new();
    for top in f.kernels.top.iter().take(3) {
        let (part, phase) = top.scope.split_once('/').unwrap_or((&top.scope, ""));
        let name = operations::name(&top.op, part, phase);
        let rate = match (top.gflop_per_s, top.peak_share) {
            (Some(gflop), Some(share)) => format!(
                ", {} GFLOP/s, {:.0} % of the roof",
                show(gflop, 1),
                Digits(100.0 * share)
            ),
            _ => String::new(),
        };
        rows.push(vec![
            format!("{:.2} ms", Digits(top.ms)),
            format!("{} calls", top.calls),
            format!("{name} ({}){rate}", top.kernel),
        ]);
    }
    table::lines(&rows, false)
}

fn memory(f: &Finished) -> String {
    let m = &f.memory;
    // Every model has weights.
    if m.weights == 0 {
        return "not measured".to_owned();
    }
    let [weights, gradients, moments] = [m.weights, m.gradients, m.moments].map(bytes);
    let parts = format!("weights {weights}, gradients {gradients}, moments {moments}");
    match (m.peak_bytes, &m.reason) {
        (Some(peak), _) => format!("peak {} measured; {parts}", bytes(peak)),
        (None, Some(reason)) => format!("peak not measured: {reason}; {parts}"),
        (None, None) => format!("peak not measured; {parts}"),
    }
}
