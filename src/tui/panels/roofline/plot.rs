//! The plot of the roofline: both roofs over two logarithmic axes, and a letter for every operation. Letters give way to
//! each other by a cell; the names of the roofs stand where they hide nothing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::tui::chart::axis::{Scale, tick_label};
use crate::tui::chart::grid::{CurveStyle, Grid, Plot, put};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::Roof;
use protocol::stats::roofline::{ceiling, ridge};

/// An operation: FLOP/byte, FLOP/s, its letter and name.
pub(super) struct Mark {
    pub at: (f64, f64),
    pub letter: char,
    pub name: String,
    pub shows_name: bool,
    pub style: Style,
}

/// Columns left of the plot for the numbers.
const GUTTER: u16 = 8;
/// What the axes count, and by what the numbers of the upright one are divided.
const NAMES: [&str; 2] = [" FLOP/byte", "GFLOP/s"];
const UNIT: f64 = 1e9;

/// The roofs, and the marks: earlier ones stand where they belong.
pub(super) struct RoofPlot<'a> {
    pub marks: Vec<Mark>,
    /// The same memory under each flat roof, the lower first.
    pub roofs: Vec<Roof>,
    /// Of memory, and of each flat roof.
    pub names: Vec<String>,
    pub theme: &'a Theme,
}

impl RoofPlot<'_> {
    /// Draws all of it. Too small an area stays empty.
    pub(super) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let RoofPlot {
            marks,
            roofs,
            names,
            theme,
        } = self;
        let low = |pick: fn(&Mark) -> f64| marks.iter().map(pick).fold(f64::INFINITY, f64::min);
        let high = |pick: fn(&Mark) -> f64| marks.iter().map(pick).fold(0.0, f64::max);
        let Some((roof, highest)) = roofs.first().zip(roofs.last()) else {
            return;
        };
        let slope = |x: f64| (x, ceiling(roof, x));
        let (bend, top) = (ridge(highest), highest.flops.best);
        let left = low(|it| it.at.0).min(ridge(roof) / 8.0) / 1.5;
        let right = high(|it| it.at.0).max(bend * 8.0) * 1.5;
        let bottom = low(|it| it.at.1).min(slope(left).1) / 1.5;
        // Above the flat roof there is room for its name.
        let above = high(|it| it.at.1).max(top) * 2.5;
        let log = true;
        let [x, y] = [(left, right), (bottom, above)].map(|(low, high)| Scale { low, high, log });
        let ordered = |it: &Scale| it.low > 0.0 && it.high > it.low && it.high.is_finite();
        let area = area.intersection(buffer.area);
        if area.width < 24 || area.height < 4 || !(ordered(&x) && ordered(&y)) {
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
        let (kind, style) = (0, theme.reference);
        let mut grid = Grid::new(&plot);
        let begin = slope(left);
        for roof in roofs {
            let (bend, top) = (ridge(roof), roof.flops.best);
            let [begin, bend, end] =
                [begin, (bend, top), (right, top)].map(|(x, y)| plot.dot(x, y));
            grid.line(begin, bend, CurveStyle { kind, style });
            grid.line(bend, end, CurveStyle { kind, style });
        }
        grid.render(&theme.symbols, buffer);
        for mark in marks {
            let cell = plot.cell(mark.at.0, mark.at.1);
            plot.letter(buffer, mark.letter, cell, mark.style);
        }
        let flat = roofs.iter().map(|roof| (right, roof.flops.best));
        let places = [slope((left * ridge(roof)).sqrt())].into_iter().chain(flat);
        for mark in marks.iter().filter(|mark| mark.shows_name) {
            let cell = plot.cell(mark.at.0, mark.at.1);
            beside(&plot, buffer, &mark.name, cell, mark.style);
        }
        for (name, at) in names.iter().zip(places) {
            beside(&plot, buffer, name, plot.cell(at.0, at.1), style);
        }
    }
}

/// Writes a name next to a cell, where it hides nothing.
fn beside(plot: &Plot, buffer: &mut Buffer, name: &str, (column, row): (u16, u16), style: Style) {
    let wide = text::width(name) as u16;
    let (right, left) = (Some(column.saturating_add(2)), column.checked_sub(wide + 1));
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

/// The names of both axes, and the numbers of the x axis where they do not touch.
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
