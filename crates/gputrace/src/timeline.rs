//! A timeline of a trace as cells for a screen: rows of slices that do not overlap, and the contents of each column for a window of
//! time. It is built once; a window needs only binary searches, however many slices there are.

use super::model::{LaneKind, NONE, SliceKind, Trace};
use super::names;

/// Most rows of a lane; deeper slices are not drawn.
const DEPTH: usize = 12;

/// A row of slices that do not overlap, sorted by time.
#[derive(Clone, Debug, Default)]
pub struct TimelineRow {
    /// Index into `Trace::lanes`.
    pub lane: u32,
    /// 0 for the lane itself, more for slices that are nested in or overlap another slice.
    pub depth: usize,
    /// Indices into `Trace::slices`.
    slices: Vec<u32>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    /// Nanoseconds of all slices before each one.
    before: Vec<u64>,
    /// Longest slice of every range, as a heap-ordered tree over positions.
    longest: Vec<u32>,
}

/// The contents of one column of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimelineCell {
    /// The slice with the longest part of the column: an index into `Trace::slices`.
    pub slice: Option<u32>,
    /// Share of the column's time that is filled, 0 to 1.
    pub filled: f64,
    /// How many slices overlap the column.
    pub count: u32,
}

/// The name of a slice that is wide enough for one, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The slice: an index into `Trace::slices`.
    pub slice: u32,
    /// First column.
    pub column: usize,
    /// Columns of the slice.
    pub width: usize,
    /// The first words of the name that fit beside the initial bar, as in the file.
    pub text: String,
}

/// The cells of a row in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowCells {
    /// One cell for each column of the window.
    pub cells: Vec<TimelineCell>,
    /// Names that fit, from left to right.
    pub labels: Vec<Label>,
}

/// The visible part of a timeline: a span of time over some columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineWindow {
    /// First nanosecond.
    pub start: i64,
    /// The nanosecond after the last.
    pub end: i64,
    /// Number of columns.
    pub columns: usize,
}

impl TimelineWindow {
    /// The time at which a column starts.
    pub fn time(&self, column: usize) -> i64 {
        let width = i128::from(self.end) - i128::from(self.start);
        (i128::from(self.start) + width * column as i128 / self.columns.max(1) as i128) as i64
    }

    /// The column of a time, if it is in the window.
    pub fn column(&self, time: i64) -> Option<usize> {
        let width = i128::from(self.end) - i128::from(self.start);
        let from = i128::from(time) - i128::from(self.start);
        (width > 0 && (0..width).contains(&from))
            .then(|| (from * self.columns as i128 / width) as usize)
    }

    /// The window moved by a share of its width, kept within bounds.
    pub fn pan(&self, share: f64, bounds: (i64, i64)) -> Self {
        let width = i128::from(self.end) - i128::from(self.start);
        let start = i128::from(self.start) + (width as f64 * share) as i128;
        self.within(start, width, bounds)
    }

    /// The window made `factor` times as wide around a time, which stays in its place, with at least one nanosecond per column, kept
    /// within bounds.
    pub fn zoom(&self, factor: f64, time: i64, bounds: (i64, i64)) -> Self {
        let at = i128::from(time);
        let width = i128::from(self.end) - i128::from(self.start);
        let most = (i128::from(bounds.1) - i128::from(bounds.0)).max(1);
        let least = (self.columns.max(1) as i128).min(most);
        let new = ((width as f64 * factor) as i128).clamp(least, most);
        let share = (at - i128::from(self.start)) as f64 / width.max(1) as f64;
        let start = at - (new as f64 * share) as i128;
        self.within(start, new, bounds)
    }

    /// The window with another start and width, moved into bounds.
    fn within(&self, start: i128, width: i128, bounds: (i64, i64)) -> Self {
        let latest = i128::from(bounds.1) - width;
        let start = start.min(latest).max(i128::from(bounds.0));
        Self {
            start: start as i64,
            end: (start + width).min(i128::from(i64::MAX)) as i64,
            ..*self
        }
    }
}

/// A trace prepared for drawing.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Lane by lane, devices first.
    pub rows: Vec<TimelineRow>,
    /// From the first start to the last end, in nanoseconds.
    pub bounds: (i64, i64),
    /// Row of each slice, and its index there; `NONE` if it is not drawn.
    places: Vec<(u32, u32)>,
}

