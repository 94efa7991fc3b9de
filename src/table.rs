//! Lays out tables as lines of plain text: it finds the width of each column and pads the cells. `tui` uses the widths for tables in its own
//! styles.

use unicode_width::UnicodeWidthStr;

/// Returns the width of each column, which is the width of its widest cell.
pub fn widths<'a, Cell: 'a>(
    rows: impl Iterator<Item = &'a [Cell]> + Clone,
    columns: usize,
    width: impl Fn(&Cell) -> usize,
) -> Vec<usize> {
    let width_of_column = |column: usize| {
        let cells = rows.clone().filter_map(|row| row.get(column));
        cells.map(&width).max().unwrap_or(0)
    };
    (0..columns).map(width_of_column).collect()
}

/// Shrinks the widest columns until all columns together are at most `total` wide. Each column stays at least 1 wide.
pub fn shrink(widths: &mut [usize], total: usize) {
    while widths.iter().sum::<usize>() > total {
        match widths.iter_mut().max_by_key(|width| **width) {
            Some(widest) if *widest > 1 => *widest -= 1,
            _ => break,
        }
    }
}

/// Returns the text padded to a width, on its left if `align_right` is set, or else on its right. A longer text stays as it is.
pub fn padded(text: &str, width: usize, align_right: bool) -> String {
    let blank = " ".repeat(width.saturating_sub(text.width()));
    if align_right {
        blank + text
    } else {
        text.to_owned() + &blank
    }
}

/// Returns a line for each row. The first row is the head. If `has_figures` is set, all columns but the first are aligned right. In a row
/// that is shorter than the head, the last cell may be wider than its column.
pub fn lines(rows: &[Vec<String>], has_figures: bool) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let cells_with_width = rows.iter().map(|row| match row.as_slice() {
        [cells @ .., _] if row.len() < columns => cells,
        cells => cells,
    });
    let widths = widths(cells_with_width, columns, |cell| cell.width());
    let line = |row: &Vec<String>| {
        let mut cells = Vec::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            cells.push(padded(cell, *width, has_figures && column > 0));
        }
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
