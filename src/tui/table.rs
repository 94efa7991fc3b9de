//! A table of figures that leaves out its less important columns on a narrow screen.

use ratatui::style::Style;
use ratatui::text::Span;

use super::text;

/// The heading and the width of a column of figures, which are aligned right.
pub(super) type FigureColumn = (&'static str, usize);

/// The columns of a table. A column without room has width 0.
pub(super) struct Columns<const N: usize>(pub [FigureColumn; N]);

impl<const N: usize> Columns<N> {
    /// Gives each column its width, the most important one first, as far as `available` reaches, and takes the widths off `available`. `order`
    /// has the indices of the columns by their importance.
    pub(super) fn fit(wanted: [FigureColumn; N], order: &[usize], available: &mut usize) -> Self {
        let mut columns = wanted.map(|(head, _)| (head, 0));
        for index in order {
            let (_, width) = wanted[*index];
            if width <= *available {
                columns[*index].1 = width;
                *available -= width;
            }
        }
        Self(columns)
    }

    /// Returns the width of all columns together.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, width)| width).sum()
    }

    /// Returns the headings, each in the width of its column.
    pub(super) fn heads(&self) -> String {
        self.0
            .iter()
            .map(|(head, width)| text::right(head, *width))
            .collect()
    }

    /// Returns a row of cells, each in the width of its column.
    pub(super) fn cells(&self, cells: [(String, Style); N]) -> impl Iterator<Item = Span<'static>> {
        cells
            .into_iter()
            .zip(self.0)
            .map(|((cell, style), (_, width))| Span::styled(text::right(&cell, width), style))
    }
}
