//! Computes the figures of a trace.

use std::collections::{BTreeMap, HashMap};

use super::figures::{
    Amount, Copies, DeviceFigures, KernelTotals, Ledger, PhaseTotals, Summary, Top, TraceStep,
    UnreadRows, median,
};
use super::lints;
use super::model::{Direction, KernelStat, NONE, Slice, SliceKind, Trace, sum};
use super::names;

/// Disjoint intervals in order.
type Union = Vec<(i64, i64)>;

/// The union of intervals that are sorted by their start.
fn union(spans: impl Iterator<Item = (i64, i64)>) -> Union {
    let mut union: Union = Vec::new();
    for (start, end) in spans {
        match union.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => union.push((start, end)),
        }
    }
    union
}

/// The intervals of a union inside a window, clipped to it.
fn within(union: &Union, (from, to): (i64, i64)) -> impl Iterator<Item = (i64, i64)> {
    let first = union.partition_point(|span| span.1 <= from);
    let cut = move |span: &(i64, i64)| (span.0.max(from), span.1.min(to));
    union[first..]
        .iter()
        .take_while(move |span| span.0 < to)
        .map(cut)
}

/// Whether a time is within one of the intervals.
fn covers(union: &Union, at: i64) -> bool {
    let next = union.partition_point(|span| span.1 <= at);
    union.get(next).is_some_and(|span| span.0 <= at)
}

fn length(spans: impl Iterator<Item = (i64, i64)>) -> u64 {
    sum(spans.map(|(start, end)| end.abs_diff(start)))
}

fn sorted(lengths: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut lengths: Vec<u64> = lengths.collect();
    lengths.sort_unstable();
    lengths
}

/// The work of a device.
#[derive(Default)]
struct DeviceWork {
    figures: DeviceFigures,
    kernels: Union,
    copies: Union,
    /// For each kernel, its start and the time of its launch.
    launched: Vec<(i64, i64)>,
}

/// All figures of a trace.
pub fn summary(trace: &Trace) -> Summary {
    let counted = trace.counted();
    let mut it = match &counted.stats {
        Some(_) => of_sums(counted),
        None => of_slices(counted),
    };
    if trace.counted.is_some() {
        it.trace_span_ns = span_ns(trace, |_| true);
    }
    it.distinct_names = it.table.len() as u64;
    let top = it.table.iter().take(3).map(|row| Top {
        name: row.name.clone(),
        calls: row.calls,
        total_ns: row.total_ns,
    });
    it.top = top.collect();
    it.lints = lints::lints(counted, &it);
    it
}

/// Time from the first start to the last end of slices of some kinds.
fn span_ns(trace: &Trace, kinds: fn(SliceKind) -> bool) -> Option<u64> {
    let (start, end) = trace.span(kinds)?;
    Some(end.abs_diff(start))
}

fn empty(trace: &Trace) -> Summary {
    let count = trace.unread_count();
    Summary {
        file: trace.source.clone(),
        format: trace.format,
        bad_rows: count,
        schema_version: trace.schema_version.clone(),
        tables_absent: trace.tables_absent.clone(),
        unread: (count > 0).then(|| UnreadRows {
            count,
            why: trace.unread.clone(),
        }),
        step_ns: trace.unprofiled_step,
        ..Summary::default()
    }
}

