//! Measures how a kernel accesses buffers and workgroup memory: how often it reads each element, and how many consecutive invocations
//! access neighbouring elements.

use std::collections::{BTreeMap, HashMap};

use super::trial::KernelTrial;
use protocol::{KernelAccess, USES};
use wgsl_lockstep::{Access, AccessKind, LaunchReport, Location, OUTSIDE, Observer, Space};

/// The numbers of consecutive invocations that are examined together.
const WINDOWS: [u32; 5] = [2, 4, 8, 16, 32];
/// The bytes of an element of a buffer.
const ELEMENT: u32 = 4;

/// A run on the host. The kernel ended if the report is `complete`.
#[derive(Default)]
pub(super) struct HostRun {
    pub report: LaunchReport,
    pub pattern: AccessPattern,
    /// The contents of all buffers after the run.
    pub found: Vec<Vec<u32>>,
    /// The number of invocations of a workgroup.
    pub invocations: u64,
}

/// The accesses of a run, by their place in the text. Workgroups that store nothing are not counted.
#[derive(Default)]
pub(super) struct AccessPattern {
    all: BTreeMap<Place, Tally>,
    /// The accesses of the present workgroup.
    in_workgroup: HashMap<Place, Tally>,
    has_stored: bool,
}

/// The counts of one access in the text.
#[derive(Clone, Default)]
struct Tally {
    location: Location,
    array: String,
    windows: [WindowCount; WINDOWS.len()],
    /// The number of times that the access was run, by the number of invocations that ran it together.
    together: BTreeMap<usize, u64>,
    /// The loads and stores of single invocations.
    loads: u64,
    stores: u64,
}

/// The counts of windows of one size.
#[derive(Clone, Copy, Default)]
struct WindowCount {
    /// The windows whose invocations accessed one contiguous range of the array, each element once, in any order.
    near: u64,
    all: u64,
}

/// The first byte and the end of an access in the text, and the number of the buffer; `None` for workgroup memory.
type Place = (usize, usize, Option<u32>);

impl Observer for AccessPattern {
    fn workgroup_start(&mut self, _id: [u32; 3], _lanes: u32) {
        self.in_workgroup.clear();
        self.has_stored = false;
    }

    fn workgroup_end(&mut self, _id: [u32; 3]) {
        if self.has_stored {
            for (place, tally) in self.in_workgroup.drain() {
                self.all.entry(place).or_default().add(tally);
            }
        }
    }

    fn access(&mut self, access: &Access<'_>) {
        let span = &access.location.span;
        let binding = access.binding.map(|(_, binding)| binding);
        let tally = self
            .in_workgroup
            .entry((span.start, span.end, binding))
            .or_insert_with(|| Tally {
                location: access.location.clone(),
                array: access.variable.to_owned(),
                ..Tally::default()
            });
        let times = access.elements * access.lanes.len() as u64;
        match access.kind {
            AccessKind::Load => tally.loads += times,
            AccessKind::Store => {
                tally.stores += times;
                self.has_stored |= access.space == Space::Storage;
            }
            _ => {}
        }
        if binding.is_none() {
            return;
        }
        *tally.together.entry(access.lanes.len()).or_default() += 1;
        for (window, count) in WINDOWS.into_iter().zip(&mut tally.windows) {
            let windows = access.lanes.chunk_by(|a, b| a / window == b / window);
            for lanes in windows.filter(|lanes| lanes.len() == window as usize) {
                let mut lowest = OUTSIDE;
                let mut highest = 0;
                for lane in lanes {
                    let offset = access.offsets[*lane as usize];
                    if offset != OUTSIDE {
                        lowest = lowest.min(offset);
                        highest = highest.max(offset);
                    }
                }
                count.all += 1;
                count.near += u64::from(highest.saturating_sub(lowest) < window * ELEMENT);
            }
        }
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.location = other.location;
        self.array = other.array;
        self.loads += other.loads;
        self.stores += other.stores;
        for (count, more) in self.windows.iter_mut().zip(other.windows) {
            count.near += more.near;
            count.all += more.all;
        }
        for (lanes, times) in other.together {
            *self.together.entry(lanes).or_default() += times;
        }
    }

    /// Returns the largest number of invocations that run the access together in at least half of the cases. At the edge of a matrix, fewer
    /// invocations run it.
    fn together(&self) -> usize {
        let all: u64 = self.together.values().sum();
        let mut seen = 0;
        let mut descending = self.together.iter().rev();
        let reaches_half = descending.find(|(_, times)| {
            seen += **times;
            2 * seen >= all
        });
        reaches_half.map_or(0, |(lanes, _)| *lanes)
    }

    /// Returns the largest window size at which at least half of the windows accessed neighbouring elements; 0 if no two consecutive
    /// invocations ran the access together. At an edge, only a few run it together, so that no larger window exists: then the smaller
    /// windows decide, and the result is the largest size. `invocations` is the number of invocations of a workgroup.
    fn neighbours(&self, invocations: u64) -> u64 {
        let mut most = 0;
        for (window, count) in WINDOWS.into_iter().zip(self.windows) {
            match count.all {
                0 if most > 0 && u64::from(window) <= invocations => {
                    return WINDOWS[WINDOWS.len() - 1].into();
                }
                0 => break,
                all if 2 * count.near < all => return most.max(1),
                _ => most = window.into(),
            }
        }
        most
    }
}

/// Merges the accesses of a run into `known`, which keeps the worst figures of all runs. `uses` is the number of times that the written outputs
/// need an element of an input.
pub(super) fn merge(
    trial: &KernelTrial<'_>,
    run: &HostRun,
    uses: f64,
    known: &mut Vec<KernelAccess>,
) {
    for ((start, end, binding), tally) in &run.pattern.all {
        let mut loads = 0;
        let mut loads_and_stores = 0;
        for other in run.pattern.all.values() {
            if other.array == tally.array {
                loads += other.loads;
                loads_and_stores += other.loads + other.stores;
            }
        }
        let found = KernelAccess {
            site: trial.text.filled.origin(&(*start..*end)).start as u64,
            array: tally.array.clone(),
            line: tally.location.line,
            binding: binding.map(u64::from),
            fetches: USES * loads as f64 / uses.max(1.0),
            neighbours: match tally.neighbours(run.invocations) {
                // Single invocations make most accesses of this array.
                0 if 2 * (tally.loads + tally.stores) > loads_and_stores => 1,
                neighbours => neighbours,
            },
            lanes: tally.together() as f64,
        };
        let entry = known
            .iter_mut()
            .find(|entry| (entry.site, &entry.array) == (found.site, &found.array));
        match entry {
            Some(entry) => {
                entry.fetches = entry.fetches.max(found.fetches);
                entry.lanes = entry.lanes.max(found.lanes);
                entry.neighbours = match (entry.neighbours, found.neighbours) {
                    (0, only) | (only, 0) => only,
                    (earlier, found) => earlier.min(found),
                };
            }
            None => known.push(found),
        }
    }
}
