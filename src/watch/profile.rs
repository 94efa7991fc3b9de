//! The profile of a watched step, from the trace that the program wrote.

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

/// Share of a step, without a kernel, above which what the device waits for is reported: copies, or the host's next launch.
const COPIES: f64 = 0.02;
const HOST: f64 = 0.30;

/// Reads a trace. A file that cannot be read becomes a profile without rows that says why.
pub(super) fn read(path: &Path, written: &WrittenProfile, on_cpu: bool) -> ReadProfile {
    let mut profile = StepProfile {
        slot: written.slot,
        step: written.step,
        file: Some(path.display().to_string()),
        ..StepProfile::default()
    };
    let mut found = Vec::new();
    match gputrace::open(path, &mut |_| {}) {
        Ok(trace) => {
            // A program may leave the length of its step out. The trace has it: from its first event to its last.
            let whole = trace.span(|_| true);
            let span_ms = whole.map(|(from, to)| from.abs_diff(to) as f64 / NS_PER_MS);
            profile.profiled_step_ms = written.ms.or(span_ms).unwrap_or_default();
            let figures = summary(&trace);
            let step_ms = fill(&mut profile, &figures, written.usual_ms);
            let idle = 1.0 - profile.device_ms / step_ms.max(f64::MIN_POSITIVE);
            found = lints(&figures, idle, on_cpu);
        }
        Err(error) => profile.reason = Some(format!("{} {}", error.what, error.next)),
    }
    ReadProfile {
        profile,
        lints: found,
    }
}

/// Fills in the figures of a trace. `usual_ms` is the length of the steps around the profiled one: the profiler slows the host down, so
/// that the work of a device is compared with them. Returns the length in milliseconds of the step that the rows are compared with.
fn fill(profile: &mut StepProfile, figures: &Summary, usual_ms: Option<f64>) -> f64 {
    let of_host = figures.table.is_empty();
    let compared_ms = if of_host { None } else { usual_ms };
    let step_ms = compared_ms.unwrap_or(profile.profiled_step_ms);
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
    profile.clock = if of_host { "host" } else { "device" }.to_owned();
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
        let known = rows
            .iter_mut()
            .find(|known| known.part == row.short && known.op == op);
        match known {
            Some(known) => {
                known.calls = known.calls.saturating_add(calls);
                known.ms += ms;
            }
            None => rows.push(KernelRow {
                part: row.short.clone(),
                op: op.to_owned(),
                kernel: row.short.clone(),
                layers: 1,
                calls,
                ms,
                no_work: Some("the trace does not tell the shapes".to_owned()),
                ..KernelRow::default()
            }),
        }
    }
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    rows
}

/// Returns the lints of a profile that hold for one step of a running training. `idle` is the share of an unprofiled step, 0 to 1, in
/// which the device has no kernel. A training on the CPU has no device. Every training copies its batches, so a copy is at fault only
/// where the device waits for it. The profiler slows the host down, so launches are at fault only where the device waits without it, too.
fn lints(figures: &Summary, idle: f64, on_cpu: bool) -> Vec<Lint> {
    let waits_for_copies = figures.ledger.is_some_and(|ledger| {
        ledger.wall > 0 && ledger.copies as f64 > COPIES * ledger.wall as f64
    });
    let counts = |name: &str| match name {
        "no-device-activity" => !on_cpu,
        "copy-in-step" => waits_for_copies,
        "launch-bound" => idle > HOST,
        _ => true,
    };
    let told = figures.lints.iter().filter(|lint| counts(lint.name));
    let mut found: Vec<Lint> = told
        .map(|lint| Lint {
            name: lint.name.to_owned(),
            why: lint.why.clone(),
            next: lint.next.clone(),
        })
        .collect();
    let is_told = found.iter().any(|lint| lint.name == "launch-bound");
    if idle > HOST && figures.kernels > 0 && !is_told {
        found.push(Lint {
            name: "host-bound".to_owned(),
            why: format!(
                "For {:.0} % of a step no kernel runs: the host has not launched the next one.",
                100.0 * idle
            ),
            next: "Look at what the host does between launches: Python, logging, tokens made on the spot. Fuse or replay many small kernels."
                .to_owned(),
        });
    }
    found
}