/// Figures of a file that contains only sums.
fn of_sums(trace: &Trace) -> Summary {
    let stats = trace.stats.as_deref().unwrap_or_default();
    let mut it = empty(trace);
    let steps = trace.summed_steps.filter(|count| *count > 0);
    it.table = table(trace, stats, None, |row| {
        steps.map(|steps| row.calls as f64 / steps as f64)
    });
    it.kernels = sum(stats.iter().map(|row| row.calls));
    it.kernel_ns = sum(stats.iter().map(|row| row.total));
    it
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn of_slices(trace: &Trace) -> Summary {
    let mut it = empty(trace);
    let kernels: Vec<&Slice> = trace.of(SliceKind::Kernel).collect();
    let device = |slice: &Slice| trace.lanes[slice.lane as usize].device.unwrap_or(u32::MAX);
    let mut work: BTreeMap<u32, DeviceWork> = BTreeMap::new();
    devices(trace, &kernels, &mut it, &mut work);
    it.device_span_ns = span_ns(trace, |kind| kind == SliceKind::Kernel);
    it.trace_span_ns = span_ns(trace, |_| true);
    it.idle_share = it.device_span_ns.filter(|span| *span > 0).map(|span| {
        let devices = it.devices.as_ref().map_or(1, BTreeMap::len).max(1);
        (1.0 - it.busy_ns.unwrap_or(0) as f64 / (span as f64 * devices as f64)).max(0.0)
    });
    let with_graphs = |kind| matches!(kind, SliceKind::Kernel | SliceKind::Graph);
    it.idle_with_graphs = match trace.of(SliceKind::Graph).next() {
        None => it.idle_share,
        Some(_) => span_ns(trace, with_graphs)
            .filter(|span| *span > 0)
            .map(|span| {
                let work = trace.slices.iter().filter(|it| with_graphs(it.kind));
                let busy = union(work.map(Slice::span));
                1.0 - length(busy.into_iter()) as f64 / span as f64
            }),
    };
    calls(trace, &mut it);
    moves(trace, &mut it);
    let sync = union(trace.of(SliceKind::Sync).map(Slice::span));
    for slice in trace.of(SliceKind::Copy).chain(trace.of(SliceKind::Memset)) {
        let work = work.entry(device(slice)).or_default();
        work.copies.push(slice.span());
    }
    for work in work.values_mut() {
        work.copies.sort_unstable();
        work.copies = union(std::mem::take(&mut work.copies).into_iter());
    }
    let with_kernels = work.values().filter(|work| !work.kernels.is_empty());
    let with_kernels: Vec<&DeviceWork> = with_kernels.collect();
    let ledger = |window| {
        let works = with_kernels.iter();
        Ledger::sum(works.map(|work| one_ledger(work, &sync, window, trace.holds.calls)))
    };
    it.steps = steps(trace, &kernels, &with_kernels, &ledger);
    it.ledger = match &it.steps {
        Some(steps) if !with_kernels.is_empty() => {
            Some(Ledger::sum(steps.iter().map(|step| step.ledger)))
        }
        _ => trace.span(|kind| kind == SliceKind::Kernel).map(ledger),
    };
    let lengths = sorted(it.steps.iter().flatten().map(|step| step.dur_ns));
    it.step_ns = trace.unprofiled_step.or(median(&lengths));
    it.phases = phases(trace, &kernels, it.steps.as_deref());
    let linked = kernels.iter();
    let linked = linked.filter_map(|it| Some((it.start, trace.linked(it)?.start)));
    it.early = linked.fold((0, 0), |(early, all), (start, call)| {
        (early + u64::from(start < call), all + 1)
    });
    it.table = executed(trace, &launched(trace, &kernels), &it);
    if kernels.is_empty() {
        it.operations = executed(trace, &operations(trace), &it);
    }
    it
}

/// Figures of kernels and devices.
fn devices(
    trace: &Trace,
    kernels: &[&Slice],
    it: &mut Summary,
    work: &mut BTreeMap<u32, DeviceWork>,
) {
    let lengths = sorted(kernels.iter().map(|slice| slice.ns()));
    it.kernels = kernels.len() as u64;
    it.kernel_ns = sum(lengths.iter().copied());
    it.median_kernel_ns = median(&lengths);
    it.zero_length_kernels = Some(lengths.iter().take_while(|ns| **ns == 0).count() as u64);
    let mut lanes: Vec<u32> = kernels.iter().map(|slice| slice.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    it.lanes = Some(lanes.len() as u64);
    for slice in kernels {
        let id = trace.lanes[slice.lane as usize].device.unwrap_or(u32::MAX);
        let work = work.entry(id).or_default();
        work.figures.kernels += 1;
        work.figures.kernel_ns = work.figures.kernel_ns.saturating_add(slice.ns());
        work.kernels.push(slice.span());
        if let Some(call) = trace.linked(slice) {
            work.launched.push((slice.start, call.end));
        }
    }
    let mut devices = BTreeMap::new();
    let mut busy = 0_u64;
    for (id, work) in work.iter_mut() {
        work.kernels = union(std::mem::take(&mut work.kernels).into_iter());
        let label = trace.devices.get(*id as usize).map_or("?", String::as_str);
        work.figures.busy_ns = length(work.kernels.iter().copied());
        busy = busy.saturating_add(work.figures.busy_ns);
        devices.insert(label.to_owned(), work.figures.clone());
    }
    it.busy_ns = Some(busy);
    it.devices = Some(devices);
}

fn calls(trace: &Trace, it: &mut Summary) {
    if trace.holds.graphs {
        it.graph_trace_rows = Some(trace.of(SliceKind::Graph).count() as u64);
        it.graph_trace_ns = Some(sum(trace.of(SliceKind::Graph).map(Slice::ns)));
    }
    if !trace.holds.calls {
        return;
    }
    let count = |kind| Some(trace.of(kind).count() as u64);
    it.launches = count(SliceKind::Launch);
    it.graph_launches = count(SliceKind::GraphLaunch);
    it.syncs = count(SliceKind::Sync);
    let lost = trace.of(SliceKind::Launch).filter(|call| call.link == NONE);
    it.launches_without_kernel = Some(lost.count() as u64);
}

fn moves(trace: &Trace, it: &mut Summary) {
    let add = |amount: &mut Amount, slice: &Slice| {
        let bytes = trace.detail(slice).bytes;
        amount.bytes = amount.bytes.zip(bytes).map(|(a, b)| a.saturating_add(b));
        amount.count += 1;
    };
    let none = || Amount {
        count: 0,
        bytes: Some(0),
    };
    if trace.holds.copies {
        let (mut all, mut by_direction) = (none(), BTreeMap::new());
        for slice in trace.of(SliceKind::Copy) {
            let direction = trace.detail(slice).direction.unwrap_or(Direction::Other);
            add(&mut all, slice);
            add(
                by_direction.entry(direction.label()).or_insert_with(none),
                slice,
            );
        }
        it.copies = Some(Copies { all, by_direction });
    }
    if trace.holds.memsets {
        let all = it.memsets.insert(none());
        trace
            .of(SliceKind::Memset)
            .for_each(|slice| add(all, slice));
    }
}

/// How many sorted times are in a window.
fn inside(times: &[i64], (from, to): (i64, i64)) -> u64 {
    let at = |time| times.partition_point(|it| *it < time);
    at(to).saturating_sub(at(from)) as u64
}

fn steps(
    trace: &Trace,
    kernels: &[&Slice],
    work: &[&DeviceWork],
    ledger: &impl Fn((i64, i64)) -> Ledger,
) -> Option<Vec<TraceStep>> {
    let ranges: Vec<&Slice> = trace
        .of(SliceKind::Annotation)
        .filter(|slice| names::is_step(trace.name(slice.name)))
        .collect();
    if ranges.is_empty() {
        return None;
    }
    let starts: Vec<i64> = kernels.iter().map(|slice| slice.start).collect();
    let launches = kernels.iter().filter_map(|it| trace.linked(it));
    let mut launches: Vec<i64> = launches.map(|call| call.start).collect();
    launches.sort_unstable();
    let syncs: Vec<i64> = trace.of(SliceKind::Sync).map(|call| call.start).collect();
    let crosses = |slice: &&Slice| {
        let direction = trace.detail(slice).direction;
        direction.is_some_and(Direction::crosses)
    };
    let copies = trace.of(SliceKind::Copy).filter(crosses);
    let copies: Vec<i64> = copies.map(|copy| copy.start).collect();
    let step = |slice: &&Slice| {
        let span = slice.span();
        TraceStep {
            name: trace.name(slice.name).to_owned(),
            dur_ns: slice.ns(),
            kernels_by_start: inside(&starts, span),
            kernels_by_launch: trace.holds.calls.then(|| inside(&launches, span)),
            busy_ns: sum(work.iter().map(|it| length(within(&it.kernels, span)))),
            syncs: trace.holds.calls.then(|| inside(&syncs, span)),
            host_device_copies: trace.holds.copies.then(|| inside(&copies, span)),
            ledger: ledger(span),
            span,
        }
    };
    Some(ranges.iter().map(step).collect())
}

/// The ledger of a window on one device.
fn one_ledger(work: &DeviceWork, sync: &Union, window: (i64, i64), calls: bool) -> Ledger {
    let mut it = Ledger {
        wall: window.1.abs_diff(window.0),
        ..Ledger::default()
    };
    let (mut waiting, mut unlaunched) = (0_u64, 0_u64);
    let mut gap = |from: i64, to: i64| {
        let next = work.launched.partition_point(|kernel| kernel.0 < to);
        let launched = work.launched.get(next).map_or(i64::MIN, |kernel| kernel.1);
        let copies: Union = within(&work.copies, (from, to)).collect();
        let mut at = from;
        let mut rest = |from: i64, to: i64| {
            let syncs: Union = within(sync, (from, to)).collect();
            let mut free = |from: i64, to: i64| {
                let until = launched.clamp(from, to);
                unlaunched = unlaunched.saturating_add(until.abs_diff(from));
                it.idle = it.idle.saturating_add(to.abs_diff(until));
            };
            let mut at = from;
            for (start, end) in syncs {
                free(at, start);
                waiting = waiting.saturating_add(end.abs_diff(start));
                at = end;
            }
            free(at, to);
        };
        for (start, end) in copies {
            rest(at, start);
            it.copies = it.copies.saturating_add(end.abs_diff(start));
            at = end;
        }
        rest(at, to);
    };
    let mut at = window.0;
    let mut busy = 0_u64;
    for (start, end) in within(&work.kernels, window) {
        gap(at, start);
        busy = busy.saturating_add(end.abs_diff(start));
        at = end;
    }
    gap(at, window.1);
    it.busy = busy;
    if calls {
        (it.syncs, it.host_bound) = (Some(waiting), Some(unlaunched));
    }
    it
}

fn phases(trace: &Trace, kernels: &[&Slice], steps: Option<&[TraceStep]>) -> PhaseTotals {
    let mut ranges: [Union; 3] = Default::default();
    for slice in trace.of(SliceKind::Annotation) {
        if let Some(phase) = names::phase(trace.name(slice.name)) {
            ranges[phase as usize].push(slice.span());
        }
    }
    let ranges = ranges.map(|ranges| union(ranges.into_iter()));
    let steps = steps.map(|steps| union(steps.iter().map(|step| step.span)));
    let mut sums = [(0_u64, 0_u64); 3];
    let mut others = 0;
    for slice in kernels {
        let at = match (trace.linked(slice), trace.holds.calls) {
            (Some(call), _) => call.start,
            (None, false) => slice.start,
            (None, true) => continue,
        };
        let mut phased = false;
        for (ranges, sum) in ranges.iter().zip(&mut sums) {
            if covers(ranges, at) {
                phased = true;
                *sum = (sum.0 + 1, sum.1.saturating_add(slice.ns()));
            }
        }
        others += u64::from(!phased && steps.as_ref().is_some_and(|steps| covers(steps, at)));
    }
    let there = |phase: usize| !ranges[phase].is_empty();
    PhaseTotals {
        forward: there(0).then_some(sums[0].1),
        backward: there(1).then_some(sums[1].1),
        optimizer_kernels: there(2).then_some(sums[2].0),
        other_kernels: steps.map(|_| others),
    }
}

/// Kernels with the time of their launch, or of their start if the launch is not known.
fn launched(trace: &Trace, kernels: &[&Slice]) -> Vec<Execution> {
    let at = |slice: &Slice| trace.linked(slice).map_or(slice.start, |call| call.start);
    let kernels = kernels.iter();
    kernels.map(|it| (it.name, at(it), it.ns())).collect()
}

/// Operations of the host with their own time, which excludes nested operations.
fn operations(trace: &Trace) -> Vec<Execution> {
    let mut all: Vec<Execution> = Vec::new();
    // For each lane, the ends and numbers of open operations.
    let mut open: Vec<Vec<(i64, usize)>> = vec![Vec::new(); trace.lanes.len()];
    for slice in trace.of(SliceKind::Op) {
        let lane = &mut open[slice.lane as usize];
        while lane.last().is_some_and(|outer| outer.0 <= slice.start) {
            lane.pop();
        }
        if let Some(&(_, outer)) = lane.last() {
            let own = &mut all[outer].2;
            *own = own.saturating_sub(slice.ns());
        }
        lane.push((slice.end, all.len()));
        all.push((slice.name, slice.start, slice.ns()));
    }
    all
}

/// A name, the time that decides its step, and nanoseconds.
type Execution = (u32, i64, u64);

/// A row for each name that was executed, longest total first.
fn executed(trace: &Trace, executions: &[Execution], it: &Summary) -> Vec<KernelTotals> {
    let mut by_name: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut in_steps: HashMap<u32, u64> = HashMap::new();
    let steps = it.steps.as_deref().unwrap_or_default();
    let windows = union(steps.iter().map(|step| step.span));
    for &(name, at, ns) in executions {
        by_name.entry(name).or_default().push(ns);
        if covers(&windows, at) {
            *in_steps.entry(name).or_default() += 1;
        }
    }
    let stats = by_name.into_iter().map(|(name, lengths)| {
        let lengths = sorted(lengths.into_iter());
        let (calls, total) = (lengths.len() as u64, sum(lengths.iter().copied()));
        let mean = total as f64 / calls as f64;
        let spread: f64 = lengths.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum();
        KernelStat {
            name,
            calls,
            total,
            median: median(&lengths),
            min: lengths.first().copied(),
            max: lengths.last().copied(),
            std_dev: (calls > 1).then(|| (spread / (calls - 1) as f64).sqrt()),
        }
    });
    let stats: Vec<KernelStat> = stats.collect();
    let devices = it.devices.as_ref().map_or(1, BTreeMap::len).max(1) as u64;
    let wall = it.trace_span_ns.map(|span| span.saturating_mul(devices));
    table(trace, &stats, wall, |row| {
        let inside = in_steps.get(&row.name).copied().unwrap_or(0);
        (!steps.is_empty()).then(|| inside as f64 / steps.len() as f64)
    })
}

/// A row for each of these sums, longest total first; `wall` is the time of all devices, and `a_step` tells the executions per step.
fn table(
    trace: &Trace,
    stats: &[KernelStat],
    wall: Option<u64>,
    a_step: impl Fn(&KernelStat) -> Option<f64>,
) -> Vec<KernelTotals> {
    let all = sum(stats.iter().map(|row| row.total));
    let rows = stats.iter().map(|row| {
        let name = trace.name(row.name);
        KernelTotals {
            name: name.to_owned(),
            short: names::short(name, names::LONGEST),
            family: names::family(name),
            calls: row.calls,
            total_ns: row.total,
            median_ns: row.median,
            min_ns: row.min,
            max_ns: row.max,
            std_dev_ns: row.std_dev,
            share_of_kernels: share(row.total, all),
            share_of_wall: wall.map(|wall| share(row.total, wall)),
            a_step: a_step(row),
        }
    });
    let mut rows: Vec<KernelTotals> = rows.collect();
    rows.sort_by(|a, b| (b.total_ns, &a.name).cmp(&(a.total_ns, &b.name)));
    rows
}
