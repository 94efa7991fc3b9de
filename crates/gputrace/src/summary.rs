//! Computes the figures of a trace.

mod intervals;
mod ledger;
mod processes;
mod table;

use std::collections::{BTreeMap, HashMap};

use super::figures::{
    Amount, Copies, Ledger, PhaseTotals, Summary, Top, TraceStep, UnreadRows, median,
};
use super::lints;
use super::model::{Direction, DoubtKind, NONE, Slice, SliceKind, Trace, span_of, sum};
use super::names::{self, Family};
use intervals::{Span, Union, count_inside, covers, length, union, within};
use ledger::{DeviceWork, ledger_of_device};
use table::{executions_of_kernels, executions_of_operations, table_of_executions, table_of_stats};

fn sorted(lengths: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut lengths: Vec<u64> = lengths.collect();
    lengths.sort_unstable();
    lengths
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// A trace, or the part of it that belongs to one process.
struct Scope<'a> {
    trace: &'a Trace,
    process: Option<u32>,
    slices: Vec<&'a Slice>,
}

impl<'a> Scope<'a> {
    fn new(trace: &'a Trace, process: Option<u32>) -> Self {
        let belongs = |slice: &&Slice| {
            process.is_none() || trace.lanes[slice.lane as usize].process == process
        };
        Self {
            trace,
            process,
            slices: trace.slices.iter().filter(belongs).collect(),
        }
    }

    /// Returns all slices of a kind, by start.
    fn slices_of(&self, kind: SliceKind) -> impl Iterator<Item = &'a Slice> + '_ {
        let slices = self.slices.iter().copied();
        slices.filter(move |slice| slice.kind == kind)
    }

    /// Returns the time from the first start to the last end of slices of some kinds; `None` without such slices.
    fn span(&self, kinds: impl Fn(SliceKind) -> bool) -> Option<Span> {
        let slices = self.slices.iter().copied();
        span_of(slices.filter(|slice| kinds(slice.kind)))
    }

    fn span_ns(&self, kinds: impl Fn(SliceKind) -> bool) -> Option<u64> {
        let (start, end) = self.span(kinds)?;
        Some(end.abs_diff(start))
    }
}

/// Computes all figures of a trace.
pub fn summary(trace: &Trace) -> Summary {
    let counted = trace.counted();
    let mut summary = if counted.stats.is_some() {
        figures_of_sums(counted)
    } else {
        figures_of_slices(counted)
    };
    if trace.counted.is_some() {
        summary.trace_span_ns = Scope::new(trace, None).span_ns(|_| true);
    }
    summary.lints = lints::lints(counted, &summary);
    summary
}

/// Returns a summary with the description of a trace, without figures.
fn description(trace: &Trace) -> Summary {
    let unread = trace.unread_count();
    let count = |kind| {
        let doubts = trace.doubts.iter().filter(|doubt| doubt.kind == kind);
        sum(doubts.map(|doubt| doubt.count))
    };
    Summary {
        file: trace.source.clone(),
        format: trace.format,
        rank: trace.rank,
        world_size: trace.world,
        bad_rows: unread,
        set_aside: count(DoubtKind::Aside),
        contradicts: count(DoubtKind::Contradicts),
        unlinked: count(DoubtKind::Unlinked),
        doubts: trace.doubts.clone(),
        schema_version: trace.schema_version.clone(),
        tables_absent: trace.tables_absent.clone(),
        unread: (unread > 0).then(|| UnreadRows {
            count: unread,
            why: trace.unread.clone(),
        }),
        step_ns: trace.unprofiled_step,
        ..Summary::default()
    }
}

/// Returns a summary with the description of one process of a trace, without figures.
fn description_of_process(trace: &Trace, id: u32) -> Summary {
    let process = &trace.processes[id as usize];
    Summary {
        file: process.file.as_ref().unwrap_or(&trace.source).clone(),
        format: trace.format,
        rank: process.rank,
        process: Some(process.label.clone()),
        ..Summary::default()
    }
}

/// Computes the figures of a file that contains only sums.
fn figures_of_sums(trace: &Trace) -> Summary {
    let stats = trace.stats.as_deref().unwrap_or_default();
    let mut summary = description(trace);
    let steps = trace.summed_steps.filter(|count| *count > 0);
    summary.table = table_of_stats(trace, stats, None, |row| {
        steps.map(|steps| row.calls as f64 / steps as f64)
    });
    summary.kernels = sum(stats.iter().map(|row| row.calls));
    summary.kernel_ns = sum(stats.iter().map(|row| row.total));
    add_figures_of_table(&mut summary);
    summary
}

