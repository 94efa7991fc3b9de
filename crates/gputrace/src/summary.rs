//! Computes the figures of a trace.

mod processes;

use std::collections::{BTreeMap, HashMap};

use super::figures::{
    Amount, Copies, DeviceFigures, KernelTotals, Ledger, PhaseTotals, Summary, Top, TraceStep,
    UnreadRows, median,
};
use super::lints;
use super::model::{Direction, DoubtKind, KernelStat, NONE, Slice, SliceKind, Trace, sum};
use super::names::{self, Family};

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
    /// Kernels of collectives, and all others.
    communication: Union,
    compute: Union,
    copies: Union,
    /// For each kernel, its start and the time of its launch.
    launched: Vec<(i64, i64)>,
}

/// A trace, or the part of it that belongs to one process.
struct Scope<'a> {
    trace: &'a Trace,
    process: Option<u32>,
    slices: Vec<&'a Slice>,
}

impl<'a> Scope<'a> {
    fn new(trace: &'a Trace, process: Option<u32>) -> Self {
        let of = |slice: &&Slice| {
            process.is_none() || trace.lanes[slice.lane as usize].process == process
        };
        Self {
            trace,
            process,
            slices: trace.slices.iter().filter(of).collect(),
        }
    }

    /// Every slice of a kind.
    fn of(&self, kind: SliceKind) -> impl Iterator<Item = &'a Slice> + '_ {
        let slices = self.slices.iter().copied();
        slices.filter(move |slice| slice.kind == kind)
    }

    /// From the first start to the last end of slices of some kinds.
    fn span(&self, kinds: impl Fn(SliceKind) -> bool) -> Option<(i64, i64)> {
        let slices = self.slices.iter().filter(|slice| kinds(slice.kind));
        slices
            .map(|slice| slice.span())
            .reduce(|all, it| (all.0.min(it.0), all.1.max(it.1)))
    }

    fn span_ns(&self, kinds: impl Fn(SliceKind) -> bool) -> Option<u64> {
        let (start, end) = self.span(kinds)?;
        Some(end.abs_diff(start))
    }
}

/// All figures of a trace.
pub fn summary(trace: &Trace) -> Summary {
    let counted = trace.counted();
    let mut it = match &counted.stats {
        Some(_) => of_sums(counted),
        None => of_slices(counted),
    };
    if trace.counted.is_some() {
        it.trace_span_ns = Scope::new(trace, None).span_ns(|_| true);
    }
    it.lints = lints::lints(counted, &it);
    it
}

