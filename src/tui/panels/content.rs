//! What a panel or a card shows: blocks that two renderers draw, as lines inside a box, and `large::draw` for the back of a
//! room.

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

/// What a panel or a card shows now, in an area of this size.
pub(super) type ContentOf = for<'a> fn(&'a App, &'a Theme, Rect) -> Content<'a>;

/// What a panel or a card shows.
#[derive(Default)]
pub struct Content<'a> {
    /// The title, where it is another than the panel's name.
    pub title: Option<String>,
    /// On the right of the title.
    pub aside: String,
    /// Lines that stay above those that scroll, the last one the longest.
    pub head: Vec<Line<'static>>,
    /// In the order in which they are drawn; those with a size by that renderer only.
    pub blocks: Vec<(Option<Size>, Block<'a>)>,
    /// Lines that stay below those that scroll.
    pub foot: Vec<Line<'static>>,
    /// The line that is kept in view.
    pub selected: Option<usize>,
    /// Of a list, the entry that each line belongs to.
    pub entries: Vec<Option<usize>>,
    /// Sentences below the lines, as far as rows are free.
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

/// Draws in an area.
type Draw<'a> = Box<dyn Fn(Rect, &mut Buffer) + 'a>;

/// A drawing that fills any area. Lines before it stand above it, those after it beside it or below.
pub struct Plot<'a> {
    /// Columns and rows that it takes in the panel's box; where it does not take all columns, it stands on the left.
    pub size: (u16, u16),
    pub draw: Draw<'a>,
}

/// A named figure with its values.
pub struct Figure {
    pub name: String,
    /// One, or one for each run.
    pub values: Vec<Value>,
    /// Of the whole.
    pub share: String,
    /// What the large renderer has room for below the name.
    pub details: String,
    pub picture: Picture,
    pub ink: Style,
    /// It stands beside those that are looked at.
    pub dim: bool,
}

pub struct Value {
    pub slot: Option<Slot>,
    pub text: String,
    /// Whether it is as it should be, where that can be said.
    pub good: Option<bool>,
}

/// What stands right of a figure.
pub enum Picture {
    Nothing,
    /// A share of the width.
    Bar(f64),
    /// The same, filled with the pattern of a phase.
    Phase(usize, f64),
    /// A column for each value, from zero. Only the large renderer has room for it.
    Columns(Vec<f64>),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        let (slot, good) = (None, None);
        Self { slot, text, good }
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

    /// What stands below its name, where there is room.
    pub fn details(self, details: impl Into<String>) -> Self {
        let details = details.into();
        Self { details, ..self }
    }
}

impl<'a> Content<'a> {
    /// Nothing so far but what stands on the right of the title.
    pub fn beside(aside: impl Into<String>) -> Self {
        let aside = aside.into();
        Self {
            aside,
            ..Self::default()
        }
    }

    /// Lines of text for both renderers.
    pub fn text(aside: impl Into<String>, lines: Vec<Line<'static>>) -> Self {
        let blocks = vec![(None, Block::Lines(lines))];
        Self {
            blocks,
            ..Self::beside(aside)
        }
    }

    /// Lines of a card with a title.
    pub fn titled(title: impl Into<String>, lines: Vec<Line<'static>>) -> Self {
        let title = Some(title.into());
        let text = Self::text("", lines);
        Self { title, ..text }
    }

    /// Adds a line of a list, of an entry or between entries.
    pub fn entry(&mut self, entry: impl Into<Option<usize>>, line: Line<'static>) {
        self.entries.push(entry.into());
        self.lines([line]);
    }

    /// Adds lines of a list that belong to no entry.
    pub fn between(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        lines.into_iter().for_each(|line| self.entry(None, line));
    }

    /// Keeps the last line of an entry in view.
    pub fn mark(&mut self, entry: usize) {
        let last = self.entries.iter().rposition(|of| *of == Some(entry));
        self.selected = Some(last.unwrap_or(0));
    }

    /// Nothing, for this reason.
    pub fn missing(reason: &str, theme: &Theme, area: Rect) -> Self {
        Self::text("", missing(reason, theme, area))
    }

    pub fn add(&mut self, size: impl Into<Option<Size>>, block: Block<'a>) {
        self.blocks.push((size.into(), block));
    }

