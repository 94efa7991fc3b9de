//! The contents of a panel or a card. Two renderers draw them: [`Inside`] draws lines in a box, `large::draw` draws for the back of a room.
//!
//! ```text
//! ╭ title ─────────────────────────── aside ╮
//! │ the head stays above                    │
//! │ the blocks scroll: lines of text,       │
//! │ a figure     4.10 ms     31 %  ███      │
//! │ and drawings                            │
//! │ The explanation stands in free rows.    │
//! │ the foot stays below                    │
//! ╰─────────────────────────────────────────╯
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{StatefulWidget, Widget};

use crate::app::App;
use crate::tui::surface::{Fitted, Scroll, Scrolled, height, take_bottom, take_left, take_top};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::Slot;

/// A function that returns the contents of a panel or a card for an area of this size.
pub(super) type ContentOf = for<'a> fn(&'a App, &'a Theme, Rect) -> Content<'a>;

/// The contents of a panel or a card.
#[derive(Default)]
pub struct Content<'a> {
    /// The title. With `None` it is the panel's name.
    pub title: Option<String>,
    /// The text on the right of the title.
    pub aside: String,
    /// Lines that stay above the lines that scroll. In a low area the last of them stays longest.
    pub head: Vec<Line<'static>>,
    /// The blocks in the order in which they are drawn. A block with a renderer is drawn by that one only.
    pub blocks: Vec<(Option<Renderer>, Block<'a>)>,
    /// Lines that stay below the lines that scroll.
    pub foot: Vec<Line<'static>>,
    /// The index of the marked line, which is kept in view.
    pub selected: Option<usize>,
    /// For each line the index of the list entry that it belongs to. `None` for a line between entries.
    pub entries: Vec<Option<usize>>,
    /// The explanation, a paragraph per entry. Its sentences stand below the lines where rows are free.
    pub explanation: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Renderer {
    /// Draws in the box of a panel or a card.
    Normal,
    /// Draws for the back of a room.
    Large,
}

pub enum Block<'a> {
    Figure(Figure),
    Lines(Vec<Line<'static>>),
    Plot(Plot<'a>),
}

/// A function that draws in an area.
type Draw<'a> = Box<dyn Fn(Rect, &mut Buffer) + 'a>;

/// A drawing that fills any area. The lines before it in the contents stand above it, the lines after it beside it or below.
pub struct Plot<'a> {
    /// The columns and rows of the drawing in the panel's box. A drawing that does not take all columns stands on the left.
    pub size: (u16, u16),
    pub draw: Draw<'a>,
}

/// A named figure with its values.
pub struct Figure {
    pub name: String,
    /// One value, or one for each run.
    pub values: Vec<Value>,
    /// The share of the whole, such as `31 %`. Empty for a figure that is no part of a whole.
    pub share: String,
    /// A text that the large renderer writes below the name.
    pub details: String,
    pub picture: Picture,
    /// The style of the picture.
    pub ink: Style,
    /// True for a figure that a presentation does not ask about and shows for comparison.
    pub dim: bool,
}

pub struct Value {
    /// The run of the value. `None` in a figure with a single value.
    pub slot: Option<Slot>,
    pub text: String,
    /// True if the value is as it should be. `None` if every value can be right.
    pub good: Option<bool>,
}

/// The picture on the right of a figure.
pub enum Picture {
    Nothing,
    /// A bar that fills a share of the width, 0 to 1.
    Bar(f64),
    /// A bar with a pattern: the index of the pattern in `Symbols::fills`, and the share of the width, 0 to 1.
    Phase(usize, f64),
    /// A column for each value, from zero. Only the large renderer draws it.
    Columns(Vec<f64>),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self {
            slot: None,
            text,
            good: None,
        }
    }
}

impl Figure {
    pub fn new(name: impl Into<String>, value: String, picture: Picture, ink: Style) -> Self {
        Self {
            name: name.into(),
            values: vec![value.into()],
            share: String::new(),
            details: String::new(),
            picture,
            ink,
            dim: false,
        }
    }

    /// Sets the text that the large renderer writes below the name.
    pub fn details(self, details: impl Into<String>) -> Self {
        Self {
            details: details.into(),
            ..self
        }
    }
}

impl<'a> Content<'a> {
    /// Returns contents without blocks, with a text on the right of the title.
    pub fn with_aside(aside: impl Into<String>) -> Self {
        Self {
            aside: aside.into(),
            ..Self::default()
        }
    }

