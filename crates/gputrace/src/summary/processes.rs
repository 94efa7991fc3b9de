//! Figures of a trace of several processes: sums over them, the processes side by side, and who arrives last at collectives.

use std::collections::{BTreeMap, HashMap};

use super::share;
use crate::figures::{
    Arrivals, LastArrival, Ledger, PhaseOfRanks, PhaseTotals, Summary, TraceStep, median,
};
use crate::model::{SliceKind, Trace, sum};

/// Makes the figures of a trace the sums over those of its processes, where each process has its own steps, waits and devices.
pub(super) fn sums(trace: &Trace, it: &mut Summary, mut ranks: Vec<Summary>) {
    let (mut unknown, mut unknown_copies) = (false, false);
    for slice in trace.slices.iter().filter(|slice| slice.kind.on_device()) {
        if trace.lanes[slice.lane as usize].process.is_none() {
            match slice.kind {
                SliceKind::Kernel | SliceKind::Graph => unknown = true,
                _ => unknown_copies = true,
            }
        }
    }
    let mut steps: Vec<TraceStep> = Vec::new();
    for rank in &mut ranks {
        for step in rank.steps.iter_mut().flatten() {
            if unknown {
                (step.kernels_by_start, step.busy_ns) = (None, None);
            }
            if unknown_copies {
                step.host_device_copies = None;
            }
            steps.push(step.clone());
        }
        if unknown {
            (rank.ledger, rank.busy_ns, rank.idle_share) = (None, None, None);
        }
    }
    steps.sort_by_key(|step| step.span);
    let mut executed: HashMap<&str, f64> = HashMap::new();
    let mut named: BTreeMap<&str, u32> = BTreeMap::new();
    for rank in &ranks {
        let steps = rank.steps.as_ref().map_or(0, Vec::len) as f64;
        for row in &rank.table {
            *executed.entry(&row.name).or_default() += row.a_step.unwrap_or(0.0) * steps;
        }
        for label in rank.devices.iter().flat_map(BTreeMap::keys) {
            *named.entry(label).or_default() += 1;
        }
    }
    for row in &mut it.table {
        let executed = executed.get(row.name.as_str()).copied().unwrap_or(0.0);
        row.a_step = (!steps.is_empty()).then(|| executed / steps.len() as f64);
    }
    let shared = named.into_iter().find(|(_, processes)| *processes > 1);
    it.shared_device = shared.map(|(label, _)| label.to_owned());
    it.steps = (!steps.is_empty()).then_some(steps);
    it.step_ns = trace.unprofiled_step.or(it.median_step());
    let phases = ranks.iter().map(|rank| rank.phases);
    it.phases = phases.fold(PhaseTotals::default(), PhaseTotals::add);
    it.phases_of_ranks = phases_of_ranks(&ranks);
    it.arrivals = arrivals(trace);
    if !unknown {
        of_devices(it, &ranks);
    }
    it.ranks = ranks;
}

/// Sums of what belongs to devices, where the process of all work is known.
fn of_devices(it: &mut Summary, ranks: &[Summary]) {
    type Get = fn(&Summary) -> Option<u64>;
    let total = |get: Get| sum(ranks.iter().filter_map(get));
    let devices = |rank: &Summary| rank.devices.as_ref().map_or(0, BTreeMap::len) as u64;
    let on_devices = |get: Get| {
        let spans = ranks
            .iter()
            .map(|rank| get(rank).unwrap_or(0).saturating_mul(devices(rank)));
        sum(spans)
    };
    let span = on_devices(|rank| rank.device_span_ns);
    let wall = on_devices(|rank| rank.trace_span_ns);
    let busy = total(|rank| rank.busy_ns);
    let idle = (span > 0).then(|| (1.0 - busy as f64 / span as f64).max(0.0));
    if it.idle_with_graphs == it.idle_share {
        it.idle_with_graphs = idle;
    }
    (it.busy_ns, it.idle_share) = (Some(busy), idle);
    it.device_span_ns = it.device_span_ns.map(|_| total(|rank| rank.device_span_ns));
    it.communication_exposed_ns = Some(total(|rank| rank.communication_exposed_ns));
    it.communication_hidden_ns = Some(total(|rank| rank.communication_hidden_ns));
    for row in &mut it.table {
        row.share_of_wall = Some(share(row.total_ns, wall));
    }
    let ledgers = ranks.iter().filter_map(|rank| rank.ledger);
    it.ledger = it.ledger.map(|_| Ledger::sum(ledgers));
}

/// Phases of a step over the processes of a trace.
fn phases_of_ranks(ranks: &[Summary]) -> Vec<PhaseOfRanks> {
    type Get = fn(&Summary) -> Option<u64>;
    let phases: [(&'static str, Get); 9] = [
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
    let row = |(name, get): (&'static str, Get)| {
        let of = |rank: &Summary| {
            // The step is that of the median already; the other times are sums.
            let steps = rank.steps.as_ref().map_or(1, Vec::len).max(1) as u64;
            Some(get(rank)? / if name == "step" { 1 } else { steps })
        };
        let times = ranks.iter().filter_map(|rank| Some((of(rank)?, rank)));
        let mut times: Vec<(u64, &Summary)> = times.collect();
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

/// Who arrives last at collectives that several processes number alike. A kernel of a collective waits for the last process, so the
/// shortest is the last one's; clocks of several hosts are not compared.
fn arrivals(trace: &Trace) -> Option<Arrivals> {
    let mut collectives: BTreeMap<(u32, u64), BTreeMap<u32, u64>> = BTreeMap::new();
    for slice in trace.of(SliceKind::Kernel) {
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
    let shared = collectives.values().filter(|of| of.len() > 1);
    let mut last: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut count = 0;
    for of in shared {
        count += 1;
        let mut lengths: Vec<(u64, u32)> = of.iter().map(|(process, ns)| (*ns, *process)).collect();
        lengths.sort_unstable();
        let (shortest, process) = lengths[0];
        let [next, longest] = [lengths[1].0, lengths[lengths.len() - 1].0];
        // As long as the next one's, as far as can be told.
        if next.saturating_sub(shortest) > next / 10 {
            let known = last.entry(process).or_default();
            *known = (known.0 + 1, known.1.saturating_add(longest - shortest));
        }
    }
    let mut last: Vec<LastArrival> = last
        .into_iter()
        .map(|(process, (collectives, awaited_ns))| LastArrival {
            process: trace.processes[process as usize].label.clone(),
            collectives,
            awaited_ns,
        })
        .collect();
    last.sort_by_key(|it| std::cmp::Reverse((it.collectives, it.awaited_ns)));
    (count > 0).then_some(Arrivals {
        collectives: count,
        last,
    })
}