    pub fn figure(&mut self, size: impl Into<Option<Size>>, figure: Figure) {
        self.add(size, Block::Figure(figure));
    }

    /// Lines of the panel's box.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        self.add(Size::Normal, Block::Lines(lines.into_iter().collect()));
    }

    /// A drawing that takes so many columns and rows of the panel's box, and all that lines leave where it is large.
    pub fn plot(
        &mut self,
        of: impl Into<Option<Size>>,
        size: (u16, u16),
        draw: impl Fn(Rect, &mut Buffer) + 'a,
    ) {
        let draw = Box::new(draw);
        self.add(of, Block::Plot(Plot { size, draw }));
    }

    /// Takes the blocks that a renderer draws.
    pub fn take_blocks(&mut self, size: Size) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let blocks = std::mem::take(&mut self.blocks).into_iter();
        blocks.filter_map(move |(of, block)| of.is_none_or(|of| of == size).then_some(block))
    }

    /// Whether it has a form for the back of a room. Text has none.
    pub fn is_figures(&self) -> bool {
        let large = |it: &&(Option<Size>, Block<'_>)| it.0 != Some(Size::Normal);
        let mut large = self.blocks.iter().filter(large);
        large.any(|(_, block)| !matches!(block, Block::Lines(_)))
    }

    /// Lines of its text.
    pub fn rows(&self) -> usize {
        let lines = self.blocks.iter().map(|(_, block)| match block {
            Block::Lines(lines) => lines.len(),
            _ => 1,
        });
        self.head.len() + lines.sum::<usize>() + self.foot.len()
    }

    /// How to read it. A sentence that begins with a term, as in `Peak: the most in use`, is left out where no text has this term; in a
    /// drawing it may stand.
    pub fn explained(&self, reading: &[&str]) -> Vec<String> {
        const WORDS: usize = 3;
        let mut plots = false;
        let mut drawn: Vec<String> = vec![self.aside.clone()];
        drawn.extend(self.head.iter().chain(&self.foot).map(Line::to_string));
        for (_, block) in self.blocks.iter().filter(|it| it.0 != Some(Size::Large)) {
            match block {
                Block::Figure(figure) => drawn.push(figure.name.clone()),
                Block::Lines(lines) => drawn.extend(lines.iter().map(Line::to_string)),
                Block::Plot(_) => plots = true,
            }
        }
        let drawn = drawn.join("\n").to_lowercase();
        let is_told = |sentence: &&str| match sentence.split_once(": ") {
            Some((term, _)) if !plots && term.split(' ').count() <= WORDS => {
                drawn.contains(&term.to_lowercase())
            }
            _ => true,
        };
        let told = reading.iter().map(|paragraph| {
            let sentences = paragraph.split_inclusive(". ").filter(is_told);
            sentences.collect::<String>()
        });
        told.filter(|paragraph| !paragraph.is_empty()).collect()
    }

    /// Where the head, the lines that scroll and the foot stand.
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

/// Fewest lines that scroll beside the foot.
const LEAST: u16 = 2;
/// Fewest rows of a drawing with lines above it.
const PLOT: u16 = 2;

/// The text where a figure is missing.
pub(super) fn missing(reason: &str, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let said = format!("not measured: {reason}");
    text::wrapped(&said, theme.dim, usize::from(area.width))
}

/// The first line shown where one of so many lines is kept in view, with the next one where there is room.
fn first_shown(line: usize, lines: usize, rows: u16) -> u16 {
    let end = line + 1 + usize::from(rows >= 6);
    height(end.min(lines)).saturating_sub(rows)
}

impl Content<'_> {
    /// The entry of a list on a row of the screen, the list being in `area`.
    pub fn entry_at(&self, y: u16, area: Rect) -> Option<usize> {
        let [_, list, _] = self.areas(area);
        let row = y.checked_sub(list.y).filter(|row| *row < list.height)?;
        let from = first_shown(self.selected?, self.entries.len(), list.height);
        *self.entries.get(usize::from(row + from))?
    }
}

