//! Draws a trace as cells for a screen: rows of slices that do not overlap, and the contents of each column for a window of time. A
//! timeline is built once; a window then needs only binary searches, even with millions of slices.

use super::model::{LaneKind, NONE, SliceKind, Trace};
use super::names;

/// The largest number of rows of a lane; deeper slices are not drawn.
const DEPTH: usize = 12;

/// A row of slices that do not overlap, sorted by time.
#[derive(Clone, Debug, Default)]
pub struct TimelineRow {
    /// An index into `Trace::lanes`.
    pub lane: u32,
    /// The number of this row within its lane, from 0. Higher rows show slices that are nested in another slice, or overlap it.
    pub depth: usize,
    /// Indices into `Trace::slices`.
    slices: Vec<u32>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    /// The length in nanoseconds of all slices before each position.
    before: Vec<u64>,
    /// A binary tree over the positions, stored like a heap. Each node has the position of the longest slice below it.
    longest: Vec<u32>,
}

/// The contents of one column of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimelineCell {
    /// The slice that fills the longest part of the column, as an index into `Trace::slices`; `None` for an empty column.
    pub slice: Option<u32>,
    /// The share of the column's time that slices fill, 0 to 1.
    pub filled: f64,
    /// The number of slices that overlap the column.
    pub count: u32,
}

/// The name and position of a slice that is wide enough for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The slice, as an index into `Trace::slices`.
    pub slice: u32,
    /// The first column of the slice.
    pub column: usize,
    /// The number of columns of the slice.
    pub width: usize,
    /// The first words of the name that fit into all columns but one, which is left for a bar. They may contain control characters.
    pub text: String,
}

/// The cells of a row in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowCells {
    /// The cells, one for each column of the window.
    pub cells: Vec<TimelineCell>,
    /// The names that fit, from left to right.
    pub labels: Vec<Label>,
}

/// The visible part of a timeline: a span of time over some columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineWindow {
    /// The first nanosecond.
    pub start: i64,
    /// The nanosecond after the last one.
    pub end: i64,
    /// The number of columns.
    pub columns: usize,
}

impl TimelineWindow {
    /// Returns the length of the window in nanoseconds.
    fn width(&self) -> i128 {
        i128::from(self.end) - i128::from(self.start)
    }

    /// Returns the time at which a column starts, in nanoseconds.
    pub fn time(&self, column: usize) -> i64 {
        (i128::from(self.start) + self.width() * column as i128 / self.columns.max(1) as i128)
            as i64
    }

    /// Returns the column of a time; `None` outside of the window.
    pub fn column(&self, time: i64) -> Option<usize> {
        let width = self.width();
        let from = i128::from(time) - i128::from(self.start);
        (width > 0 && (0..width).contains(&from))
            .then(|| (from * self.columns as i128 / width) as usize)
    }

    /// Returns the window moved by a share of its width, but kept within bounds.
    pub fn pan(&self, share: f64, bounds: (i64, i64)) -> Self {
        let width = self.width();
        let start = i128::from(self.start) + (width as f64 * share) as i128;
        self.within(start, width, bounds)
    }

    /// Returns the window made `factor` times as wide. `time` stays in its place. The window has at least one nanosecond per column, and is
    /// kept within bounds.
    pub fn zoom(&self, factor: f64, time: i64, bounds: (i64, i64)) -> Self {
        let at = i128::from(time);
        let width = self.width();
        let most = (i128::from(bounds.1) - i128::from(bounds.0)).max(1);
        let least = (self.columns.max(1) as i128).min(most);
        let new_width = ((width as f64 * factor) as i128).clamp(least, most);
        let share = (at - i128::from(self.start)) as f64 / width.max(1) as f64;
        let start = at - (new_width as f64 * share) as i128;
        self.within(start, new_width, bounds)
    }

    /// Returns the window with another start and width, moved into bounds.
    fn within(&self, start: i128, width: i128, bounds: (i64, i64)) -> Self {
        let latest = i128::from(bounds.1) - width;
        let first = start.min(latest).max(i128::from(bounds.0));
        Self {
            start: first as i64,
            end: (first + width).min(i128::from(i64::MAX)) as i64,
            ..*self
        }
    }
}

