//! Large numerals, three rows high, for the one figure that must be readable from the back of a room.

use ratatui::buffer::Buffer;
use ratatui::style::Style;

use super::chart::grid::put;

/// Rows of a large numeral.
pub const ROWS: u16 = 3;

const fn glyph(c: char) -> Option<[&'static str; 3]> {
    Some(match c {
        '0' => ["█▀█", "█ █", "▀▀▀"],
        '1' => ["▀█ ", " █ ", "▀▀▀"],
        '2' => ["▀▀█", "█▀▀", "▀▀▀"],
        '3' => ["▀▀█", " ▀█", "▀▀▀"],
        '4' => ["█ █", "▀▀█", "  ▀"],
        '5' => ["█▀▀", "▀▀█", "▀▀▀"],
        '6' => ["█▀▀", "█▀█", "▀▀▀"],
        '7' => ["▀▀█", "  █", "  ▀"],
        '8' => ["█▀█", "█▀█", "▀▀▀"],
        '9' => ["█▀█", "▀▀█", "▀▀▀"],
        '.' => [" ", " ", "▀"],
        ',' => [" ", " ", "▄"],
        '-' => ["  ", "▀▀", "  "],
        ' ' => [" ", " ", " "],
        _ => return None,
    })
}

/// Columns that the text takes; none when a character has no large form.
pub fn width(text: &str) -> Option<u16> {
    text.chars().try_fold(0, |sum, c| {
        Some(sum + glyph(c)?[0].chars().count() as u16 + 1)
    })
}

/// Draws the text with its top left corner at (x, y).
pub fn draw(buffer: &mut Buffer, x: u16, y: u16, text: &str, style: Style) {
    let mut x = x;
    for rows in text.chars().filter_map(glyph) {
        let wide = rows[0].chars().count() as u16;
        for (row, line) in rows.iter().enumerate() {
            put(buffer, x, y + row as u16, line, wide, style);
        }
        x += wide + 1;
    }
}
