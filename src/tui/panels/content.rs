//! The contents of a panel or a card: blocks that two renderers draw. One draws lines inside a box; `large::draw` draws for the back of
//! a room.

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
    /// The title. `None` stands for the panel's name.
    pub title: Option<String>,
    /// The text on the right of the title.
    pub aside: String,
    /// Lines that stay above the lines that scroll. In a low area the last of them stays longest.
    pub head: Vec<Line<'static>>,
    /// The blocks in the order in which they are drawn. A block with a size is drawn by that renderer only.
    pub blocks: Vec<(Option<Size>, Block<'a>)>,
    /// Lines that stay below the lines that scroll.
    pub foot: Vec<Line<'static>>,
    /// The marked line, which is kept in view.
    pub selected: Option<usize>,
    /// The entry of a list that each line belongs to.
    pub entries: Vec<Option<usize>>,
    /// The explanation, whose sentences stand below the lines as far as rows are free.
    pub reading: Vec<String>,
}

/// The two renderers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Normal,
    Large,
}

pub enum Block<'a> {
    Figure(Figure),
    Lines(Vec<Line<'static>>),
    Plot(Plot<'a>),
}

/// A function that draws in an area.
type Draw<'a> = Box<dyn Fn(Rect, &mut Buffer) + 'a>;

/// A drawing that fills any area. Lines before it in the contents stand above it, lines after it beside it or below.
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
    /// The share of the whole, as text; may be empty.
    pub share: String,
    /// A text that the large renderer writes below the name.
    pub details: String,
    pub picture: Picture,
    pub ink: Style,
    /// True for a figure that stands beside the figures in question.
    pub dim: bool,
}

pub struct Value {
    pub slot: Option<Slot>,
    pub text: String,
    /// True if the value is as it should be; `None` if that cannot be said.
    pub good: Option<bool>,
}

/// The picture on the right of a figure.
pub enum Picture {
    Nothing,
    /// A bar that fills a share of the width, 0 to 1.
    Bar(f64),
    /// A bar with the pattern of a phase, by the number of the pattern.
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

    /// Sets the text below the name.
    pub fn details(self, details: impl Into<String>) -> Self {
        Self {
            details: details.into(),
            ..self
        }
    }
}

impl<'a> Content<'a> {
    /// Returns empty contents with a text on the right of the title.
    pub fn beside(aside: impl Into<String>) -> Self {
        Self {
            aside: aside.into(),
            ..Self::default()
        }
    }

    /// Returns lines of text for both renderers.
    pub fn text(aside: impl Into<String>, lines: Vec<Line<'static>>) -> Self {
        Self {
            blocks: vec![(None, Block::Lines(lines))],
            ..Self::beside(aside)
        }
    }

    /// Returns the lines of a card with a title.
    pub fn titled(title: impl Into<String>, lines: Vec<Line<'static>>) -> Self {
        Self {
            title: Some(title.into()),
            ..Self::text("", lines)
        }
    }

    /// Adds a line of a list. `None` stands for a line between entries.
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

    pub fn add(&mut self, size: impl Into<Option<Size>>, block: Block<'a>) {
        self.blocks.push((size.into(), block));
    }

    pub fn figure(&mut self, size: impl Into<Option<Size>>, figure: Figure) {
        self.add(size, Block::Figure(figure));
    }

    /// Adds lines that only the panel's box shows.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        self.add(Size::Normal, Block::Lines(lines.into_iter().collect()));
    }

    /// Adds a drawing. `area` is its columns and rows in the panel's box; the large renderer gives it all room that lines leave.
    pub fn plot(
        &mut self,
        renderer: impl Into<Option<Size>>,
        area: (u16, u16),
        draw: impl Fn(Rect, &mut Buffer) + 'a,
    ) {
        let plot = Plot {
            size: area,
            draw: Box::new(draw),
        };
        self.add(renderer, Block::Plot(plot));
    }

    /// Takes all blocks and returns those that a renderer draws.
    pub fn take_blocks(&mut self, size: Size) -> impl Iterator<Item = Block<'a>> + use<'a> {
        std::mem::take(&mut self.blocks)
            .into_iter()
            .filter(move |(only, _)| only.is_none_or(|only| only == size))
            .map(|(_, block)| block)
    }

    /// Returns true if the contents have a form for the back of a room: figures or a drawing. Text has none.
    pub fn is_figures(&self) -> bool {
        self.blocks
            .iter()
            .any(|(only, block)| *only != Some(Size::Normal) && !matches!(block, Block::Lines(_)))
    }

    /// Returns how many lines the contents take in a box, if they are text.
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

    /// Returns the sentences of an explanation that fit the contents. A sentence that begins with a term, as in `Peak: the most in use`,
    /// is left out if no text has this term. Contents with a drawing keep every sentence, because the term may stand in the drawing.
    pub fn explained(&self, reading: &[&str]) -> Vec<String> {
        /// A longer text before a colon is no term.
        const TERM_WORDS: usize = 3;
        let mut has_plot = false;
        let mut texts: Vec<String> = vec![self.aside.clone()];
        texts.extend(self.head.iter().chain(&self.foot).map(Line::to_string));
        for (only, block) in &self.blocks {
            match block {
                _ if *only == Some(Size::Large) => {}
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
        reading
            .iter()
            .map(|paragraph| paragraph.split_inclusive(". ").filter(applies).collect())
            .filter(|paragraph: &String| !paragraph.is_empty())
            .collect()
    }

    /// Returns the areas of the head, of the lines that scroll, and of the foot.
    pub fn areas(&self, mut area: Rect) -> [Rect; 3] {
        let kept = match area.height {
            0..2 => 0,
            2..6 => self.head.len().min(1),
            6.. => self.head.len(),
        };
        let head = take_top(&mut area, height(kept));
        let most = area.height.saturating_sub(LEAST);
        let foot = take_bottom(&mut area, height(self.foot.len()).min(most));
        [head, area, foot]
    }
}

/// The rows that the foot leaves to the lines that scroll.
const LEAST: u16 = 2;
/// The rows that lines above a drawing leave to it.
const PLOT: u16 = 2;

/// Returns the text that stands where figures are missing.
pub(super) fn missing(reason: &str, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let text = format!("not measured: {reason}");
    text::wrapped(&text, theme.dim, usize::from(area.width))
}

/// Returns the first of `lines` lines to show in `rows` rows, so that one line is in view; where there is room, with the line after it.
fn first_shown(line: usize, lines: usize, rows: u16) -> u16 {
    let end = line + 1 + usize::from(rows >= 6);
    height(end.min(lines)).saturating_sub(rows)
}

impl Content<'_> {
    /// Returns the entry of a list at row `y` of the screen, when the list is in `area`; `None` where no entry is.
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

/// The widget inside the frame of a panel or a card.
pub(in crate::tui) struct Inside<'a> {
    pub content: Content<'a>,
    pub theme: &'a Theme,
}

