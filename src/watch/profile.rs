//! The profile of a watched step, from the trace that the program wrote.

use std::path::Path;

use super::rank::WrittenProfile;
use gputrace::figures::Summary;
use gputrace::summary::summary;
use protocol::{KernelRow, Lint, StepProfile};

const NS_PER_MS: f64 = 1e6;

/// A trace that was read: its rows as a profile of ours, and what it shows to be wrong.
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
    let (slot, step) = (written.slot, written.step);
    match gputrace::open(path, &mut |_| {}) {
        Ok(trace) => {
            // What the program does not tell is read off the trace: from the first event to the last.
            let whole = trace.span(|_| true);
            let span = whole.map(|(from, to)| from.abs_diff(to) as f64 / NS_PER_MS);
            of_summary(
                &summary(&trace),
                written,
                written.ms.or(span).unwrap_or_default(),
                on_cpu,
            )
        }
        Err(error) => ReadProfile {
            profile: StepProfile {
                slot,
                step,
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
    step_ms: f64,
    on_cpu: bool,
) -> ReadProfile {
    let of_host = figures.table.is_empty();
    let rows: Vec<KernelRow> = figures
        .rows()
        .iter()
        .map(|row| KernelRow {
            part: row.short.clone(),
            op: row.family.label().to_owned(),
            kernel: row.short.clone(),
            layers: 1,
            calls: u32::try_from(row.calls).unwrap_or(u32::MAX),
            ms: row.total_ns as f64 / NS_PER_MS,
            no_work: Some("the trace does not tell the shapes".to_owned()),
            ..KernelRow::default()
        })
        .collect();
    let device_ms: f64 = rows.iter().map(|row| row.ms).sum();
    ReadProfile {
        lints: lints(figures, on_cpu),
        profile: StepProfile {
            slot: written.slot,
            step: written.step,
            launches: u32::try_from(figures.launches.unwrap_or(figures.kernels))
                .unwrap_or(u32::MAX),
            unique: u32::try_from(figures.distinct_names).unwrap_or(u32::MAX),
            device_ms,
            profiled_step_ms: step_ms,
            coverage: if step_ms > 0.0 {
                device_ms / step_ms
            } else {
                0.0
            },
            clock: if of_host { "host" } else { "device" }.to_owned(),
            reason: rows
                .is_empty()
                .then(|| "the trace has no kernels".to_owned()),
            rows,
            ..StepProfile::default()
        },
    }
}

/// The lints of a profile that mean something for one step of a training that is known to run. One on the CPU has no device, and a
/// copy is at fault where the device waits for it: every training copies its batches.
fn lints(figures: &Summary, on_cpu: bool) -> Vec<Lint> {
    let share = |ns: u64, wall: u64| ns as f64 / wall.max(1) as f64;
    let ledger = figures.ledger.filter(|it| it.wall > 0);
    let waits_for_copies = ledger.is_some_and(|it| share(it.copies, it.wall) > COPIES);
    let counts = |name: &str| match name {
        "no-device-activity" => !on_cpu,
        "copy-in-step" => waits_for_copies,
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
    let host = ledger.and_then(|it| Some(share(it.host_bound?, it.wall)));
    let is_told = found.iter().any(|lint| lint.name == "launch-bound");
    if let Some(host) = host.filter(|host| *host > HOST && !is_told) {
        found.push(Lint {
            name: "host-bound".to_owned(),
            why: format!(
                "For {:.0} % of the step no kernel runs, because the host has not launched the next one.",
                100.0 * host
            ),
            next: "Look at what the host does between launches: Python, logging, tokens made on the spot. Fuse or replay many small kernels."
                .to_owned(),
        });
    }
    found
}