/// Fills in what follows from the table of kernels.
fn add_figures_of_table(summary: &mut Summary) {
    let rows = summary.table.iter();
    let collectives = rows
        .clone()
        .filter(|row| row.family == Family::Communication);
    summary.communication_ns = sum(collectives.map(|row| row.total_ns));
    summary.top = rows
        .take(3)
        .map(|row| Top {
            name: row.name.clone(),
            calls: row.calls,
            total_ns: row.total_ns,
        })
        .collect();
    summary.distinct_names = summary.table.len() as u64;
}

/// Computes the figures of a file with slices, and those of its processes if there are several.
fn figures_of_slices(trace: &Trace) -> Summary {
    let mut summary = figures_of_scope(&Scope::new(trace, None));
    if !trace.processes.is_empty() {
        let ranks = (0..trace.processes.len() as u32)
            .map(|process| figures_of_scope(&Scope::new(trace, Some(process))))
            .collect();
        processes::sum_over_processes(trace, &mut summary, ranks);
    }
    summary
}

/// Computes the figures of a trace, or of one of its processes.
fn figures_of_scope(scope: &Scope<'_>) -> Summary {
    let trace = scope.trace;
    let mut summary = scope.process.map_or_else(
        || description(trace),
        |process| description_of_process(trace, process),
    );
    let kernels: Vec<&Slice> = scope.slices_of(SliceKind::Kernel).collect();
    let mut work: BTreeMap<u32, DeviceWork> = BTreeMap::new();
    add_figures_of_devices(trace, &kernels, &mut summary, &mut work);
    summary.device_span_ns = scope.span_ns(|kind| kind == SliceKind::Kernel);
    summary.trace_span_ns = scope.span_ns(|_| true);
    summary.idle_share = summary.device_span_ns.filter(|span| *span > 0).map(|span| {
        let devices = summary.devices.as_ref().map_or(1, BTreeMap::len).max(1);
        let busy = summary.busy_ns.unwrap_or(0) as f64;
        (1.0 - busy / (span as f64 * devices as f64)).max(0.0)
    });
    summary.idle_with_graphs = if scope.slices_of(SliceKind::Graph).next().is_some() {
        idle_share_with_graphs(scope)
    } else {
        summary.idle_share
    };
    add_counts_of_calls(scope, &mut summary);
    add_copies_and_memsets(scope, &mut summary);
    let copies = scope.slices_of(SliceKind::Copy);
    for slice in copies.chain(scope.slices_of(SliceKind::Memset)) {
        let device = trace.lanes[slice.lane as usize].device.unwrap_or(u32::MAX);
        work.entry(device).or_default().copies.push(slice.span());
    }
    for device in work.values_mut() {
        device.copies.sort_unstable();
        device.copies = union(std::mem::take(&mut device.copies));
    }
    let devices: Vec<&DeviceWork> = work
        .values()
        .filter(|work| !work.kernels.is_empty())
        .collect();
    let waits = union(scope.slices_of(SliceKind::Sync).map(Slice::span));
    // In a trace of several processes, waits belong to the devices of their process.
    let has_calls = trace.holds.calls && (scope.process.is_some() || trace.processes.is_empty());
    let ledger = |window| {
        let ledgers = devices
            .iter()
            .map(|work| ledger_of_device(work, &waits, window, has_calls));
        Ledger::sum(ledgers)
    };
    summary.steps = steps(scope, &kernels, &devices, &ledger);
    summary.ledger = match &summary.steps {
        Some(steps) if !devices.is_empty() => {
            Some(Ledger::sum(steps.iter().map(|step| step.ledger)))
        }
        _ => scope.span(|kind| kind == SliceKind::Kernel).map(ledger),
    };
    summary.step_ns = trace.unprofiled_step.or(summary.median_step());
    summary.phases = phases(scope, &kernels, summary.steps.as_deref());
    for kernel in &kernels {
        if let Some(call) = trace.linked(kernel) {
            summary.early.0 += u64::from(kernel.start < call.start);
            summary.early.1 += 1;
        }
    }
    let executions = executions_of_kernels(trace, &kernels);
    summary.table = table_of_executions(trace, &executions, &summary);
    if kernels.is_empty() {
        let operations = executions_of_operations(scope);
        summary.operations = table_of_executions(trace, &operations, &summary);
    }
    add_figures_of_table(&mut summary);
    summary
}

/// Returns the share of time, 0 to 1, in which neither a kernel nor a graph that was traced as a whole runs; `None` if they take no time.
fn idle_share_with_graphs(scope: &Scope<'_>) -> Option<f64> {
    let is_work = |kind| matches!(kind, SliceKind::Kernel | SliceKind::Graph);
    let span = scope.span_ns(is_work).filter(|span| *span > 0)?;
    let work = scope.slices.iter().filter(|slice| is_work(slice.kind));
    let busy = union(work.map(|slice| slice.span()));
    Some(1.0 - length(busy) as f64 / span as f64)
}

