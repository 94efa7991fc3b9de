//! Tables of figures whose columns come and go with the room there is.

use ratatui::style::Style;
use ratatui::text::Span;

use super::text;

/// A column of figures, aligned right.
pub struct FigureColumn {
    pub head: &'static str,
    pub wide: usize,
}

/// The width of each column, 0 for those without room; `order` has the most important first.
pub fn fit(columns: &[FigureColumn], order: &[usize], room: &mut usize) -> Vec<usize> {
    let mut widths = vec![0; columns.len()];
    for at in order {
        let wide = columns[*at].wide;
        if wide <= *room {
            widths[*at] = wide;
            *room -= wide;
        }
    }
    widths
}

/// The headings in their widths.
pub fn heads(columns: &[FigureColumn], widths: &[usize]) -> String {
    let cells = columns.iter().zip(widths);
    cells
        .map(|(it, wide)| text::right(it.head, *wide))
        .collect()
}

/// Cells in their widths.
pub fn cells<const N: usize>(
    cells: [(String, Style); N],
    widths: &[usize],
) -> impl Iterator<Item = Span<'static>> {
    let cells = cells.into_iter().zip(widths);
    cells.map(|((cell, style), wide)| Span::styled(text::right(&cell, *wide), style))
}

/// A figure, or a dash where there is none.
pub fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}
