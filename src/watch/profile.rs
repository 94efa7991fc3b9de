//! The profile of a watched step, from the trace that the program wrote: its rows for the kernels panel, and the lints of the trace that hold
//! for one step of a training.

use std::path::Path;

use super::rank::WrittenProfile;
use gputrace::figures::Summary;
use gputrace::summary::summary;
use protocol::{KernelRow, Lint, StepProfile};

const NS_PER_MS: f64 = 1e6;

/// A trace that was read, as a profile of one step and its lints.
#[derive(Debug)]
pub(super) struct ReadProfile {
    pub profile: StepProfile,
    pub lints: Vec<Lint>,
}

/// The share of a step, 0 to 1, that the device may wait for copies without a lint.
const MAX_COPIES: f64 = 0.02;
/// The share of a step, 0 to 1, that the device may wait for the host without a lint.
const MAX_IDLE: f64 = 0.30;

/// Reads a trace. A file that cannot be read becomes a profile without rows and with the reason.
pub(super) fn read(path: &Path, written: &WrittenProfile, on_cpu: bool) -> ReadProfile {
    let mut profile = StepProfile {
        slot: written.slot,
        step: written.step,
        file: Some(path.display().to_string()),
        ..StepProfile::default()
    };
    let mut found_lints = Vec::new();
    match gputrace::open(path, &mut |_| {}) {
        Ok(trace) => {
            // A program may leave out the length of its step. It is then the time from the first event of the trace to the last.
            let span = trace.span(|_| true);
            let span_ms = span.map(|(from, to)| from.abs_diff(to) as f64 / NS_PER_MS);
            profile.profiled_step_ms = written.ms.or(span_ms).unwrap_or_default();
            let figures = summary(&trace);
            let step_ms = fill(&mut profile, &figures, written.usual_ms);
            let idle = 1.0 - profile.device_ms / step_ms.max(f64::MIN_POSITIVE);
            found_lints = lints(&figures, idle, on_cpu);
        }
        Err(error) => profile.reason = Some(format!("{} {}", error.what, error.next)),
    }
    ReadProfile {
        profile,
        lints: found_lints,
    }
}

/// Fills in the figures of a trace. Returns the length in milliseconds of the step that the rows are compared with: for the work of a device
/// `usual_ms`, the length of the steps around the profiled one, because the profiler slows the host down.
fn fill(profile: &mut StepProfile, figures: &Summary, usual_ms: Option<f64>) -> f64 {
    let is_host_only = figures.table.is_empty();
    let device_step_ms = if is_host_only { None } else { usual_ms };
    let step_ms = device_step_ms.unwrap_or(profile.profiled_step_ms);
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    profile.rows = rows(figures);
    profile.launches = count(figures.launches.unwrap_or(figures.kernels));
    profile.unique = count(figures.distinct_names);
    profile.device_ms = profile.rows.iter().map(|row| row.ms).sum();
    profile.step_ms = Some(step_ms);
    if step_ms > 0.0 {
        profile.coverage = profile.device_ms / step_ms;
    }
    profile.unbracketed_ms = (step_ms - profile.device_ms).max(0.0);
    profile.clock = if is_host_only { "host" } else { "device" }.to_owned();
    if profile.rows.is_empty() {
        profile.reason = Some("the trace has no kernels".to_owned());
    }
    step_ms
}

/// Returns a row for each short name, the longest first. Kernels whose full names differ may share one.
fn rows(figures: &Summary) -> Vec<KernelRow> {
    let mut rows: Vec<KernelRow> = Vec::new();
    for row in figures.rows() {
        let calls = u32::try_from(row.calls).unwrap_or(u32::MAX);
        let ms = row.total_ns as f64 / NS_PER_MS;
        let op = row.family.label();
        let with_name = rows
            .iter_mut()
            .find(|earlier| earlier.part == row.short && earlier.op == op);
        match with_name {
            Some(earlier) => {
                earlier.calls = earlier.calls.saturating_add(calls);
                earlier.ms += ms;
            }
            None => rows.push(KernelRow {
                part: row.short.clone(),
                op: op.to_owned(),
                kernel: row.short.clone(),
                layers: 1,
                calls,
                ms,
                no_work: Some("the trace has no shapes".to_owned()),
                ..KernelRow::default()
            }),
        }
    }
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    rows
}

/// Returns the lints of a profile that hold for one step of a running training. `idle` is the share of an unprofiled step, 0 to 1, in which the
/// device has no kernel.
fn lints(figures: &Summary, idle: f64, on_cpu: bool) -> Vec<Lint> {
    let waits_for_copies = figures.ledger.is_some_and(|ledger| {
        ledger.wall > 0 && ledger.copies as f64 > MAX_COPIES * ledger.wall as f64
    });
    let holds = |name: &str| match name {
        // A training on the CPU has no device.
        "no-device-activity" => !on_cpu,
        // Every training copies its batches. This is a fault only if the device waits for the copies.
        "copy-in-step" => waits_for_copies,
        // The profiler slows the host down. This is a fault only if the device waits without the profiler, too.
        "launch-bound" => idle > MAX_IDLE,
        _ => true,
    };
    let mut found: Vec<Lint> = figures
        .lints
        .iter()
        .filter(|lint| holds(lint.name))
        .map(|lint| Lint {
            name: lint.name.to_owned(),
            why: lint.why.clone(),
            next: lint.next.clone(),
        })
        .collect();
    let is_launch_bound = found.iter().any(|lint| lint.name == "launch-bound");
    if idle > MAX_IDLE && figures.kernels > 0 && !is_launch_bound {
        found.push(Lint {
            name: "host-bound".to_owned(),
            why: format!(
                "For {:.0} % of a step no kernel runs: the host has not launched the next one.",
                100.0 * idle
            ),
            next: "Look at what the host does between launches: Python, logging, tokens made on the spot. \
                   Fuse or replay many small kernels."
                .to_owned(),
        });
    }
    found
}