    /// Returns lines of text for both renderers.
    pub fn text(aside: impl Into<String>, lines: Vec<Line<'static>>) -> Self {
        Self {
            blocks: vec![(None, Block::Lines(lines))],
            ..Self::with_aside(aside)
        }
    }

    /// Returns the lines of a card with a title.
    pub fn titled(title: impl Into<String>, lines: Vec<Line<'static>>) -> Self {
        Self {
            title: Some(title.into()),
            ..Self::text("", lines)
        }
    }

    /// Adds a line of a list. `entry` is the index of the entry that it belongs to, or `None`.
    pub fn entry(&mut self, entry: impl Into<Option<usize>>, line: Line<'static>) {
        self.entries.push(entry.into());
        self.lines([line]);
    }

    /// Adds lines of a list that belong to no entry.
    pub fn between(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        for line in lines {
            self.entry(None, line);
        }
    }

    /// Marks an entry: its lines stand out, and its last line is kept in view.
    pub fn mark(&mut self, entry: usize) {
        let last = self.entries.iter().rposition(|other| *other == Some(entry));
        self.selected = Some(last.unwrap_or(0));
    }

    /// Returns contents that say why there are no figures.
    pub fn missing(reason: &str, theme: &Theme, area: Rect) -> Self {
        Self::text("", missing(reason, theme, area))
    }

    /// Adds a block for one renderer, or for both with `None`.
    pub fn add(&mut self, renderer: impl Into<Option<Renderer>>, block: Block<'a>) {
        self.blocks.push((renderer.into(), block));
    }

    /// Adds a figure for one renderer, or for both with `None`.
    pub fn figure(&mut self, renderer: impl Into<Option<Renderer>>, figure: Figure) {
        self.add(renderer, Block::Figure(figure));
    }

    /// Adds lines that only the panel's box shows.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        self.add(Renderer::Normal, Block::Lines(lines.into_iter().collect()));
    }

    /// Adds a drawing for one renderer, or for both with `None`. `size` is its columns and rows in the panel's box; the large renderer gives
    /// it the area that lines leave.
    pub fn plot(
        &mut self,
        renderer: impl Into<Option<Renderer>>,
        size: (u16, u16),
        draw: impl Fn(Rect, &mut Buffer) + 'a,
    ) {
        let draw = Box::new(draw);
        self.add(renderer, Block::Plot(Plot { size, draw }));
    }

    /// Takes all blocks out of the contents and returns those that `renderer` draws.
    pub fn take_blocks(&mut self, renderer: Renderer) -> impl Iterator<Item = Block<'a>> + use<'a> {
        std::mem::take(&mut self.blocks)
            .into_iter()
            .filter(move |(only, _)| only.is_none_or(|only| only == renderer))
            .map(|(_, block)| block)
    }

    /// Returns true if the large renderer has something to draw: figures or a drawing.
    pub fn has_large_form(&self) -> bool {
        self.blocks.iter().any(|(only, block)| {
            *only != Some(Renderer::Normal) && !matches!(block, Block::Lines(_))
        })
    }

    /// Returns the number of lines that the contents take in a box. A figure and a drawing count as one line each.
    pub fn rows(&self) -> usize {
        let lines: usize = self
            .blocks
            .iter()
            .map(|(_, block)| match block {
                Block::Lines(lines) => lines.len(),
                _ => 1,
            })
            .sum();
        self.head.len() + lines + self.foot.len()
    }

    /// Returns the sentences of an explanation that are about these contents. A sentence that begins with a term, as in `Peak: the most in
    /// use`, is left out if no text of the contents has this term. Contents with a drawing keep every sentence, because the term may stand
    /// in the drawing.
    pub fn matching_explanation(&self, explanation: &[&str]) -> Vec<String> {
        /// The most words of a term. A longer text before a colon is no term.
        const TERM_WORDS: usize = 3;
        let mut has_plot = false;
        let mut texts: Vec<String> = vec![self.aside.clone()];
        texts.extend(self.head.iter().chain(&self.foot).map(Line::to_string));
        for (only, block) in &self.blocks {
            match block {
                _ if *only == Some(Renderer::Large) => {}
                Block::Figure(figure) => texts.push(figure.name.clone()),
                Block::Lines(lines) => texts.extend(lines.iter().map(Line::to_string)),
                Block::Plot(_) => has_plot = true,
            }
        }
        let text = texts.join("\n").to_lowercase();
        let applies = |sentence: &&str| match sentence.split_once(": ") {
            Some((term, _)) if !has_plot && term.split(' ').count() <= TERM_WORDS => {
                text.contains(&term.to_lowercase())
            }
            _ => true,
        };
        explanation
            .iter()
            .map(|paragraph| paragraph.split_inclusive(". ").filter(applies).collect())
            .filter(|paragraph: &String| !paragraph.is_empty())
            .collect()
    }

    /// Returns the areas of the head, of the lines that scroll, and of the foot.
    pub fn areas(&self, mut area: Rect) -> [Rect; 3] {
        let head_rows = match area.height {
            0..2 => 0,
            2..6 => self.head.len().min(1),
            6.. => self.head.len(),
        };
        let head = take_top(&mut area, height(head_rows));
        let most = area.height.saturating_sub(MIN_SCROLLING);
        let foot = take_bottom(&mut area, height(self.foot.len()).min(most));
        [head, area, foot]
    }
}

