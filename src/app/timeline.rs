//! The visible part of a timeline: a span of time, a marked row and a marked slice. Keys and the mouse move it.
//!
//! The screen of `perflings open` draws it, and so does a panel of the workshop. The workshop makes a new trace of the latest profiled step
//! for each frame, so it keeps the visible part as `TimelineSeen`.

use std::sync::Arc;

use gputrace::model::{SliceKind, Trace};
use gputrace::timeline::{Timeline, TimelineWindow};

/// The number of columns that zooming and moving assume, because the width of the panel is not known here.
const COLUMNS: usize = 100;

/// A move of the view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimelineMove {
    /// Moves forward by this many eighths of the visible span.
    Pan(i32),
    /// Zooms in for a positive number, else out, around the marked slice or the middle.
    Zoom(i32),
    /// Zooms around this time, in nanoseconds of the trace, in for a positive number.
    ZoomAt(i64, i32),
    /// Marks the row this many lines further down.
    Row(i32),
    /// Marks the next slice of the row for a positive number, else the one before.
    Slice(i32),
    /// Goes to the launch of the marked slice, or to the slice that it launched.
    Link,
    /// Goes to the step this many places further on.
    Step(i32),
    /// Shows the whole trace.
    Whole,
    /// Also shows operations and calls of the host, or hides them.
    Everything,
    /// Marks the slice of a row at a time, or the nearest one within a reach in nanoseconds, and holds that time for `Drag`.
    Pick(usize, i64, u64),
    /// Moves the view so that the held time is shown where this time is now.
    Drag(i64),
}

/// A trace and its visible part.
#[derive(Clone, Debug)]
pub struct TimelineView {
    pub trace: Arc<Trace>,
    pub timeline: Arc<Timeline>,
    /// The first and the last visible nanosecond.
    pub seen: (i64, i64),
    /// The index of the marked row.
    pub row: usize,
    /// The index of the marked slice.
    pub slice: Option<u32>,
    /// The time under the mouse when a button was pressed, in nanoseconds of the trace.
    pub(super) held: i64,
    /// The beginning and end of each step, in nanoseconds of the trace.
    steps: Arc<[(i64, i64)]>,
    /// Operations and calls of the host are shown, too.
    everything: bool,
}

impl TimelineView {
    /// Makes a view of the step at index `first`, or of the whole trace if there is no such step. `steps` are the spans of all steps.
    pub fn new(trace: Arc<Trace>, steps: Vec<(i64, i64)>, first: usize) -> Self {
        let timeline = Arc::new(Timeline::new(&trace, plain));
        let seen = steps.get(first).copied().unwrap_or(timeline.bounds);
        Self {
            trace,
            timeline,
            seen,
            row: 0,
            slice: None,
            held: seen.0,
            steps: steps.into(),
            everything: false,
        }
    }

    /// Returns the visible span, spread over this many columns.
    pub fn window(&self, columns: usize) -> TimelineWindow {
        let (start, end) = self.seen;
        TimelineWindow {
            start,
            end: end.max(start.saturating_add(1)),
            columns,
        }
    }

    /// Returns the index of the first visible step.
    pub fn step(&self) -> Option<usize> {
        let (from, to) = self.seen;
        self.steps
            .iter()
            .position(|(begin, end)| *end > from && *begin < to)
    }

    /// Moves the view.
    pub fn go(&mut self, to: TimelineMove) {
        let bounds = self.timeline.bounds;
        let window = self.window(COLUMNS);
        let mut see = |window: TimelineWindow| self.seen = (window.start, window.end);
        match to {
            TimelineMove::Pan(eighths) => see(window.pan(f64::from(eighths) / 8.0, bounds)),
            TimelineMove::Zoom(by) => {
                let marked = self.slice.and_then(|at| self.trace.slices.get(at as usize));
                // The middle of the slice's visible part, so that the slice stays in view.
                let (from, to) = marked
                    .map(|slice| (slice.start.max(window.start), slice.end.min(window.end)))
                    .filter(|(from, to)| from <= to)
                    .unwrap_or((window.start, window.end));
                see(window.zoom(factor(by), from.midpoint(to), bounds));
            }
            TimelineMove::ZoomAt(time, by) => {
                let visible = time.clamp(window.start, window.end);
                see(window.zoom(factor(by), visible, bounds));
            }
            TimelineMove::Row(by) => {
                let last = self.timeline.rows.len().saturating_sub(1);
                self.row = self.row.saturating_add_signed(by as isize).min(last);
                self.slice = None;
            }
            TimelineMove::Slice(by) => self.next(by > 0),
            TimelineMove::Link => {
                let link = self
                    .slice
                    .and_then(|at| self.timeline.link(&self.trace, at));
                if let Some((row, slice)) = link {
                    self.row = row;
                    self.slice = Some(slice);
                    self.reveal(slice);
                }
            }
            TimelineMove::Step(by) => {
                let last = self.steps.len().saturating_sub(1);
                let to = self
                    .step()
                    .map_or(0, |at| at.saturating_add_signed(by as isize).min(last));
                self.seen = self.steps.get(to).copied().unwrap_or(bounds);
            }
            TimelineMove::Whole => self.seen = bounds,
            TimelineMove::Everything => {
                self.everything = !self.everything;
                let shown = if self.everything { |_| true } else { plain };
                self.timeline = Arc::new(Timeline::new(&self.trace, shown));
                self.row = 0;
                self.slice = None;
            }
            TimelineMove::Pick(row, time, reach) => {
                self.held = time;
                if row < self.timeline.rows.len() {
                    self.row = row;
                    self.slice = self.timeline.at(row, time, reach);
                }
            }
            TimelineMove::Drag(time) => {
                let by = self.held as f64 - time as f64;
                see(window.pan(by / (window.end as f64 - window.start as f64), bounds));
            }
        }
    }

