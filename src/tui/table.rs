//! A table of figures whose less important columns are left out where room is short.

use ratatui::style::Style;
use ratatui::text::Span;

use super::text;

/// The heading and the width of a column of figures, which are aligned right.
pub(super) type FigureColumn = (&'static str, usize);

/// The columns of a table. A column without room has width 0.
pub(super) struct Columns<const N: usize>(pub [FigureColumn; N]);

impl<const N: usize> Columns<N> {
    /// Gives each column its width as long as `room` lasts, and takes the widths off `room`. `order` has the most important column first.
    pub(super) fn fit(mut columns: [FigureColumn; N], order: &[usize], room: &mut usize) -> Self {
        let wanted = columns.map(|(_, wide)| wide);
        for (_, wide) in &mut columns {
            *wide = 0;
        }
        for index in order {
            if wanted[*index] <= *room {
                columns[*index].1 = wanted[*index];
                *room -= wanted[*index];
            }
        }
        Self(columns)
    }

    /// Returns the width of all columns together.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, wide)| wide).sum()
    }

    /// Returns the headings, each in the width of its column.
    pub(super) fn heads(&self) -> String {
        self.0
            .iter()
            .map(|(head, wide)| text::right(head, *wide))
            .collect()
    }

    /// Returns a row of cells, each in the width of its column.
    pub(super) fn cells(&self, cells: [(String, Style); N]) -> impl Iterator<Item = Span<'static>> {
        cells
            .into_iter()
            .zip(self.0)
            .map(|((cell, style), (_, wide))| Span::styled(text::right(&cell, wide), style))
    }
}
