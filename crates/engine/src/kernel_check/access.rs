//! How a kernel accesses buffers and workgroup memory: how often each element is read, and how many consecutive invocations access
//! neighbouring elements.

use std::collections::HashMap;

use super::trial::KernelTrial;
use protocol::{KernelAccess, USES};
use wgsl_lockstep::{Access, AccessKind, LaunchReport, Location, OUTSIDE, Observer, Space};

/// Numbers of consecutive invocations that are examined together.
const WINDOWS: [u32; 5] = [2, 4, 8, 16, 32];
/// Bytes of an f32.
const NUMBER: u64 = 4;

/// A run on the host; the kernel ended if the report is `complete`.
#[derive(Default)]
pub(super) struct HostRun {
    pub report: LaunchReport,
    pub pattern: AccessPattern,
    /// Contents of all buffers afterwards.
    pub found: Vec<Vec<u32>>,
    /// Invocations of a workgroup.
    pub invocations: u64,
}

/// For each access in the text: which elements of the array it touched. A workgroup that stores nothing counts for nothing.
#[derive(Default)]
pub(super) struct AccessPattern {
    all: HashMap<Place, Tally>,
    /// The workgroup that runs now.
    now: HashMap<Place, Tally>,
    has_stored: bool,
}

#[derive(Clone, Default)]
struct Tally {
    location: Location,
    array: String,
    /// For each window size: how many windows accessed elements of one contiguous range no longer than the window, in any order, and
    /// how many windows there were.
    windows: [[u64; 2]; WINDOWS.len()],
    /// How often the access was run, by the number of invocations that ran it together.
    together: HashMap<usize, u64>,
    /// Loads and stores of single invocations.
    loads: u64,
    stores: u64,
}

/// First byte and end of the access in the text, and the buffer's binding; workgroup memory has none.
type Place = (usize, usize, Option<u32>);

impl Observer for AccessPattern {
    fn workgroup_start(&mut self, _id: [u32; 3], _lanes: u32) {
        self.now.clear();
        self.has_stored = false;
    }

    fn workgroup_end(&mut self, _id: [u32; 3]) {
        if self.has_stored {
            for (place, tally) in self.now.drain() {
                self.all.entry(place).or_default().add(tally);
            }
        }
    }

    fn access(&mut self, access: &Access<'_>) {
        let span = &access.location.span;
        let binding = access.binding.map(|(_, binding)| binding);
        let tally = self.now.entry((span.start, span.end, binding));
        let tally = tally.or_insert_with(|| Tally {
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
        for (window, [near, all]) in WINDOWS.into_iter().zip(&mut tally.windows) {
            let windows = access.lanes.chunk_by(|a, b| a / window == b / window);
            for lanes in windows.filter(|lanes| lanes.len() == window as usize) {
                let offsets = lanes.iter().map(|lane| access.offsets[*lane as usize]);
                let offsets = offsets.filter(|offset| *offset != OUTSIDE);
                let (least, most) = offsets.fold((OUTSIDE, 0), |(least, most), offset| {
                    (least.min(offset), most.max(offset))
                });
                *all += 1;
                *near += u64::from(most.saturating_sub(least) < window * NUMBER as u32);
            }
        }
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        (self.location, self.array) = (other.location, other.array);
        self.loads += other.loads;
        self.stores += other.stores;
        for ([near, all], [more_near, more]) in self.windows.iter_mut().zip(other.windows) {
            *near += more_near;
            *all += more;
        }
        for (lanes, times) in other.together {
            *self.together.entry(lanes).or_default() += times;
        }
    }

    /// How many invocations run the access together, at least half of the times: fewer do at an edge.
    fn together(&self) -> usize {
        let mut each: Vec<(usize, u64)> = self
            .together
            .iter()
            .map(|(lanes, times)| (*lanes, *times))
            .collect();
        each.sort_unstable_by_key(|(lanes, _)| std::cmp::Reverse(*lanes));
        let all: u64 = each.iter().map(|(_, times)| times).sum();
        let mut seen = 0;
        let mut each = each.into_iter();
        let most = each.find(|(_, times)| {
            seen += times;
            2 * seen >= all
        });
        most.map_or(0, |(lanes, _)| lanes)
    }

    /// The largest window size at which at least half of the windows accessed neighbouring elements, in a workgroup of `invocations`;
    /// 0 where no two consecutive invocations ran the access together. At an edge only few do, which says nothing about larger windows.
    fn neighbours(&self, invocations: u64) -> u64 {
        let mut most = 0;
        for (window, [near, all]) in WINDOWS.into_iter().zip(self.windows) {
            match all {
                0 if most > 0 && u64::from(window) <= invocations => {
                    return WINDOWS[WINDOWS.len() - 1].into();
                }
                0 => break,
                _ if 2 * near < all => return most.max(1),
                _ => most = window.into(),
            }
        }
        most
    }
}

/// Merges the accesses of a run into `known`, which keeps the worst of all runs. `uses` is how often the outputs that were written need
/// an element of an input.
pub(super) fn count(
    trial: &KernelTrial<'_>,
    run: &HostRun,
    uses: f64,
    known: &mut Vec<KernelAccess>,
) {
    let mut accesses: Vec<(&Place, &Tally)> = run.pattern.all.iter().collect();
    accesses.sort_unstable_by_key(|(place, _)| **place);
    for (place, tally) in &accesses {
        let same_array = accesses
            .iter()
            .filter(|(_, other)| other.array == tally.array);
        let all = same_array.fold([0, 0], |[loads, all], (_, other)| {
            [loads + other.loads, all + other.loads + other.stores]
        });
        let (start, end, binding) = **place;
        let found = KernelAccess {
            site: trial.text.filled.origin(&(start..end)).start as u64,
            array: tally.array.clone(),
            line: tally.location.line,
            binding: binding.map(u64::from),
            fetches: USES * all[0] as f64 / uses.max(1.0),
            neighbours: match tally.neighbours(run.invocations) {
                // Most accesses of this array are by single invocations.
                0 if 2 * (tally.loads + tally.stores) > all[1] => 1,
                found => found,
            },
            lanes: tally.together() as f64,
        };
        let same = |it: &&mut KernelAccess| (it.site, &it.array) == (found.site, &found.array);
        match known.iter_mut().find(same) {
            Some(known) => {
                known.fetches = known.fetches.max(found.fetches);
                known.lanes = known.lanes.max(found.lanes);
                known.neighbours = match (known.neighbours, found.neighbours) {
                    (0, only) | (only, 0) => only,
                    (one, other) => one.min(other),
                };
            }
            None => known.push(found),
        }
    }
}
