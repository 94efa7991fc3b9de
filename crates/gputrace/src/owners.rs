//! Finds the process that launched the work of a device, for files that name only the device.
//!
//! Correlation numbers are unique within a process, so in a file of several processes one number may belong to a call of each. Work starts
//! after its launch. If its process later waited for the whole device, the work has ended when that wait ends. A process whose calls
//! contradict this did not launch the work. The order of the numbers of processes and devices has no meaning. If several processes remain
//! possible, the work is linked with none of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::model::{Doubt, DoubtKind, LaneKind, SliceKind, Trace};

/// The slices of calls by process and correlation.
type Calls = HashMap<(u64, u64), u32>;
/// The number of a device; `None` if it is not known.
type DeviceId = Option<u32>;

/// One in 100 pieces of a device's work may contradict the process that owns the device, because clocks are not exact.
const CONTRADICTS: u64 = 100;
/// One in 10 pieces of a device's work may have no launch in the file.
const UNRECORDED: u64 = 10;

/// The waits of a process for its whole device, sorted by start. The end of each is the earliest end of this and all later waits.
struct Waits(Vec<(i64, i64)>);

impl Waits {
    fn new(mut waits: Vec<(i64, i64)>) -> Self {
        waits.sort_unstable();
        let mut earliest = i64::MAX;
        for wait in waits.iter_mut().rev() {
            earliest = earliest.min(wait.1);
            wait.1 = earliest;
        }
        Self(waits)
    }

    /// Returns the latest time at which work can end if it was launched at `launched`.
    fn latest_end(&self, launched: i64) -> i64 {
        let next = self.0.partition_point(|wait| wait.0 < launched);
        self.0.get(next).map_or(i64::MAX, |wait| wait.1)
    }

    /// Returns the waits of each process, by its number.
    fn by_process(trace: &Trace) -> HashMap<u64, Self> {
        let mut spans: HashMap<u64, Vec<(i64, i64)>> = HashMap::new();
        for slice in trace.slices_of(SliceKind::Sync) {
            let name = trace.name(slice.name);
            let is_whole_device = ["DeviceSync", "CtxSync", "ContextSync"]
                .iter()
                .any(|part| name.contains(part));
            let process = trace.lanes[slice.lane as usize].process;
            if let (true, Some(process)) = (is_whole_device, process) {
                let waits = spans.entry(u64::from(process)).or_default();
                waits.push(slice.span());
            }
        }
        spans
            .into_iter()
            .map(|(process, spans)| (process, Self::new(spans)))
            .collect()
    }
}

/// The number of pieces of a device's work that the calls of a process do not explain.
#[derive(Clone, Copy, Default)]
struct Fit {
    /// Pieces of work whose time contradicts the call with their number.
    contradicts: u64,
    /// Pieces of work without a call with their number.
    unrecorded: u64,
}

