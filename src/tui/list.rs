//! Lines of which some belong to an entry that can be chosen: the marked one stays in view, and a click finds the one below it.

use ratatui::text::Line;

/// A list, each line with the entry that it belongs to.
#[derive(Default)]
pub(super) struct List {
    pub lines: Vec<Line<'static>>,
    pub entries: Vec<Option<usize>>,
}

impl List {
    /// Adds a line of an entry, or one between entries.
    pub(super) fn add(&mut self, entry: impl Into<Option<usize>>, line: Line<'static>) {
        self.lines.push(line);
        self.entries.push(entry.into());
    }

    /// Adds lines that belong to no entry.
    pub(super) fn text(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        lines.into_iter().for_each(|line| self.add(None, line));
    }

    /// The last line of an entry.
    pub(super) fn last_line(&self, entry: usize) -> usize {
        let last = self.entries.iter().rposition(|of| *of == Some(entry));
        last.unwrap_or(0)
    }
}
