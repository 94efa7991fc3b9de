//! The table of all panels and the table of all cards over them. Each panel has a file and a row here. A panel reads no file and no
//! clock, and it starts no thread.

mod attempts;
pub mod beat;
pub mod cards;
pub(super) mod content;
mod devices;
mod evidence;
mod exercise;
mod exponents;
pub mod footer;
mod glossary;
mod gradients;
pub mod header;
mod help;
mod kernel;
mod kernels;
pub mod knobs;
mod lanes;
mod large;
mod ledger;
pub mod lesson;
mod lints;
mod log;
mod loss;
mod memory;
mod mystery;
pub mod numbers;
mod question;
mod roofline;
mod room;
mod skipped;
mod solution;
mod stages;
pub mod status;
mod summary;
mod throughput;
pub mod timeline;
mod watched;
mod welcome;

use content::{Content, ContentOf, Inside};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Clear;
use strum::VariantArray;

use super::prose::{FRAME, READING};
use super::surface::{
    Scroll, close_hint, draw_reading, framed, height, inside, inside_strip, is_strip, panel_frame,
};
use super::theme::Theme;
use crate::app::{App, Overlay};
use crate::panel::Panel;

/// A row of the table of panels.
pub struct PanelRow {
    pub panel: Panel,
    pub position: PanelPosition,
    /// Returns the contents of the panel for both renderers: in its box, and large for the back of a room.
    content: ContentOf,
    /// Returns the explanation of the panel, one or two sentences per entry. It is shown below the panel while that has the whole screen.
    reading: fn(&App) -> &'static [&'static str],
}

/// The place of a panel on a screen that has room for every panel. 0 rows stand for all rows that the others in the column leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelPosition {
    Left,
    Middle(u16),
    Right(u16),
    /// The panel has half of this many rows on the right; its neighbour in the table has the other half.
    HalfRight(u16),
    /// The panel replaces another panel while the learner asked for it last.
    InsteadOf(Panel),
}

/// A row of the table of cards, which can lie over the panels.
pub struct CardRow {
    pub overlay: Overlay,
    /// Returns the columns that the card wants on a screen of this width, borders included.
    columns: fn(&App, u16) -> u16,
    /// True if the card has all rows of the screen, false if it has as many as its lines take.
    is_high: bool,
    /// Returns the contents of the card inside its border.
    content: ContentOf,
}

/// Every panel, in the order in which they stand in a column of the largest layout.
#[rustfmt::skip]
pub const PANELS: [PanelRow; Panel::VARIANTS.len()] = [
    PanelRow { panel: Panel::Lesson, position: PanelPosition::Left, content: lesson::content, reading: |_| &[] },
    PanelRow { panel: Panel::Loss, position: PanelPosition::Middle(0), content: loss::content, reading: |_| loss::READING },
    PanelRow { panel: Panel::Throughput, position: PanelPosition::Middle(9), content: throughput::content, reading: throughput::reading },
    PanelRow { panel: Panel::Kernels, position: PanelPosition::Right(0), content: kernels::content, reading: |_| kernels::READING },
    PanelRow { panel: Panel::Roofline, position: PanelPosition::InsteadOf(Panel::Kernels), content: roofline::content, reading: |_| roofline::READING },
    PanelRow { panel: Panel::Ledger, position: PanelPosition::Middle(11), content: ledger::content, reading: |_| ledger::READING },
    PanelRow { panel: Panel::Gradients, position: PanelPosition::HalfRight(9), content: gradients::content, reading: |_| gradients::READING },
    PanelRow { panel: Panel::Exponents, position: PanelPosition::InsteadOf(Panel::Kernels), content: exponents::content, reading: |_| exponents::READING },
    PanelRow { panel: Panel::Memory, position: PanelPosition::HalfRight(9), content: memory::content, reading: |_| memory::READING },
    PanelRow { panel: Panel::Evidence, position: PanelPosition::Right(10), content: evidence::content, reading: |_| evidence::READING },
    PanelRow { panel: Panel::Lints, position: PanelPosition::Right(8), content: lints::content, reading: |_| lints::READING },
    PanelRow { panel: Panel::Timeline, position: PanelPosition::InsteadOf(Panel::Ledger), content: timeline::content, reading: |_| timeline::READING },
];

/// Every card that can be opened over the panels.
#[rustfmt::skip]
pub const CARDS: [CardRow; 15] = [
    CardRow { overlay: Overlay::Help, columns: |_, wide| help::columns(wide), is_high: false, content: help::content },
    CardRow { overlay: Overlay::Stages, columns: |_, _| 90, is_high: false, content: stages::content },
    CardRow { overlay: Overlay::Devices, columns: |_, _| 90, is_high: false, content: devices::content },
    CardRow { overlay: Overlay::Attempts, columns: |_, _| 100, is_high: false, content: attempts::content },
    CardRow { overlay: Overlay::Log, columns: |_, _| 110, is_high: true, content: log::content },
    CardRow { overlay: Overlay::Problems, columns: |_, _| 110, is_high: false, content: log::problems },
    CardRow { overlay: Overlay::Glossary, columns: |_, _| 84, is_high: true, content: glossary::content },
    CardRow { overlay: Overlay::Solution, columns: |_, _| 100, is_high: true, content: solution::content },
    CardRow { overlay: Overlay::Skipped, columns: |_, _| 84, is_high: true, content: skipped::content },
    CardRow { overlay: Overlay::Summary, columns: |app, _| summary::widest(app), is_high: false, content: summary::content },
    CardRow { overlay: Overlay::Kernel, columns: kernel::columns, is_high: true, content: kernel::content },
    CardRow { overlay: Overlay::Lanes, columns: |_, _| 124, is_high: true, content: lanes::content },
    CardRow { overlay: Overlay::Room, columns: |_, _| TEXT, is_high: false, content: room::content },
    CardRow { overlay: Overlay::Vote, columns: |_, _| TEXT, is_high: false, content: room::vote },
    CardRow { overlay: Overlay::Welcome, columns: |_, _| TEXT, is_high: false, content: welcome::content },
];