/// Returns the call of each piece of work as pairs of work and call, and the work that fits several processes. `work` are slices with
/// their correlations, and the scope of `calls` is the number of their process.
pub(crate) fn calls(
    trace: &Trace,
    calls: &Calls,
    work: &[(u32, u64)],
) -> (Vec<(u32, u32)>, HashSet<u32>) {
    if work.is_empty() {
        return (Vec::new(), HashSet::new());
    }
    let processes: BTreeSet<u64> = calls.keys().map(|(scope, _)| *scope).collect();
    let scopes: Vec<u64> = processes.into_iter().collect();
    let call_of = |scope: u64, correlation: u64| calls.get(&(scope, correlation)).copied();
    if let [] | [_] = scopes[..] {
        let scope = scopes.first().copied().unwrap_or(0);
        let linked = work
            .iter()
            .filter_map(|&(slice, number)| Some((slice, call_of(scope, number)?)));
        return (linked.collect(), HashSet::new());
    }
    let waits_of_processes = Waits::by_process(trace);
    let is_possible = |slice: u32, scope: u64, call: u32| {
        let piece = &trace.slices[slice as usize];
        let launched = trace.slices[call as usize].start;
        let latest_end = waits_of_processes
            .get(&scope)
            .map_or(i64::MAX, |waits| waits.latest_end(launched));
        piece.start >= launched && piece.end <= latest_end
    };
    let device = |slice: u32| trace.lanes[trace.slices[slice as usize].lane as usize].device;
    // For each device, the number of pieces of work, and how each process explains them.
    let mut fits: BTreeMap<DeviceId, (u64, Vec<Fit>)> = BTreeMap::new();
    let mut launched: HashSet<(DeviceId, u64)> = HashSet::new();
    for &(slice, number) in work {
        let is_kernel = trace.slices[slice as usize].kind == SliceKind::Kernel;
        let is_second = is_kernel && !launched.insert((device(slice), number));
        let (count, row) = fits
            .entry(device(slice))
            .or_insert_with(|| (0, vec![Fit::default(); scopes.len()]));
        *count += 1;
        for (fit, &scope) in row.iter_mut().zip(&scopes) {
            let Some(call) = call_of(scope, number) else {
                fit.unrecorded += 1;
                continue;
            };
            // A launch runs one kernel; only the launch of a graph runs several.
            let is_launched_twice =
                is_second && trace.slices[call as usize].kind == SliceKind::Launch;
            if is_launched_twice || !is_possible(slice, scope, call) {
                fit.contradicts += 1;
            }
        }
    }
    let owners = owners(&fits, 0)
        .or_else(|| owners(&fits, CONTRADICTS))
        .unwrap_or_default();
    let mut linked = Vec::new();
    let mut unlinked = HashSet::new();
    for &(slice, number) in work {
        if let Some(&owner) = owners.get(&device(slice)) {
            linked.extend(call_of(scopes[owner], number).map(|call| (slice, call)));
            continue;
        }
        let candidates: Vec<u32> = scopes
            .iter()
            .filter_map(|&scope| {
                let call = call_of(scope, number)?;
                is_possible(slice, scope, call).then_some(call)
            })
            .collect();
        match candidates[..] {
            [] => {}
            [call] => linked.push((slice, call)),
            _ => {
                unlinked.insert(slice);
            }
        }
    }
    (linked, unlinked)
}

/// Returns the only process that each device can belong to, as an index into the rows of `fits`; `None` if a device has no such process.
/// One in `tolerated` pieces of work may contradict its owner, or none if that is 0.
fn owners(
    fits: &BTreeMap<DeviceId, (u64, Vec<Fit>)>,
    tolerated: u64,
) -> Option<HashMap<DeviceId, usize>> {
    let is_explained = |count: u64, fit: &Fit| {
        let allowed = count.checked_div(tolerated).unwrap_or(0);
        fit.contradicts <= allowed && fit.unrecorded <= count / UNRECORDED
    };
    let mut open: BTreeMap<DeviceId, BTreeSet<usize>> = BTreeMap::new();
    for (device, (count, row)) in fits {
        let processes = (0..row.len()).filter(|process| is_explained(*count, &row[*process]));
        open.insert(*device, processes.collect());
    }
    let mut owners: HashMap<DeviceId, usize> = HashMap::new();
    while !open.is_empty() {
        let owned: HashSet<usize> = owners.values().copied().collect();
        let (device, process) =
            device_of_one_process(&open).or_else(|| process_of_one_device(&open, &owned))?;
        owners.insert(device, process);
        open.remove(&device);
    }
    Some(owners)
}

/// Finds a device that only one process explains.
fn device_of_one_process(open: &BTreeMap<DeviceId, BTreeSet<usize>>) -> Option<(DeviceId, usize)> {
    let (device, processes) = open.iter().find(|(_, processes)| processes.len() == 1)?;
    Some((*device, *processes.first()?))
}

/// Finds a process without a device that explains only one of the open devices. `owned` are the processes that have a device.
fn process_of_one_device(
    open: &BTreeMap<DeviceId, BTreeSet<usize>>,
    owned: &HashSet<usize>,
) -> Option<(DeviceId, usize)> {
    let all = open.values().flatten().copied();
    all.filter(|process| !owned.contains(process))
        .find_map(|process| {
            let mut devices = open.iter().filter(|(_, all)| all.contains(&process));
            let (device, _) = devices.next()?;
            devices.next().is_none().then_some((*device, process))
        })
}

