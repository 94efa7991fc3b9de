//! Points and lines on two logarithmic axes. Marks are letters, which give way to
//! each other by a cell; names stand where they hide nothing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::{Grid, Ink};
use super::put;
use super::ticks::{tick_label, ticks};
use crate::tui::symbols::Symbols;
use crate::tui::text;

/// A line through these places, with its name near one.
pub struct Path {
    pub points: Vec<(f64, f64)>,
    pub name: String,
    pub named_at: (f64, f64),
    pub style: Style,
}

/// A marked place.
pub struct Mark {
    pub at: (f64, f64),
    pub letter: char,
    pub style: Style,
}

/// What to draw. Earlier marks stand where they belong.
pub struct Scatter {
    pub x: (f64, f64),
    pub y: (f64, f64),
    /// What the axes count, and by what the numbers on them are divided.
    pub names: [&'static str; 2],
    pub units: (f64, f64),
    pub paths: Vec<Path>,
    pub marks: Vec<Mark>,
    pub axis: Style,
    pub symbols: Symbols,
}

/// Columns left of the plot for the numbers.
const GUTTER: u16 = 8;

impl Scatter {
    /// Draws into `area`; too small an area stays empty.
    pub fn render(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.width < 24 || area.height < 4 || !(ordered(self.x) && ordered(self.y)) {
            return;
        }
        let plot = Rect {
            x: area.x + GUTTER,
            width: area.width - GUTTER,
            height: area.height - 1,
            ..area
        };
        let dots = if self.symbols.braille { (2, 4) } else { (1, 1) };
        let field = Field {
            size: (
                usize::from(plot.width) * dots.0,
                usize::from(plot.height) * dots.1,
            ),
            x: self.x,
            y: self.y,
        };
        self.draw_axes(area, plot, buffer);
        let mut grid = Grid::new(plot, dots);
        for path in &self.paths {
            let ink = Ink {
                kind: 0,
                style: path.style,
            };
            for pair in path.points.windows(2) {
                grid.line(field.place(pair[0]), field.place(pair[1]), ink);
            }
        }
        grid.render(&self.symbols, buffer);

        let cell = |at: (f64, f64)| {
            let (column, row) = field.place(at);
            ((column / dots.0) as u16, (row / dots.1) as u16)
        };
        let mut taken = Taken {
            plot,
            grid: &grid,
            spans: Vec::new(),
        };
        for mark in &self.marks {
            let Some(at) = taken.near(cell(mark.at)) else {
                continue;
            };
            let mut letter = [0; 4];
            let letter = mark.letter.encode_utf8(&mut letter);
            put(buffer, plot.x + at.0, plot.y + at.1, letter, 1, mark.style);
            taken.spans.push((at.1, at.0..at.0 + 1));
        }
        for path in &self.paths {
            taken.name(&path.name, cell(path.named_at), path.style, buffer);
        }
    }

