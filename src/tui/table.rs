//! Figures in columns that come and go with the room there is.

use ratatui::style::Style;
use ratatui::text::Span;

use super::text;

/// A column of figures, aligned right: its heading and its width.
pub(super) type FigureColumn = (&'static str, usize);

/// The columns of a table; those without room are 0 wide.
pub(super) struct Columns<const N: usize>(pub [FigureColumn; N]);

impl<const N: usize> Columns<N> {
    /// Takes from the room what the columns need; `order` has the most important first.
    pub(super) fn fit(mut columns: [FigureColumn; N], order: &[usize], room: &mut usize) -> Self {
        let wanted = columns.map(|(_, wide)| wide);
        columns.iter_mut().for_each(|(_, wide)| *wide = 0);
        for at in order {
            let wide = if wanted[*at] <= *room { wanted[*at] } else { 0 };
            columns[*at].1 = wide;
            *room -= wide;
        }
        Self(columns)
    }

    /// Columns of the screen that they take.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, wide)| wide).sum()
    }

    /// The headings in their widths.
    pub(super) fn heads(&self) -> String {
        let heads = self.0.iter().map(|(head, wide)| text::right(head, *wide));
        heads.collect()
    }

    /// Cells in their widths.
    pub(super) fn cells(&self, cells: [(String, Style); N]) -> impl Iterator<Item = Span<'static>> {
        let cells = cells.into_iter().zip(self.0);
        cells.map(|((cell, style), (_, wide))| Span::styled(text::right(&cell, wide), style))
    }
}
