//! The profile of a watched step, from the trace that the program wrote.

use std::path::Path;

use gputrace::figures::Summary;
use gputrace::summary::summary;
use protocol::{KernelRow, Lint, Slot, StepProfile};

const NS_PER_MS: f64 = 1e6;

/// A trace that was read: its rows as a profile of ours, and what it shows to be wrong.
#[derive(Debug)]
pub(super) struct ReadProfile {
    pub profile: StepProfile,
    pub lints: Vec<Lint>,
}

/// Reads a trace. A file that cannot be read becomes a profile without rows that says why.
pub(super) fn read(path: &Path, slot: Slot, step: u64, ms: Option<f64>) -> ReadProfile {
    match gputrace::open(path, &mut |_| {}) {
        Ok(trace) => {
            // What the program does not tell is read off the trace: from the first event to the last.
            let whole = trace.span(|_| true);
            let span = whole.map(|(from, to)| from.abs_diff(to) as f64 / NS_PER_MS);
            of_summary(
                &summary(&trace),
                slot,
                step,
                ms.or(span).unwrap_or_default(),
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

fn of_summary(figures: &Summary, slot: Slot, step: u64, step_ms: f64) -> ReadProfile {
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
    let lints = figures.lints.iter().map(|lint| Lint {
        name: lint.name.to_owned(),
        why: lint.why.clone(),
        next: lint.next.clone(),
    });
    ReadProfile {
        lints: lints.collect(),
        profile: StepProfile {
            slot,
            step,
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
