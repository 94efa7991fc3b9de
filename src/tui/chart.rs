//! A chart draws curves over steps on a grid of cells: in braille or blocks where the terminal has them, else with one mark per cell.
//!
//! ```text
//!       │⠤⠤⠤◆⠤⢄⣀⣀⣀◆                       a curve; B has marks, so that it needs no colour
//!    100│          ⠉⠉⠉⠉⠑◆⠒⠒⠒⠤⠤◆⠤⢄⣀⣀⣀◆B
//!       │                               │ a moment: NaN at step 41
//!      0│╌ ln V 6.91: knows nothing ╌╌╌╌╌ a reference line
//!        step 0                       41
//! ```

pub mod axis;
pub mod grid;

use std::cmp::Ordering;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::text;
use super::theme::Theme;
use crate::scale::Scale;
use grid::{CurveStyle, Grid, Plot, put};
use protocol::Slot;
use protocol::story::Bucket;

/// A horizontal line at a value, with its name.
pub struct ReferenceLine {
    pub value: f64,
    pub name: String,
    /// A text that explains the line. It stands after the name where columns are free.
    pub means: &'static str,
    pub symbol: &'static str,
    pub style: Style,
}

/// The contents of a chart. A later curve covers an earlier one.
pub struct Chart<'a> {
    pub curves: Vec<(Slot, Vec<Bucket>)>,
    /// Faint curves behind the others: the values that the curves average, or an earlier run.
    pub behind: Vec<(Slot, Vec<Bucket>)>,
    pub references: Vec<ReferenceLine>,
    /// Steps that are marked with a vertical line, with their names.
    pub moments: Vec<(u64, String)>,
    /// True for a logarithmic y axis.
    pub log: bool,
    pub theme: &'a Theme,
}

/// The width of the gutter left of the plot, which holds the numbers of the y axis.
const GUTTER: u16 = 7;
/// The fewest rows of a plot in which a name may cover the curves, because they stay visible above or below the name.
const COVERABLE: u16 = 3;

