//! Which process launched the work of a device, where a file names only the device.
//!
//! Correlation numbers are unique within a process, so in a file of several processes a number may stand for a call of each. Work begins
//! after its launch and, where its process waited for the whole device later, has ended when that wait has ended. What contradicts
//! this is excluded; the order of the numbers of processes and devices says nothing. Where several processes are left, work is linked
//! with none.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::model::{Doubt, DoubtKind, LaneKind, NONE, SliceKind, Trace};

/// A call by process and correlation.
type Calls = HashMap<(u64, u64), u32>;

/// One of so many pieces of a device's work may contradict a process that owns the device, as clocks are not exact.
const CONTRADICTS: u64 = 100;
/// One of so many pieces of a device's work may have no launch in the file.
const UNRECORDED: u64 = 10;

/// The ends of waits for the whole device, by the start of each wait.
#[derive(Default)]
struct Waits(Vec<(i64, i64)>);

impl Waits {
    fn new(mut waits: Vec<(i64, i64)>) -> Self {
        waits.sort_unstable();
        let mut least = i64::MAX;
        for wait in waits.iter_mut().rev() {
            least = least.min(wait.1);
            wait.1 = least;
        }
        Self(waits)
    }

    /// When work that was launched at a time has ended at the latest.
    fn bound(&self, launched: i64) -> i64 {
        let next = self.0.partition_point(|wait| wait.0 < launched);
        self.0.get(next).map_or(i64::MAX, |wait| wait.1)
    }
}

/// How well the calls of a process explain the work of a device.
#[derive(Clone, Copy, Default)]
struct Fit {
    contradicts: u64,
    unrecorded: u64,
}

/// The call of each piece of work, and the work that fits several processes. Work comes with its correlation; the scope of
/// `calls` is the number of their process.
pub(crate) fn calls(
    trace: &Trace,
    calls: &Calls,
    work: &[(u32, u64)],
) -> (Vec<(u32, u32)>, HashSet<u32>) {
    let scopes: BTreeSet<u64> = match work.is_empty() {
        true => BTreeSet::new(),
        false => calls.keys().map(|(scope, _)| *scope).collect(),
    };
    let scopes: Vec<u64> = scopes.into_iter().collect();
    let call = |scope: u64, correlation: u64| calls.get(&(scope, correlation)).copied();
    if let [] | [_] = scopes[..] {
        let scope = scopes.first().copied().unwrap_or(0);
        let linked = work
            .iter()
            .filter_map(|&(slice, number)| Some((slice, call(scope, number)?)));
        return (linked.collect(), HashSet::new());
    }
    let mut waits: HashMap<u64, Vec<(i64, i64)>> = HashMap::new();
    for slice in trace.of(SliceKind::Sync) {
        let name = trace.name(slice.name);
        let whole = ["DeviceSync", "CtxSync", "ContextSync"]
            .iter()
            .any(|it| name.contains(it));
        if let (true, Some(process)) = (whole, trace.lanes[slice.lane as usize].process) {
            waits
                .entry(u64::from(process))
                .or_default()
                .push(slice.span());
        }
    }
    let waits: HashMap<u64, Waits> = waits
        .into_iter()
        .map(|(scope, waits)| (scope, Waits::new(waits)))
        .collect();
    let bound = |scope: u64, at: i64| waits.get(&scope).map_or(i64::MAX, |it| it.bound(at));
    let possible = |slice: u32, scope: u64, call: u32| {
        let (work, call) = (&trace.slices[slice as usize], &trace.slices[call as usize]);
        work.start >= call.start && work.end <= bound(scope, call.start)
    };
    let device = |slice: u32| trace.lanes[trace.slices[slice as usize].lane as usize].device;
    let mut fits: BTreeMap<Option<u32>, (u64, Vec<Fit>)> = BTreeMap::new();
    let mut launched: HashSet<(Option<u32>, u64)> = HashSet::new();
    for &(slice, number) in work {
        let kernel = trace.slices[slice as usize].kind == SliceKind::Kernel;
        let again = kernel && !launched.insert((device(slice), number));
        let row = fits
            .entry(device(slice))
            .or_insert_with(|| (0, vec![Fit::default(); scopes.len()]));
        row.0 += 1;
        for (fit, &scope) in row.1.iter_mut().zip(&scopes) {
            let Some(call) = call(scope, number) else {
                fit.unrecorded += 1;
                continue;
            };
            // A launch runs one kernel; only that of a graph runs several.
            let twice = again && trace.slices[call as usize].kind == SliceKind::Launch;
            fit.contradicts += u64::from(twice || !possible(slice, scope, call));
        }
    }
    let owners = owners(&fits, 0)
        .or_else(|| owners(&fits, CONTRADICTS))
        .unwrap_or_default();
    let (mut linked, mut unlinked) = (Vec::new(), HashSet::new());
    for &(slice, number) in work {
        if let Some(&owner) = owners.get(&device(slice)) {
            linked.extend(call(scopes[owner], number).map(|call| (slice, call)));
            continue;
        }
        let found = scopes.iter().filter_map(|&scope| {
            let call = call(scope, number)?;
            possible(slice, scope, call).then_some(call)
        });
        let found: Vec<u32> = found.collect();
        match found[..] {
            [] => {}
            [call] => linked.push((slice, call)),
            _ => drop(unlinked.insert(slice)),
        }
    }
    (linked, unlinked)
}