/// Fills in figures of kernels and devices, and collects the work of each device by its number.
fn add_figures_of_devices(
    trace: &Trace,
    kernels: &[&Slice],
    summary: &mut Summary,
    work: &mut BTreeMap<u32, DeviceWork>,
) {
    let lengths = sorted(kernels.iter().map(|slice| slice.ns()));
    summary.kernels = kernels.len() as u64;
    summary.kernel_ns = sum(lengths.iter().copied());
    summary.median_kernel_ns = median(&lengths);
    summary.zero_length_kernels = Some(lengths.iter().take_while(|ns| **ns == 0).count() as u64);
    let mut lanes: Vec<u32> = kernels.iter().map(|slice| slice.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    summary.lanes = Some(lanes.len() as u64);
    for slice in kernels {
        let id = trace.lanes[slice.lane as usize].device.unwrap_or(u32::MAX);
        let device = work.entry(id).or_default();
        device.figures.kernels += 1;
        device.figures.kernel_ns = device.figures.kernel_ns.saturating_add(slice.ns());
        device.kernels.push(slice.span());
        if trace.family(slice.name) == Family::Communication {
            device.communication.push(slice.span());
        } else {
            device.compute.push(slice.span());
        }
        if let Some(call) = trace.linked(slice) {
            device.launched.push((slice.start, call.end));
        }
    }
    let mut devices = BTreeMap::new();
    let mut busy = 0_u64;
    let mut exposed = 0_u64;
    let mut hidden = 0_u64;
    for (id, device) in work.iter_mut() {
        device.kernels = union(std::mem::take(&mut device.kernels));
        let compute = length(union(std::mem::take(&mut device.compute)));
        let communication = length(union(std::mem::take(&mut device.communication)));
        let label = trace.devices.get(*id as usize).map_or("?", String::as_str);
        device.figures.busy_ns = length(device.kernels.iter().copied());
        busy = busy.saturating_add(device.figures.busy_ns);
        let alone = device.figures.busy_ns.saturating_sub(compute);
        exposed = exposed.saturating_add(alone);
        hidden = hidden.saturating_add(communication.saturating_sub(alone));
        devices.insert(label.to_owned(), device.figures.clone());
    }
    summary.busy_ns = Some(busy);
    summary.communication_exposed_ns = Some(exposed);
    summary.communication_hidden_ns = Some(hidden);
    summary.devices = Some(devices);
}

fn add_counts_of_calls(scope: &Scope<'_>, summary: &mut Summary) {
    let trace = scope.trace;
    if trace.holds.graphs {
        let graphs = scope.slices_of(SliceKind::Graph);
        summary.graph_trace_rows = Some(graphs.count() as u64);
        summary.graph_trace_ns = Some(sum(scope.slices_of(SliceKind::Graph).map(Slice::ns)));
    }
    if !trace.holds.calls {
        return;
    }
    let count = |kind| Some(scope.slices_of(kind).count() as u64);
    summary.launches = count(SliceKind::Launch);
    summary.graph_launches = count(SliceKind::GraphLaunch);
    summary.syncs = count(SliceKind::Sync);
    let captures = captures(scope);
    let mut captured = 0;
    let mut lost = 0;
    for call in scope.slices_of(SliceKind::Launch) {
        let windows = captures.get(&call.lane);
        if call.link != NONE {
            continue;
        } else if windows.is_some_and(|windows| covers(windows, call.start)) {
            captured += 1;
        } else {
            lost += 1;
        }
    }
    summary.launches_captured = Some(captured);
    summary.launches_without_kernel = Some(lost);
}

/// Returns, by lane of the host, when launches were captured into a graph.
fn captures(scope: &Scope<'_>) -> HashMap<u32, Union> {
    let mut open: HashMap<u32, i64> = HashMap::new();
    let mut captures: HashMap<u32, Union> = HashMap::new();
    for call in scope.slices_of(SliceKind::Api) {
        let name = scope.trace.name(call.name);
        if name.contains("StreamBeginCapture") {
            open.insert(call.lane, call.start);
        } else if name.contains("StreamEndCapture")
            && let Some(start) = open.remove(&call.lane)
        {
            let windows = captures.entry(call.lane).or_default();
            windows.push((start, call.end));
        }
    }
    captures
}

fn add_copies_and_memsets(scope: &Scope<'_>, summary: &mut Summary) {
    let trace = scope.trace;
    let add = |amount: &mut Amount, slice: &Slice| {
        let bytes = trace.detail(slice).bytes;
        amount.bytes = amount.bytes.zip(bytes).map(|(a, b)| a.saturating_add(b));
        amount.count += 1;
    };
    let none = Amount {
        count: 0,
        bytes: Some(0),
    };
    if trace.holds.copies {
        let mut all = none;
        let mut by_direction = BTreeMap::new();
        for slice in scope.slices_of(SliceKind::Copy) {
            let direction = trace.detail(slice).direction.unwrap_or(Direction::Other);
            add(&mut all, slice);
            add(by_direction.entry(direction.label()).or_insert(none), slice);
        }
        summary.copies = Some(Copies { all, by_direction });
    }
    if trace.holds.memsets {
        let mut all = none;
        for slice in scope.slices_of(SliceKind::Memset) {
            add(&mut all, slice);
        }
        summary.memsets = Some(all);
    }
}

/// Returns the annotated steps; `None` if there are none. `devices` is the work of all devices with kernels.
fn steps(
    scope: &Scope<'_>,
    kernels: &[&Slice],
    devices: &[&DeviceWork],
    ledger: &impl Fn(Span) -> Ledger,
) -> Option<Vec<TraceStep>> {
    let trace = scope.trace;
    let ranges: Vec<&Slice> = scope
        .slices_of(SliceKind::Annotation)
        .filter(|slice| names::is_step(trace.name(slice.name)))
        .collect();
    if ranges.is_empty() {
        return None;
    }
    let starts: Vec<i64> = kernels.iter().map(|slice| slice.start).collect();
    let mut launches: Vec<i64> = kernels
        .iter()
        .filter_map(|kernel| Some(trace.linked(kernel)?.start))
        .collect();
    launches.sort_unstable();
    let syncs: Vec<i64> = scope
        .slices_of(SliceKind::Sync)
        .map(|call| call.start)
        .collect();
    let copies: Vec<i64> = scope
        .slices_of(SliceKind::Copy)
        .filter(|copy| {
            let direction = trace.detail(copy).direction;
            direction.is_some_and(Direction::is_between_host_and_device)
        })
        .map(|copy| copy.start)
        .collect();
    let process = scope
        .process
        .map(|id| trace.processes[id as usize].label.clone());
    let step = |range: &&Slice| {
        let span = range.span();
        let busy = devices
            .iter()
            .map(|work| length(within(&work.kernels, span)));
        let holds = trace.holds;
        TraceStep {
            name: trace.name(range.name).to_owned(),
            process: process.clone(),
            dur_ns: range.ns(),
            kernels_by_start: Some(count_inside(&starts, span)),
            kernels_by_launch: holds.calls.then(|| count_inside(&launches, span)),
            busy_ns: Some(sum(busy)),
            syncs: holds.calls.then(|| count_inside(&syncs, span)),
            host_device_copies: holds.copies.then(|| count_inside(&copies, span)),
            ledger: ledger(span),
            span,
        }
    };
    Some(ranges.iter().map(step).collect())
}

/// Returns kernel time by phase, from the ranges that name phases.
fn phases(scope: &Scope<'_>, kernels: &[&Slice], steps: Option<&[TraceStep]>) -> PhaseTotals {
    let trace = scope.trace;
    let mut spans: [Vec<Span>; 3] = Default::default();
    for slice in scope.slices_of(SliceKind::Annotation) {
        if let Some(phase) = names::phase(trace.name(slice.name)) {
            spans[phase as usize].push(slice.span());
        }
    }
    let ranges: [Union; 3] = spans.map(union);
    let windows = steps.map(|steps| union(steps.iter().map(|step| step.span)));
    let mut count = [0_u64; 3];
    let mut time = [0_u64; 3];
    let mut outside = 0;
    for kernel in kernels {
        if trace.family(kernel.name) == Family::Communication {
            continue;
        }
        let at = match (trace.linked(kernel), trace.holds.calls) {
            (Some(call), _) => call.start,
            (None, false) => kernel.start,
            (None, true) => continue,
        };
        let mut has_phase = false;
        for phase in 0..3 {
            if covers(&ranges[phase], at) {
                has_phase = true;
                count[phase] += 1;
                time[phase] = time[phase].saturating_add(kernel.ns());
            }
        }
        let is_in_step = windows.as_ref().is_some_and(|windows| covers(windows, at));
        outside += u64::from(!has_phase && is_in_step);
    }
    let is_named = |phase: usize| !ranges[phase].is_empty();
    PhaseTotals {
        forward: is_named(0).then_some(time[0]),
        backward: is_named(1).then_some(time[1]),
        optimizer: is_named(2).then_some(time[2]),
        optimizer_kernels: is_named(2).then_some(count[2]),
        other_kernels: windows.map(|_| outside),
    }
}
