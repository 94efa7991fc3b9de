//! Points and lines on two logarithmic axes. Marks are letters, which give way to each other by a cell; names stand where
//! they hide nothing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::{Grid, Ink, Plot, Scale, put};
use super::ticks::tick_label;
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
        let ordered = |(low, high): (f64, f64)| low > 0.0 && high > low && high.is_finite();
        if area.width < 24 || area.height < 4 || !(ordered(self.x) && ordered(self.y)) {
            return;
        }
        let scale = |(low, high)| Scale {
            low,
            high,
            log: true,
        };
        let plot = Plot {
            area: Rect {
                x: area.x + GUTTER,
                width: area.width - GUTTER,
                height: area.height - 1,
                ..area
            },
            x: scale(self.x),
            y: scale(self.y),
            dots: if self.symbols.braille { (2, 4) } else { (1, 1) },
        };
        plot.draw_gutter(
            buffer,
            GUTTER,
            self.units.1,
            self.symbols.vertical,
            self.axis,
        );
        self.draw_foot(area, &plot, buffer);
        let mut grid = Grid::new(&plot);
        for path in &self.paths {
            let (kind, style) = (0, path.style);
            let dots = path.points.iter().map(|(x, y)| plot.dot(*x, *y));
            let dots: Vec<(usize, usize)> = dots.collect();
            for pair in dots.windows(2) {
                grid.line(pair[0], pair[1], Ink { kind, style });
            }
        }
        grid.render(&self.symbols, buffer);
        for mark in &self.marks {
            let cell = plot.cell(mark.at.0, mark.at.1);
            plot.letter(buffer, mark.letter, cell, mark.style);
        }
        for path in &self.paths {
            let (column, row) = plot.cell(path.named_at.0, path.named_at.1);
            let wide = text::width(&path.name) as u16;
            let (right, left) = (Some(column.saturating_add(2)), column.checked_sub(wide + 1));
            let middle = Some(column.saturating_sub(wide / 2));
            let (above, below) = (row.checked_sub(1), Some(row + 1));
            // Right, left, above or below.
            let places = [
                right.zip(Some(row)),
                left.zip(Some(row)),
                right.zip(above),
                right.zip(below),
                middle.zip(above),
                middle.zip(below),
                left.zip(above),
                left.zip(below),
            ];
            plot.name(buffer, &path.name, places, " ", path.style);
        }
    }

    /// The names of both axes, and the numbers of the x axis where they do not touch.
    fn draw_foot(&self, area: Rect, plot: &Plot, buffer: &mut Buffer) {
        let foot = area.bottom() - 1;
        let name = format!(" {}", self.names[0]);
        let wide = text::width(&name) as u16;
        let name_at = area.right().saturating_sub(wide);
        let left = text::right(self.names[1], usize::from(GUTTER) - 1);
        put(buffer, area.x, foot, &left, GUTTER - 1, self.axis);
        put(buffer, name_at, foot, &name, wide, self.axis);
        let mut free = plot.area.x;
        for value in plot.x.ticks(plot.area.width / 10, 10) {
            let label = tick_label(value / self.units.0);
            let wide = text::width(&label) as u16;
            let column = plot.area.x + plot.cell(value, plot.y.low).0;
            let x = column.saturating_sub(wide / 2).max(plot.area.x);
            if x >= free && x + wide < name_at {
                put(buffer, x, foot, &label, wide, self.axis);
                free = x + wide + 2;
            }
        }
    }
}