/// The only process that each device can belong to, as an index; `None` if not every device has one. One of `tolerated` pieces of work may
/// contradict its owner, or none if that is 0.
fn owners(
    fits: &BTreeMap<Option<u32>, (u64, Vec<Fit>)>,
    tolerated: u64,
) -> Option<HashMap<Option<u32>, usize>> {
    let explains = |all: u64, fit: &Fit| {
        let contradicts = match tolerated {
            0 => fit.contradicts,
            _ => fit.contradicts.saturating_sub(all / tolerated),
        };
        contradicts == 0 && fit.unrecorded <= all / UNRECORDED
    };
    let mut possible: BTreeMap<Option<u32>, BTreeSet<usize>> = BTreeMap::new();
    for (device, (all, row)) in fits {
        let processes = row
            .iter()
            .enumerate()
            .filter(|(_, fit)| explains(*all, fit));
        possible.insert(*device, processes.map(|(process, _)| process).collect());
    }
    let mut owners = HashMap::new();
    while owners.len() < possible.len() {
        let free = |owners: &HashMap<Option<u32>, usize>, device: &Option<u32>| {
            !owners.contains_key(device)
        };
        let open: Vec<(Option<u32>, &BTreeSet<usize>)> = possible
            .iter()
            .filter(|(device, _)| free(&owners, device))
            .map(|(device, processes)| (*device, processes))
            .collect();
        // A device that only one process explains, or the only device left for a process that has none.
        let only = open.iter().find(|(_, processes)| processes.len() == 1);
        let only = only.and_then(|(device, processes)| Some((*device, *processes.first()?)));
        let last = || {
            let with: HashSet<usize> = owners.values().copied().collect();
            let left = open
                .iter()
                .flat_map(|(_, processes)| processes.iter().copied());
            left.filter(|process| !with.contains(process))
                .find_map(|process| {
                    let mut devices = open.iter().filter(|(_, all)| all.contains(&process));
                    let device = devices.next()?.0;
                    devices.next().is_none().then_some((device, process))
                })
        };
        let (device, process) = only.or_else(last)?;
        owners.insert(device, process);
    }
    Some(owners)
}

/// Says which process each lane of a device belongs to, from the calls that launched its work: a lane with work of several processes
/// becomes one for each. Then forgets the processes if no more than one launches or owns work.
pub(crate) fn tell_apart(trace: &mut Trace, unlinked: &HashSet<u32>) {
    let launches = |kind| matches!(kind, SliceKind::Launch | SliceKind::GraphLaunch);
    let calls = trace.slices.iter().filter(|slice| launches(slice.kind));
    let launching: BTreeSet<u32> = calls
        .filter_map(|slice| trace.lanes[slice.lane as usize].process)
        .collect();
    let mut working = launching.clone();
    if launching.len() > 1 {
        split(trace, unlinked);
    }
    let work = trace.slices.iter().filter(|slice| slice.kind.on_device());
    working.extend(work.filter_map(|slice| trace.lanes[slice.lane as usize].process));
    if working.len() < 2 {
        working.clear();
    }
    for lane in &mut trace.lanes {
        let place = |id: u32| working.iter().position(|it| *it == id);
        lane.process = lane.process.and_then(place).map(|at| at as u32);
    }
    let all = std::mem::take(&mut trace.processes);
    let kept = (0..).zip(all).filter(|(id, _)| working.contains(id));
    trace.processes = kept.map(|(_, process)| process).collect();
    if let Some(&first) = unlinked.iter().min() {
        let first = &trace.slices[first as usize];
        trace.doubts.push(Doubt {
            kind: DoubtKind::Unlinked,
            count: unlinked.len() as u64,
            why: "Its correlation number is that of a call of several processes, and its time fits them: it is linked with none."
                .to_owned(),
            first: trace.name(first.name).to_owned(),
        });
    }
}

fn split(trace: &mut Trace, unlinked: &HashSet<u32>) {
    let process_of = |trace: &Trace, link: u32| {
        let call = trace.slices.get(link as usize).filter(|_| link != NONE)?;
        trace.lanes[call.lane as usize].process
    };
    let open = |trace: &Trace, lane: u32| {
        let lane = &trace.lanes[lane as usize];
        lane.kind == LaneKind::Device && lane.process.is_none()
    };
    let mut owners: HashMap<u32, BTreeSet<u32>> = HashMap::new();
    for slice in &trace.slices {
        if let Some(process) = process_of(trace, slice.link).filter(|_| open(trace, slice.lane)) {
            owners.entry(slice.lane).or_default().insert(process);
        }
    }
    // A lane without links is that of the process that owns all other work of its device.
    let mut of_device: HashMap<Option<u32>, BTreeSet<u32>> = HashMap::new();
    for (lane, processes) in &owners {
        let device = trace.lanes[*lane as usize].device;
        of_device.entry(device).or_default().extend(processes);
    }
    for lane in 0..trace.lanes.len() as u32 {
        let device = trace.lanes[lane as usize].device;
        let only = of_device.get(&device).filter(|all| all.len() == 1);
        if let Some(only) = only.filter(|_| open(trace, lane)) {
            owners.entry(lane).or_insert_with(|| only.clone());
        }
    }
    let mut lanes: HashMap<(u32, Option<u32>), u32> = HashMap::new();
    for at in 0..trace.slices.len() {
        let (lane, link) = (trace.slices[at].lane, trace.slices[at].link);
        let Some(all) = owners.get(&lane).filter(|_| open(trace, lane)) else {
            continue;
        };
        let process = match all.len() {
            1 if !unlinked.contains(&(at as u32)) => all.first().copied(),
            1 => None,
            _ => process_of(trace, link),
        };
        if process.is_none() {
            continue;
        }
        let next = trace.lanes.len() as u32;
        let new = *lanes.entry((lane, process)).or_insert(next);
        if new == next {
            let mut copy = trace.lanes[lane as usize].clone();
            copy.process = process;
            trace.lanes.push(copy);
        }
        trace.slices[at].lane = new;
    }
}