/// The rows that the foot leaves to the lines that scroll.
const MIN_SCROLLING: u16 = 2;
/// The rows that the lines above a drawing leave to it.
const MIN_PLOT: u16 = 2;

/// Returns the sentence that stands in the place of figures that are missing.
pub(super) fn missing(reason: &str, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let text = format!("not measured: {reason}");
    text::wrapped(&text, theme.dim, usize::from(area.width))
}

/// Returns the index of the first line to show in `rows` rows, so that line number `marked` of `lines` is in view, and from six rows on the
/// line after it, too.
fn first_shown(marked: usize, lines: usize, rows: u16) -> u16 {
    let end = marked + 1 + usize::from(rows >= 6);
    height(end.min(lines)).saturating_sub(rows)
}

impl Content<'_> {
    /// Returns the index of the list entry that is drawn at row `y` of the screen, for contents drawn in `area`. `None` where no entry is.
    pub fn entry_at(&self, y: u16, area: Rect) -> Option<usize> {
        let [_, list, _] = self.areas(area);
        let row = y.checked_sub(list.y)?;
        if row >= list.height {
            return None;
        }
        let from = first_shown(self.selected?, self.entries.len(), list.height);
        *self.entries.get(usize::from(row + from))?
    }
}

/// The widget that draws contents inside the frame of a panel or a card.
pub(in crate::tui) struct Inside<'a> {
    pub content: Content<'a>,
    pub theme: &'a Theme,
}

impl StatefulWidget for Inside<'_> {
    type State = Scroll;

    fn render(self, mut area: Rect, buffer: &mut Buffer, scroll: &mut Scroll) {
        let theme = self.theme;
        let mut content = self.content;
        let mut lines = Vec::new();
        for block in content.take_blocks(Renderer::Normal) {
            let width = usize::from(area.width);
            match block {
                Block::Lines(more) => lines.extend(more),
                Block::Figure(figure) if figure.values.iter().any(|value| value.slot.is_some()) => {
                    lines.extend(lines_of_runs(&figure, width, theme));
                }
                Block::Figure(figure) => lines.push(line_with_bar(&figure, width, theme)),
                Block::Plot(plot) => {
                    draw_plot(&plot, std::mem::take(&mut lines), &mut area, buffer)
                }
            }
        }
        let [head, scrolling, foot] = content.areas(area);
        let marked_line = content.selected.and_then(|line| content.entries.get(line));
        let marked = marked_line.copied().flatten();
        let cut = content.head.len() - usize::from(head.height);
        Fitted(content.head.split_off(cut).into()).render(head, buffer);
        Fitted(content.foot.into()).render(foot, buffer);
        match content.selected {
            Some(line) => scroll.from = first_shown(line, lines.len(), scrolling.height),
            None => add_explanation(&content.explanation, &mut lines, scrolling, theme),
        }
        Scrolled { lines, theme }.render(scrolling, buffer, scroll);
        if marked.is_some() {
            let shown = content.entries.iter().skip(usize::from(scroll.from));
            let rows = shown.zip(scrolling.rows());
            for (_, row) in rows.filter(|(entry, _)| **entry == marked) {
                buffer.set_style(row, theme.selected);
            }
        }
    }
}

/// Draws a drawing below the lines that stand before it, and takes its columns or rows off `area`.
fn draw_plot(plot: &Plot<'_>, before: Vec<Line<'static>>, area: &mut Rect, buffer: &mut Buffer) {
    let rows_before = match area.height {
        0..MIN_PLOT => area.height,
        rows => height(before.len()).min(rows - MIN_PLOT),
    };
    let top = take_top(area, rows_before);
    Fitted(before.into()).render(top, buffer);
    let (columns, rows) = plot.size;
    let place = if columns < area.width {
        let left = take_left(area, columns);
        take_left(area, 1);
        left
    } else {
        take_top(area, rows)
    };
    (plot.draw)(place, buffer);
}

