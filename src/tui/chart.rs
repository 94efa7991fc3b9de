//! Curves over steps on a cell grid: braille where the terminal has it, else one mark per cell. B carries marks along
//! its way, so that the two are told apart without colour. Horizontal reference lines have their names on them.

mod grid;
pub mod scatter;
mod ticks;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::symbols::Symbols;
use super::text;
use crate::app::series::Bucket;

use grid::Grid;
use ticks::{tick_label, ticks};

/// One curve.
pub struct Curve<'a> {
    pub points: &'a [Bucket],
    /// 0 for A, 1 for B: which marks it carries.
    pub kind: usize,
    pub letter: &'static str,
    pub style: Style,
}

/// A horizontal line at a value, with its name.
pub struct Reference {
    pub value: f64,
    pub name: String,
    pub symbol: &'static str,
    pub style: Style,
}

/// A step worth marking from top to bottom.
pub struct Moment {
    pub step: u64,
    pub name: String,
    pub style: Style,
}

/// What to draw. Later curves lie on top.
pub struct Chart<'a> {
    pub curves: Vec<Curve<'a>>,
    pub references: Vec<Reference>,
    pub moments: Vec<Moment>,
    pub log: bool,
    pub axis: Style,
    pub symbols: Symbols,
}

/// Columns left of the plot for the numbers.
const GUTTER: u16 = 7;

struct Plot {
    area: Rect,
    x: (f64, f64),
    y: (f64, f64),
    log: bool,
    dots: (usize, usize),
}

impl Plot {
    fn scale(&self, value: f64) -> f64 {
        let f = |v: f64| {
            if self.log {
                v.max(f64::MIN_POSITIVE).ln()
            } else {
                v
            }
        };
        let (low, high) = (f(self.y.0), f(self.y.1));
        if high > low {
            ((f(value) - low) / (high - low)).clamp(0.0, 1.0)
        } else {
            0.5
        }
    }

    /// Dot row of a value, 0 at the top.
    fn row(&self, value: f64) -> usize {
        let rows = (usize::from(self.area.height) * self.dots.1).max(1);
        let down = (1.0 - self.scale(value)) * (rows - 1) as f64;
        (down.round() as usize).min(rows - 1)
    }

    fn column(&self, step: f64) -> usize {
        let columns = (usize::from(self.area.width) * self.dots.0).max(1);
        let share = if self.x.1 > self.x.0 {
            (step - self.x.0) / (self.x.1 - self.x.0)
        } else {
            0.0
        };
        ((share.clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize).min(columns - 1)
    }
}

impl Chart<'_> {
    /// Draws into `area`; too small an area stays empty.
    pub fn render(&self, area: Rect, buffer: &mut Buffer) {
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
        self.draw_axes(&plot, area, gutter, foot, buffer);
        let mut grid = Grid::new(inner, plot.dots);
        for curve in &self.curves {
            grid.curve(curve, &plot);
        }
        self.draw_moments(&plot, buffer);
        for reference in &self.references {
            draw_reference(reference, &plot, &grid, buffer);
        }
        grid.render(&self.symbols, buffer);
        let mut names = Vec::new();
        for reference in &self.references {
            draw_name(reference, &plot, &grid, &mut names, buffer);
        }
        self.draw_letters(&plot, buffer);
    }

