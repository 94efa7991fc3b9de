//! How a kernel takes the elements of what invocations share: how often each is read, and how many neighbouring invocations
//! take neighbouring elements.

use std::collections::HashMap;

use super::trial::KernelTrial;
use crate::lockstep::{Access, OUTSIDE, Observer, Report};
use crate::protocol::KernelAccess;

/// So many invocations in a row are looked at together.
const WINDOWS: [u32; 5] = [2, 4, 8, 16, 32];
/// Bytes of a number.
const NUMBER: u64 = 4;

/// For each place in the text that takes elements of a buffer, and each size of a window: how many windows took elements of
/// one piece of memory no longer than the window, in any order, and how many there were.
#[derive(Default)]
pub struct Windows(HashMap<Place, [[u64; 2]; WINDOWS.len()]>);

/// First and last byte, and the buffer.
type Place = (usize, usize, u32);

impl Observer for Windows {
    fn access(&mut self, access: &Access<'_>) {
        let Some((_, binding)) = access.binding else {
            return;
        };
        let span = &access.location.span;
        let tally = self.0.entry((span.start, span.end, binding)).or_default();
        for (window, [near, all]) in WINDOWS.into_iter().zip(tally) {
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

impl Windows {
    /// The largest window of which at least every second one took neighbours.
    fn neighbours(&self, place: &Place) -> u64 {
        let tally = self.0.get(place).copied().unwrap_or_default();
        let sizes = WINDOWS
            .into_iter()
            .zip(tally)
            .take_while(|(_, [near, all])| 2 * near >= *all);
        let sizes = sizes.filter(|(_, [_, all])| *all > 0);
        sizes.last().map_or(1, |(window, _)| window.into())
    }
}

/// Adds what a run showed to what is known from other sizes.
pub fn count(
    trial: &KernelTrial<'_>,
    report: &Report,
    windows: &Windows,
    invocations: u64,
    known: &mut Vec<KernelAccess>,
) {
    for access in &report.accesses {
        let span = &access.location.span;
        let loads = report
            .accesses
            .iter()
            .filter(|it| it.variable == access.variable);
        let loads: u64 = loads.map(|it| it.loads).sum();
        // Lanes past an edge may all read its last element: of a small array that says nothing about a large one.
        let numbers = (access.size / NUMBER).max(invocations);
        let binding = access.binding.map(|(_, binding)| binding);
        let place = (span.start, span.end, binding.unwrap_or_default());
        let found = KernelAccess {
            site: trial.text.filled.origin(span).start as u64,
            array: access.variable.clone(),
            line: access.location.line,
            binding: binding.map(u64::from),
            fetches: loads as f64 / numbers as f64,
            neighbours: windows.neighbours(&place),
        };
        let same = |it: &&mut KernelAccess| (it.site, &it.array) == (found.site, &found.array);
        match known.iter_mut().find(same) {
            Some(known) => {
                known.fetches = known.fetches.max(found.fetches);
                known.neighbours = known.neighbours.max(found.neighbours);
            }
            None => known.push(found),
        }
    }
}