/// Finds the process of each lane of a device from the calls that launched its work: a lane with work of several processes becomes one
/// lane for each. If no more than one process launches or owns work, the trace then has no processes.
pub(crate) fn tell_apart(trace: &mut Trace, unlinked: &HashSet<u32>) {
    let launches = |kind| matches!(kind, SliceKind::Launch | SliceKind::GraphLaunch);
    let calls = trace.slices.iter().filter(|slice| launches(slice.kind));
    let launching: BTreeSet<u32> = calls
        .filter_map(|slice| trace.lanes[slice.lane as usize].process)
        .collect();
    let mut working = launching.clone();
    if launching.len() > 1 {
        split_lanes(trace, unlinked);
    }
    let work = trace.slices.iter().filter(|slice| slice.kind.on_device());
    working.extend(work.filter_map(|slice| trace.lanes[slice.lane as usize].process));
    if working.len() < 2 {
        working.clear();
    }
    for lane in &mut trace.lanes {
        let new_id = |old: u32| working.iter().position(|process| *process == old);
        lane.process = lane.process.and_then(new_id).map(|id| id as u32);
    }
    let all = std::mem::take(&mut trace.processes);
    let kept = (0..).zip(all).filter(|(id, _)| working.contains(id));
    trace.processes = kept.map(|(_, process)| process).collect();
    if let Some(&first) = unlinked.iter().min() {
        let first_name = trace.name(trace.slices[first as usize].name).to_owned();
        trace.doubts.push(Doubt {
            kind: DoubtKind::Unlinked,
            count: unlinked.len() as u64,
            why: "Calls of several processes have its correlation number, and its time fits more than one of them, so it is linked with \
             none."
                .to_owned(),
            first: first_name,
        });
    }
}

/// Gives each lane of a device to the process that launched its work. A lane with work of several processes is split.
fn split_lanes(trace: &mut Trace, unlinked: &HashSet<u32>) {
    let owners = owners_of_lanes(trace);
    let mut lanes: HashMap<(u32, u32), u32> = HashMap::new();
    for at in 0..trace.slices.len() {
        let lane = trace.slices[at].lane;
        let Some(processes) = owners.get(&lane) else {
            continue;
        };
        let process = if processes.len() > 1 {
            process_of_call(trace, trace.slices[at].link)
        } else if unlinked.contains(&(at as u32)) {
            None
        } else {
            processes.first().copied()
        };
        let Some(process) = process else { continue };
        let next = trace.lanes.len() as u32;
        let new = *lanes.entry((lane, process)).or_insert(next);
        if new == next {
            let mut copy = trace.lanes[lane as usize].clone();
            copy.process = Some(process);
            trace.lanes.push(copy);
        }
        trace.slices[at].lane = new;
    }
}

/// Returns the processes that own work on each lane of a device, for lanes whose process is not in the file.
fn owners_of_lanes(trace: &Trace) -> HashMap<u32, BTreeSet<u32>> {
    let is_open = |lane: u32| {
        let lane = &trace.lanes[lane as usize];
        lane.kind == LaneKind::Device && lane.process.is_none()
    };
    let mut owners: HashMap<u32, BTreeSet<u32>> = HashMap::new();
    for slice in trace.slices.iter().filter(|slice| is_open(slice.lane)) {
        if let Some(process) = process_of_call(trace, slice.link) {
            owners.entry(slice.lane).or_default().insert(process);
        }
    }
    let mut owners_of_device: HashMap<DeviceId, BTreeSet<u32>> = HashMap::new();
    for (lane, processes) in &owners {
        let device = trace.lanes[*lane as usize].device;
        owners_of_device
            .entry(device)
            .or_default()
            .extend(processes);
    }
    // A lane without links belongs to the process that owns all other work of its device.
    for lane in (0..trace.lanes.len() as u32).filter(|lane| is_open(*lane)) {
        let device = trace.lanes[lane as usize].device;
        if let Some(processes) = owners_of_device.get(&device)
            && processes.len() == 1
        {
            owners.entry(lane).or_insert_with(|| processes.clone());
        }
    }
    owners
}

/// Returns the process that made a call; `None` without a call, or if its process is not known.
fn process_of_call(trace: &Trace, link: u32) -> Option<u32> {
    let call = trace.slices.get(link as usize)?;
    trace.lanes[call.lane as usize].process
}
