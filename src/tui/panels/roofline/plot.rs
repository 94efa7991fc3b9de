//! The plot of the roofline has the roofs over two logarithmic axes and a letter for every operation. A letter whose cell is taken moves to
//! a cell beside it; the names of the roofs stand where they hide nothing.

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
    /// The intensity in FLOP/byte and the speed in FLOP/s.
    pub at: (f64, f64),
    pub letter: char,
    pub name: String,
    pub shows_name: bool,
    pub style: Style,
}

/// The columns left of the plot, which hold the numbers of the y axis.
const GUTTER: u16 = 8;
/// The units of the x axis and the y axis.
const NAMES: [&str; 2] = [" FLOP/byte", "GFLOP/s"];
/// The unit of the y axis in FLOP/s.
const UNIT: f64 = 1e9;

/// The roofs and the marks. Where marks share a cell, the earlier one keeps it.
pub(super) struct RoofPlot<'a> {
    pub marks: Vec<Mark>,
    /// The roofs of arithmetic, the lower first. All have the same slope of memory.
    pub roofs: Vec<Peaks>,
    /// The names of the slope and of each flat roof.
    pub names: Vec<String>,
    pub theme: &'a Theme,
}

impl RoofPlot<'_> {
    /// Draws the roofs and the marks. An area of less than 24 columns or 4 rows stays empty.
    pub(super) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let RoofPlot {
            marks,
            roofs,
            names,
            theme,
        } = self;
        let lowest =
            |value: fn(&Mark) -> f64| marks.iter().map(value).fold(f64::INFINITY, f64::min);
        let highest = |value: fn(&Mark) -> f64| marks.iter().map(value).fold(0.0, f64::max);
        let Some((roof, top_roof)) = roofs.first().zip(roofs.last()) else {
            return;
        };
        let slope = |x: f64| (x, ceiling(roof, x));
        let left = lowest(|mark| mark.at.0).min(ridge(roof) / 8.0) / 1.5;
        let right = highest(|mark| mark.at.0).max(ridge(top_roof) * 8.0) * 1.5;
        let bottom = lowest(|mark| mark.at.1).min(slope(left).1) / 1.5;
        // Above the flat roof there is room for its name.
        let above = highest(|mark| mark.at.1).max(top_roof.flops.best) * 2.5;
        let log = true;
        let [x, y] = [(left, right), (bottom, above)].map(|(low, high)| Scale { low, high, log });
        let is_valid =
            |scale: &Scale| scale.low > 0.0 && scale.high > scale.low && scale.high.is_finite();
        let area = area.intersection(buffer.area);
        if area.width < 24 || area.height < 4 || !(is_valid(&x) && is_valid(&y)) {
            return;
        }
        let (width, height) = (area.width - GUTTER, area.height - 1);
        let plot = Plot {
            area: Rect::new(area.x + GUTTER, area.y, width, height),
            x,
            y,
            dots: theme.symbols.dots(),
        };
        plot.draw_gutter(buffer, GUTTER, UNIT, theme);
        draw_foot(area, &plot, buffer, theme.dim);
        let style = theme.reference;
        let ink = CurveStyle { kind: 0, style };
        let mut grid = Grid::new(&plot);
        for roof in roofs {
            let top = roof.flops.best;
            let [begin, bend, end] =
                [slope(left), (ridge(roof), top), (right, top)].map(|(x, y)| plot.dot(x, y));
            grid.line(begin, bend, ink);
            grid.line(bend, end, ink);
        }
        grid.render(&theme.symbols, buffer);
        for mark in marks {
            let cell = plot.cell(mark.at.0, mark.at.1);
            plot.letter(buffer, mark.letter, cell, mark.style);
        }
        for mark in marks.iter().filter(|mark| mark.shows_name) {
            let cell = plot.cell(mark.at.0, mark.at.1);
            write_beside(&plot, buffer, &mark.name, cell, mark.style);
        }
        // The slope has its name in the middle, a flat roof at its right end.
        let mut places = vec![slope((left * ridge(roof)).sqrt())];
        places.extend(roofs.iter().map(|roof| (right, roof.flops.best)));
        for (name, (x, y)) in names.iter().zip(places) {
            write_beside(&plot, buffer, name, plot.cell(x, y), style);
        }
    }
}

/// Writes a name next to a cell, where it hides nothing.
fn write_beside(
    plot: &Plot,
    buffer: &mut Buffer,
    name: &str,
    (column, row): (u16, u16),
    style: Style,
) {
    let wide = text::width(name) as u16;
    let right = Some(column.saturating_add(2));
    let left = column.checked_sub(wide + 1);
    let middle = Some(column.saturating_sub(wide / 2));
    let (here, above, below) = (Some(row), row.checked_sub(1), Some(row + 1));
    #[rustfmt::skip] // The best place first.
    let places = [
        (right, here), (left, here), (right, above), (right, below),
        (middle, above), (middle, below), (left, above), (left, below),
    ];
    let places = places.map(|(column, row)| column.zip(row));
    plot.name(buffer, name, places, &|shown| shown == " ", style);
}

/// Draws the units of both axes, and the numbers of the x axis as far as they do not touch.
fn draw_foot(area: Rect, plot: &Plot, buffer: &mut Buffer, style: Style) {
    let foot = area.bottom() - 1;
    let wide = text::width(NAMES[0]) as u16;
    let name_at = area.right().saturating_sub(wide);
    let left = text::right(NAMES[1], usize::from(GUTTER) - 1);
    put(buffer, area.x, foot, &left, GUTTER - 1, style);
    put(buffer, name_at, foot, NAMES[0], wide, style);
    let mut free = plot.area.x;
    for value in plot.x.ticks(usize::from(plot.area.width / 10).min(10)) {
        let label = tick_label(value);
        let wide = text::width(&label) as u16;
        let column = plot.area.x + plot.cell(value, plot.y.low).0;
        let x = column.saturating_sub(wide / 2).max(plot.area.x);
        if x >= free && x + wide < name_at {
            put(buffer, x, foot, &label, wide, style);
            free = x + wide + 2;
        }
    }
}