/// The columns of a card that holds a text.
const TEXT: u16 = (READING + FRAME) as u16;

impl CardRow {
    /// Returns the columns and rows that the card takes in an area.
    pub fn size(&self, app: &App, area: Rect, theme: &Theme) -> (u16, u16) {
        let width = (self.columns)(app, area.width).min(area.width);
        if self.is_high {
            return (width, area.height);
        }
        let inner = inside(Rect { width, ..area });
        let rows = (self.content)(app, theme, inner).rows() + 2;
        (width, height(rows))
    }
}

/// Returns the contents of a panel and its explanation. A panel without its figure says which line of another program would report it; a
/// panel that would give the fault away says why it waits.
fn content_and_reading<'a>(
    panel: Panel,
    app: &'a App,
    theme: &'a Theme,
    area: Rect,
) -> (Content<'a>, &'static [&'static str]) {
    if let Some(figure) = watched::unreported(panel, app) {
        return (figure.content(app, theme, area), &[]);
    }
    match PANELS.iter().find(|row| row.panel == panel) {
        // The panel of the lints says itself why it waits.
        Some(row) if panel == Panel::Lints || !app.reading().withholds(panel.into_str()) => {
            ((row.content)(app, theme, area), (row.reading)(app))
        }
        _ => (lints::later(app, theme, area), &[]),
    }
}

/// Draws a panel. Returns how many lines it can scroll.
pub fn draw(panel: Panel, area: Rect, app: &App, theme: &Theme, frame: &mut Frame<'_>) -> u16 {
    let focused = app.view.focus == Some(panel);
    let is_strip = is_strip(app);
    let mut inner = if is_strip {
        inside_strip(area)
    } else {
        inside(area)
    };
    let (mut content, explanation) = content_and_reading(panel, app, theme, inner);
    let reading = content.explained(explanation);
    if focused && app.view.expanded && !is_strip {
        draw_reading(&reading, &mut inner, theme, frame);
        (content, _) = content_and_reading(panel, app, theme, inner);
    } else if !is_strip && !app.reading().marks_row(panel) {
        // While the learner marks a row of the panel, the panel shows figures only.
        content.reading = reading;
    }
    let title = content.title.as_deref().unwrap_or(panel.into_str());
    let titles = (title, content.aside.as_str());
    let border = panel_frame(titles, focused, is_strip, area.width, theme);
    let scrolls = content.selected.is_none();
    frame.render_widget(border, area);
    let mut scroll = Scroll::at(app.view.scroll_of(panel));
    frame.render_stateful_widget(Inside { content, theme }, inner, &mut scroll);
    if scrolls { scroll.limit } else { 0 }
}

/// Draws a card. Returns how many lines it can scroll.
pub fn draw_card(
    overlay: Overlay,
    area: Rect,
    app: &App,
    theme: &Theme,
    frame: &mut Frame<'_>,
) -> u16 {
    let Some(row) = CARDS.iter().find(|row| row.overlay == overlay) else {
        return 0;
    };
    let mut content = (row.content)(app, theme, inside(area));
    if content.aside.is_empty() {
        content.aside = close_hint(app);
    }
    let border = if overlay == Overlay::Problems {
        theme.bad
    } else {
        theme.border_focused
    };
    let scroll = Scroll::at(app.view.overlay_scroll);
    draw_in_card(content, scroll, area, border, theme, frame)
}

/// Draws the card of a failure, if there is one.
pub fn draw_failure(body: Rect, app: &App, theme: &Theme, frame: &mut Frame<'_>) {
    if let Some((content, area)) = cards::of_failure(app, theme, body) {
        draw_in_card(content, Scroll::at(0), area, theme.bad, theme, frame);
    }
}

/// Draws a card with its own background on top of everything. Returns how many lines they can scroll.
pub(super) fn draw_in_card(
    content: Content<'_>,
    mut scroll: Scroll,
    area: Rect,
    border: Style,
    theme: &Theme,
    frame: &mut Frame<'_>,
) -> u16 {
    let title = content.title.clone().unwrap_or_default();
    let title = (title, theme.title_focused);
    let block = framed(title, &content.aside, border, area.width, theme);
    frame.render_widget(Clear, area);
    frame.render_widget(block.style(theme.text), area);
    frame.render_stateful_widget(Inside { content, theme }, inside(area), &mut scroll);
    scroll.limit
}

/// Returns the entry of a list at row `y` of the screen, when the card of the list is in `area`; `None` where no entry is.
pub fn entry_at(overlay: Overlay, y: u16, area: Rect, app: &App) -> Option<usize> {
    let row = CARDS.iter().find(|row| row.overlay == overlay)?;
    let (inner, theme) = (inside(area), Theme::plain(app.view.markers));
    (row.content)(app, &theme, inner).entry_at(y, inner)
}
