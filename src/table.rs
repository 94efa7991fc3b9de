//! Cells in columns: how wide each column is, and a cell as wide as its column. Lines of plain text are made here; `tui` draws
//! the same columns in its styles.

use unicode_width::UnicodeWidthStr;

/// The width of each column: that of its widest cell.
pub fn widths<'a, Cell: 'a>(
    rows: impl Iterator<Item = &'a [Cell]> + Clone,
    columns: usize,
    width: impl Fn(&Cell) -> usize,
) -> Vec<usize> {
    let widest = |column: usize| {
        let cells = rows.clone().filter_map(|row| row.get(column));
        cells.map(&width).max().unwrap_or(0)
    };
    (0..columns).map(widest).collect()
}

/// Takes from the widest columns until all of them have room together; each keeps one column of the screen.
pub fn shrink(widths: &mut [usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        match widths.iter_mut().max_by_key(|width| **width) {
            Some(widest) if *widest > 1 => *widest -= 1,
            _ => break,
        }
    }
}

/// The text filled up to a width. A longer one stays as it is.
pub fn filled(text: &str, width: usize, right: bool) -> String {
    let blank = " ".repeat(width.saturating_sub(text.width()));
    if right {
        blank + text
    } else {
        text.to_owned() + &blank
    }
}

/// A line for each row, the head first. With `figures` all columns but the first are aligned right. A row shorter than the head
/// ends in a cell that may be as wide as it needs.
pub fn lines(rows: &[Vec<String>], figures: bool) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let bounded = rows.iter().map(|row| match row.as_slice() {
        [cells @ .., _] if row.len() < columns => cells,
        cells => cells,
    });
    let widths = widths(bounded, columns, |cell| cell.width());
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| filled(cell, *width, figures && at > 0));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