impl Chart<'_> {
    /// Draws the curves, their axes and names. An area of less than 12 columns or 2 rows stays empty.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let visible = area.intersection(buffer.area);
        if visible.width < 12 || visible.height < 2 {
            return;
        }
        let gutter = if visible.width >= 30 { GUTTER } else { 0 };
        let foot = u16::from(visible.height >= 4);
        let inner = Rect {
            x: visible.x + gutter,
            width: visible.width - gutter,
            height: visible.height - foot,
            ..visible
        };
        let Some(plot) = self.plot(inner) else { return };
        if gutter > 0 {
            plot.draw_gutter(buffer, gutter, 1.0, self.theme);
        }
        if foot > 0 {
            self.draw_steps(&plot, buffer);
        }
        self.draw_curves(&plot, buffer);
        self.draw_references(&plot, buffer);
        self.draw_letters(&plot, buffer);
        for (step, name) in &self.moments {
            draw_moment(*step, name, &plot, self.theme, buffer);
        }
        // Names with explanations are best. Where they do not all fit, the names stand alone. Where even these have no free cells, they
        // cover the curves, if the plot is high enough to show both.
        let without_names = buffer.clone();
        if !self.draw_names(true, false, &plot, buffer) {
            buffer.clone_from(&without_names);
            if !self.draw_names(false, false, &plot, buffer) && inner.height >= COVERABLE {
                *buffer = without_names;
                self.draw_names(false, true, &plot, buffer);
            }
        }
    }

    fn draw_curves(&self, plot: &Plot, buffer: &mut Buffer) {
        let theme = self.theme;
        let mut grid = Grid::new(plot);
        let behind = self.behind.iter().map(|curve| (curve, theme.dim));
        let curves = self.curves.iter().map(|curve| (curve, theme.slot(curve.0)));
        for ((slot, points), style) in behind.chain(curves) {
            let kind = *slot as usize;
            draw_curve(points, CurveStyle { kind, style }, plot, &mut grid);
        }
        for (step, _) in &self.moments {
            let x = plot.area.x + plot.cell(*step as f64, plot.y.low).0;
            plot.upright(buffer, x, theme.symbols.vertical, theme.bad);
        }
        grid.render(&theme.symbols, buffer);
    }

    /// Returns true if a cell has no curve, so that a reference line or its name may cover it.
    fn is_free(&self, symbol: &str) -> bool {
        let symbols = &self.theme.symbols;
        [" ", symbols.reference, symbols.floor].contains(&symbol)
    }

    fn draw_references(&self, plot: &Plot, buffer: &mut Buffer) {
        // Where lines share a row, the first one is drawn last and stays visible.
        for reference in self.references.iter().rev() {
            let row = plot.cell(0.0, reference.value).1;
            for column in 0..plot.area.width {
                if self.is_free(plot.shown(buffer, (column, row))) {
                    plot.put(buffer, (column, row), reference.symbol, reference.style);
                }
            }
        }
    }

    /// Writes the letter of each curve at its end. Where both would share a cell, they stand beside each other.
    fn draw_letters(&self, plot: &Plot, buffer: &mut Buffer) {
        let mut taken = None;
        for (slot, points) in &self.curves {
            if let Some(last) = points.last() {
                let (mut x, y) = plot.cell(last.last as f64, last.mean);
                if taken == Some((x, y)) {
                    x = x.checked_sub(1).unwrap_or(1);
                }
                plot.put(buffer, (x, y), slot.into_str(), self.theme.slot(*slot));
                taken = Some((x, y));
            }
        }
    }

    /// Writes the names of the reference lines, `long` ones with their explanations, over free cells or, if `over_curves`, over every cell
    /// without text. Returns false if a name has no place.
    fn draw_names(&self, long: bool, over_curves: bool, plot: &Plot, buffer: &mut Buffer) -> bool {
        let points = self.theme.symbols.points;
        let is_text =
            |symbol: &str| !points.contains(&symbol) && symbol.contains(char::is_alphanumeric);
        let may_cover = |symbol: &str| {
            if over_curves {
                !is_text(symbol)
            } else {
                self.is_free(symbol)
            }
        };
        let mut all_fit = true;
        for reference in &self.references {
            all_fit &= draw_name(reference, long, plot, &may_cover, buffer);
        }
        all_fit
    }

    /// Returns the plot, with scales that hold every value. `None` where there is no value.
    fn plot(&self, area: Rect) -> Option<Plot> {
        let curves = || self.curves.iter().chain(&self.behind);
        let points = || curves().flat_map(|(_, points)| points);
        let values = points()
            .flat_map(|bucket| [bucket.low, bucket.high])
            .chain(self.references.iter().map(|reference| reference.value))
            .filter(|value| value.is_finite() && (!self.log || *value > 0.0));
        let lowest = values.clone().reduce(f64::min)?;
        let highest = values.reduce(f64::max)?;
        let (low, high) = if self.log {
            (lowest / 1.15, highest * 1.15)
        } else {
            let range = (highest - lowest) * 0.06;
            let margin = range.max(highest.abs() * 0.01).max(1e-9);
            // Where all values are above zero the axis does not go below.
            let is_positive = lowest >= 0.0;
            let floor = if is_positive { 0.0 } else { f64::NEG_INFINITY };
            ((lowest - margin).max(floor), highest + margin)
        };
        let first = points().map(|bucket| bucket.first).min().unwrap_or(0);
        let last = points()
            .map(|bucket| bucket.last)
            .chain(self.moments.iter().map(|(step, _)| *step))
            .max()
            .unwrap_or(0)
            .max(first + 1);
        let scale = |low, high, log| Scale { low, high, log };
        Some(Plot {
            area,
            x: scale(first as f64, last as f64, false),
            y: scale(low, high.min(f64::MAX), self.log),
            dots: self.theme.symbols.dots(),
        })
    }

    /// Writes the first and the last step below the plot.
    fn draw_steps(&self, plot: &Plot, buffer: &mut Buffer) {
        let area = plot.area;
        let dim = self.theme.dim;
        let first = format!("step {}", plot.x.low);
        let last = plot.x.high.to_string();
        put(buffer, area.x, area.bottom(), &first, area.width, dim);
        let width = last.len() as u16;
        let x = area.right().saturating_sub(width);
        if x > area.x + first.len() as u16 {
            put(buffer, x, area.bottom(), &last, width, dim);
        }
    }
}

