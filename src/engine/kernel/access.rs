//! How a kernel takes the elements of what invocations share: how often each is read, and how many neighbouring invocations
//! take neighbouring elements.

use std::collections::HashMap;

use super::trial::KernelTrial;
use crate::lockstep::{Access, OUTSIDE, Observer, Report};
use crate::protocol::{KernelAccess, USES};

/// So many invocations in a row are looked at together.
const WINDOWS: [u32; 5] = [2, 4, 8, 16, 32];
/// Bytes of a number.
const NUMBER: u64 = 4;

/// How each place in the text took elements of a buffer.
#[derive(Default)]
pub struct AccessPattern(HashMap<Place, Tally>);

#[derive(Clone, Copy, Default)]
struct Tally {
    /// For each size of a window: how many took elements of one piece of memory no longer than the window, in any order, and how
    /// many there were.
    windows: [[u64; 2]; WINDOWS.len()],
    /// How often it ran, and for how many invocations in all.
    times: u64,
    lanes: u64,
}

/// First and last byte, and the buffer.
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
    /// The largest window of which at least every second one took neighbours, in a workgroup of so many; 0 where no two invocations
    /// in a row were there together. An edge has few of them, which says nothing of larger windows.
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

/// Adds what a run showed to what is known from other runs: the worst of both. Its workgroups have so many `invocations`, and its
/// outputs took numbers of an input so many times, `uses`.
pub fn count(
    trial: &KernelTrial<'_>,
    report: &Report,
    pattern: &AccessPattern,
    invocations: u64,
    uses: f64,
    known: &mut Vec<KernelAccess>,
) {
    let accesses = &report.accesses;
    for access in accesses {
        let span = &access.location.span;
        let same_array = accesses.iter().filter(|it| it.variable == access.variable);
        let all = same_array.fold([0, 0], |[loads, all], it| {
            [loads + it.loads, all + it.loads + it.stores]
        });
        let binding = access.binding.map(|(_, binding)| binding);
        let place = (span.start, span.end, binding.unwrap_or_default());
        let tally = pattern.0.get(&place).copied().unwrap_or_default();
        let found = KernelAccess {
            site: trial.text.filled.origin(span).start as u64,
            array: access.variable.clone(),
            line: access.location.line,
            binding: binding.map(u64::from),
            fetches: USES * all[0] as f64 / uses.max(1.0),
            neighbours: match tally.neighbours(invocations) {
                // Most of it one by one.
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