/// A trace prepared for drawing.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The rows of all lanes, devices first.
    pub rows: Vec<TimelineRow>,
    /// The first start and the last end, in nanoseconds.
    pub bounds: (i64, i64),
    /// The row of each slice and its position there; `NONE` for a slice that is not drawn.
    places: Vec<(u32, u32)>,
}

impl Timeline {
    /// Puts the slices of a trace into rows, as far as their kind is `shown`.
    pub fn new(trace: &Trace, shown: impl Fn(SliceKind) -> bool) -> Self {
        let mut lanes: Vec<Vec<TimelineRow>> = vec![Vec::new(); trace.lanes.len()];
        let mut places = vec![(NONE, NONE); trace.slices.len()];
        let bounds = trace.span(&shown).unwrap_or((0, 0));
        let slices = (0..).zip(&trace.slices);
        for (index, slice) in slices.filter(|(_, slice)| shown(slice.kind)) {
            let rows = &mut lanes[slice.lane as usize];
            let is_free = |row: &TimelineRow| row.ends.last().is_none_or(|end| *end <= slice.start);
            let depth = rows.iter().position(is_free).unwrap_or(rows.len());
            if depth == DEPTH {
                continue;
            }
            if depth == rows.len() {
                rows.push(TimelineRow::new(slice.lane, depth));
            }
            let row = &mut rows[depth];
            places[index as usize] = (depth as u32, row.slices.len() as u32);
            let before = row.before.last().copied().unwrap_or(0);
            row.slices.push(index);
            row.starts.push(slice.start);
            row.ends.push(slice.end);
            row.before.push(before.saturating_add(slice.ns()));
        }
        let devices_first = |rows: &Vec<TimelineRow>| {
            let lane = rows.first().map(|row| row.lane);
            let is_device =
                lane.is_some_and(|lane| trace.lanes[lane as usize].kind == LaneKind::Device);
            (!is_device, lane)
        };
        lanes.retain(|rows| !rows.is_empty());
        lanes.sort_by_key(devices_first);
        let mut rows: Vec<TimelineRow> = lanes.into_iter().flatten().collect();
        for (number, row) in (0..).zip(&mut rows) {
            row.index_longest();
            for slice in &row.slices {
                places[*slice as usize].0 = number;
            }
        }
        Self {
            rows,
            bounds,
            places,
        }
    }

    /// Returns the row of a slice; `None` for a slice that is not drawn.
    pub fn row_of(&self, slice: u32) -> Option<usize> {
        let (row, _) = *self.places.get(slice as usize)?;
        (row != NONE).then_some(row as usize)
    }

    /// Returns the row and the number of the linked slice, which launched this slice or was launched by it.
    pub fn link(&self, trace: &Trace, slice: u32) -> Option<(usize, u32)> {
        let other = trace.slices.get(slice as usize)?.link;
        Some((self.row_of(other)?, other))
    }

    /// Returns the next slice in the row of a slice, or the previous one if not `forward`; `None` if there is no such slice.
    pub fn neighbour(&self, slice: u32, forward: bool) -> Option<u32> {
        let (_, at) = *self.places.get(slice as usize)?;
        let row = self.rows.get(self.row_of(slice)?)?;
        let neighbour = if forward {
            at as usize + 1
        } else {
            (at as usize).checked_sub(1)?
        };
        row.slices.get(neighbour).copied()
    }

    /// Returns the cells of the row with this index in a window, and the names that fit.
    pub fn line(&self, trace: &Trace, index: usize, window: TimelineWindow) -> RowCells {
        let Some(row) = self.rows.get(index) else {
            return RowCells::default();
        };
        let cell = |column| row.cell(window.time(column), window.time(column + 1));
        let cells: Vec<TimelineCell> = (0..window.columns).map(cell).collect();
        let mut labels: Vec<Label> = Vec::new();
        let mut column = 0;
        while column < cells.len() {
            let shown = cells[column].slice;
            let rest = cells[column..].iter();
            let width = rest.take_while(|cell| cell.slice == shown).count();
            if let Some(number) = shown
                && width >= 3
            {
                let slice = &trace.slices[number as usize];
                let full = trace.name(slice.name);
                let name = if slice.kind.on_device() {
                    names::short(full, usize::MAX)
                } else {
                    full.to_owned()
                };
                labels.push(Label {
                    slice: number,
                    column,
                    width,
                    text: names::whole_words(&name, width - 1).to_owned(),
                });
            }
            column += width;
        }
        RowCells { cells, labels }
    }

