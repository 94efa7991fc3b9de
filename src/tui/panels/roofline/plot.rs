//! The chart of the roofline: the roofs over two logarithmic axes, and a letter for every operation.
//!
//! ```text
//!   100│         ⡠⠒⠒⠒ compute 98.00 GFLOP/s
//!      │     ⢀⡠⠊      C
//!    10│  ⡠⠒⠁   memory 21.00 GB/s
//! GFLOP/s       1       10 FLOP/byte
//! ```
//!
//! A letter whose cell is taken moves to a cell beside it. The names of the roofs stand where they hide nothing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::scale::Scale;
use crate::tui::chart::axis::tick_label;
use crate::tui::chart::grid::{CurveStyle, Grid, Plot, put};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::Peaks;
use protocol::stats::roofline::{ceiling, ridge};

/// The mark of an operation.
pub(super) struct Mark {
    /// The intensity in FLOP/byte.
    pub intensity: f64,
    /// The speed in FLOP/s.
    pub flops_per_s: f64,
    pub letter: char,
    pub name: String,
    pub shows_name: bool,
    pub style: Style,
}

/// The columns left of the plot, which hold the numbers of the y axis.
const GUTTER: u16 = 8;
/// The unit of the x axis.
const X_UNIT: &str = " FLOP/byte";
/// The unit of the y axis, and its size in FLOP/s.
const Y_UNIT: (&str, f64) = ("GFLOP/s", 1e9);

/// The roofs and the marks. Where marks share a cell, the earlier one keeps it.
pub(super) struct RoofPlot<'a> {
    pub marks: Vec<Mark>,
    /// The roofs of arithmetic, the lower first. All have one slope of memory.
    pub roofs: Vec<Peaks>,
    /// The name of the slope, then the name of each flat roof.
    pub names: Vec<String>,
    pub theme: &'a Theme,
}

impl RoofPlot<'_> {
    /// Draws the roofs and the marks. An area of less than 24 columns or 4 rows stays empty.
    pub(super) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let Some(plot) = self.plot(area.intersection(buffer.area)) else {
            return;
        };
        plot.draw_gutter(buffer, GUTTER, Y_UNIT.1, self.theme);
        draw_foot(&plot, buffer, self.theme.dim);
        let left = plot.x.low;
        let right = plot.x.high;
        let style = self.theme.reference;
        let ink = CurveStyle { kind: 0, style };
        let mut grid = Grid::new(&plot);
        // The name of the slope stands in its middle, the name of a flat roof at its right end.
        let mut places = Vec::new();
        for roof in &self.roofs {
            let top = roof.flops.best;
            let bend = plot.dot(ridge(roof), top);
            grid.line(plot.dot(left, ceiling(roof, left)), bend, ink);
            grid.line(bend, plot.dot(right, top), ink);
            if places.is_empty() {
                let middle = (left * ridge(roof)).sqrt();
                places.push(plot.cell(middle, ceiling(roof, middle)));
            }
            places.push(plot.cell(right, top));
        }
        grid.render(&self.theme.symbols, buffer);
        let cell_of = |mark: &Mark| plot.cell(mark.intensity, mark.flops_per_s);
        for mark in &self.marks {
            plot.letter(buffer, mark.letter, cell_of(mark), mark.style);
        }
        for mark in self.marks.iter().filter(|mark| mark.shows_name) {
            write_beside(&plot, buffer, &mark.name, cell_of(mark), mark.style);
        }
        for (name, cell) in self.names.iter().zip(places) {
            write_beside(&plot, buffer, name, cell, style);
        }
    }

    /// Returns the area of the curves with scales that hold every mark and the bends of all roofs. `None` where the area is too small or a
    /// value is no positive number.
    fn plot(&self, area: Rect) -> Option<Plot> {
        let roof = self.roofs.first()?;
        let top_roof = self.roofs.last()?;
        let intensities = self.marks.iter().map(|mark| mark.intensity);
        let speeds = self.marks.iter().map(|mark| mark.flops_per_s);
        let left = intensities.clone().fold(ridge(roof) / 8.0, f64::min) / 1.5;
        let right = intensities.fold(ridge(top_roof) * 8.0, f64::max) * 1.5;
        let bottom = speeds.clone().fold(ceiling(roof, left), f64::min) / 1.5;
        // Above the flat roof stands its name.
        let top = speeds.fold(top_roof.flops.best, f64::max) * 2.5;
        let log = true;
        let [x, y] = [(left, right), (bottom, top)].map(|(low, high)| Scale { low, high, log });
        let is_valid =
            |scale: &Scale| scale.low > 0.0 && scale.high > scale.low && scale.high.is_finite();
        let is_large = area.width >= 24 && area.height >= 4;
        (is_large && is_valid(&x) && is_valid(&y)).then(|| Plot {
            area: Rect {
                x: area.x + GUTTER,
                width: area.width - GUTTER,
                height: area.height - 1,
                ..area
            },
            x,
            y,
            dots: self.theme.symbols.dots(),
        })
    }
}

/// Writes a name next to a cell, at the first place where it hides nothing.
fn write_beside(
    plot: &Plot,
    buffer: &mut Buffer,
    name: &str,
    (column, row): (u16, u16),
    style: Style,
) {
    let width = text::width(name) as u16;
    let right = Some(column.saturating_add(2));
    let left = column.checked_sub(width + 1);
    let middle = Some(column.saturating_sub(width / 2));
    let above = row.checked_sub(1);
    let below = Some(row + 1);
    let beside = [right, left].map(|column| Some((column?, row)));
    let on_right = [above, below].map(|row| Some((right?, row?)));
    let centred = [above, below].map(|row| Some((middle?, row?)));
    let on_left = [above, below].map(|row| Some((left?, row?)));
    let places = [beside, on_right, centred, on_left].into_iter().flatten();
    plot.name(buffer, name, places, &|shown| shown == " ", style);
}

/// Draws the units of both axes below the plot, and as many numbers of the x axis as do not touch.
fn draw_foot(plot: &Plot, buffer: &mut Buffer, style: Style) {
    let foot = plot.area.bottom();
    let y_unit = text::right(Y_UNIT.0, usize::from(GUTTER) - 1);
    put(
        buffer,
        plot.area.x - GUTTER,
        foot,
        &y_unit,
        GUTTER - 1,
        style,
    );
    let unit_width = text::width(X_UNIT) as u16;
    let unit_x = plot.area.right().saturating_sub(unit_width);
    put(buffer, unit_x, foot, X_UNIT, unit_width, style);
    let mut free_x = plot.area.x;
    for value in plot.x.ticks(usize::from(plot.area.width / 10).min(10)) {
        let label = tick_label(value);
        let width = text::width(&label) as u16;
        let column = plot.area.x + plot.cell(value, plot.y.low).0;
        let x = column.saturating_sub(width / 2).max(plot.area.x);
        if x >= free_x && x + width < unit_x {
            put(buffer, x, foot, &label, width, style);
            free_x = x + width + 2;
        }
    }
}
