//! Curves over steps on a cell grid: braille or blocks where the terminal has them, else one mark per cell. B carries marks along
//! its way, so that the two are told apart without colour. Horizontal reference lines have their names on them.

pub mod axis;
pub mod grid;

use std::cmp::Ordering;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::text;
use super::theme::Theme;
use axis::Scale;
use grid::{CurveStyle, Grid, Plot, put};
use protocol::Slot;
use protocol::story::Bucket;

/// A horizontal line at a value, with its name and, where there is room, what it means.
pub struct ReferenceLine {
    pub value: f64,
    pub name: String,
    pub means: &'static str,
    pub symbol: &'static str,
    pub style: Style,
}

/// What to draw. Later curves lie on top.
pub struct Chart<'a> {
    pub curves: Vec<(Slot, Vec<Bucket>)>,
    /// Faint, behind the curves: the values that they are averages of, or an earlier run.
    pub behind: Vec<(Slot, Vec<Bucket>)>,
    pub references: Vec<ReferenceLine>,
    /// Steps worth marking from top to bottom, with their names.
    pub moments: Vec<(u64, String)>,
    pub log: bool,
    pub theme: &'a Theme,
}

/// Columns left of the plot for the numbers.
const GUTTER: u16 = 7;
/// Rows of a plot whose curves are seen beside a name that lies over them.
const LEGIBLE: u16 = 3;

impl Chart<'_> {
    /// Draws the curves, their axes and names. Too small an area stays empty.
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
        let own = |(slot, _): &(Slot, Vec<Bucket>)| self.theme.slot(*slot);
        let curves = self.curves.iter().map(|curve| (curve, own(curve)));
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
        // Where lines share a row, the first one is seen.
        for reference in self.references.iter().rev() {
            let row = plot.cell(0.0, reference.value).1;
            for cell in (0..inner.width).map(|column| (column, row)) {
                if under.contains(&plot.shown(buffer, cell)) {
                    plot.put(buffer, cell, reference.symbol, reference.style);
                }
            }
        }
        // Letters stand beside each other, names where no letter is.
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
        let blank = |shown: &str| under.contains(&shown);
        let point =
            |shown: &str| symbols.points.contains(&shown) || !shown.contains(char::is_alphanumeric);
        // With what they mean, where all of them fit so; else shorter; over curves where these cover everything and are high
        // enough to be seen all the same.
        let names = |long: bool, free: &dyn Fn(&str) -> bool, buffer: &mut Buffer| {
            let mut fit = true;
            for it in &self.references {
                fit &= draw_name(it, long, &plot, free, buffer);
            }
            fit
        };
        let before = buffer.clone();
        if !names(true, &blank, buffer) {
            buffer.clone_from(&before);
            if !names(false, &blank, buffer) && inner.height >= LEGIBLE {
                *buffer = before;
                names(false, &point, buffer);
            }
        }
    }

    /// The plot with scales that hold every value; none where there is no value.
    fn plot(&self, area: Rect) -> Option<Plot> {
        let curves = || self.curves.iter().chain(&self.behind);
        let points = || curves().flat_map(|(_, points)| points);
        let values = points()
            .flat_map(|b| [b.low, b.high])
            .chain(self.references.iter().map(|r| r.value))
            .filter(|v| v.is_finite() && (!self.log || *v > 0.0));
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
        let first = points().map(|b| b.first).min().unwrap_or(0);
        let steps = points().map(|b| b.last);
        let steps = steps.chain(self.moments.iter().map(|(step, _)| *step));
        let last = steps.max().unwrap_or(0).max(first + 1);
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
        let (from, to) = (format!("step {}", plot.x.low), plot.x.high.to_string());
        put(buffer, area.x, y, &from, area.width, dim);
        let x = area.right().saturating_sub(to.len() as u16);
        if x > area.x + from.len() as u16 {
            put(buffer, x, y, &to, to.len() as u16, dim);
        }
    }
}

/// Points at most so many columns apart are joined, even if steps between them were not reported.
const NEAR: usize = 2;

fn draw_curve(points: &[Bucket], ink: CurveStyle, plot: &Plot, grid: &mut Grid<'_>) {
    let mut previous: Option<(usize, usize)> = None;
    for bucket in points {
        let step = bucket.last as f64;
        let to = plot.dot(step, bucket.mean);
        let near = |from: &(usize, usize)| to.0.saturating_sub(from.0) <= NEAR * plot.dots.0;
        if let Some(from) = previous.filter(|from| !bucket.gap || near(from)) {
            grid.line(from, to, ink);
        }
        for row in plot.dot(step, bucket.high).1..=plot.dot(step, bucket.low).1 {
            grid.dot((to.0, row), ink);
        }
        previous = Some(to);
    }
}

/// Names a step beside its upright, in the first row that is free there, if need be over a curve.
fn draw_moment(step: u64, name: &str, plot: &Plot, theme: &Theme, buffer: &mut Buffer) {
    let at = plot.cell(step as f64, plot.y.low).0;
    let wide = text::width(name) as u16;
    let x = match at + 2 + wide < plot.area.width {
        true => at + 2,
        false => at.saturating_sub(wide + 1),
    };
    let places = (0..plot.area.height).map(|row| Some((x, row)));
    if !plot.name(buffer, name, places, &|shown| shown == " ", theme.bad) {
        plot.put(buffer, (x, 0), name, theme.bad);
    }
}

/// Names a line on it or near it, an arrow pointing to it; a long name on the next row at most. Tells whether there was a place.
fn draw_name(
    reference: &ReferenceLine,
    long: bool,
    plot: &Plot,
    free: &dyn Fn(&str) -> bool,
    buffer: &mut Buffer,
) -> bool {
    let at = plot.cell(0.0, reference.value).1;
    let mut rows: Vec<u16> = (0..plot.area.height).collect();
    rows.sort_by_key(|row| row.abs_diff(at));
    rows.retain(|row| !long || row.abs_diff(at) <= 1);
    let name = match long {
        true => format!("{}: {}", reference.name, reference.means),
        false => reference.name.clone(),
    };
    rows.into_iter().any(|row| {
        let name = match row.cmp(&at) {
            Ordering::Less => format!(" {name} ↓ "),
            Ordering::Equal => format!(" {name} "),
            Ordering::Greater => format!(" {name} ↑ "),
        };
        let span = plot.area.width.saturating_sub(text::width(&name) as u16);
        let columns = [span.saturating_sub(2), 1.min(span), span / 2];
        let places = columns.map(|x| Some((x, row)));
        plot.name(buffer, &name, places, free, reference.style)
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
