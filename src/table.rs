//! Cells in columns of plain text, in the widths that they take on a screen.

use unicode_width::UnicodeWidthStr;

/// A line for each row, the head first. With `figures` all columns but the first are aligned right. A row shorter than the head
/// ends in a cell that may be as wide as it needs.
pub fn lines(rows: &[Vec<String>], figures: bool) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let last = |row: &Vec<String>| row.len() < columns && column + 1 == row.len();
        let cells = rows
            .iter()
            .filter(|row| !last(row))
            .filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| {
            let blank = " ".repeat(width.saturating_sub(cell.width()));
            match figures && at > 0 {
                true => blank + cell,
                false => format!("{cell}{blank}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
