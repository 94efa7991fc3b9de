//! The dots of all curves on a grid of cells, two by four in braille, one a cell otherwise.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Curve, Plot, put};
use crate::tui::symbols::Symbols;

/// Whose dots these are.
#[derive(Clone, Copy)]
pub struct Ink {
    /// 0 for A, 1 for B.
    pub kind: usize,
    pub style: Style,
}

/// The dots of all curves: a bit pattern and a style per cell.
pub struct Grid {
    area: Rect,
    dots: (usize, usize),
    cells: Vec<(u8, usize, Style)>,
}

impl Grid {
    /// Without a dot.
    pub fn new(area: Rect, dots: (usize, usize)) -> Self {
        let cells = usize::from(area.width) * usize::from(area.height);
        Self {
            area,
            dots,
            cells: vec![(0, 0, Style::new()); cells],
        }
    }

    /// No dot is in the cell.
    pub fn is_free(&self, column: u16, row: u16) -> bool {
        let at = usize::from(row) * usize::from(self.area.width) + usize::from(column);
        self.cells.get(at).is_none_or(|cell| cell.0 == 0)
    }

    fn dot(&mut self, column: usize, row: usize, ink: Ink) {
        let (x, y) = (column / self.dots.0, row / self.dots.1);
        if let Some(cell) = self.cells.get_mut(y * usize::from(self.area.width) + x) {
            // Braille numbers its dots column by column, the bottom row last.
            const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
            let bit = BITS[column % self.dots.0.max(1)][row % self.dots.1.max(1)];
            *cell = (cell.0 | bit, ink.kind, ink.style);
        }
    }

    /// Adds a curve; later ones lie on top.
    pub fn curve(&mut self, curve: &Curve<'_>, plot: &Plot) {
        let ink = Ink {
            kind: curve.kind,
            style: curve.style,
        };
        let mut previous: Option<(usize, usize)> = None;
        for bucket in curve.points {
            let to = (plot.column(bucket.last as f64), plot.row(bucket.mean));
            if let Some(from) = previous.filter(|_| !bucket.gap) {
                self.line(from, to, ink);
            }
            for row in plot.row(bucket.high)..=plot.row(bucket.low) {
                self.dot(to.0, row, ink);
            }
            previous = Some(to);
        }
    }

    /// Adds a straight line between two dots.
    pub fn line(&mut self, from: (usize, usize), to: (usize, usize), ink: Ink) {
        let (x, y) = (to.0 as f64 - from.0 as f64, to.1 as f64 - from.1 as f64);
        let steps = x.abs().max(y.abs()) as usize;
        for step in 0..=steps {
            let share = if steps == 0 {
                1.0
            } else {
                step as f64 / steps as f64
            };
            let column = from.0 as f64 + share * x;
            let row = from.1 as f64 + share * y;
            self.dot(column.round() as usize, row.round() as usize, ink);
        }
    }

    /// Draws all dots.
    pub fn render(&self, symbols: &Symbols, buffer: &mut Buffer) {
        let width = usize::from(self.area.width);
        for (at, (bits, kind, style)) in self
            .cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.0 != 0)
        {
            let (column, row) = (at % width.max(1), at / width.max(1));
            let (x, y) = (self.area.x + column as u16, self.area.y + row as u16);
            // B carries a mark every few columns.
            if symbols.braille && !(*kind == 1 && column % 6 == 3) {
                let glyph = char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' ');
                put(buffer, x, y, glyph.encode_utf8(&mut [0; 4]), 1, *style);
            } else {
                put(buffer, x, y, symbols.points[(*kind).min(1)], 1, *style);
            }
        }
    }
}
