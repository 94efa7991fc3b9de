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
    let file = Some(path.display().to_string());
    match gputrace::open(path, &mut |_| {}) {
        Ok(trace) => {
            // A program may leave the length of its step out. The trace has it: from its first event to its last.
            let whole = trace.span(|_| true);
            let span = whole.map(|(from, to)| from.abs_diff(to) as f64 / NS_PER_MS);
            let length_ms = written.ms.or(span).unwrap_or_default();
            let mut read = of_summary(&summary(&trace), written, length_ms, on_cpu);
            read.profile.file = file;
            read
        }
        Err(error) => ReadProfile {
            profile: StepProfile {
                slot: written.slot,
                step: written.step,
                file,
                reason: Some(format!("{} {}", error.what, error.next)),
                ..StepProfile::default()
            },
            lints: Vec::new(),
        },
    }
}

fn of_summary(
    figures: &Summary,
    written: &WrittenProfile,
    profiled_ms: f64,
    on_cpu: bool,
) -> ReadProfile {
    let rows = rows(figures);
    let device_ms: f64 = rows.iter().map(|row| row.ms).sum();
    let of_host = figures.table.is_empty();
    // The profiler slows the host down: a device is compared with the steps around the profiled one.
    let step_ms = match of_host {
        true => profiled_ms,
        false => written.usual_ms.unwrap_or(profiled_ms),
    };
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    ReadProfile {
        lints: lints(
            figures,
            1.0 - device_ms / step_ms.max(f64::MIN_POSITIVE),
            on_cpu,
        ),
        profile: StepProfile {
            slot: written.slot,
            step: written.step,
            launches: count(figures.launches.unwrap_or(figures.kernels)),
            unique: count(figures.distinct_names),
            device_ms,
            profiled_step_ms: profiled_ms,
            coverage: if step_ms > 0.0 {
                device_ms / step_ms
            } else {
                0.0
            },
            step_ms: Some(step_ms),
            unbracketed_ms: (step_ms - device_ms).max(0.0),
            clock: if of_host { "host" } else { "device" }.to_owned(),
            reason: rows
                .is_empty()
                .then(|| "the trace has no kernels".to_owned()),
            rows,
            ..StepProfile::default()
        },
    }
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