impl StatefulWidget for Inside<'_> {
    type State = Scroll;

    fn render(self, mut area: Rect, buffer: &mut Buffer, scroll: &mut Scroll) {
        let (mut content, theme) = (self.content, self.theme);
        let mut lines = Vec::new();
        for block in content.take_blocks(Size::Normal) {
            let width = usize::from(area.width);
            match block {
                Block::Lines(more) => lines.extend(more),
                Block::Figure(figure) if figure.values.iter().any(|value| value.slot.is_some()) => {
                    lines.extend(values_of_runs(&figure, width, theme));
                }
                Block::Figure(figure) => lines.push(with_bar(&figure, width, theme)),
                Block::Plot(plot) => {
                    let captions = match area.height {
                        0..PLOT => area.height,
                        rows => height(lines.len()).min(rows - PLOT),
                    };
                    let top = take_top(&mut area, captions);
                    Fitted(std::mem::take(&mut lines).into()).render(top, buffer);
                    let place = match plot.size {
                        (columns, _) if columns < area.width => {
                            let left = take_left(&mut area, columns);
                            take_left(&mut area, 1);
                            left
                        }
                        (_, rows) => take_top(&mut area, rows),
                    };
                    (plot.draw)(place, buffer);
                }
            }
        }
        let [head, scrolling, foot] = content.areas(area);
        let line_of_mark = content.selected.and_then(|line| content.entries.get(line));
        let marked = line_of_mark.copied().flatten();
        let cut = content.head.len() - usize::from(head.height);
        Fitted(content.head.split_off(cut).into()).render(head, buffer);
        Fitted(content.foot.into()).render(foot, buffer);
        match content.selected {
            Some(line) => scroll.from = first_shown(line, lines.len(), scrolling.height),
            None => add_reading(&content.reading, &mut lines, scrolling, theme),
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

/// Adds those sentences of the explanation of a panel for which rows are free.
fn add_reading(reading: &[String], lines: &mut Vec<Line<'static>>, area: Rect, theme: &Theme) {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let sentences = reading
        .iter()
        .flat_map(|paragraph| paragraph.split_inclusive(". "));
    for sentence in sentences {
        let wrapped = text::wrapped(sentence.trim_end(), theme.dim, columns);
        if lines.len() + wrapped.len() <= rows {
            lines.extend(wrapped);
        }
    }
}

/// Returns the line of a figure with one value, as in `forward       4.10 ms     31 %  ████`.
fn with_bar(figure: &Figure, width: usize, theme: &Theme) -> Line<'static> {
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
    let room = width.saturating_sub(text::width(&row));
    let bar = match figure.picture {
        Picture::Bar(share) => theme.symbols.bar(share, room.saturating_sub(2) as u16),
        Picture::Phase(pattern, share) => {
            let cells = (share * room as f64).round() as usize;
            theme.symbols.fills[pattern].repeat(cells.min(room))
        }
        Picture::Nothing | Picture::Columns(_) => String::new(),
    };
    Line::from_iter([Span::styled(row, style), Span::styled(bar, figure.ink)])
}

/// The columns of the name of a figure with values of several runs.
pub(super) const NAME: usize = 19;

/// Returns the lines of a figure with values of several runs, as in `parity             A 2.1e-6 ✓             B 0.156 ✗`. It takes one line
/// where it fits.
fn values_of_runs(figure: &Figure, width: usize, theme: &Theme) -> Vec<Line<'static>> {
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
    let name = Span::styled(text::left(&figure.name, NAME), theme.dim);
    text::wrap(&runs, width, name, " ".repeat(NAME))
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
