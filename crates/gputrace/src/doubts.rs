//! Times that cannot be: events far outside of all others, and kernels that cover what ran after them.

use std::ops::Range;

use super::display::time;
use super::figures::median;
use super::model::{Doubt, DoubtKind, Slice, SliceKind, Trace};

/// One of so many events may be far outside of the others.
const FEW: usize = 20;

/// How odd an event is by itself, which decides how far from all others it has to be: nanoseconds, and times the length of the rest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Oddity {
    /// It is at the zero of the file's clock.
    AtZero,
    /// It has no length.
    NoLength,
    /// It is like others.
    None,
}

impl Oddity {
    fn of(trace: &Trace, slice: &Slice) -> Self {
        match slice.ns() {
            _ if trace.clock(slice.start) == 0 => Self::AtZero,
            0 => Self::NoLength,
            _ => Self::None,
        }
    }

    fn is_far(self, gap: u64, rest: u64) -> bool {
        let (least, times) = match self {
            Self::AtZero => (1_000_000_000, 1),
            Self::NoLength => (1_000_000_000, 100),
            Self::None => (600_000_000_000, 1000),
        };
        gap >= rest.saturating_mul(times).max(least)
    }
}

/// Kernels of its own stream that a kernel has to cover to be too long.
const COVERED: usize = 3;
/// How many times as long as the median kernel of its stream it has to be.
const LONGER: u64 = 10;

/// The part of an order of slices that is kept: without those at its ends that are far outside of all others.
pub(crate) fn far_outside(trace: &mut Trace, order: &[u32]) -> Range<usize> {
    let few = order.len() / FEW;
    let at = |i: usize| &trace.slices[order[i] as usize];
    let odd = |i: usize| Oddity::of(trace, at(i));
    let gap = |end: i64, i: usize| at(i).start.saturating_sub(end).max(0) as u64;
    let (mut first, mut last) = (0, order.len());
    let (mut end, mut least) = (i64::MIN, Oddity::AtZero);
    for i in 1..=few {
        (end, least) = (end.max(at(i - 1).end), least.max(odd(i - 1)));
        let rest = at(order.len() - 1 - few).start.abs_diff(at(i).start);
        if least.is_far(gap(end, i), rest) {
            first = i;
        }
    }
    let mut end = (first..order.len() - few)
        .map(|i| at(i).end)
        .max()
        .unwrap_or(i64::MAX);
    for i in order.len() - few..order.len() {
        let rest = end.abs_diff(at(first).start);
        // The oddest kind decides whether the rest is looked at.
        if Oddity::AtZero.is_far(gap(end, i), rest) {
            let least = (i..order.len()).map(odd).max();
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
        let far = time(one.start.abs_diff(middle));
        let doubt = Doubt {
            kind: DoubtKind::Aside,
            count: outside as u64,
            why: "Its time is far outside of all others: it is set aside.".to_owned(),
            first: format!("{}, {far} from the others", trace.name(one.name)),
        };
        trace.doubts.push(doubt);
    }
    first..last
}

/// Kernels of a stream run one after another. One that seems to last until several later ones have ended did not: it is counted up to the
/// beginning of the next.
pub(crate) fn shorten(trace: &mut Trace) {
    if !trace.serial {
        return;
    }
    let mut lanes: Vec<Vec<u32>> = vec![Vec::new(); trace.lanes.len()];
    for (i, slice) in (0..).zip(&trace.slices) {
        let known =
            trace.processes.is_empty() || trace.lanes[slice.lane as usize].process.is_some();
        // Kernels of a graph may run beside each other.
        let call = trace.linked(slice).map(|call| call.kind);
        if slice.kind == SliceKind::Kernel && known && call != Some(SliceKind::GraphLaunch) {
            lanes[slice.lane as usize].push(i);
        }
    }
    let mut over: Vec<(u32, i64)> = Vec::new();
    for lane in &lanes {
        let at = |i: usize| &trace.slices[lane[i] as usize];
        let mut lengths: Vec<u64> = (0..lane.len()).map(|i| at(i).ns()).collect();
        lengths.sort_unstable();
        let long = median(&lengths).unwrap_or(0).saturating_mul(LONGER);
        for i in 0..lane.len().saturating_sub(COVERED) {
            let covers = |j: usize| at(j).start >= at(i).start && at(j).end <= at(i).end;
            let covered = || (i + 1..lane.len()).take(COVERED).all(covers);
            if at(i).ns() >= long && covered() && at(i + 1).start > at(i).start {
                over.push((lane[i], at(i + 1).start));
            }
        }
    }
    let Some(&(first, _)) = over.first() else {
        return;
    };
    let first = &trace.slices[first as usize];
    let doubt = Doubt {
        kind: DoubtKind::Contradicts,
        count: over.len() as u64,
        why: "Its length covers kernels that ran after it on its own stream: it is counted up to the beginning of the next."
            .to_owned(),
        first: format!("{}, {}", trace.name(first.name), time(first.ns())),
    };
    trace.doubts.push(doubt);
    for (kernel, end) in over {
        trace.slices[kernel as usize].end = end;
    }
}
