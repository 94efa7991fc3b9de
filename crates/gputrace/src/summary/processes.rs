//! Figures of a trace of several processes: sums over them, comparisons of them, and the processes that arrive last at collectives.

use std::collections::{BTreeMap, HashMap};

use super::share;
use crate::figures::{
    Arrivals, LastArrival, Ledger, PhaseOfRanks, PhaseTotals, Summary, TraceStep, median,
};
use crate::model::{SliceKind, Trace, sum};

/// Replaces the figures of a trace by sums over its processes, each with its own steps, waits and devices. Figures that need the process
/// of all work become `None` if the process of some work is not known.
pub(super) fn sum_over_processes(trace: &Trace, summary: &mut Summary, mut ranks: Vec<Summary>) {
    let mut has_unowned_kernels = false;
    let mut has_unowned_copies = false;
    for slice in trace.slices.iter().filter(|slice| slice.kind.on_device()) {
        if trace.lanes[slice.lane as usize].process.is_none() {
            match slice.kind {
                SliceKind::Kernel | SliceKind::Graph => has_unowned_kernels = true,
                _ => has_unowned_copies = true,
            }
        }
    }
    let mut steps: Vec<TraceStep> = Vec::new();
    for rank in &mut ranks {
        for step in rank.steps.iter_mut().flatten() {
            if has_unowned_kernels {
                step.kernels_by_start = None;
                step.busy_ns = None;
            }
            if has_unowned_copies {
                step.host_device_copies = None;
            }
            steps.push(step.clone());
        }
        if has_unowned_kernels {
            rank.ledger = None;
            rank.busy_ns = None;
            rank.idle_share = None;
        }
    }
    steps.sort_by_key(|step| step.span);
    let mut executed: HashMap<&str, f64> = HashMap::new();
    let mut processes_of_device: BTreeMap<&str, u32> = BTreeMap::new();
    for rank in &ranks {
        let steps = rank.steps.as_ref().map_or(0, Vec::len) as f64;
        for row in &rank.table {
            *executed.entry(&row.name).or_default() += row.a_step.unwrap_or(0.0) * steps;
        }
        for label in rank.devices.iter().flat_map(BTreeMap::keys) {
            *processes_of_device.entry(label).or_default() += 1;
        }
    }
    for row in &mut summary.table {
        let executions = executed.get(row.name.as_str()).copied().unwrap_or(0.0);
        row.a_step = (!steps.is_empty()).then(|| executions / steps.len() as f64);
    }
    let shared = processes_of_device
        .into_iter()
        .find(|(_, processes)| *processes > 1);
    summary.shared_device = shared.map(|(label, _)| label.to_owned());
    summary.steps = (!steps.is_empty()).then_some(steps);
    summary.step_ns = trace.unprofiled_step.or(summary.median_step());
    let phases = ranks.iter().map(|rank| rank.phases);
    summary.phases = phases.fold(PhaseTotals::default(), PhaseTotals::add);
    summary.phases_of_ranks = phases_of_ranks(&ranks);
    summary.arrivals = arrivals(trace);
    if !has_unowned_kernels {
        sum_over_devices(summary, &ranks);
    }
    summary.ranks = ranks;
}

/// Reads a time of a process in nanoseconds; `None` if the file does not contain it.
type TimeOfRank = fn(&Summary) -> Option<u64>;

/// Replaces the figures of devices by sums over the processes. This needs the process of all work.
fn sum_over_devices(summary: &mut Summary, ranks: &[Summary]) {
    let total = |time: TimeOfRank| sum(ranks.iter().filter_map(time));
    let devices = |rank: &Summary| rank.devices.as_ref().map_or(0, BTreeMap::len) as u64;
    let total_on_devices = |time: TimeOfRank| {
        let times = ranks
            .iter()
            .map(|rank| time(rank).unwrap_or(0).saturating_mul(devices(rank)));
        sum(times)
    };
    let span = total_on_devices(|rank| rank.device_span_ns);
    let wall = total_on_devices(|rank| rank.trace_span_ns);
    let busy = total(|rank| rank.busy_ns);
    let idle = (span > 0).then(|| (1.0 - busy as f64 / span as f64).max(0.0));
    if summary.idle_with_graphs == summary.idle_share {
        summary.idle_with_graphs = idle;
    }
    summary.busy_ns = Some(busy);
    summary.idle_share = idle;
    if summary.device_span_ns.is_some() {
        summary.device_span_ns = Some(total(|rank| rank.device_span_ns));
    }
    summary.communication_exposed_ns = Some(total(|rank| rank.communication_exposed_ns));
    summary.communication_hidden_ns = Some(total(|rank| rank.communication_hidden_ns));
    for row in &mut summary.table {
        row.share_of_wall = Some(share(row.total_ns, wall));
    }
    if summary.ledger.is_some() {
        let ledgers = ranks.iter().filter_map(|rank| rank.ledger);
        summary.ledger = Some(Ledger::sum(ledgers));
    }
}

