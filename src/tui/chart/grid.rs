//! What curves and points are drawn on: a plot with its two scales, the dots of its cells (two by four in braille, two by two in
//! blocks, else one a cell), and the letters and names that stand beside them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::axis::{Scale, tick_label};
use crate::tui::symbols::Symbols;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Writes at a place, inside the buffer only.
pub fn put(buffer: &mut Buffer, x: u16, y: u16, what: &str, columns: u16, style: Style) {
    if buffer.area.contains((x, y).into()) {
        buffer.set_string(x, y, text::cut(what, usize::from(columns)), style);
    }
}

/// A rectangle of cells with a scale along each side.
pub struct Plot {
    pub area: Rect,
    pub x: Scale,
    pub y: Scale,
    /// Columns and rows of dots in a cell.
    pub dots: (usize, usize),
}

impl Plot {
    /// Column and row of dots, row 0 at the top; what lies outside is brought to the edge.
    pub fn dot(&self, x: f64, y: f64) -> (usize, usize) {
        let along = |share: f64, cells: u16, dots: usize| {
            let last = (usize::from(cells) * dots).max(1) - 1;
            (share * last as f64).round() as usize
        };
        (
            along(self.x.share(x), self.area.width, self.dots.0),
            along(1.0 - self.y.share(y), self.area.height, self.dots.1),
        )
    }

    /// The cell of a place.
    pub fn cell(&self, x: f64, y: f64) -> (u16, u16) {
        let (column, row) = self.dot(x, y);
        ((column / self.dots.0) as u16, (row / self.dots.1) as u16)
    }

    /// Draws in a cell of the plot.
    pub fn put(&self, buffer: &mut Buffer, cell: (u16, u16), what: &str, style: Style) {
        let (x, y) = (self.area.x + cell.0, self.area.y + cell.1);
        put(buffer, x, y, what, text::width(what) as u16, style);
    }

    /// What a cell of the plot shows.
    pub fn shown<'b>(&self, buffer: &'b Buffer, (x, y): (u16, u16)) -> &'b str {
        let cell = buffer.cell((self.area.x + x, self.area.y + y));
        cell.map_or("", |cell| cell.symbol())
    }

    /// Puts a letter into the cell or the nearest one around it without a letter; nowhere where all have one.
    pub fn letter(&self, buffer: &mut Buffer, letter: char, cell: (u16, u16), style: Style) {
        #[rustfmt::skip]
        const AROUND: [(i16, i16); 11] = [
            (0, 0), (1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1), (2, 0), (-2, 0),
        ];
        let around = AROUND.into_iter().filter_map(|(right, down)| {
            let x = cell.0.checked_add_signed(right)?;
            let y = cell.1.checked_add_signed(down)?;
            (x < self.area.width && y < self.area.height).then_some((x, y))
        });
        let free = |cell: &(u16, u16)| !self.shown(buffer, *cell).contains(char::is_alphabetic);
        if let Some(cell) = around.into_iter().find(free) {
            self.put(buffer, cell, letter.encode_utf8(&mut [0; 4]), style);
        }
    }

    /// Puts a name at the first of these places where it fits, hides only what is `free` and touches no other name. Tells
    /// whether there is one.
    pub fn name(
        &self,
        buffer: &mut Buffer,
        name: &str,
        places: impl IntoIterator<Item = Option<(u16, u16)>>,
        free: &dyn Fn(&str) -> bool,
        style: Style,
    ) -> bool {
        let wide = text::width(name) as u16;
        let fits = |(x, y): &(u16, u16)| {
            let beside = [x.saturating_sub(1), x + wide];
            let word = |x: u16| self.shown(buffer, (x, *y)).contains(char::is_alphanumeric);
            x + wide <= self.area.width
                && *y < self.area.height
                && (*x..x + wide).all(|x| free(self.shown(buffer, (x, *y))))
                && !beside.into_iter().any(word)
        };
        let place = places.into_iter().flatten().find(fits);
        if let Some(place) = place {
            self.put(buffer, place, name, style);
        }
        place.is_some()
    }

    /// Draws a line from top to bottom.
    pub fn upright(&self, buffer: &mut Buffer, x: u16, symbol: &str, style: Style) {
        for y in self.area.top()..self.area.bottom() {
            put(buffer, x, y, symbol, 1, style);
        }
    }

    /// Writes the values of the y axis, divided by `unit`, into the columns left of the plot, and the axis.
    pub fn draw_gutter(&self, buffer: &mut Buffer, gutter: u16, unit: f64, theme: &Theme) {
        let mut before: Option<u16> = None;
        for value in self.y.ticks(usize::from(self.area.height / 3).min(8)) {
            let row = self.cell(self.x.low, value).1;
            if before.is_none_or(|other| other.abs_diff(row) > 1) {
                let label = text::right(&tick_label(value / unit), usize::from(gutter) - 1);
                let (x, y) = (self.area.x - gutter, self.area.y + row);
                put(buffer, x, y, &label, gutter - 1, theme.dim);
                before = Some(row);
            }
        }
        self.upright(buffer, self.area.x - 1, theme.symbols.vertical, theme.dim);
    }
}