    fn plot(&self, area: Rect) -> Option<Plot> {
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter());
        let usable = |v: f64| v.is_finite() && (!self.log || v > 0.0);
        let values = points()
            .flat_map(|b| [b.low, b.high])
            .chain(self.references.iter().map(|r| r.value));
        let (low, high) =
            values
                .filter(|v| usable(*v))
                .fold(None, |range: Option<(f64, f64)>, v| {
                    Some(range.map_or((v, v), |(l, h)| (l.min(v), h.max(v))))
                })?;
        let (low, high) = if self.log {
            (low / 1.15, high * 1.15)
        } else {
            let margin = ((high - low) * 0.06).max(high.abs() * 0.01).max(1e-9);
            // Nothing below zero is invented where all values are above it.
            (
                if low >= 0.0 {
                    (low - margin).max(0.0)
                } else {
                    low - margin
                },
                high + margin,
            )
        };
        let first = points().map(|b| b.first).min().unwrap_or(0);
        let last = points()
            .map(|b| b.last)
            .chain(self.moments.iter().map(|m| m.step))
            .max()
            .unwrap_or(0);
        let x = (first as f64, (last.max(first + 1)) as f64);
        Some(Plot {
            area,
            x,
            y: (low, high),
            log: self.log,
            dots: if self.symbols.braille { (2, 4) } else { (1, 1) },
        })
    }

    fn draw_axes(&self, plot: &Plot, area: Rect, gutter: u16, foot: u16, buffer: &mut Buffer) {
        if gutter > 0 {
            let mut taken = None;
            for value in ticks(
                plot.y,
                plot.log,
                usize::from(plot.area.height / 3).clamp(2, 8),
            ) {
                let row = (plot.row(value) / plot.dots.1) as u16;
                if taken.is_none_or(|other: u16| other.abs_diff(row) > 1) {
                    let label = text::right(&tick_label(value), usize::from(gutter) - 1);
                    put(buffer, area.x, area.y + row, &label, gutter - 1, self.axis);
                    taken = Some(row);
                }
            }
            for row in 0..plot.area.height {
                put(
                    buffer,
                    plot.area.x - 1,
                    plot.area.y + row,
                    self.symbols.vertical,
                    1,
                    self.axis,
                );
            }
        }
        if foot > 0 {
            let y = area.bottom() - 1;
            let from = format!("step {}", plot.x.0);
            let to = format!("{}", plot.x.1);
            put(buffer, plot.area.x, y, &from, plot.area.width, self.axis);
            let x = plot.area.right().saturating_sub(to.len() as u16);
            if x > plot.area.x + from.len() as u16 {
                put(buffer, x, y, &to, to.len() as u16, self.axis);
            }
        }
    }

    fn draw_moments(&self, plot: &Plot, buffer: &mut Buffer) {
        for moment in &self.moments {
            let column = (plot.column(moment.step as f64) / plot.dots.0) as u16;
            let x = plot.area.x + column;
            for row in 0..plot.area.height {
                put(
                    buffer,
                    x,
                    plot.area.y + row,
                    self.symbols.vertical,
                    1,
                    moment.style,
                );
            }
            let wide = text::width(&moment.name) as u16;
            let x = if x + 2 + wide < plot.area.right() {
                x + 2
            } else {
                x.saturating_sub(wide + 1).max(plot.area.x)
            };
            put(
                buffer,
                x,
                plot.area.y,
                &moment.name,
                plot.area.right() - x,
                moment.style,
            );
        }
    }

    fn draw_letters(&self, plot: &Plot, buffer: &mut Buffer) {
        for curve in &self.curves {
            let Some(last) = curve.points.last() else {
                continue;
            };
            let column = plot.column(last.last as f64) / plot.dots.0;
            let row = plot.row(last.mean) / plot.dots.1;
            let x = (plot.area.x + column as u16).min(plot.area.right() - 1);
            put(
                buffer,
                x,
                plot.area.y + row as u16,
                curve.letter,
                1,
                curve.style,
            );
        }
    }
}

fn draw_reference(reference: &Reference, plot: &Plot, grid: &Grid, buffer: &mut Buffer) {
    let row = (plot.row(reference.value) / plot.dots.1) as u16;
    for column in 0..plot.area.width {
        if grid.is_free(column, row) {
            put(
                buffer,
                plot.area.x + column,
                plot.area.y + row,
                reference.symbol,
                1,
                reference.style,
            );
        }
    }
}

/// Puts the name where it hides neither a curve nor another name: right, left or in the middle, else nowhere.
fn draw_name(
    reference: &Reference,
    plot: &Plot,
    grid: &Grid,
    names: &mut Vec<(u16, std::ops::Range<u16>)>,
    buffer: &mut Buffer,
) {
    let row = (plot.row(reference.value) / plot.dots.1) as u16;
    let name = text::cut(
        &format!(" {} ", reference.name),
        usize::from(plot.area.width),
    );
    let wide = text::width(&name) as u16;
    let span = plot.area.width - wide;
    let free = |x: u16, row: u16| {
        (x..x + wide).all(|column| {
            grid.is_free(column, row)
                && !names
                    .iter()
                    .any(|(other, taken)| *other == row && taken.contains(&column))
        })
    };
    // On the line, else just above or below it.
    let rows = [
        Some(row),
        row.checked_sub(1),
        (row + 1 < plot.area.height).then_some(row + 1),
    ];
    let columns = [span.saturating_sub(2), 1.min(span), span / 2];
    let places = rows
        .into_iter()
        .flatten()
        .flat_map(|row| columns.map(|x| (x, row)));
    if let Some((x, row)) = places.into_iter().find(|(x, row)| free(*x, *row)) {
        names.push((row, x..x + wide));
        put(
            buffer,
            plot.area.x + x,
            plot.area.y + row,
            &name,
            wide,
            reference.style,
        );
    }
}

/// Writes at a place, inside the buffer only.
pub fn put(buffer: &mut Buffer, x: u16, y: u16, what: &str, columns: u16, style: Style) {
    if y < buffer.area.bottom()
        && x < buffer.area.right()
        && y >= buffer.area.y
        && x >= buffer.area.x
    {
        buffer.set_stringn(x, y, what, usize::from(columns), style);
    }
}
