//! How a kernel accesses buffers and workgroup memory: how often each element is read, and how many consecutive invocations access
//! neighbouring elements.

use std::collections::HashMap;

use super::trial::KernelTrial;
use protocol::{KernelAccess, USES};
use wgsl_lockstep::{Access, LaunchReport, OUTSIDE, Observer};

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
    pub found: Vec<Vec<f32>>,
    /// Invocations of a workgroup.
    pub invocations: u64,
}

/// For each access in the text: which elements of the buffer it touched.
#[derive(Default)]
pub(super) struct AccessPattern(HashMap<Place, Tally>);

#[derive(Clone, Copy, Default)]
struct Tally {
    /// For each window size: how many windows accessed elements of one contiguous range no longer than the window, in any order, and
    /// how many windows there were.
    windows: [[u64; 2]; WINDOWS.len()],
    /// How often the access ran, and for how many invocations in total.
    times: u64,
    lanes: u64,
}

/// First byte and end of the access in the text, and the buffer's binding.
type Place = (usize, usize, u32);

impl Observer for AccessPattern {
    fn access(&mut self, access: &Access<'_>) {
        let Some((_, binding)) = access.binding else {
            return;
        };
        let span = &access.location.span;
        let tally = self.0.entry((span.start, span.end, binding)).or_default();
        tally.times += 1;
        tally.lanes += access.lanes.len() as u64;
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
    /// The largest window size at which at least half of the windows accessed neighbouring elements, in a workgroup of `invocations`;
    /// 0 where no two consecutive invocations ran the access together. At an edge only few do, which says nothing about larger windows.
    fn neighbours(self, invocations: u64) -> u64 {
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
    let accesses = &run.report.accesses;
    for access in accesses {
        let span = &access.location.span;
        let same_array = accesses.iter().filter(|it| it.variable == access.variable);
        let all = same_array.fold([0, 0], |[loads, all], it| {
            [loads + it.loads, all + it.loads + it.stores]
        });
        let binding = access.binding.map(|(_, binding)| binding);
        let place = (span.start, span.end, binding.unwrap_or_default());
        let tally = run.pattern.0.get(&place).copied().unwrap_or_default();
        let found = KernelAccess {
            site: trial.text.filled.origin(span).start as u64,
            array: access.variable.clone(),
            line: access.location.line,
            binding: binding.map(u64::from),
            fetches: USES * all[0] as f64 / uses.max(1.0),
            neighbours: match tally.neighbours(run.invocations) {
                // Most accesses of this array are by single invocations.
                0 if 2 * (access.loads + access.stores) > all[1] => 1,
                found => found,
            },
            lanes: tally.lanes as f64 / tally.times.max(1) as f64,
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