/// Compares the processes of a trace, phase by phase.
fn phases_of_ranks(ranks: &[Summary]) -> Vec<PhaseOfRanks> {
    let phases: [(&'static str, TimeOfRank); 9] = [
        ("step", Summary::median_step),
        ("forward kernels", |rank| rank.phases.forward),
        ("backward kernels", |rank| rank.phases.backward),
        ("optimizer kernels", |rank| rank.phases.optimizer),
        ("kernels but collectives", |rank| {
            Some(rank.kernel_ns.saturating_sub(rank.communication_ns))
        }),
        ("collectives", |rank| Some(rank.communication_ns)),
        ("collectives alone", |rank| rank.communication_exposed_ns),
        ("waits of the host", |rank| rank.ledger?.syncs),
        ("host-bound", |rank| rank.ledger?.host_bound),
    ];
    let row = |(name, time): (&'static str, TimeOfRank)| {
        let time_per_step = |rank: &Summary| {
            // The time of a step is a median already; the other times are sums over the steps.
            let steps = rank.steps.as_ref().map_or(1, Vec::len).max(1) as u64;
            Some(time(rank)? / if name == "step" { 1 } else { steps })
        };
        let mut times: Vec<(u64, &Summary)> = ranks
            .iter()
            .filter_map(|rank| Some((time_per_step(rank)?, rank)))
            .collect();
        times.sort_by_key(|(ns, _)| *ns);
        let lengths: Vec<u64> = times.iter().map(|(ns, _)| *ns).collect();
        let (worst_ns, rank) = times.last().filter(|(ns, _)| *ns > 0)?;
        Some(PhaseOfRanks {
            name,
            median_ns: median(&lengths)?,
            worst_ns: *worst_ns,
            worst: rank.process.clone().unwrap_or_default(),
            worst_rank: rank.rank,
        })
    };
    phases.into_iter().filter_map(row).collect()
}

/// Returns the processes that arrive last at collectives with equal numbers in several processes; `None` if there are no such collectives. A kernel of a
/// collective waits for the last process, so the process with the shortest kernel came last. Clocks of several hosts are not compared.
fn arrivals(trace: &Trace) -> Option<Arrivals> {
    // For each collective, the kernel time of each process in nanoseconds.
    let mut collectives: BTreeMap<(u32, u64), BTreeMap<u32, u64>> = BTreeMap::new();
    for slice in trace.slices_of(SliceKind::Kernel) {
        let process = trace.lanes[slice.lane as usize].process;
        if let (Some(id), Some(process)) = (trace.detail(slice).collective, process) {
            let ns = collectives
                .entry(id)
                .or_default()
                .entry(process)
                .or_default();
            *ns = ns.saturating_add(slice.ns());
        }
    }
    let mut late: BTreeMap<u32, LastArrival> = BTreeMap::new();
    let mut count = 0;
    for times in collectives.values().filter(|times| times.len() > 1) {
        count += 1;
        let mut lengths: Vec<(u64, u32)> =
            times.iter().map(|(process, ns)| (*ns, *process)).collect();
        lengths.sort_unstable();
        let (shortest, process) = lengths[0];
        let next = lengths[1].0;
        let longest = lengths[lengths.len() - 1].0;
        // Within a tenth, the two shortest kernels do not tell which process came last.
        if next.saturating_sub(shortest) > next / 10 {
            let arrival = late.entry(process).or_default();
            arrival.collectives += 1;
            arrival.awaited_ns = arrival.awaited_ns.saturating_add(longest - shortest);
        }
    }
    let mut last: Vec<LastArrival> = Vec::new();
    for (process, arrival) in late {
        let label = trace.processes[process as usize].label.clone();
        last.push(LastArrival {
            process: label,
            ..arrival
        });
    }
    last.sort_by_key(|arrival| std::cmp::Reverse((arrival.collectives, arrival.awaited_ns)));
    (count > 0).then_some(Arrivals {
        collectives: count,
        last,
    })
}
