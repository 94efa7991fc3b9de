//! Joins the beginnings and ends of slices that a Chrome trace writes as separate events.

use crate::model::{NONE, TraceBuilder};

/// A beginning or an end of a slice.
pub(super) struct Edge {
    /// The time in nanoseconds.
    pub(super) time: i128,
    /// The slice that begins; `NONE` for an end.
    pub(super) slice: u32,
    /// The name of the slice, which an end may lack.
    pub(super) name: Option<u32>,
    /// The number of the event in the file.
    pub(super) event: u64,
}

/// Joins beginnings and ends, which may come in any order: time orders them. At one time, the order of the file decides if the whole file
/// is in order. Otherwise an end closes first what began before.
pub(super) fn join(out: &mut TraceBuilder, mut edges: Vec<Edge>) {
    let is_in_order = edges.is_sorted_by_key(|edge| edge.time);
    edges.sort_by_key(|edge| edge.time);
    let mut open: Vec<Edge> = Vec::new();
    // Ends of the current time without a slice that began before it.
    let mut late: Vec<Edge> = Vec::new();
    let mut now = None;
    let mut open_before = 0;
    for edge in edges {
        if now != Some(edge.time) {
            for end in late.drain(..) {
                close_last(out, &mut open, &end);
            }
            now = Some(edge.time);
            open_before = open.len();
        }
        if edge.slice != NONE {
            open.push(edge);
            continue;
        }
        if is_in_order {
            close_last(out, &mut open, &edge);
            continue;
        }
        let matches = |begin: &Edge| edge.name.is_none_or(|name| begin.name == Some(name));
        match open[..open_before].iter().rposition(matches) {
            Some(at) => {
                out.close(open.remove(at).slice, edge.time);
                open_before -= 1;
            }
            None => late.push(edge),
        }
    }
    for end in late {
        close_last(out, &mut open, &end);
    }
    let place = || "the end of the file".to_owned();
    out.unread_many("a beginning without an end", open.len() as u64, place);
}

/// Closes the last open slice with the name of an end, or else the last open slice.
fn close_last(out: &mut TraceBuilder, open: &mut Vec<Edge>, end: &Edge) {
    let named = open
        .iter()
        .rposition(|begin| end.name.is_some() && begin.name == end.name);
    if let Some(at) = named.or(open.len().checked_sub(1)) {
        out.close(open.remove(at).slice, end.time);
    } else {
        let place = || format!("event {}", end.event);
        out.unread("an end without a beginning", place);
    }
}
