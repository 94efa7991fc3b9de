//! Impossible times: events far outside of all others, and kernels whose length covers kernels that ran after them.

use std::ops::Range;

use super::display::time;
use super::figures::median;
use super::model::{Doubt, DoubtKind, Slice, SliceKind, Trace};

/// At each end of a trace, at most one in 20 events may be set aside as far outside of all others.
const FEW: usize = 20;

/// What makes an event suspicious on its own. A more suspicious event needs a smaller gap to all others to be set aside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Suspicion {
    /// The event starts at the zero of the file's clock.
    AtZero,
    /// The event has no length.
    NoLength,
    /// The event looks like any other.
    None,
}

impl Suspicion {
    fn about(trace: &Trace, slice: &Slice) -> Self {
        if trace.clock(slice.start) == 0 {
            Self::AtZero
        } else if slice.ns() == 0 {
            Self::NoLength
        } else {
            Self::None
        }
    }

    /// Returns true if a gap is long enough to set events of this kind aside. `gap` separates them from all others, which take the time
    /// `rest`; both are nanoseconds.
    fn is_far(self, gap: u64, rest: u64) -> bool {
        let (shortest_gap, times_the_rest) = match self {
            Self::AtZero => (1_000_000_000, 1),
            Self::NoLength => (1_000_000_000, 100),
            Self::None => (600_000_000_000, 1000),
        };
        gap >= rest.saturating_mul(times_the_rest).max(shortest_gap)
    }
}

/// The number of later kernels of its own stream that a kernel has to cover to be too long.
const COVERED: usize = 3;
/// A kernel has to be at least this many times as long as the median kernel of its stream to be too long.
const LONGER: u64 = 10;

/// Returns the part of an order of slices that is kept: without the slices at its ends that are far outside of all others. These are
/// counted as doubts.
pub(crate) fn set_aside_outliers(trace: &mut Trace, order: &[u32]) -> Range<usize> {
    let few = order.len() / FEW;
    let at = |i: usize| &trace.slices[order[i] as usize];
    let suspicion = |i: usize| Suspicion::about(trace, at(i));
    let gap = |end: i64, i: usize| at(i).start.saturating_sub(end).max(0) as u64;
    let mut first = 0;
    let mut end = i64::MIN;
    let mut least = Suspicion::AtZero;
    for i in 1..=few {
        end = end.max(at(i - 1).end);
        least = least.max(suspicion(i - 1));
        let rest = at(order.len() - 1 - few).start.abs_diff(at(i).start);
        if least.is_far(gap(end, i), rest) {
            first = i;
        }
    }
    let mut last = order.len();
    let mut end = (first..order.len() - few)
        .map(|i| at(i).end)
        .max()
        .unwrap_or(i64::MAX);
    for i in order.len() - few..order.len() {
        let rest = end.abs_diff(at(first).start);
        // Most gaps are too short for any suspicion: then the later events need not be looked at.
        if Suspicion::AtZero.is_far(gap(end, i), rest) {
            let least = (i..order.len()).map(suspicion).max();
            if least.is_some_and(|least| least.is_far(gap(end, i), rest)) {
                last = i;
                break;
            }
        }
        end = end.max(at(i).end);
    }
    let outside = order.len() - (last - first);
    if outside > 0 {
        let one = if first > 0 { at(0) } else { at(last) };
        let middle = at((first + last) / 2).start;
        let distance = time(one.start.abs_diff(middle));
        let doubt = Doubt {
            kind: DoubtKind::Aside,
            count: outside as u64,
            why: "Its time is far outside the times of all other events, so it is left out."
                .to_owned(),
            first: format!("{}, {distance} from the others", trace.name(one.name)),
        };
        trace.doubts.push(doubt);
    }
    first..last
}

/// Shortens kernels whose length is impossible. Kernels of a stream run one after another, so a kernel that seems to last until several
/// later kernels have ended did not: it then ends at the start of the next kernel, and counts as a doubt.
pub(crate) fn shorten(trace: &mut Trace) {
    if !trace.serial {
        return;
    }
    let mut lanes: Vec<Vec<u32>> = vec![Vec::new(); trace.lanes.len()];
    for (i, slice) in (0..).zip(&trace.slices) {
        let process = trace.lanes[slice.lane as usize].process;
        let is_process_known = trace.processes.is_empty() || process.is_some();
        // Kernels of a graph may run beside each other.
        let call = trace.linked(slice).map(|call| call.kind);
        if slice.kind == SliceKind::Kernel
            && is_process_known
            && call != Some(SliceKind::GraphLaunch)
        {
            lanes[slice.lane as usize].push(i);
        }
    }
    // Numbers of kernels that are too long, each with its new end.
    let mut too_long: Vec<(u32, i64)> = Vec::new();
    for lane in &lanes {
        let at = |i: usize| &trace.slices[lane[i] as usize];
        let mut lengths: Vec<u64> = (0..lane.len()).map(|i| at(i).ns()).collect();
        lengths.sort_unstable();
        let long = median(&lengths).unwrap_or(0).saturating_mul(LONGER);
        for i in 0..lane.len().saturating_sub(COVERED) {
            let is_covered = |j: usize| at(j).start >= at(i).start && at(j).end <= at(i).end;
            if at(i).ns() >= long
                && at(i + 1).start > at(i).start
                && (i + 1..lane.len()).take(COVERED).all(is_covered)
            {
                too_long.push((lane[i], at(i + 1).start));
            }
        }
    }
    let Some(&(first, _)) = too_long.first() else {
        return;
    };
    let first = &trace.slices[first as usize];
    let doubt = Doubt {
        kind: DoubtKind::Contradicts,
        count: too_long.len() as u64,
        why: "Its length covers kernels that ran after it on its own stream, so it is counted only up to the beginning of the next kernel."
            .to_owned(),
        first: format!("{}, {}", trace.name(first.name), time(first.ns())),
    };
    trace.doubts.push(doubt);
    for (kernel, end) in too_long {
        trace.slices[kernel as usize].end = end;
    }
}
