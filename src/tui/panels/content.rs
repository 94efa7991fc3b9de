//! What a panel of figures shows: blocks that two renderers draw, `draw` as lines in the panel's box, and `large::draw` for the
//! back of a room.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::panel::Panel;
use crate::protocol::Slot;
use crate::tui::surface::{Surface, letter, missing, take_top};
use crate::tui::text;
use crate::tui::theme::Theme;

/// What a panel shows now, in an area of this size.
pub type ContentOf = fn(&App, &Theme, Rect) -> Content;

/// What a panel shows.
#[derive(Default)]
pub struct Content {
    /// On the right of the panel's title.
    pub aside: String,
    /// Lines that stay above those that scroll, the last one the longest.
    pub head: Vec<Line<'static>>,
    /// In the order in which they are drawn; those with a size by that renderer only.
    pub blocks: Vec<(Option<Size>, Block)>,
    /// The line that is kept in view.
    pub selected: Option<usize>,
}

/// The two renderers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Normal,
    Large,
}

pub enum Block {
    Figure(Figure),
    Lines(Vec<Line<'static>>),
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
}

impl Content {
    /// Nothing, for this reason.
    pub fn missing(reason: &str, theme: &Theme) -> Self {
        let mut content = Self::default();
        content.add(None, Block::Lines(vec![missing(reason, theme)]));
        content
    }

    pub fn add(&mut self, size: impl Into<Option<Size>>, block: Block) {
        self.blocks.push((size.into(), block));
    }

    /// Lines of the panel's box.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        self.add(Size::Normal, Block::Lines(lines.into_iter().collect()));
    }

    /// The blocks that a renderer draws.
    pub fn into_blocks(self, size: Size) -> impl Iterator<Item = Block> {
        let drawn = move |(of, block): (Option<Size>, Block)| {
            (of.is_none() || of == Some(size)).then_some(block)
        };
        self.blocks.into_iter().filter_map(drawn)
    }
}

/// Draws the panel's box with its lines; the result is how many it can scroll.
pub fn draw(s: &mut Surface<'_, '_>, panel: Panel, of: ContentOf) -> u16 {
    let (theme, outer) = (s.theme, s.area);
    s.open(panel, "");
    let content = of(s.app, theme, s.area);
    if !content.aside.is_empty() {
        s.at(outer).open(panel, &content.aside);
    }
    let kept = match s.area.height {
        0..3 => 0,
        3..6 => 1,
        6.. => content.head.len(),
    };
    for line in &content.head[content.head.len().saturating_sub(kept)..] {
        let top = take_top(&mut s.area, 1);
        s.put(top, line.clone());
    }
    let (selected, width) = (content.selected, usize::from(s.area.width));
    let blocks = content.into_blocks(Size::Normal);
    let lines = blocks.flat_map(|block| match block {
        Block::Lines(lines) => lines,
        Block::Figure(figure) if figure.values.iter().any(|it| it.slot.is_some()) => {
            values_of_runs(&figure, width, theme)
        }
        Block::Figure(figure) => vec![with_bar(&figure, width, theme)],
    });
    let mut lines: Vec<Line<'static>> = lines.collect();
    lines.extend(s.reading_below(lines.len(), panel));
    match selected {
        Some(at) => {
            let above = at.saturating_sub(usize::from(s.area.height.saturating_sub(1)));
            s.show(s.area, lines, above as u16)
        }
        None => s.show_panel(panel, lines),
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
        style = if value.good == Some(false) {
            theme.bad
        } else {
            style
        };
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
    Line::from(vec![
        Span::styled(said, style),
        Span::styled(bar, figure.ink),
    ])
}

/// Columns of the name of a figure of several runs.
pub const NAME: usize = 19;

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
        let (letter, ink) = value
            .slot
            .map_or((" ", theme.text), |slot| (letter(slot), theme.slot(slot)));
        spans.push(Span::styled(letter, ink));
        spans.push(Span::styled(cell, style));
    }
    lines.push(Line::from(spans));
    lines
}