/// The largest distance in columns of two points that are joined although steps between them were not reported.
const NEAR: usize = 2;

/// Draws a curve through the means of its buckets, and at each bucket a vertical line from its lowest to its highest value.
fn draw_curve(points: &[Bucket], ink: CurveStyle, plot: &Plot, grid: &mut Grid<'_>) {
    let mut previous: Option<(usize, usize)> = None;
    for bucket in points {
        let step = bucket.last as f64;
        let dot = plot.dot(step, bucket.mean);
        if let Some(previous) = previous {
            let is_near = dot.0.saturating_sub(previous.0) <= NEAR * plot.dots.0;
            if is_near || !bucket.gap {
                grid.line(previous, dot, ink);
            }
        }
        for row in plot.dot(step, bucket.high).1..=plot.dot(step, bucket.low).1 {
            grid.dot((dot.0, row), ink);
        }
        previous = Some(dot);
    }
}

/// Writes the name of a step beside its vertical line, in the first free row; where no row is free, in the top row over the curve.
fn draw_moment(step: u64, name: &str, plot: &Plot, theme: &Theme, buffer: &mut Buffer) {
    let (line_x, _) = plot.cell(step as f64, plot.y.low);
    let width = text::width(name) as u16;
    let x = if line_x + 2 + width < plot.area.width {
        line_x + 2
    } else {
        line_x.saturating_sub(width + 1)
    };
    let places = (0..plot.area.height).map(|row| Some((x, row)));
    if !plot.name(buffer, name, places, &|shown| shown == " ", theme.bad) {
        plot.put(buffer, (x, 0), name, theme.bad);
    }
}

/// Writes the name of a reference line on the line, or near it with an arrow that points to the line. A `long` name includes the explanation
/// and stands at most one row away. `may_cover` returns true for the symbols that the name may hide. Returns false if the name has no place.
fn draw_name(
    reference: &ReferenceLine,
    long: bool,
    plot: &Plot,
    may_cover: &dyn Fn(&str) -> bool,
    buffer: &mut Buffer,
) -> bool {
    let line_row = plot.cell(0.0, reference.value).1;
    let mut rows: Vec<u16> = (0..plot.area.height).collect();
    rows.sort_by_key(|row| row.abs_diff(line_row));
    rows.retain(|row| !long || row.abs_diff(line_row) <= 1);
    let name = if long {
        format!("{}: {}", reference.name, reference.means)
    } else {
        reference.name.clone()
    };
    rows.into_iter().any(|row| {
        let label = match row.cmp(&line_row) {
            Ordering::Less => format!(" {name} ↓ "),
            Ordering::Equal => format!(" {name} "),
            Ordering::Greater => format!(" {name} ↑ "),
        };
        let last = plot.area.width.saturating_sub(text::width(&label) as u16);
        let columns = [last.saturating_sub(2), 1.min(last), last / 2];
        let places = columns.map(|column| Some((column, row)));
        plot.name(buffer, &label, places, may_cover, reference.style)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Markers;
    use protocol::story::Series;

    #[test]
    fn no_line_crosses_steps_that_are_missing() {
        let mut series = Series::default();
        let steps = (0..10).chain(90..100);
        steps.for_each(|step| series.push(step, step as f64));
        let theme = Theme::plain(Markers::Braille);
        let chart = Chart {
            curves: vec![(Slot::A, series.all().to_vec())],
            behind: Vec::new(),
            references: Vec::new(),
            moments: Vec::new(),
            log: false,
            theme: &theme,
        };
        let area = Rect::new(0, 0, 60, 12);
        let mut buffer = Buffer::empty(area);
        chart.draw(area, &mut buffer);
        let is_drawn = |column: u16| (0..11).any(|row| buffer[(column, row)].symbol() != " ");
        assert!(is_drawn(8) && is_drawn(58));
        assert!(!(20..50).any(is_drawn));
    }
}
