//! The timeline: its cells, the slices that it finds, and the names that fit.

use gputrace::Trace;
use gputrace::model::{Slice, SliceKind};
use gputrace::names::{short, whole_words};
use gputrace::timeline::{Timeline, TimelineWindow};

use super::fixtures::{self, bytes};

/// Returns a trace with its timeline, without operations of the host.
fn drawn() -> (Trace, Timeline) {
    let trace = bytes("a", fixtures::kineto(&fixtures::run(3, 700, 250))).unwrap();
    let timeline = Timeline::new(&trace, |kind| kind != SliceKind::Op);
    (trace, timeline)
}

/// Returns the sixth kernel, as an index into the slices.
fn sixth_kernel(trace: &Trace) -> u32 {
    let slices = (0..).zip(&trace.slices);
    let mut kernels = slices.filter(|(_, slice)| slice.kind == SliceKind::Kernel);
    kernels.nth(5).unwrap().0
}

#[test]
fn a_cell_shows_the_share_of_its_time_that_slices_fill() {
    let (trace, timeline) = drawn();
    let (low, high) = timeline.bounds;
    let mut window = TimelineWindow {
        start: low,
        end: high,
        columns: 80,
    };
    for _ in 0..40 {
        for (number, row) in timeline.rows.iter().enumerate() {
            let line = timeline.line(&trace, number, window);
            for (column, cell) in line.cells.iter().enumerate() {
                let from = window.time(column);
                let to = window.time(column + 1);
                // The expected time is added up over every slice of the row, one by one.
                let mut filled = 0;
                for (index, slice) in (0..).zip(&trace.slices) {
                    if slice.lane == row.lane && timeline.row_of(index) == Some(number) {
                        filled += (slice.end.min(to) - slice.start.max(from)).max(0);
                    }
                }
                assert!(
                    (cell.filled - filled as f64 / (to - from) as f64).abs() < 1e-9,
                    "{window:?} {number} {column}"
                );
                assert_eq!(cell.slice.is_some(), cell.count > 0);
            }
        }
        window = window
            .zoom(0.8, window.time(30), timeline.bounds)
            .pan(0.07, timeline.bounds);
    }
}

#[test]
fn a_slice_leads_to_its_link_and_its_neighbours() {
    let (trace, timeline) = drawn();
    let kernel = sixth_kernel(&trace);
    let (row, launch) = timeline.link(&trace, kernel).unwrap();
    let launch_slice = &trace.slices[launch as usize];
    assert_eq!(launch_slice.kind, SliceKind::Launch);
    assert_eq!(timeline.link(&trace, launch).unwrap().1, kernel);
    assert_eq!(timeline.at(row, launch_slice.start + 1, 0), Some(launch));
    let next = timeline.neighbour(kernel, true).unwrap();
    assert_eq!(timeline.neighbour(next, false), Some(kernel));
}

#[test]
fn the_longest_gap_of_a_row_is_found() {
    let (trace, timeline) = drawn();
    let kernel = sixth_kernel(&trace);
    let lane = trace.slices[kernel as usize].lane;
    let spans: Vec<(i64, i64)> = trace
        .slices
        .iter()
        .filter(|slice| slice.lane == lane)
        .map(Slice::span)
        .collect();
    let longest = spans.windows(2).map(|pair| pair[1].0 - pair[0].1).max();
    let row = timeline.row_of(kernel).unwrap();
    let gap = timeline.longest_gap(row, timeline.bounds);
    assert_eq!(gap.map(|(from, to)| to - from), longest);
}

#[test]
fn a_label_has_only_whole_words_of_a_name() {
    let (trace, timeline) = drawn();
    let kernel = sixth_kernel(&trace);
    let slice = &trace.slices[kernel as usize];
    let name = short(trace.name(slice.name), 60);
    let row = timeline.row_of(kernel).unwrap();
    for columns in [4, 12, name.len(), name.len() + 1, 200] {
        let window = TimelineWindow {
            start: slice.start,
            end: slice.end,
            columns,
        };
        let line = timeline.line(&trace, row, window);
        let label = line.labels.iter().find(|label| label.slice == kernel);
        let expected = whole_words(&name, columns - 1);
        assert_eq!(label.map(|label| label.text.as_str()), Some(expected));
    }
}
