//! Stretches a drawing of a lesson, made of line characters, to fill an area on a projector. Lines and blocks grow; words keep their size:
//!
//! ```text
//! ┌──┐        ┌─────┐
//! │ab│   →    │  ab │
//! └──┘        └─────┘
//! ```

/// The largest factor by which a drawing grows in each direction.
const MAX_FACTOR: f64 = 4.0;
/// Characters whose line continues to the right, to the left, down and up.
const RIGHT: &str = "─┌└├┬┴┼◀";
const LEFT: &str = "─┐┘┬┴┼▶╌";
const DOWN: &str = "│┬┌┐├┤┼▲┊";
const UP: &str = "│┴└┘├┤┼▼┊";
/// Characters that end a stretch of a timeline. If two of them are one below the other, no line joins them.
const ENDS: &str = "├┤";
/// Eighths of a cell, by their height.
const EIGHTHS: &str = " ▁▂▃▄▅▆▇█";

/// Returns true if a character is a part of a line or a shape, not of a word.
fn is_drawn(c: char) -> bool {
    ('\u{2500}'..='\u{25ff}').contains(&c)
}

/// Returns the lines of a drawing, stretched to fill most of an area of this size. The drawing must fit into the area.
pub(super) fn stretched(lines: &[String], (columns, rows): (u16, u16)) -> Vec<String> {
    let grid: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let wide = grid.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let across = (f64::from(columns) / wide as f64).clamp(1.0, MAX_FACTOR);
    let down = (usize::from(rows) / grid.len().max(1)).clamp(1, MAX_FACTOR as usize);
    let char_at = |row: usize, x: usize| {
        let cell = grid.get(row).and_then(|row| row.get(x));
        cell.copied().unwrap_or(' ')
    };
    let rows_and_parts = (0..grid.len())
        .flat_map(|row| (0..down).map(move |part| (row, part)))
        .take(grid.len() * down + 1 - down);
    rows_and_parts
        .map(|(row, part)| {
            let mut out: Vec<char> = Vec::new();
            for x in 0..wide {
                let begin = stretched_column(x, across);
                let end = stretched_column(x + 1, across);
                let c = char_at(row, x);
                let below = char_at(row + 1, x);
                let next = char_at(row, x + 1);
                let goes_down = DOWN.contains(c) && UP.contains(below);
                let is_line = goes_down && !(ENDS.contains(c) && ENDS.contains(below));
                let goes_right =
                    RIGHT.contains(c) && (LEFT.contains(next) || next == '┤' && c != '├');
                if begin < out.len() && !is_drawn(c) {
                    // A word that began further left already fills this column.
                    continue;
                }
                out.truncate(begin);
                let filled = match EIGHTHS.chars().position(|eighth| eighth == c) {
                    Some(high @ 1..) => {
                        let under = 8 * (down - 1 - part);
                        EIGHTHS
                            .chars()
                            .nth((high * down).saturating_sub(under).min(8))
                    }
                    _ if "▓▒░".contains(c) => Some(c),
                    _ => None,
                };
                let (first, rest) = match (filled, part) {
                    (Some(fill), _) => (fill, fill),
                    (None, 0) if "─═╌┈▬".contains(c) => (c, c),
                    (None, 0) if goes_right => (c, '─'),
                    (None, 0) if is_drawn(c) => (c, ' '),
                    (None, 0) if c != ' ' => {
                        out.extend(word(&grid[row], x, across));
                        continue;
                    }
                    (None, 1..) if is_line => ('│', ' '),
                    _ => (' ', ' '),
                };
                out.push(first);
                out.resize(end.max(begin + 1), rest);
            }
            let line: String = out.into_iter().collect();
            line.trim_end().to_owned()
        })
        .collect()
}

/// Returns the column of the stretched drawing where column `x` of the drawing begins.
fn stretched_column(x: usize, across: f64) -> usize {
    (x as f64 * across) as usize
}

/// Returns the words that begin at column `x` and end before two blanks or a line, padded to the beginning of the next column. Between two
/// lines the words are centred.
fn word(row: &[char], x: usize, across: f64) -> Vec<char> {
    let is_blank = |index: usize| row.get(index).is_none_or(|c| *c == ' ');
    let is_line = |index: usize| row.get(index).is_some_and(|c| is_drawn(*c));
    let is_end = |index: &usize| {
        *index == row.len() || is_line(*index) || is_blank(*index) && is_blank(index + 1)
    };
    let end = (x..=row.len()).find(is_end).unwrap_or(row.len());
    let width = stretched_column(end, across) - stretched_column(x, across);
    let between_lines = x > 0 && is_line(x - 1) && is_line(end);
    let spare = width.saturating_sub(end - x);
    let before = if between_lines { spare / 2 } else { 0 };
    let mut out = vec![' '; before];
    out.extend(&row[x..end]);
    out.resize(out.len().max(width), ' ');
    out
}

#[cfg(test)]
mod tests {
    use super::stretched;

    #[test]
    fn lines_grow_and_words_stay() {
        let lines = [" in ─▶┌──┐", "  ▄   │ab│", "  █   └──┘"].map(str::to_owned);
        assert_eq!(stretched(&lines, (10, 3)), lines);
        let drawn = [
            "  in    ──▶ ┌─────┐",
            "            │     │",
            "            │  ab │",
            "    ██      │     │",
            "    ██      └─────┘",
        ];
        assert_eq!(stretched(&lines, (20, 6)), drawn);
    }

    #[test]
    fn two_stretches_of_a_timeline_are_not_joined() {
        let lines = ["┤a├┤b├──", "┤c├▬▬▬▬▬"].map(str::to_owned);
        let drawn = ["┤ a ├ ┤ b ├─────", "", "┤ c ├ ▬▬▬▬▬▬▬▬▬▬"];
        assert_eq!(stretched(&lines, (16, 4)), drawn);
    }
}
