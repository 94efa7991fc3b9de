//! The table of all panels and the table of all cards over them. Each panel has a file and a row here. A panel reads no file and no
//! clock, and it starts no thread.

mod attempts;
pub mod beat;
pub mod cards;
mod content;
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
use strum::VariantArray;

use super::prose::{FRAME, READING};
use super::surface::{
    Scroll, closes, draw_card_frame, draw_reading, height, inside, inside_strip, is_strip,
    panel_frame,
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
    rows: CardRows,
    /// Returns the contents of the card inside its border.
    content: ContentOf,
}

/// The rows that a card wants.
enum CardRows {
    All,
    /// As many rows as the lines of the card take.
    Lines,
    /// The number of rows that the function returns, borders included.
    Some(fn(&App) -> u16),
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
    CardRow { overlay: Overlay::Help, columns: |_, wide| help::columns(wide), rows: CardRows::Lines, content: help::content },
    CardRow { overlay: Overlay::Stages, columns: |_, _| 90, rows: CardRows::Lines, content: stages::content },
    CardRow { overlay: Overlay::Devices, columns: |_, _| 90, rows: CardRows::Lines, content: devices::content },
    CardRow { overlay: Overlay::Attempts, columns: |_, _| 100, rows: CardRows::Lines, content: attempts::content },
    CardRow { overlay: Overlay::Log, columns: |_, _| 110, rows: CardRows::All, content: log::content },
    CardRow { overlay: Overlay::Problems, columns: |_, _| 110, rows: CardRows::Some(log::rows_of_problems), content: log::problems },
    CardRow { overlay: Overlay::Glossary, columns: |_, _| 84, rows: CardRows::All, content: glossary::content },
    CardRow { overlay: Overlay::Solution, columns: |_, _| 100, rows: CardRows::All, content: solution::content },
    CardRow { overlay: Overlay::Skipped, columns: |_, _| 84, rows: CardRows::All, content: skipped::content },
    CardRow { overlay: Overlay::Summary, columns: |app, _| summary::widest(app), rows: CardRows::Lines, content: summary::content },
    CardRow { overlay: Overlay::Kernel, columns: kernel::columns, rows: CardRows::All, content: kernel::content },
    CardRow { overlay: Overlay::Lanes, columns: |_, _| 124, rows: CardRows::All, content: lanes::content },
    CardRow { overlay: Overlay::Room, columns: |_, _| TEXT, rows: CardRows::Lines, content: room::content },
    CardRow { overlay: Overlay::Vote, columns: |_, _| TEXT, rows: CardRows::Lines, content: room::vote },
    CardRow { overlay: Overlay::Welcome, columns: |_, _| TEXT, rows: CardRows::Lines, content: welcome::content },
];

/// The columns of a card that holds a text.
const TEXT: u16 = (READING + FRAME) as u16;

impl CardRow {
    /// Returns the columns and rows that the card takes in an area.
    pub fn size(&self, app: &App, area: Rect, theme: &Theme) -> (u16, u16) {
        let width = (self.columns)(app, area.width).min(area.width);
        let rows = match self.rows {
            CardRows::All => area.height,
            CardRows::Some(rows) => rows(app),
            CardRows::Lines => {
                let inner = inside(Rect { width, ..area });
                height((self.content)(app, theme, inner).rows() + 2)
            }
        };
        (width, rows)
    }
}

/// Returns the contents of a panel and its explanation. A panel that would give the fault away shows why it waits instead.
fn content_and_reading(panel: Panel, app: &App) -> (ContentOf, &'static [&'static str]) {
    match PANELS.iter().find(|row| row.panel == panel) {
        // The panel of the lints says itself why it waits.
        Some(row) if panel == Panel::Lints || !app.reading().withholds(panel.into_str()) => {
            (row.content, (row.reading)(app))
        }
        _ => (lints::later, &[]),
    }
}

/// Draws a panel. Returns how many lines it can scroll.
pub fn draw(panel: Panel, area: Rect, app: &App, theme: &Theme, frame: &mut Frame<'_>) -> u16 {
    let (content_of, mut explanation) = content_and_reading(panel, app);
    let unreported = watched::unreported(panel, app);
    let content_in = |area: Rect| match unreported {
        Some(figure) => figure.content(app, theme, area),
        None => content_of(app, theme, area),
    };
    if unreported.is_some() {
        explanation = &[];
    }
    let focused = app.view.focus == Some(panel);
    let is_strip = is_strip(app);
    let explains = focused && app.view.expanded && !is_strip && !explanation.is_empty();
    let mut inner = if is_strip {
        inside_strip(area)
    } else {
        inside(area)
    };
    let mut content = content_in(inner);
    let reading = content.explained(explanation);
    if explains {
        draw_reading(&reading, &mut inner, theme, frame);
        content = content_in(inner);
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
        content.aside = closes(app);
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

fn draw_in_card(
    content: Content<'_>,
    mut scroll: Scroll,
    area: Rect,
    border: Style,
    theme: &Theme,
    frame: &mut Frame<'_>,
) -> u16 {
    let title = content.title.as_deref().unwrap_or_default();
    draw_card_frame((title, &content.aside), border, theme, area, frame);
    frame.render_stateful_widget(Inside { content, theme }, inside(area), &mut scroll);
    scroll.limit
}

/// Returns the entry of a list at row `y` of the screen, when the card of the list is in `area`; `None` where no entry is.
pub fn entry_at(overlay: Overlay, y: u16, area: Rect, app: &App) -> Option<usize> {
    let row = CARDS.iter().find(|row| row.overlay == overlay)?;
    let (inner, theme) = (inside(area), Theme::plain(app.view.markers));
    (row.content)(app, &theme, inner).entry_at(y, inner)
}
