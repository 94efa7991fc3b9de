//! A chart draws curves over steps on a grid of cells: in braille or blocks where the terminal has them, else with one mark per cell.
//! The curve of B carries marks, so that A and B can be told apart without colour. Horizontal reference lines carry their names.

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

/// A horizontal line at a value, with its name. `means` explains the line and is shown where there is room.
pub struct ReferenceLine {
    pub value: f64,
    pub name: String,
    pub means: &'static str,
    pub symbol: &'static str,
    pub style: Style,
}

/// The contents of a chart. Later curves lie on top of earlier ones.
pub struct Chart<'a> {
    pub curves: Vec<(Slot, Vec<Bucket>)>,
    /// Faint curves behind the others: the values that the curves average, or an earlier run.
    pub behind: Vec<(Slot, Vec<Bucket>)>,
    pub references: Vec<ReferenceLine>,
    /// Steps that are marked with a vertical line, with their names.
    pub moments: Vec<(u64, String)>,
    pub log: bool,
    pub theme: &'a Theme,
}

/// Width of the gutter left of the plot, which holds the numbers of the y axis.
const GUTTER: u16 = 7;
/// A plot of at least this many rows still shows its curves when a name lies over them.
const LEGIBLE: u16 = 3;

impl Chart<'_> {
    /// Draws the curves, their axes and names. An area of less than 12 columns or 2 rows stays empty.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.width < 12 || area.height < 2 {
            return;
        }
        let gutter = if area.width >= 30 { GUTTER } else { 0 };
        let foot = u16::from(area.height >= 4);
        let inner = Rect {
            x: area.x + gutter,
            width: area.width - gutter,
            height: area.height - foot,
            ..area
        };
        let Some(plot) = self.plot(inner) else { return };
        if gutter > 0 {
            plot.draw_gutter(buffer, gutter, 1.0, self.theme);
        }
        if foot > 0 {
            self.draw_steps(&plot, area.bottom() - 1, buffer);
        }
        let mut grid = Grid::new(&plot);
        let behind = self.behind.iter().map(|curve| (curve, self.theme.dim));
        let curves = self
            .curves
            .iter()
            .map(|curve| (curve, self.theme.slot(curve.0)));
        for ((slot, points), style) in behind.chain(curves) {
            let kind = *slot as usize;
            draw_curve(points, CurveStyle { kind, style }, &plot, &mut grid);
        }
        for (step, _) in &self.moments {
            let x = inner.x + plot.cell(*step as f64, plot.y.low).0;
            plot.upright(buffer, x, self.theme.symbols.vertical, self.theme.bad);
        }
        grid.render(&self.theme.symbols, buffer);
        let symbols = &self.theme.symbols;
        let under = [" ", symbols.reference, symbols.floor];
        // Where lines share a row, the first one is drawn last and stays visible.
        for reference in self.references.iter().rev() {
            let row = plot.cell(0.0, reference.value).1;
            for cell in (0..inner.width).map(|column| (column, row)) {
                if under.contains(&plot.shown(buffer, cell)) {
                    plot.put(buffer, cell, reference.symbol, reference.style);
                }
            }
        }
        // The letters of A and B stand beside each other where they would share a cell.
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
        for (step, name) in &self.moments {
            draw_moment(*step, name, &plot, self.theme, buffer);
        }
        let is_blank = |shown: &str| under.contains(&shown);
        let is_no_text =
            |shown: &str| symbols.points.contains(&shown) || !shown.contains(char::is_alphanumeric);
        let draw_names = |long: bool, may_cover: &dyn Fn(&str) -> bool, buffer: &mut Buffer| {
            let mut all_fit = true;
            for reference in &self.references {
                all_fit &= draw_name(reference, long, &plot, may_cover, buffer);
            }
            all_fit
        };
        // Names with explanations are best. Where they do not all fit, the names stand alone. Where even these have no free cells, they
        // cover the curves, if the plot is high enough to show both.
        let before = buffer.clone();
        if !draw_names(true, &is_blank, buffer) {
            buffer.clone_from(&before);
            if !draw_names(false, &is_blank, buffer) && inner.height >= LEGIBLE {
                *buffer = before;
                draw_names(false, &is_no_text, buffer);
            }
        }
    }

    /// Returns the plot, with scales that hold every value. `None` where there is no value.
    fn plot(&self, area: Rect) -> Option<Plot> {
        let curves = || self.curves.iter().chain(&self.behind);
        let points = || curves().flat_map(|(_, points)| points);
        let values = points()
            .flat_map(|bucket| [bucket.low, bucket.high])
            .chain(self.references.iter().map(|reference| reference.value))
            .filter(|value| value.is_finite() && (!self.log || *value > 0.0));
        let low = values.clone().reduce(f64::min)?;
        let high = values.reduce(f64::max)?;
        let (low, high) = if self.log {
            (low / 1.15, high * 1.15)
        } else {
            let margin = ((high - low) * 0.06).max(high.abs() * 0.01).max(1e-9);
            // Where all values are above zero the axis does not go below.
            let floor = if low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
            ((low - margin).max(floor), high + margin)
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

    fn draw_steps(&self, plot: &Plot, y: u16, buffer: &mut Buffer) {
        let (area, dim) = (plot.area, self.theme.dim);
        let from = format!("step {}", plot.x.low);
        let to = plot.x.high.to_string();
        put(buffer, area.x, y, &from, area.width, dim);
        let x = area.right().saturating_sub(to.len() as u16);
        if x > area.x + from.len() as u16 {
            put(buffer, x, y, &to, to.len() as u16, dim);
        }
    }
}

/// Points at most this many columns apart are joined, even if steps between them were not reported.
const NEAR: usize = 2;

fn draw_curve(points: &[Bucket], ink: CurveStyle, plot: &Plot, grid: &mut Grid<'_>) {
    let mut previous: Option<(usize, usize)> = None;
    for bucket in points {
        let step = bucket.last as f64;
        let to = plot.dot(step, bucket.mean);
        if let Some(from) = previous {
            let is_near = to.0.saturating_sub(from.0) <= NEAR * plot.dots.0;
            if is_near || !bucket.gap {
                grid.line(from, to, ink);
            }
        }
        for row in plot.dot(step, bucket.high).1..=plot.dot(step, bucket.low).1 {
            grid.dot((to.0, row), ink);
        }
        previous = Some(to);
    }
}

/// Writes the name of a step beside its vertical line, in the first free row; where no row is free, in the top row over the curve.
fn draw_moment(step: u64, name: &str, plot: &Plot, theme: &Theme, buffer: &mut Buffer) {
    let line_x = plot.cell(step as f64, plot.y.low).0;
    let wide = text::width(name) as u16;
    let x = if line_x + 2 + wide < plot.area.width {
        line_x + 2
    } else {
        line_x.saturating_sub(wide + 1)
    };
    let places = (0..plot.area.height).map(|row| Some((x, row)));
    if !plot.name(buffer, name, places, &|shown| shown == " ", theme.bad) {
        plot.put(buffer, (x, 0), name, theme.bad);
    }
}

/// Writes the name of a reference line on the line or near it, with an arrow that points to it. A `long` name includes the explanation and
/// stands at most one row away. `may_cover` says which cells the name may hide. Returns false if the name has no place.
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
        let name = match row.cmp(&line_row) {
            Ordering::Less => format!(" {name} ↓ "),
            Ordering::Equal => format!(" {name} "),
            Ordering::Greater => format!(" {name} ↑ "),
        };
        let span = plot.area.width.saturating_sub(text::width(&name) as u16);
        let columns = [span.saturating_sub(2), 1.min(span), span / 2];
        let places = columns.map(|x| Some((x, row)));
        plot.name(buffer, &name, places, may_cover, reference.style)
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