fn empty(trace: &Trace) -> Summary {
    let count = trace.unread_count();
    let doubts = |kind| {
        let doubts = trace.doubts.iter().filter(|doubt| doubt.kind == kind);
        sum(doubts.map(|doubt| doubt.count))
    };
    Summary {
        file: trace.source.clone(),
        format: trace.format,
        rank: trace.rank,
        world_size: trace.world,
        bad_rows: count,
        set_aside: doubts(DoubtKind::Aside),
        contradicts: doubts(DoubtKind::Contradicts),
        unlinked: doubts(DoubtKind::Unlinked),
        doubts: trace.doubts.clone(),
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
    of_table(&mut it);
    it
}

/// What follows from the table of kernels.
fn of_table(it: &mut Summary) {
    it.distinct_names = it.table.len() as u64;
    let rows = it.table.iter();
    let collectives = rows
        .clone()
        .filter(|row| row.family == Family::Communication);
    it.communication_ns = sum(collectives.map(|row| row.total_ns));
    let top = rows.take(3).map(|row| Top {
        name: row.name.clone(),
        calls: row.calls,
        total_ns: row.total_ns,
    });
    it.top = top.collect();
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn of_slices(trace: &Trace) -> Summary {
    let mut it = figures(&Scope::new(trace, None));
    if !trace.processes.is_empty() {
        let all = 0..trace.processes.len() as u32;
        let part = |process| figures(&Scope::new(trace, Some(process)));
        processes::sums(trace, &mut it, all.map(part).collect());
    }
    it
}

/// The figures of a trace, or of one of its processes.
fn figures(scope: &Scope<'_>) -> Summary {
    let trace = scope.trace;
    let mut it = match scope.process {
        None => empty(trace),
        Some(id) => {
            let process = &trace.processes[id as usize];
            let file = process.file.as_ref().unwrap_or(&trace.source);
            Summary {
                file: file.clone(),
                format: trace.format,
                rank: process.rank,
                process: Some(process.label.clone()),
                ..Summary::default()
            }
        }
    };
    let kernels: Vec<&Slice> = scope.of(SliceKind::Kernel).collect();
    let mut work: BTreeMap<u32, DeviceWork> = BTreeMap::new();
    devices(trace, &kernels, &mut it, &mut work);
    it.device_span_ns = scope.span_ns(|kind| kind == SliceKind::Kernel);
    it.trace_span_ns = scope.span_ns(|_| true);
    it.idle_share = it.device_span_ns.filter(|span| *span > 0).map(|span| {
        let devices = it.devices.as_ref().map_or(1, BTreeMap::len).max(1);
        (1.0 - it.busy_ns.unwrap_or(0) as f64 / (span as f64 * devices as f64)).max(0.0)
    });
    let with_graphs = |kind| matches!(kind, SliceKind::Kernel | SliceKind::Graph);
    it.idle_with_graphs = match scope.of(SliceKind::Graph).next() {
        None => it.idle_share,
        Some(_) => scope
            .span_ns(with_graphs)
            .filter(|span| *span > 0)
            .map(|span| {
                let work = scope.slices.iter().filter(|it| with_graphs(it.kind));
                let busy = union(work.map(|slice| slice.span()));
                1.0 - length(busy.into_iter()) as f64 / span as f64
            }),
    };
    calls(scope, &mut it);
    moves(scope, &mut it);
    let sync = union(scope.of(SliceKind::Sync).map(Slice::span));
    for slice in scope.of(SliceKind::Copy).chain(scope.of(SliceKind::Memset)) {
        let device = trace.lanes[slice.lane as usize].device.unwrap_or(u32::MAX);
        let work = work.entry(device).or_default();
        work.copies.push(slice.span());
    }
    for work in work.values_mut() {
        work.copies.sort_unstable();
        work.copies = union(std::mem::take(&mut work.copies).into_iter());
    }
    let with_kernels = work.values().filter(|work| !work.kernels.is_empty());
    let with_kernels: Vec<&DeviceWork> = with_kernels.collect();
    // In a trace of several processes, waits belong to the devices of their process.
    let calls = trace.holds.calls && (scope.process.is_some() || trace.processes.is_empty());
    let ledger = |window| {
        let works = with_kernels.iter();
        Ledger::sum(works.map(|work| one_ledger(work, &sync, window, calls)))
    };
    it.steps = steps(scope, &kernels, &with_kernels, &ledger);
    it.ledger = match &it.steps {
        Some(steps) if !with_kernels.is_empty() => {
            Some(Ledger::sum(steps.iter().map(|step| step.ledger)))
        }
        _ => scope.span(|kind| kind == SliceKind::Kernel).map(ledger),
    };
    it.step_ns = trace.unprofiled_step.or(it.median_step());
    it.phases = phases(scope, &kernels, it.steps.as_deref());
    let linked = kernels.iter();
    let linked = linked.filter_map(|it| Some((it.start, trace.linked(it)?.start)));
    it.early = linked.fold((0, 0), |(early, all), (start, call)| {
        (early + u64::from(start < call), all + 1)
    });
    it.table = executed(trace, &launched(trace, &kernels), &it);
    if kernels.is_empty() {
        it.operations = executed(trace, &operations(scope), &it);
    }
    of_table(&mut it);
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
        match trace.family(slice.name) {
            Family::Communication => work.communication.push(slice.span()),
            _ => work.compute.push(slice.span()),
        }
        if let Some(call) = trace.linked(slice) {
            work.launched.push((slice.start, call.end));
        }
    }
    let mut devices = BTreeMap::new();
    let (mut busy, mut exposed, mut hidden) = (0_u64, 0_u64, 0_u64);
    for (id, work) in work.iter_mut() {
        let merged = |spans: &mut Union| union(std::mem::take(spans).into_iter());
        work.kernels = merged(&mut work.kernels);
        let [compute, communication] = [&mut work.compute, &mut work.communication]
            .map(|spans| length(merged(spans).into_iter()));
        let label = trace.devices.get(*id as usize).map_or("?", String::as_str);
        work.figures.busy_ns = length(work.kernels.iter().copied());
        busy = busy.saturating_add(work.figures.busy_ns);
        let alone = work.figures.busy_ns.saturating_sub(compute);
        exposed = exposed.saturating_add(alone);
        hidden = hidden.saturating_add(communication.saturating_sub(alone));
        devices.insert(label.to_owned(), work.figures.clone());
    }
    it.busy_ns = Some(busy);
    (it.communication_exposed_ns, it.communication_hidden_ns) = (Some(exposed), Some(hidden));
    it.devices = Some(devices);
}

fn calls(scope: &Scope<'_>, it: &mut Summary) {
    let trace = scope.trace;
    if trace.holds.graphs {
        it.graph_trace_rows = Some(scope.of(SliceKind::Graph).count() as u64);
        it.graph_trace_ns = Some(sum(scope.of(SliceKind::Graph).map(Slice::ns)));
    }
    if !trace.holds.calls {
        return;
    }
    let count = |kind| Some(scope.of(kind).count() as u64);
    it.launches = count(SliceKind::Launch);
    it.graph_launches = count(SliceKind::GraphLaunch);
    it.syncs = count(SliceKind::Sync);
    let lost = scope.of(SliceKind::Launch).filter(|call| call.link == NONE);
    let captures = captures(scope);
    let captured = |call: &&Slice| {
        let of_lane = captures.get(&call.lane);
        of_lane.is_some_and(|windows| covers(windows, call.start))
    };
    let (captured, lost): (Vec<&Slice>, Vec<&Slice>) = lost.partition(captured);
    it.launches_captured = Some(captured.len() as u64);
    it.launches_without_kernel = Some(lost.len() as u64);
}

/// By thread, when launches were captured into a graph.
fn captures(scope: &Scope<'_>) -> HashMap<u32, Union> {
    let mut open: HashMap<u32, i64> = HashMap::new();
    let mut captures: HashMap<u32, Union> = HashMap::new();
    for call in scope.of(SliceKind::Api) {
        let name = scope.trace.name(call.name);
        if name.contains("StreamBeginCapture") {
            open.insert(call.lane, call.start);
        } else if name.contains("StreamEndCapture")
            && let Some(start) = open.remove(&call.lane)
        {
            captures
                .entry(call.lane)
                .or_default()
                .push((start, call.end));
        }
    }
    captures
}

fn moves(scope: &Scope<'_>, it: &mut Summary) {
    let trace = scope.trace;
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
        for slice in scope.of(SliceKind::Copy) {
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
        scope
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
    scope: &Scope<'_>,
    kernels: &[&Slice],
    work: &[&DeviceWork],
    ledger: &impl Fn((i64, i64)) -> Ledger,
) -> Option<Vec<TraceStep>> {
    let trace = scope.trace;
    let ranges: Vec<&Slice> = scope
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
    let syncs: Vec<i64> = scope.of(SliceKind::Sync).map(|call| call.start).collect();
    let crosses = |slice: &&Slice| {
        let direction = trace.detail(slice).direction;
        direction.is_some_and(Direction::crosses)
    };
    let copies = scope.of(SliceKind::Copy).filter(crosses);
    let copies: Vec<i64> = copies.map(|copy| copy.start).collect();
    let step = |slice: &&Slice| {
        let span = slice.span();
        TraceStep {
            name: trace.name(slice.name).to_owned(),
            process: scope
                .process
                .map(|id| trace.processes[id as usize].label.clone()),
            dur_ns: slice.ns(),
            kernels_by_start: Some(inside(&starts, span)),
            kernels_by_launch: trace.holds.calls.then(|| inside(&launches, span)),
            busy_ns: Some(sum(work.iter().map(|it| length(within(&it.kernels, span))))),
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

fn phases(scope: &Scope<'_>, kernels: &[&Slice], steps: Option<&[TraceStep]>) -> PhaseTotals {
    let trace = scope.trace;
    let mut ranges: [Union; 3] = Default::default();
    for slice in scope.of(SliceKind::Annotation) {
        if let Some(phase) = names::phase(trace.name(slice.name)) {
            ranges[phase as usize].push(slice.span());
        }
    }
    let ranges = ranges.map(|ranges| union(ranges.into_iter()));
    let steps = steps.map(|steps| union(steps.iter().map(|step| step.span)));
    let mut sums = [(0_u64, 0_u64); 3];
    let mut others = 0;
    let family = |slice: &Slice| trace.family(slice.name);
    let compute = kernels.iter();
    for slice in compute.filter(|slice| family(slice) != Family::Communication) {
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
        optimizer: there(2).then_some(sums[2].1),
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
fn operations(scope: &Scope<'_>) -> Vec<Execution> {
    let mut all: Vec<Execution> = Vec::new();
    // For each lane, the ends and numbers of open operations.
    let mut open: Vec<Vec<(i64, usize)>> = vec![Vec::new(); scope.trace.lanes.len()];
    for slice in scope.of(SliceKind::Op) {
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
            family: trace.family(row.name),
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
