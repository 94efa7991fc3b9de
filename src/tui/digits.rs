//! Large glyphs for text that must be readable from the back of a room. Most glyphs have three by five dots; at the smallest size a dot is
//! half a cell high. They are drawn with blocks, which have a form in ASCII.
//!
//! A terminal's own text sizing (OSC 66) is not used: its largest text has seven rows, and a screen of 120 by 36 has room for more. The
//! crate tui-big-text 0.8 is not used: its letters have eight by eight dots, which fit on three rows only as sextants (ASCII and many
//! fonts have none), and its sizes are fixed, while these glyphs grow to fill their area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::chart::grid::put;
use super::surface::height;
use super::symbols::half_blocks;

/// The height of the smallest size, in rows.
pub const ROWS: u16 = 3;

/// Each entry has some characters and their glyphs side by side, in five rows of dots.
#[rustfmt::skip] // Each line is one row of dots.
const GLYPHS: [(&str, [&str; 5]); 4] = [
    ("0123456789.,:-+=/%^→µ'_ ", [
        "### ##. ### ### #.# ### ### ### ### ### . . . .. ... ... ..# #..# .#. ..#.. ... # ... ..",
        "#.# .#. ..# ..# #.# #.. #.. ..# #.# #.# . . # .. .#. ### ..# ..#. #.# ...#. #.# # ... ..",
        "#.# .#. ### .## ### ### ### ..# ### ### . . . ## ### ... .#. .##. ... ##### #.# . ... ..",
        "#.# .#. #.. ..# ..# ..# #.# ..# #.# ..# . # # .. .#. ### #.. .#.. ... ...#. ### . ... ..",
        "### ### ### ### ..# ### ### ..# ### ### # # . .. ... ... #.. #..# ... ..#.. #.. . ### ..",
    ]),
    ("ABCDEFGHIJKLMNOPQRSTU", [
        ".#. ##. .## ##. ### ### .## #.# ### ..# #.# #.. #...# #..# .#. ##. .#. ##. .## ### #.#",
        "#.# #.# #.. #.# #.. #.. #.. #.# .#. ..# #.# #.. ##.## ##.# #.# #.# #.# #.# #.. .#. #.#",
        "### ##. #.. #.# ##. ##. #.# ### .#. ..# ##. #.. #.#.# #.## #.# ##. #.# ##. .#. .#. #.#",
        "#.# #.# #.. #.# #.. #.. #.# #.# .#. #.# #.# #.. #...# #..# #.# #.. ##. #.# ..# .#. #.#",
        "#.# ##. .## ##. ### #.. .## #.# ### .#. #.# ### #...# #..# .#. #.. .## #.# ##. .#. ###",
    ]),
    ("abcdefghijklmnopqrstu", [
        "... #.. ... ..# ... .## ... #.. # .# #.. #. ..... ... ... ... ... ... ... .#. ...",
        "##. ##. .## .## .## #.. .## ##. . .. #.# #. ##.#. ##. .#. ##. .## #.# .## ### #.#",
        ".## #.# #.. #.# #.# ##. #.# #.# # .# ##. #. #.#.# #.# #.# #.# #.# ##. ##. .#. #.#",
        "#.# #.# #.. #.# ##. #.. .## #.# # .# ##. #. #.#.# #.# #.# ##. .## #.. .## .#. #.#",
        ".## ##. .## .## .## #.. ##. #.# # #. #.# .# #.#.# #.# .#. #.. ..# #.. ##. .## .##",
    ]),
    ("VWXYZvwxyz()\";!–×<>…’?", [
        "#.# #...# #.# #.# ### ... ..... ... ... ... .# #. #.# . # ... ... ..# #.. ..... # ###",
        "#.# #...# #.# #.# ..# #.# #.#.# #.# #.# ### #. .# #.# # # ... #.# .#. .#. ..... # ..#",
        "#.# #.#.# .#. .#. .#. #.# #.#.# .#. #.# .## #. .# ... . # ### .#. #.. ..# ..... . .##",
        "#.# ##.## #.# .#. #.. #.# #.#.# #.# .## ##. #. .# ... # . ... #.# .#. .#. ..... . ...",
        ".#. #...# #.# .#. ### .#. .#.#. ... ##. ### .# #. ... # # ... ... ..# #.. #.#.# . .#.",
    ]),
];

/// Returns the five rows of dots of a character's glyph, or `None` if the character has no large form.
fn glyph(c: char) -> Option<[&'static str; 5]> {
    GLYPHS.iter().find_map(|(characters, rows)| {
        let index = characters.chars().position(|character| character == c)?;
        Some(rows.map(|row| row.split(' ').nth(index).unwrap_or_default()))
    })
}