    /// Marks the next slice of the row, or the one before. If none is marked, marks the first visible one.
    fn next(&mut self, forward: bool) {
        let (from, to) = self.seen;
        let next = match self.slice {
            Some(at) => self.timeline.neighbour(at, forward),
            None => self.timeline.at(self.row, from, from.abs_diff(to)),
        };
        if let Some(next) = next {
            self.slice = Some(next);
            self.reveal(next);
        }
    }

    /// Moves the view to a slice if it is not visible.
    fn reveal(&mut self, at: u32) {
        let Some(slice) = self.trace.slices.get(at as usize) else {
            return;
        };
        let (from, to) = self.seen;
        if slice.end < from || slice.start > to {
            let half = (from.abs_diff(to) / 2) as i64;
            let (low, _) = self.timeline.bounds;
            let start = slice.start.saturating_sub(half).max(low);
            self.seen = (start, start.saturating_add(half.saturating_mul(2)));
        }
    }
}

/// The visible part of a timeline whose trace changes, as shares of its length, with the marked row and slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineSeen {
    pub(super) shares: Option<(f64, f64)>,
    pub(super) row: usize,
    pub(super) slice: Option<u32>,
    pub(super) held: i64,
}

/// Returns the factor of one zoom step.
fn factor(by: i32) -> f64 {
    if by > 0 { 0.5 } else { 2.0 }
}

/// Returns true for the kinds of slices that are shown at first: work of devices, its launches and waits, and named ranges.
fn plain(kind: SliceKind) -> bool {
    let calls = matches!(
        kind,
        SliceKind::Launch | SliceKind::GraphLaunch | SliceKind::Sync
    );
    kind.on_device() || calls || kind == SliceKind::Annotation
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrace::model::{LaneKind, TraceBuilder};

    /// Makes a trace of ten kernels. The host launches one every 100 ns; the device runs it 50 ns later for 10 ns.
    fn view() -> TimelineView {
        let mut out = TraceBuilder::new("a", "made", false);
        let host = out.lane(LaneKind::Host, "p", "host", None);
        let device = out.device("0");
        let queue = out.lane(LaneKind::Device, "gpu", "queue", Some(device));
        let launch = out.name("cudaLaunchKernel");
        let kernel = out.name("kernel");
        for i in 0..10_u64 {
            let at = i128::from(i) * 100;
            let call = out.slice(SliceKind::Launch, host, launch, (at, at + 5), String::new);
            let work = out.slice(
                SliceKind::Kernel,
                queue,
                kernel,
                (at + 50, at + 60),
                String::new,
            );
            out.link(call.expect("a slice"), 0, Some(i));
            out.link(work.expect("a slice"), 0, Some(i));
        }
        TimelineView::new(Arc::new(out.finish()), vec![(0, 500), (500, 1000)], 0)
    }

    #[test]
    fn keys_move_within_the_trace_and_links_lead_to_the_launch_and_back() {
        let mut screen = view();
        assert_eq!((screen.seen, screen.step()), ((0, 500), Some(0)));
        screen.go(TimelineMove::Step(1));
        assert_eq!((screen.seen, screen.step()), ((500, 1000), Some(1)));
        screen.go(TimelineMove::Pan(80));
        assert!(screen.seen.1 <= screen.timeline.bounds.1);
        screen.go(TimelineMove::Whole);
        screen.go(TimelineMove::Pick(0, 155, 0));
        let kernel = screen.slice.expect("a kernel");
        assert_eq!(screen.trace.slices[kernel as usize].start, 150);
        let seen = screen.seen;
        screen.go(TimelineMove::Drag(255));
        assert_eq!(screen.seen, seen, "all is seen already");
        screen.seen = (100, 300);
        screen.go(TimelineMove::Drag(195));
        assert_eq!(screen.seen, (60, 260));
        screen.go(TimelineMove::Pick(9, 200, 0));
        screen.go(TimelineMove::Drag(100));
        assert_eq!((screen.seen, screen.slice), ((160, 360), Some(kernel)));
        screen.go(TimelineMove::Link);
        let launch = screen.slice.expect("its launch");
        assert_eq!(screen.trace.slices[launch as usize].start, 100);
        screen.go(TimelineMove::Slice(1));
        screen.go(TimelineMove::Link);
        let kernel = screen.slice.expect("the next kernel");
        assert_eq!(screen.trace.slices[kernel as usize].start, 250);
        for _ in 0..200 {
            screen.go(TimelineMove::Zoom(1));
        }
        assert!(screen.seen.1 > screen.seen.0);
        for _ in 0..200 {
            screen.go(TimelineMove::Zoom(-1));
        }
        assert_eq!(screen.seen, screen.timeline.bounds);
    }

    #[test]
    fn zooming_keeps_each_marked_slice_in_view() {
        for marked in 0..20 {
            let mut screen = view();
            screen.go(TimelineMove::Whole);
            screen.slice = Some(marked);
            let slice = screen.trace.slices[marked as usize];
            for step in 0..40 {
                screen.go(TimelineMove::Zoom(1));
                let seen = slice.start.max(screen.seen.0) < slice.end.min(screen.seen.1);
                assert!(seen, "slice {marked}, step {step}: {:?}", screen.seen);
            }
        }
    }
}