/// What lies inside the frame of a panel or a card.
pub(super) struct Inside<'a> {
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
                Block::Figure(figure) if figure.values.iter().any(|it| it.slot.is_some()) => {
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
        let [head, area, foot] = content.areas(area);
        let cut = content.head.len() - usize::from(head.height);
        Fitted(content.head.split_off(cut).into()).render(head, buffer);
        Fitted(content.foot.into()).render(foot, buffer);
        match content.selected {
            Some(at) => scroll.from = first_shown(at, lines.len(), area.height),
            None => add_reading(&content.reading, &mut lines, area, theme),
        }
        Scrolled { lines, theme }.render(area, buffer, scroll);
    }
}

/// Adds what explains the words of a panel, sentence by sentence, as far as rows are free.
fn add_reading(reading: &[String], lines: &mut Vec<Line<'static>>, area: Rect, theme: &Theme) {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    for sentence in reading.iter().flat_map(|it| it.split_inclusive(". ")) {
        let wrapped = text::wrapped(sentence.trim_end(), theme.dim, columns);
        if lines.len() + wrapped.len() <= rows {
            lines.extend(wrapped);
        }
    }
}

/// `forward       4.10 ms     31 %  ████`
fn with_bar(figure: &Figure, width: usize, theme: &Theme) -> Line<'static> {
    const NAME: usize = 11;
    const VALUE: usize = 11;
    const SHARE: usize = 10;
    let mut said = text::left(&figure.name, NAME);
    let mut style = theme.text;
    for value in &figure.values {
        said += &text::right(&value.text, VALUE);
        if value.good == Some(false) {
            style = theme.bad;
        }
    }
    if !figure.share.is_empty() {
        said += &text::right(&figure.share, SHARE);
    }
    said += "  ";
    let room = width.saturating_sub(text::width(&said));
    let bar = match figure.picture {
        Picture::Bar(share) => theme.symbols.bar(share, room.saturating_sub(2) as u16),
        Picture::Phase(at, share) => {
            let cells = (share * room as f64).round() as usize;
            theme.symbols.fills[at].repeat(cells.min(room))
        }
        Picture::Nothing | Picture::Columns(_) => String::new(),
    };
    Line::from_iter([Span::styled(said, style), Span::styled(bar, figure.ink)])
}

/// Columns of the name of a figure of several runs.
pub(super) const NAME: usize = 19;

/// `parity             A 2.1e-6 ✓             B 0.156 ✗`, on one line where it fits.
fn values_of_runs(figure: &Figure, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    const VALUE: usize = 23;
    let (mut lines, mut spans): (Vec<Line<'static>>, Vec<Span<'static>>) = Default::default();
    // The name stands on the first line only.
    let (mut used, mut name) = (0, figure.name.as_str());
    for value in &figure.values {
        let plain = ("", theme.text);
        let (mark, style) = value.good.map_or(plain, |good| theme.mark(good));
        let wide = VALUE.max(text::width(&value.text) + 3);
        let cell = text::left(&format!(" {} {mark}", value.text), wide);
        if used > 0 && used + text::width(cell.trim_end()) + 1 > width {
            lines.push(Line::from(std::mem::take(&mut spans)));
            used = 0;
        }
        if used == 0 {
            let name = text::left(std::mem::take(&mut name), NAME);
            spans.push(Span::styled(name, theme.dim));
            used = NAME;
        }
        used += text::width(&cell) + 1;
        let (letter, ink) = value.slot.map_or((" ", theme.text), |slot| {
            (slot.into_str(), theme.slot(slot))
        });
        spans.push(Span::styled(letter, ink));
        spans.push(Span::styled(cell, style));
    }
    lines.push(Line::from(spans));
    lines
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
            let found = (0..9).map(|y| content.entry_at(y, area));
            let found: Vec<Option<usize>> = found.collect();
            let mut buffer = Buffer::empty(area);
            let theme = &theme;
            Inside { content, theme }.render(area, &mut buffer, &mut Scroll::at(0));
            let shown = (0..8).map(|y| {
                let cells = (0..20).map(|x| buffer[(x, y)].symbol());
                let line: String = cells.collect();
                line.trim().strip_prefix("entry ")?.parse::<usize>().ok()
            });
            let shown: Vec<Option<usize>> = shown.collect();
            assert_eq!(found, [shown.as_slice(), &[None]].concat());
            assert!(shown.contains(&Some(marked)), "{marked}: {shown:?}");
        }
    }
}
