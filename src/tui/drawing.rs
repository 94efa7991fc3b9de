//! Stretches a drawing of the course to fill an area. Lines and blocks grow; words keep their size.

/// The largest factor by which a drawing grows in each direction.
const MOST: f64 = 4.0;
/// Characters whose line continues to the right, to the left, down and up.
const RIGHT: &str = "─┌└├┬┴┼◀";
const LEFT: &str = "─┐┘┬┴┼▶╌";
const DOWN: &str = "│┬┌┐├┤┼▲┊";
const UP: &str = "│┴└┘├┤┼▼┊";
/// Characters that end a stretch of a timeline: no line joins two of them that stand one below the other.
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
    let across = (f64::from(columns) / wide as f64).clamp(1.0, MOST);
    let down = (usize::from(rows) / grid.len().max(1)).clamp(1, MOST as usize);
    let at = |row: usize, x: usize| {
        let row = grid.get(row);
        row.and_then(|row| row.get(x)).copied().unwrap_or(' ')
    };
    let rows_and_parts = (0..grid.len())
        .flat_map(|row| (0..down).map(move |part| (row, part)))
        .take(grid.len() * down + 1 - down);
    rows_and_parts
        .map(|(row, part)| {
            let mut out: Vec<char> = Vec::new();
            for x in 0..wide {
                let (begin, end) = (place(x, across), place(x + 1, across));
                let (c, below, next) = (at(row, x), at(row + 1, x), at(row, x + 1));
                let goes_down = DOWN.contains(c) && UP.contains(below);
                let is_line = goes_down && !(ENDS.contains(c) && ENDS.contains(below));
                let goes_right =
                    RIGHT.contains(c) && (LEFT.contains(next) || next == '┤' && c != '├');
                if begin < out.len() && !is_drawn(c) {
                    // A word that began further left stands here.
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
fn place(x: usize, across: f64) -> usize {
    (x as f64 * across) as usize
}

/// Returns the words that begin at column `x` and end before two blanks or a line, padded to the beginning of the next column. Between two
/// lines the words are centred.
fn word(row: &[char], x: usize, across: f64) -> Vec<char> {
    let ends = |at: &usize| {
        let pair = [row.get(*at), row.get(at + 1)];
        pair[0].is_none_or(|c| is_drawn(*c)) || pair.iter().all(|c| c.is_none_or(|c| *c == ' '))
    };
    let end = (x..=row.len()).find(ends).unwrap_or(row.len());
    let room = place(end, across) - place(x, across);
    let is_line = |at: Option<usize>| at.and_then(|at| row.get(at)).is_some_and(|c| is_drawn(*c));
    let between = is_line(x.checked_sub(1)) && is_line(Some(end));
    let spare = room.saturating_sub(end - x);
    let before = if between { spare / 2 } else { 0 };
    let mut out = vec![' '; before];
    out.extend(&row[x..end]);
    out.resize(out.len().max(room), ' ');
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