    fn draw_axes(&self, area: Rect, plot: Rect, buffer: &mut Buffer) {
        let field = Field {
            size: (usize::from(plot.width), usize::from(plot.height)),
            x: self.x,
            y: self.y,
        };
        let mut last: Option<u16> = None;
        for value in ticks(self.y, true, usize::from(plot.height / 3).clamp(2, 8)) {
            let row = field.place((self.x.0, value)).1 as u16;
            if last.is_none_or(|other| other.abs_diff(row) > 1) {
                let label = text::right(&tick_label(value / self.units.1), usize::from(GUTTER) - 1);
                put(buffer, area.x, plot.y + row, &label, GUTTER - 1, self.axis);
                last = Some(row);
            }
        }
        for row in 0..plot.height {
            put(
                buffer,
                plot.x - 1,
                plot.y + row,
                self.symbols.vertical,
                1,
                self.axis,
            );
        }
        let foot = area.bottom() - 1;
        let name = format!(" {}", self.names[0]);
        let wide = text::width(&name) as u16;
        let name_at = area.right().saturating_sub(wide);
        put(
            buffer,
            area.x,
            foot,
            &text::right(self.names[1], usize::from(GUTTER) - 1),
            GUTTER - 1,
            self.axis,
        );
        put(buffer, name_at, foot, &name, wide, self.axis);
        let mut free = plot.x;
        for value in ticks(self.x, true, usize::from(plot.width / 10).clamp(2, 10)) {
            let label = tick_label(value / self.units.0);
            let wide = text::width(&label) as u16;
            let column = field.place((value, self.y.0)).0 as u16;
            let x = (plot.x + column).saturating_sub(wide / 2).max(plot.x);
            if x >= free && x + wide < name_at {
                put(buffer, x, foot, &label, wide, self.axis);
                free = x + wide + 2;
            }
        }
    }
}

fn ordered((low, high): (f64, f64)) -> bool {
    low > 0.0 && high > low && high.is_finite()
}

/// Dots, and the ranges they stand for.
struct Field {
    size: (usize, usize),
    x: (f64, f64),
    y: (f64, f64),
}

impl Field {
    /// Column and row of a place, row 0 at the top; what lies outside is brought to the edge.
    fn place(&self, at: (f64, f64)) -> (usize, usize) {
        let share = |value: f64, (low, high): (f64, f64)| {
            ((value.max(f64::MIN_POSITIVE).ln() - low.ln()) / (high.ln() - low.ln()))
                .clamp(0.0, 1.0)
        };
        let last = |size: usize| size.saturating_sub(1) as f64;
        let column = share(at.0, self.x) * last(self.size.0);
        let row = (1.0 - share(at.1, self.y)) * last(self.size.1);
        (column.round() as usize, row.round() as usize)
    }
}

/// Where marks and names stand already.
struct Taken<'a> {
    plot: Rect,
    grid: &'a Grid,
    spans: Vec<(u16, std::ops::Range<u16>)>,
}

impl Taken<'_> {
    /// The cell, or the nearest free one around it; none where all are taken.
    fn near(&self, (column, row): (u16, u16)) -> Option<(u16, u16)> {
        const AROUND: [(i32, i32); 11] = [
            (0, 0),
            (1, 0),
            (-1, 0),
            (0, -1),
            (0, 1),
            (1, -1),
            (-1, -1),
            (1, 1),
            (-1, 1),
            (2, 0),
            (-2, 0),
        ];
        AROUND.into_iter().find_map(|(right, down)| {
            let x = u16::try_from(i32::from(column) + right).ok()?;
            let y = u16::try_from(i32::from(row) + down).ok()?;
            let inside = x < self.plot.width && y < self.plot.height;
            let free = !self
                .spans
                .iter()
                .any(|(row, span)| *row == y && span.contains(&x));
            (inside && free).then_some((x, y))
        })
    }

    /// Puts a name beside a place: right, left, above or below; nowhere when it would hide something.
    fn name(&mut self, name: &str, (column, row): (u16, u16), style: Style, buffer: &mut Buffer) {
        let wide = text::width(name) as u16;
        let right = column.saturating_add(2);
        let left = column.checked_sub(wide + 1);
        let middle = column.saturating_sub(wide / 2);
        let above = row.checked_sub(1);
        let below = Some(row + 1).filter(|row| *row < self.plot.height);
        let places = [
            Some((right, row)),
            left.map(|x| (x, row)),
            above.map(|y| (right, y)),
            below.map(|y| (right, y)),
            above.map(|y| (middle, y)),
            below.map(|y| (middle, y)),
            left.and_then(|x| Some((x, above?))),
            left.and_then(|x| Some((x, below?))),
        ];
        let free = |(x, y): &(u16, u16)| {
            x + wide <= self.plot.width
                && (*x..x + wide).all(|column| self.grid.is_free(column, *y))
                && !self
                    .spans
                    .iter()
                    .any(|(row, span)| row == y && span.start < x + wide + 1 && *x < span.end + 1)
        };
        if let Some((x, y)) = places.into_iter().flatten().find(free) {
            put(buffer, self.plot.x + x, self.plot.y + y, name, wide, style);
            self.spans.push((y, x..x + wide));
        }
    }
}