/// Returns how many columns the text takes at the smallest size, with a gap after each glyph. `None` if a character has no large form.
pub fn width(text: &str) -> Option<u16> {
    text.chars()
        .try_fold(0, |sum, c| Some(sum + glyph(c)?[0].len() as u16 + 1))
}

/// Wraps a text into lines of at most `columns` at the smallest size. `None` if a character has no large form or a word is too wide.
pub fn wrap(text: &str, columns: u16) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer {
            Some(longer) if width(&longer)? <= columns => {
                lines.pop();
                lines.push(longer);
            }
            _ if width(word)? > columns => return None,
            _ => lines.push(word.to_owned()),
        }
    }
    Some(lines)
}

/// Returns how many rows a number of lines takes at the smallest size, with a gap between them.
pub fn rows_of(lines: usize) -> u16 {
    height(lines).saturating_mul(ROWS + 1).saturating_sub(1)
}

/// Draws lines at the smallest size, one below the other.
pub fn draw_lines(buffer: &mut Buffer, (x, y): (u16, u16), lines: &[String], style: Style) {
    for (line, index) in lines.iter().zip(0..) {
        draw(buffer, (x, y + index * (ROWS + 1)), line, 1, style);
    }
}

/// Returns the height of a glyph at a size, in rows.
pub const fn rows(size: u16) -> u16 {
    (5 * size).div_ceil(2)
}

/// Returns the largest size at which the text fits into `columns` and `max_rows`; 0 where no size fits.
pub fn size(text: &str, columns: u16, max_rows: u16) -> u16 {
    let smallest_width = width(text).unwrap_or(0);
    let by_width = columns.checked_div(smallest_width).unwrap_or(0);
    let by_height = (1..=max_rows).take_while(|size| rows(*size) <= max_rows);
    by_width.min(by_height.last().unwrap_or(0))
}

/// Draws the text as large as it fits, or in plain letters where no size fits.
pub fn fill(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    match size(text, area.width, area.height) {
        0 => put(buffer, area.x, area.y, text, area.width, style),
        size => draw(buffer, (area.x, area.y), text, size, style),
    }
}

/// Modifiers that would spoil glyphs made of blocks.
const SPOILING: Modifier = Modifier::REVERSED.union(Modifier::UNDERLINED);

/// Draws the text with its top left corner at (x, y). Each dot is `size` columns wide and half as many rows high.
pub fn draw(buffer: &mut Buffer, (mut x, y): (u16, u16), text: &str, size: u16, style: Style) {
    let plain_style = style.remove_modifier(SPOILING);
    for dots in text.chars().filter_map(glyph) {
        let wide = dots[0].len() as u16;
        for row in 0..rows(size) {
            let lit = |half: u16, column: u16| {
                let dot = dots.get(usize::from((2 * row + half) / size));
                dot.is_some_and(|line| line.as_bytes()[usize::from(column / size)] == b'#')
            };
            let cells: String = (0..wide * size)
                .map(|column| half_blocks(lit(0, column), lit(1, column)))
                .collect();
            put(buffer, x, y + row, &cells, wide * size, plain_style);
        }
        x += (wide + 1) * size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_size_that_fits_is_found() {
        assert_eq!(size("8", 3, 30), 0);
        assert_eq!(size("8", 4, 3), 1);
        assert_eq!(size("8", 8, 4), 1);
        assert_eq!(size("8", 8, 5), 2);
        assert_eq!(size("ü", 100, 100), 0, "no large form");
        assert_eq!(size("", 100, 100), 0, "nothing to draw");
    }

    #[test]
    fn lines_wrap_between_words_and_no_word_is_broken() {
        // Each glyph takes its dots and one column of gap.
        assert_eq!(width("3.1x"), Some(4 + 2 + 4 + 4));
        let two_lines = vec!["ms".to_owned(), "MiB".to_owned()];
        assert_eq!(wrap("ms MiB", 20), Some(two_lines));
        assert_eq!(wrap("ms MiB", 9), None, "`MiB` is wider than 9 columns");
        assert_eq!(rows_of(2), 7, "three rows, a gap, three rows");
    }

    #[test]
    fn every_glyph_is_whole_and_cases_differ() {
        assert_ne!(glyph('M'), glyph('m'), "a mega is no milli");
        for (characters, rows) in GLYPHS {
            for row in rows {
                assert_eq!(row.split(' ').count(), characters.chars().count());
            }
            for c in characters.chars() {
                let dots = glyph(c).expect("a glyph");
                assert!(dots.iter().all(|row| row.len() == dots[0].len()), "{c}");
            }
        }
    }
}