/// Adds those sentences of the explanation of a panel for which rows are free.
fn add_explanation(texts: &[String], lines: &mut Vec<Line<'static>>, area: Rect, theme: &Theme) {
    let sentences = texts
        .iter()
        .flat_map(|paragraph| paragraph.split_inclusive(". "));
    for sentence in sentences {
        let wrapped = text::wrapped(sentence.trim_end(), theme.dim, area.width.into());
        if lines.len() + wrapped.len() <= area.height.into() {
            lines.extend(wrapped);
        }
    }
}

/// Returns the line of a figure with one value, as in `forward       4.10 ms     31 %  ████`.
fn line_with_bar(figure: &Figure, width: usize, theme: &Theme) -> Line<'static> {
    const NAME: usize = 11;
    const VALUE: usize = 11;
    const SHARE: usize = 10;
    let mut row = text::left(&figure.name, NAME);
    let mut style = theme.text;
    for value in &figure.values {
        row += &text::right(&value.text, VALUE);
        if value.good == Some(false) {
            style = theme.bad;
        }
    }
    if !figure.share.is_empty() {
        row += &text::right(&figure.share, SHARE);
    }
    row += "  ";
    let bar_width = width.saturating_sub(text::width(&row));
    let bar = match figure.picture {
        Picture::Bar(share) => theme.symbols.bar(share, bar_width.saturating_sub(2) as u16),
        Picture::Phase(pattern, share) => {
            let cells = (share * bar_width as f64).round() as usize;
            theme.symbols.fills[pattern].repeat(cells.min(bar_width))
        }
        Picture::Nothing | Picture::Columns(_) => String::new(),
    };
    Line::from_iter([Span::styled(row, style), Span::styled(bar, figure.ink)])
}

/// The columns of the name of a figure with values of several runs.
pub(super) const NAME_OF_RUNS: usize = 19;

/// Returns the lines of a figure with values of several runs, as in `parity             A 2.1e-6 ✓             B 0.156 ✗`. The figure takes
/// one line where it fits.
fn lines_of_runs(figure: &Figure, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    const VALUE: usize = 22;
    let mut runs = Vec::new();
    for (index, value) in figure.values.iter().enumerate() {
        let no_mark = ("", theme.text);
        let (mark, style) = value.good.map_or(no_mark, |good| theme.mark(good));
        let (letter, ink) = match value.slot {
            Some(slot) => (slot.into_str(), theme.slot(slot)),
            None => (" ", theme.text),
        };
        let mut cell = format!(" {} {mark}", value.text);
        if index + 1 < figure.values.len() {
            cell = text::left(&cell, VALUE.max(text::width(&cell)));
        }
        runs.push(Span::styled(letter, ink));
        runs.push(Span::styled(cell.replace(' ', text::NO_BREAK), style));
        runs.push(Span::raw(" "));
    }
    let name = Span::styled(text::left(&figure.name, NAME_OF_RUNS), theme.dim);
    text::wrap(&runs, width, name, " ".repeat(NAME_OF_RUNS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Markers;

    #[test]
    fn a_click_finds_the_entry_that_is_drawn_there() {
        let theme = Theme::plain(Markers::Ascii);
        let area = Rect::new(0, 0, 20, 8);
        for marked in 0..30 {
            let mut content = Content::titled("a list", Vec::new());
            content.head = vec![Line::raw("head")];
            content.foot = vec![Line::raw("foot")];
            for entry in 0..30 {
                content.between([Line::raw("between")]);
                content.entry(entry, Line::raw(format!("entry {entry}")));
            }
            content.mark(marked);
            let found: Vec<Option<usize>> = (0..9).map(|y| content.entry_at(y, area)).collect();
            let mut buffer = Buffer::empty(area);
            let inside = Inside {
                content,
                theme: &theme,
            };
            inside.render(area, &mut buffer, &mut Scroll::at(0));
            let marked_style = theme.selected.add_modifier;
            for y in 0..8 {
                let is_marked = buffer[(0, y)].modifier.contains(marked_style);
                assert_eq!(is_marked, found[usize::from(y)] == Some(marked), "{y}");
            }
            let entry_of_row = |y| {
                let line: String = (0..20).map(|x| buffer[(x, y)].symbol()).collect();
                line.trim().strip_prefix("entry ")?.parse().ok()
            };
            let shown: Vec<Option<usize>> = (0..8).map(entry_of_row).collect();
            assert_eq!(found, [shown.as_slice(), &[None]].concat());
            assert!(shown.contains(&Some(marked)), "{marked}: {shown:?}");
        }
    }
}
