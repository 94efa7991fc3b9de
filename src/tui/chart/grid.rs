//! A plot is an area with two scales on which curves, letters and names are drawn. A grid holds the dots of its cells: two by four in a cell
//! of braille, two by two in a cell of blocks, else one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::axis::tick_label;
use crate::scale::Scale;
use crate::tui::symbols::Symbols;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Writes a text at a position of the screen, cut to `columns`. A position outside the buffer is ignored.
pub fn put(buffer: &mut Buffer, x: u16, y: u16, text: &str, columns: u16, style: Style) {
    if buffer.area.contains((x, y).into()) {
        buffer.set_string(x, y, text::cut(text, usize::from(columns)), style);
    }
}

/// A rectangle of cells with a scale along each side.
pub struct Plot {
    pub area: Rect,
    pub x: Scale,
    pub y: Scale,
    /// The columns and rows of dots in one cell.
    pub dots: (usize, usize),
}

impl Plot {
    /// Returns the column and row of the dot at a point. Row 0 is at the top. A point outside the plot is moved to its edge.
    pub fn dot(&self, x: f64, y: f64) -> (usize, usize) {
        let dot_at = |share: f64, cells: u16, dots_per_cell: usize| {
            let last = (usize::from(cells) * dots_per_cell).max(1) - 1;
            (share * last as f64).round() as usize
        };
        (
            dot_at(self.x.share(x), self.area.width, self.dots.0),
            dot_at(1.0 - self.y.share(y), self.area.height, self.dots.1),
        )
    }

    /// Returns the cell that contains a point.
    pub fn cell(&self, x: f64, y: f64) -> (u16, u16) {
        let (column, row) = self.dot(x, y);
        ((column / self.dots.0) as u16, (row / self.dots.1) as u16)
    }

    /// Writes a text that begins in a cell of the plot.
    pub fn put(&self, buffer: &mut Buffer, (x, y): (u16, u16), text: &str, style: Style) {
        let width = text::width(text) as u16;
        put(buffer, self.area.x + x, self.area.y + y, text, width, style);
    }

    /// Returns the symbol in a cell of the plot. Empty outside the buffer.
    pub fn shown<'b>(&self, buffer: &'b Buffer, (x, y): (u16, u16)) -> &'b str {
        let cell = buffer.cell((self.area.x + x, self.area.y + y));
        cell.map_or("", |cell| cell.symbol())
    }

    /// Writes a letter into the cell, or into the nearest cell around it that has no letter. Writes nothing where every cell has one.
    pub fn letter(&self, buffer: &mut Buffer, letter: char, cell: (u16, u16), style: Style) {
        #[rustfmt::skip]
        const AROUND: [(i16, i16); 11] = [
            (0, 0), (1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1), (2, 0), (-2, 0),
        ];
        let mut around = AROUND.into_iter().filter_map(|(right, down)| {
            let x = cell.0.checked_add_signed(right)?;
            let y = cell.1.checked_add_signed(down)?;
            (x < self.area.width && y < self.area.height).then_some((x, y))
        });
        let has_letter = |cell| self.shown(buffer, cell).contains(char::is_alphabetic);
        if let Some(cell) = around.find(|cell| !has_letter(*cell)) {
            self.put(buffer, cell, letter.encode_utf8(&mut [0; 4]), style);
        }
    }

    /// Writes a name at the first of these places where it fits, covers only symbols that `may_cover` accepts and touches no other name.
    /// Returns false if there is no such place.
    pub fn name(
        &self,
        buffer: &mut Buffer,
        name: &str,
        places: impl IntoIterator<Item = Option<(u16, u16)>>,
        may_cover: &dyn Fn(&str) -> bool,
        style: Style,
    ) -> bool {
        let width = text::width(name) as u16;
        let fits = |(x, y): &(u16, u16)| {
            let neighbours = [x.saturating_sub(1), x + width];
            let is_text = |x: u16| self.shown(buffer, (x, *y)).contains(char::is_alphanumeric);
            x + width <= self.area.width
                && *y < self.area.height
                && (*x..x + width).all(|x| may_cover(self.shown(buffer, (x, *y))))
                && !neighbours.into_iter().any(is_text)
        };
        let place = places.into_iter().flatten().find(fits);
        if let Some(place) = place {
            self.put(buffer, place, name, style);
        }
        place.is_some()
    }

    /// Draws a vertical line over the whole height of the plot, at column `x` of the screen.
    pub fn upright(&self, buffer: &mut Buffer, x: u16, symbol: &str, style: Style) {
        for y in self.area.top()..self.area.bottom() {
            put(buffer, x, y, symbol, 1, style);
        }
    }

    /// Draws the y axis and, in the `gutter` columns left of the plot, the values at its ticks divided by `unit`.
    pub fn draw_gutter(&self, buffer: &mut Buffer, gutter: u16, unit: f64, theme: &Theme) {
        let width = gutter - 1;
        let mut last_row: Option<u16> = None;
        for value in self.y.ticks(usize::from(self.area.height / 3).min(8)) {
            let (_, row) = self.cell(self.x.low, value);
            if last_row.is_none_or(|other| other.abs_diff(row) > 1) {
                let label = text::right(&tick_label(value / unit), width.into());
                let x = self.area.x - gutter;
                put(buffer, x, self.area.y + row, &label, width, theme.dim);
                last_row = Some(row);
            }
        }
        self.upright(buffer, self.area.x - 1, theme.symbols.vertical, theme.dim);
    }
}

