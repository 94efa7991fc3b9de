//! The summary of a run in a dozen lines of plain text. What was not measured says why.

use std::fmt::Write;

use crate::profile::operations;
use crate::protocol::{Finished, Num, Phases};
use crate::units::{bytes, show};

/// The summary, without a line break at its end.
pub fn text(f: &Finished) -> String {
    let mut lines = figures(f);
    if f.lints.is_empty() {
        lines.push(row("lints", "none"));
    }
    for lint in &f.lints {
        let why = lint.why.trim_end_matches('.');
        lines.push(row(
            "lint",
            &format!("{}: {why}. Next: {}", lint.name, lint.next),
        ));
    }
    lines.join("\n")
}

/// The same of a recording whose lints are left out, because they would name its fault.
pub fn without_lints(f: &Finished) -> String {
    let mut lines = figures(f);
    lines.push(row("lints", "left out: they would name the fault"));
    lines.join("\n")
}

fn figures(f: &Finished) -> Vec<String> {
    let mut lines = Vec::new();
    let what = if f.stage == 0 {
        f.variant.clone()
    } else {
        format!("stage {} {}", f.stage, f.variant)
    };
    let ended = f
        .ended
        .as_ref()
        .map(|why| format!(", ended early: {why}"))
        .unwrap_or_default();
    lines.push(format!(
        "{what} on {} ({}): {} steps{ended}",
        f.device.name, f.device.kind, f.steps
    ));
    let entropy = f
        .entropy
        .map(|h| format!(", entropy of the data {h:.3}"))
        .unwrap_or_default();
    lines.push(row(
        "loss",
        &format!(
            "{} first, {} last; ln V {:.3}{entropy}",
            loss(f.loss_first),
            loss(f.loss_last),
            f.ln_vocab
        ),
    ));
    lines.push(row("speed", &speed(f)));
    if let Some(phases) = &f.phases_ms {
        lines.push(row("phases", &ledger(phases)));
    }
    lines.push(row(
        "gradients",
        &format!(
            "{} of {} tensors, {:.1} % of the parameters",
            f.grad.with_grad, f.grad.tensors, f.grad.params_pct
        ),
    ));
    lines.push(row("kernels", &kernels(f)));
    lines.push(row("memory", &memory(f)));
    lines
}

fn row(name: &str, text: &str) -> String {
    format!("  {name:<10}{text}")
}

/// A loss with as many digits as it needs; NaN as NaN.
pub fn loss(x: Num) -> String {
    if x.0.is_finite() {
        format!("{:.4}", x.0)
    } else {
        x.to_string()
    }
}

fn speed(f: &Finished) -> String {
    let enqueued = f.clock == "enqueue";
    let (claims, clock) = if enqueued {
        ("claims ", "enqueue: nothing waited for the device")
    } else {
        ("", f.clock.as_str())
    };
    match (f.samples_per_s, &f.step_ms) {
        (Some(samples), Some(ms)) => format!(
            "{claims}{} samples/s; step {} ms [{}, {}], p95 {}, n = {} ({}, {clock})",
            show(samples, 2),
            show(ms.median, 2),
            show(ms.p25, 2),
            show(ms.p75, 2),
            show(ms.p95, 2),
            ms.n,
            f.state
        ),
        (Some(samples), None) => format!(
            "{claims}{} samples/s ({}, {clock})",
            show(samples, 2),
            f.state
        ),
        _ if enqueued => "not measured: no step waited for the device".to_owned(),
        _ => "not measured: no synchronised, unprofiled step after warm-up; run more steps"
            .to_owned(),
    }
}

/// Forward, backward, optimizer and the signed rest.
pub fn ledger(p: &Phases) -> String {
    let share = if p.step > 0.0 {
        format!(" = {:+.1} % of the step", 100.0 * p.residual / p.step)
    } else {
        String::new()
    };
    format!(
        "forward {:.2} + backward {:.2} + optimizer {:.2} + residual {:+.2} = {:.2} ms; residual{share}",
        p.forward, p.backward, p.optimizer, p.residual, p.step
    )
    .replace("; residual =", "; residual")
}

fn kernels(f: &Finished) -> String {
    let k = &f.kernels;
    if let Some(reason) = &k.reason {
        return format!("not measured: {reason}");
    }
    let mut text = format!(
        "{} launches a step, {} kinds, {} ms, {:.0} % of the step",
        show(f64::from(k.launches_per_step), 0),
        k.unique,
        show(k.device_ms, 2),
        100.0 * k.coverage
    );
    for top in k.top.iter().take(3) {
        // Writing to a String cannot fail.
        let (part, phase) = top.scope.split_once('/').unwrap_or((&top.scope, ""));
        let name = operations::name(&top.op, part, phase);
        let _ = write!(
            text,
            "\n{:14}{:8.2} ms  {:>4} calls  {name} ({})",
            "", top.ms, top.calls, top.kernel
        );
        if let (Some(gflop), Some(share)) = (top.gflop_per_s, top.roof_share) {
            let _ = write!(
                text,
                ", {} GFLOP/s, {:.0} % of the roof",
                show(gflop, 1),
                100.0 * share
            );
        }
    }
    text
}

fn memory(f: &Finished) -> String {
    let m = &f.memory;
    let parts = format!(
        "weights {}, gradients {}, moments {}",
        bytes(m.weights),
        bytes(m.gradients),
        bytes(m.moments)
    );
    match (m.peak_bytes, &m.reason) {
        (Some(peak), _) => format!("peak {}; {parts}", bytes(peak)),
        (None, Some(reason)) => format!("peak not measured: {reason}; {parts}"),
        (None, None) => format!("peak not measured; {parts}"),
    }
}
