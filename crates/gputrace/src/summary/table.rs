//! The tables of a trace: one row for each kernel, or for each operation of the host.

use std::collections::{BTreeMap, HashMap};

use super::intervals::{covers, union};
use super::{Scope, share, sorted};
use crate::figures::{KernelTotals, Summary, median};
use crate::model::{KernelStat, NameId, Slice, SliceKind, Trace, sum};
use crate::names;

/// One execution of a kernel or an operation.
pub(super) struct Execution {
    name: NameId,
    /// The time in nanoseconds that decides to which step the execution belongs.
    time: i64,
    /// The length in nanoseconds.
    ns: u64,
}

/// Returns the executions of kernels. The launch decides the step, or the start if the launch is not known.
pub(super) fn executions_of_kernels(trace: &Trace, kernels: &[&Slice]) -> Vec<Execution> {
    kernels
        .iter()
        .map(|kernel| Execution {
            name: kernel.name,
            time: trace.linked(kernel).unwrap_or(kernel).start,
            ns: kernel.ns(),
        })
        .collect()
}

/// Returns the executions of operations of the host. Their lengths exclude nested operations.
pub(super) fn executions_of_operations(scope: &Scope<'_>) -> Vec<Execution> {
    let mut all: Vec<Execution> = Vec::new();
    // For each lane, the ends and numbers of open operations.
    let mut open: Vec<Vec<(i64, usize)>> = vec![Vec::new(); scope.trace.lanes.len()];
    for slice in scope.slices_of(SliceKind::Op) {
        let lane = &mut open[slice.lane as usize];
        while lane.last().is_some_and(|outer| outer.0 <= slice.start) {
            lane.pop();
        }
        if let Some(&(_, outer)) = lane.last() {
            all[outer].ns = all[outer].ns.saturating_sub(slice.ns());
        }
        lane.push((slice.end, all.len()));
        all.push(Execution {
            name: slice.name,
            time: slice.start,
            ns: slice.ns(),
        });
    }
    all
}

/// Returns a row for each name that was executed, longest total first. Steps, devices and the span come from `summary`.
pub(super) fn table_of_executions(
    trace: &Trace,
    executions: &[Execution],
    summary: &Summary,
) -> Vec<KernelTotals> {
    let mut lengths_by_name: HashMap<NameId, Vec<u64>> = HashMap::new();
    let mut count_in_steps: HashMap<NameId, u64> = HashMap::new();
    let steps = summary.steps.as_deref().unwrap_or_default();
    let windows = union(steps.iter().map(|step| step.span));
    for execution in executions {
        let lengths = lengths_by_name.entry(execution.name).or_default();
        lengths.push(execution.ns);
        if covers(&windows, execution.time) {
            *count_in_steps.entry(execution.name).or_default() += 1;
        }
    }
    let stats: Vec<KernelStat> = lengths_by_name
        .into_iter()
        .map(|(name, lengths)| stat_of_lengths(name, sorted(lengths.into_iter())))
        .collect();
    let devices = summary.devices.as_ref().map_or(1, BTreeMap::len).max(1) as u64;
    let wall = summary
        .trace_span_ns
        .map(|span| span.saturating_mul(devices));
    table_of_stats(trace, &stats, wall, |row| {
        let inside = count_in_steps.get(&row.name).copied().unwrap_or(0);
        (!steps.is_empty()).then(|| inside as f64 / steps.len() as f64)
    })
}

/// Sums up the executions of one name, from their sorted lengths in nanoseconds.
fn stat_of_lengths(name: NameId, lengths: Vec<u64>) -> KernelStat {
    let calls = lengths.len() as u64;
    let total = sum(lengths.iter().copied());
    let mean = total as f64 / calls as f64;
    let squares: f64 = lengths.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum();
    KernelStat {
        name,
        calls,
        total,
        median: median(&lengths),
        min: lengths.first().copied(),
        max: lengths.last().copied(),
        std_dev: (calls > 1).then(|| (squares / (calls - 1) as f64).sqrt()),
    }
}

/// Returns a row for each of these sums, longest total first. `wall` is the time of all devices in nanoseconds, and `per_step` returns
/// the executions per step of a row.
pub(super) fn table_of_stats(
    trace: &Trace,
    stats: &[KernelStat],
    wall: Option<u64>,
    per_step: impl Fn(&KernelStat) -> Option<f64>,
) -> Vec<KernelTotals> {
    let all = sum(stats.iter().map(|row| row.total));
    let mut rows: Vec<KernelTotals> = stats
        .iter()
        .map(|row| {
            let name = trace.name(row.name);
            KernelTotals {
                name: name.to_owned(),
                short: names::short(name, names::LONGEST),
                family: trace.family(row.name),
                calls: row.calls,
                total_ns: row.total,
                median_ns: row.median,
                min_ns: row.min,
                max_ns: row.max,
                std_dev_ns: row.std_dev,
                share_of_kernels: share(row.total, all),
                share_of_wall: wall.map(|wall| share(row.total, wall)),
                a_step: per_step(row),
            }
        })
        .collect();
    rows.sort_by(|a, b| (b.total_ns, &a.name).cmp(&(a.total_ns, &b.name)));
    rows
}