    /// Returns the slice at a time in a row, otherwise the nearest slice within `reach` nanoseconds; `None` if there is none.
    pub fn at(&self, index: usize, time: i64, reach: u64) -> Option<u32> {
        let row = self.rows.get(index)?;
        let after = row.starts.partition_point(|start| *start <= time);
        let with_distance = |at: usize| {
            let start = *row.starts.get(at)?;
            let distance = if time < start {
                start.abs_diff(time)
            } else {
                time.abs_diff(row.ends[at].min(time))
            };
            Some((distance, row.slices[at]))
        };
        let around = [
            after.checked_sub(1).and_then(with_distance),
            with_distance(after),
        ];
        let (distance, slice) = around
            .into_iter()
            .flatten()
            .min_by_key(|(distance, _)| *distance)?;
        (distance <= reach).then_some(slice)
    }

    /// Returns start and end of the longest gap of a row between slices that overlap a span, in nanoseconds; `None` without a gap.
    pub fn longest_gap(&self, index: usize, (from, to): (i64, i64)) -> Option<(i64, i64)> {
        let row = self.rows.get(index)?;
        let first = row.ends.partition_point(|end| *end < from);
        let starts = row.starts[first..].iter().skip(1).copied();
        let ends = row.ends[first..].iter().copied();
        ends.zip(starts)
            .take_while(|gap| gap.0 < to)
            .filter(|gap| gap.1 > gap.0)
            .max_by_key(|gap| gap.1.abs_diff(gap.0))
    }
}

impl TimelineRow {
    fn new(lane: u32, depth: usize) -> Self {
        Self {
            lane,
            depth,
            before: vec![0],
            ..Self::default()
        }
    }

    fn ns(&self, at: u32) -> u64 {
        self.ends[at as usize].abs_diff(self.starts[at as usize])
    }

    /// Returns the position of the longer slice of two; a position may be `NONE`.
    fn longer(&self, a: u32, b: u32) -> u32 {
        if b == NONE || (a != NONE && self.ns(a) >= self.ns(b)) {
            a
        } else {
            b
        }
    }

    /// Builds the tree for `longest`.
    fn index_longest(&mut self) {
        let n = self.slices.len();
        let mut tree = vec![NONE; n];
        tree.extend(0..n as u32);
        for node in (1..n).rev() {
            tree[node] = self.longer(tree[2 * node], tree[2 * node + 1]);
        }
        self.longest = tree;
    }

    /// Returns the position of the longest slice in a range of positions; `NONE` for an empty range.
    fn longest(&self, from: usize, to: usize) -> u32 {
        let n = self.slices.len();
        let mut low = from + n;
        let mut high = to + n;
        let mut best = NONE;
        while low < high {
            if low & 1 == 1 {
                best = self.longer(best, self.longest[low]);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                best = self.longer(best, self.longest[high]);
            }
            low /= 2;
            high /= 2;
        }
        best
    }

    /// Returns the contents of the column from one time to another, in nanoseconds.
    fn cell(&self, from: i64, to: i64) -> TimelineCell {
        // A column has at least one nanosecond.
        let to = from.saturating_add(1).max(to);
        let mut first = self.ends.partition_point(|end| *end < from);
        // A slice that ends where the column starts is outside, except for a slice of length 0.
        if self.ends.get(first) == Some(&from) && self.starts[first] < from {
            first += 1;
        }
        let after = self.starts.partition_point(|start| *start < to);
        if first >= after {
            return TimelineCell::default();
        }
        let inside = |at: usize| {
            let end = self.ends[at].min(to);
            end.abs_diff(self.starts[at].max(from).min(end))
        };
        let outside = |at: usize| self.ns(at as u32) - inside(at);
        let last = after - 1;
        let all = self.before[after].saturating_sub(self.before[first]);
        let mut cut = outside(first);
        let mut candidates = vec![first, last];
        if first < last {
            cut += outside(last);
            // Slices between the first and the last are inside as a whole.
            let middle = self.longest(first + 1, last);
            if middle != NONE {
                candidates.push(middle as usize);
            }
        }
        let best = candidates.into_iter().max_by_key(|at| inside(*at));
        TimelineCell {
            slice: best.map(|at| self.slices[at]),
            filled: (all.saturating_sub(cut) as f64 / to.abs_diff(from) as f64).min(1.0),
            count: (after - first) as u32,
        }
    }
}