/// Whose dots these are.
#[derive(Clone, Copy)]
pub struct CurveStyle {
    /// 0 for A, 1 for B.
    pub kind: usize,
    pub style: Style,
}

/// The dots of all curves: a bit pattern and a style per cell.
pub struct Grid<'a> {
    plot: &'a Plot,
    cells: Vec<(u8, CurveStyle)>,
}

impl<'a> Grid<'a> {
    /// Without a dot.
    pub fn new(plot: &'a Plot) -> Self {
        let style = Style::new();
        let cells = vec![(0, CurveStyle { kind: 0, style }); plot.area.area() as usize];
        Self { plot, cells }
    }

    /// Adds a dot.
    pub fn dot(&mut self, (column, row): (usize, usize), ink: CurveStyle) {
        // Braille numbers its dots column by column, the bottom row last.
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let dots = self.plot.dots;
        let (x, y) = (column / dots.0, row / dots.1);
        let at = y * usize::from(self.plot.area.width) + x;
        if let Some(cell) = self.cells.get_mut(at) {
            let bit = BITS[column % dots.0][row % dots.1];
            *cell = (cell.0 | bit, ink);
        }
    }

    /// Adds a straight line between two dots.
    pub fn line(&mut self, from: (usize, usize), to: (usize, usize), ink: CurveStyle) {
        let (x, y) = (to.0 as f64 - from.0 as f64, to.1 as f64 - from.1 as f64);
        let steps = x.abs().max(y.abs()) as usize;
        for step in 0..=steps {
            let share = step as f64 / steps.max(1) as f64;
            let (column, row) = (from.0 as f64 + share * x, from.1 as f64 + share * y);
            self.dot((column.round() as usize, row.round() as usize), ink);
        }
    }

    /// Draws all dots.
    pub fn render(&self, symbols: &Symbols, buffer: &mut Buffer) {
        let width = usize::from(self.plot.area.width).max(1);
        let cells = self.cells.iter().enumerate();
        for (at, (bits, ink)) in cells.filter(|(_, cell)| cell.0 != 0) {
            let cell = ((at % width) as u16, (at / width) as u16);
            // B carries a mark every few columns.
            let marked = ink.kind == 1 && cell.0 % 6 == 3;
            let glyph = symbols.mosaic(*bits).filter(|_| !marked);
            let mut bytes = [0; 4];
            let drawn = match glyph {
                Some(glyph) => &*glyph.encode_utf8(&mut bytes),
                None => symbols.points[ink.kind.min(1)],
            };
            self.plot.put(buffer, cell, drawn, ink.style);
        }
    }
}