impl Timeline {
    /// Puts the slices of these kinds into rows.
    pub fn new(trace: &Trace, shown: impl Fn(SliceKind) -> bool) -> Self {
        let mut lanes: Vec<Vec<TimelineRow>> = vec![Vec::new(); trace.lanes.len()];
        let mut places = vec![(NONE, NONE); trace.slices.len()];
        let bounds = trace.span(&shown).unwrap_or((0, 0));
        let slices = (0..).zip(&trace.slices);
        for (index, slice) in slices.filter(|(_, slice)| shown(slice.kind)) {
            let rows = &mut lanes[slice.lane as usize];
            let free = |row: &TimelineRow| row.ends.last().is_none_or(|end| *end <= slice.start);
            let depth = rows.iter().position(free).unwrap_or(rows.len());
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
        let order = |rows: &Vec<TimelineRow>| {
            let lane = rows.first().map(|row| row.lane);
            let device =
                lane.is_some_and(|lane| trace.lanes[lane as usize].kind == LaneKind::Device);
            (!device, lane)
        };
        lanes.retain(|rows| !rows.is_empty());
        lanes.sort_by_key(order);
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

    /// The row of a slice.
    pub fn row_of(&self, slice: u32) -> Option<usize> {
        let (row, _) = *self.places.get(slice as usize)?;
        (row != NONE).then_some(row as usize)
    }

    /// The linked slice, which launched this slice or was launched by it, and its row.
    pub fn link(&self, trace: &Trace, slice: u32) -> Option<(usize, u32)> {
        let other = trace.slices.get(slice as usize)?.link;
        Some((self.row_of(other)?, other))
    }

    /// The slice of the same row before or after one.
    pub fn neighbour(&self, slice: u32, forward: bool) -> Option<u32> {
        let (_, at) = *self.places.get(slice as usize)?;
        let row = self.rows.get(self.row_of(slice)?)?;
        let at = match forward {
            true => at as usize + 1,
            false => (at as usize).checked_sub(1)?,
        };
        row.slices.get(at).copied()
    }

    /// The cells of a row, and the names that fit.
    pub fn line(&self, trace: &Trace, row: usize, window: TimelineWindow) -> RowCells {
        let Some(row) = self.rows.get(row) else {
            return RowCells::default();
        };
        let cell = |column| row.cell(window.time(column), window.time(column + 1));
        let cells: Vec<TimelineCell> = (0..window.columns).map(cell).collect();
        let mut labels: Vec<Label> = Vec::new();
        let mut column = 0;
        while column < cells.len() {
            let slice = cells[column].slice;
            let rest = cells[column..].iter();
            let width = rest.take_while(|cell| cell.slice == slice).count();
            if let Some(slice) = slice.filter(|_| width >= 3) {
                let it = &trace.slices[slice as usize];
                let name = trace.name(it.name);
                let text = match it.kind.on_device() {
                    true => names::short(name, usize::MAX),
                    false => names::fit(name, usize::MAX),
                };
                let text = names::whole_words(&text, width - 1).to_owned();
                labels.push(Label {
                    slice,
                    column,
                    width,
                    text,
                });
            }
            column += width;
        }
        RowCells { cells, labels }
    }

    /// The slice at a time in a row, otherwise the nearest slice within `reach` nanoseconds.
    pub fn at(&self, row: usize, time: i64, reach: u64) -> Option<u32> {
        let row = self.rows.get(row)?;
        let after = row.starts.partition_point(|start| *start <= time);
        let near = |at: usize| {
            let (start, end) = (*row.starts.get(at)?, *row.ends.get(at)?);
            let far = match time < start {
                true => start.abs_diff(time),
                false => time.abs_diff(end.min(time)),
            };
            Some((far, row.slices[at]))
        };
        let found = [after.checked_sub(1).and_then(near), near(after)];
        let (far, slice) = found.into_iter().flatten().min_by_key(|it| it.0)?;
        (far <= reach).then_some(slice)
    }

    /// Start and end of the longest gap in a row, between slices that overlap a span.
    pub fn longest_gap(&self, row: usize, (from, to): (i64, i64)) -> Option<(i64, i64)> {
        let row = self.rows.get(row)?;
        let first = row.ends.partition_point(|end| *end < from);
        let starts = row.starts[first..].iter().skip(1);
        let gaps = row.ends[first..].iter().copied().zip(starts.copied());
        let inside = gaps.take_while(|gap| gap.0 < to);
        let gaps = inside.filter(|gap| gap.1 > gap.0);
        gaps.max_by_key(|gap| gap.1.abs_diff(gap.0))
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

    fn longer(&self, a: u32, b: u32) -> u32 {
        match b == NONE || (a != NONE && self.ns(a) >= self.ns(b)) {
            true => a,
            false => b,
        }
    }

    fn index_longest(&mut self) {
        let n = self.slices.len();
        let mut tree = vec![NONE; n];
        tree.extend(0..n as u32);
        for node in (1..n).rev() {
            tree[node] = self.longer(tree[2 * node], tree[2 * node + 1]);
        }
        self.longest = tree;
    }

    /// The longest slice in a range of positions.
    fn longest(&self, from: usize, to: usize) -> u32 {
        let n = self.slices.len();
        let (mut low, mut high, mut best) = (from + n, to + n, NONE);
        while low < high {
            if low & 1 == 1 {
                best = self.longer(best, self.longest[low]);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                best = self.longer(best, self.longest[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        best
    }

    fn cell(&self, from: i64, to: i64) -> TimelineCell {
        let to = to.max(from.saturating_add(1));
        // A slice of length 0 counts at its start.
        let first = self.ends.partition_point(|end| *end < from);
        let first =
            first + usize::from(self.ends.get(first) == Some(&from) && self.starts[first] < from);
        let last = self.starts.partition_point(|start| *start < to);
        if first >= last {
            return TimelineCell::default();
        }
        let part = |at: usize| {
            self.ends[at]
                .min(to)
                .abs_diff(self.starts[at].max(from).min(self.ends[at].min(to)))
        };
        let cut = |at: usize| self.ns(at as u32) - part(at);
        let whole = self.before[last].saturating_sub(self.before[first]);
        let outside = cut(first) + if last - first > 1 { cut(last - 1) } else { 0 };
        let ends = [first, last - 1];
        let middle = (last - first > 2).then(|| self.longest(first + 1, last - 1));
        let middle = middle.filter(|it| *it != NONE).map(|it| it as usize);
        let best = ends.into_iter().chain(middle).max_by_key(|at| part(*at));
        TimelineCell {
            slice: best.map(|at| self.slices[at]),
            filled: (whole.saturating_sub(outside) as f64 / to.abs_diff(from) as f64).min(1.0),
            count: (last - first) as u32,
        }
    }
}
