//! Sets of disjoint intervals of time, in nanoseconds.

use crate::model::sum;

/// Start and end in nanoseconds.
pub(super) type Span = (i64, i64);
/// Disjoint intervals in order.
pub(super) type Union = Vec<Span>;

/// Returns the union of intervals that are sorted by their start.
pub(super) fn union(spans: impl IntoIterator<Item = Span>) -> Union {
    let mut union: Union = Vec::new();
    for (start, end) in spans {
        match union.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => union.push((start, end)),
        }
    }
    union
}

/// Returns the intervals of a union inside a window, clipped to it.
pub(super) fn within(union: &Union, (from, to): Span) -> impl Iterator<Item = Span> {
    let first = union.partition_point(|span| span.1 <= from);
    union[first..]
        .iter()
        .take_while(move |span| span.0 < to)
        .map(move |span| (span.0.max(from), span.1.min(to)))
}

/// Returns true if a time is within one of the intervals.
pub(super) fn covers(union: &Union, time: i64) -> bool {
    let next = union.partition_point(|span| span.1 <= time);
    union.get(next).is_some_and(|span| span.0 <= time)
}

/// Returns the length of all intervals together, in nanoseconds.
pub(super) fn length(spans: impl IntoIterator<Item = Span>) -> u64 {
    sum(spans.into_iter().map(|(start, end)| end.abs_diff(start)))
}

/// Returns the number of sorted times in a window.
pub(super) fn count_inside(times: &[i64], (from, to): Span) -> u64 {
    let before = |limit: i64| times.partition_point(|time| *time < limit);
    before(to).saturating_sub(before(from)) as u64
}