/// The slot and the style of a curve.
#[derive(Clone, Copy)]
pub struct CurveStyle {
    /// 0 for A, 1 for B.
    pub kind: usize,
    pub style: Style,
}

/// The dots of all curves, with a bit pattern and a style for each cell.
pub struct Grid<'a> {
    plot: &'a Plot,
    cells: Vec<(u8, CurveStyle)>,
}

impl<'a> Grid<'a> {
    /// Returns a grid without dots.
    pub fn new(plot: &'a Plot) -> Self {
        let style = Style::new();
        let cells = vec![(0, CurveStyle { kind: 0, style }); plot.area.area() as usize];
        Self { plot, cells }
    }

    /// Adds a dot. A dot outside the plot is ignored.
    pub fn dot(&mut self, (column, row): (usize, usize), ink: CurveStyle) {
        // Braille numbers its dots column by column, the bottom row last.
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let (across, down) = self.plot.dots;
        let index = row / down * usize::from(self.plot.area.width) + column / across;
        if let Some(cell) = self.cells.get_mut(index) {
            let bit = BITS[column % across][row % down];
            *cell = (cell.0 | bit, ink);
        }
    }

    /// Adds a straight line between two dots.
    pub fn line(&mut self, from: (usize, usize), to: (usize, usize), ink: CurveStyle) {
        let across = to.0 as f64 - from.0 as f64;
        let down = to.1 as f64 - from.1 as f64;
        let steps = across.abs().max(down.abs()) as usize;
        for step in 0..=steps {
            let share = step as f64 / steps.max(1) as f64;
            let column = from.0 as f64 + share * across;
            let row = from.1 as f64 + share * down;
            self.dot((column.round() as usize, row.round() as usize), ink);
        }
    }

    /// Draws all dots into the buffer.
    pub fn render(&self, symbols: &Symbols, buffer: &mut Buffer) {
        let width = usize::from(self.plot.area.width).max(1);
        let cells = self.cells.iter().enumerate();
        for (index, (bits, ink)) in cells.filter(|(_, (bits, _))| *bits != 0) {
            let x = (index % width) as u16;
            let y = (index / width) as u16;
            // B has a mark every few columns.
            let is_marked = ink.kind == 1 && x % 6 == 3;
            let mut bytes = [0; 4];
            let symbol = match symbols.mosaic(*bits) {
                Some(glyph) if !is_marked => &*glyph.encode_utf8(&mut bytes),
                _ => symbols.points[ink.kind.min(1)],
            };
            self.plot.put(buffer, (x, y), symbol, ink.style);
        }
    }
}
