//! Lines of which some belong to an entry that can be chosen: the marked one stays in view, and a click finds the one below it.

use ratatui::text::Line;

use super::surface::{Surface, height, take_bottom};

/// A list, each line with the entry that it belongs to.
#[derive(Default)]
pub(super) struct List {
    pub lines: Vec<(Option<usize>, Line<'static>)>,
    /// Lines that stay below the others, where there is room for both.
    pub foot: Vec<Line<'static>>,
}

/// Fewest rows of a list with a foot.
const LEAST: u16 = 6;

impl List {
    /// Adds a line of an entry, or one between entries.
    pub(super) fn add(&mut self, entry: impl Into<Option<usize>>, line: Line<'static>) {
        self.lines.push((entry.into(), line));
    }

    /// Adds lines that belong to no entry.
    pub(super) fn text(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        self.lines
            .extend(lines.into_iter().map(|line| (None, line)));
    }

    /// Rows of a card with all of it.
    pub(super) fn rows(&self) -> u16 {
        height(self.lines.len() + self.foot.len() + 2)
    }

    /// The last line of an entry.
    pub(super) fn last_line(&self, entry: usize) -> usize {
        let last = self.lines.iter().rposition(|(of, _)| *of == Some(entry));
        last.unwrap_or(0)
    }

    /// The entry on one of so many rows.
    pub(super) fn entry_at(&self, row: u16, marked: usize, rows: u16) -> Option<usize> {
        let rows = self.above_foot(rows);
        let line = row + first_shown(self.last_line(marked), self.lines.len(), rows);
        let line = self.lines.get(usize::from(line)).filter(|_| row < rows);
        line?.0
    }

    /// Draws it, so that the marked entry is in view; the result is how many lines it can scroll.
    pub(super) fn draw(self, s: &mut Surface<'_, '_>, marked: usize) -> u16 {
        let rows = self.above_foot(s.area.height);
        let from = first_shown(self.last_line(marked), self.lines.len(), rows);
        let foot = s.area.height - rows;
        let foot = take_bottom(&mut s.area, foot);
        s.put(foot, self.foot);
        s.show(
            s.area,
            self.lines.into_iter().map(|it| it.1).collect(),
            from,
        )
    }

    fn above_foot(&self, rows: u16) -> u16 {
        match rows {
            0..LEAST => rows,
            LEAST.. => rows.saturating_sub(height(self.foot.len())),
        }
    }
}

/// The first line shown where one of so many lines is kept in view, with the next one where there is room.
pub(super) fn first_shown(line: usize, lines: usize, rows: u16) -> u16 {
    let end = line + 1 + usize::from(rows >= LEAST);
    height(end.min(lines)).saturating_sub(rows)
}
