//! The table of all panels and the table of all cards over them. Each panel and each card has a file and a row here.
//!
//! A panel is a function from the state of the program to [`Content`]: it reads no file and no clock, and it starts no thread. Its file
//! has, from top to bottom, a small picture of the panel, its explanation, its contents, and their lines. The functions at the end of this
//! file put the contents into boxes.

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

use PanelPosition::{HalfRight, InsteadOf, Left, Middle, Right};
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
    content: ContentOf,
    explanation: fn(&App) -> &'static [&'static str],
}

/// The place of a panel on a screen that has room for every panel. A panel with 0 rows gets the rows that the other panels of its column
/// leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelPosition {
    Left,
    Middle(u16),
    Right(u16),
    /// The panel shares this many rows on the right, half and half, with its neighbour in the table.
    HalfRight(u16),
    /// The panel replaces another panel while the learner asked for it last.
    InsteadOf(Panel),
}

/// A row of the table of cards, which can lie over the panels.
pub struct CardRow {
    pub overlay: Overlay,
    columns: fn(&App, u16) -> u16,
    /// True if the card has all rows of the screen, false if it is as high as its lines.
    is_full: bool,
    content: ContentOf,
}

/// Every panel, in the order in which they stand in a column of the largest layout.
#[rustfmt::skip]
pub const PANELS: [PanelRow; Panel::VARIANTS.len()] = [
    panel(Panel::Lesson, Left, lesson::content, |_| &[]),
    panel(Panel::Loss, Middle(0), loss::content, |_| loss::EXPLANATION),
    panel(Panel::Throughput, Middle(9), throughput::content, throughput::explanation),
    panel(Panel::Kernels, Right(0), kernels::content, |_| kernels::EXPLANATION),
    panel(Panel::Roofline, InsteadOf(Panel::Kernels), roofline::content, |_| roofline::EXPLANATION),
    panel(Panel::Ledger, Middle(11), ledger::content, |_| ledger::EXPLANATION),
    panel(Panel::Gradients, HalfRight(9), gradients::content, |_| gradients::EXPLANATION),
    panel(Panel::Exponents, InsteadOf(Panel::Kernels), exponents::content, |_| exponents::EXPLANATION),
    panel(Panel::Memory, HalfRight(9), memory::content, |_| memory::EXPLANATION),
    panel(Panel::Evidence, Right(10), evidence::content, |_| evidence::EXPLANATION),
    panel(Panel::Lints, Right(8), lints::content, |_| lints::EXPLANATION),
    panel(Panel::Timeline, InsteadOf(Panel::Ledger), timeline::content, |_| timeline::EXPLANATION),
];

/// Every card that can be opened over the panels.
#[rustfmt::skip]
pub const CARDS: [CardRow; 15] = [
    card(Overlay::Help, |_, screen| help::columns(screen), help::content),
    card(Overlay::Stages, |_, _| 90, stages::content),
    card(Overlay::Devices, |_, _| 90, devices::content),
    card(Overlay::Attempts, |_, _| 100, attempts::content),
    full_card(Overlay::Log, |_, _| 110, log::content),
    card(Overlay::Problems, |_, _| 110, log::problems),
    full_card(Overlay::Glossary, |_, _| 84, glossary::content),
    full_card(Overlay::Solution, |_, _| 100, solution::content),
    full_card(Overlay::Skipped, |_, _| 84, skipped::content),
    card(Overlay::Summary, |app, _| summary::columns(app), summary::content),
    full_card(Overlay::Kernel, kernel::columns, kernel::content),
    full_card(Overlay::Lanes, |_, _| 124, lanes::content),
    card(Overlay::Room, |_, _| TEXT_CARD, room::content),
    card(Overlay::Vote, |_, _| TEXT_CARD, room::vote),
    card(Overlay::Welcome, |_, _| TEXT_CARD, welcome::content),
];

/// The columns of a card that holds a text.
const TEXT_CARD: u16 = (READING + FRAME) as u16;

/// Makes a row of the table of panels. `content` returns the contents for both renderers: in the panel's box, and large for the back of a
/// room. `explanation` returns one or two sentences per entry, which stand below the panel where rows are free.
const fn panel(
    panel: Panel,
    position: PanelPosition,
    content: ContentOf,
    explanation: fn(&App) -> &'static [&'static str],
) -> PanelRow {
    PanelRow {
        panel,
        position,
        content,
        explanation,
    }
}

/// Makes the row of a card that is as high as its lines. `columns` returns the columns that the card wants on a screen of some width, borders
/// included.
const fn card(overlay: Overlay, columns: fn(&App, u16) -> u16, content: ContentOf) -> CardRow {
    CardRow {
        overlay,
        columns,
        is_full: false,
        content,
    }
}

/// Makes the row of a card that has all rows of the screen.
const fn full_card(overlay: Overlay, columns: fn(&App, u16) -> u16, content: ContentOf) -> CardRow {
    CardRow {
        is_full: true,
        ..card(overlay, columns, content)
    }
}

impl CardRow {
    /// Returns the columns and rows that the card takes in an area.
    pub fn size(&self, app: &App, area: Rect, theme: &Theme) -> (u16, u16) {
        let width = (self.columns)(app, area.width).min(area.width);
        if self.is_full {
            return (width, area.height);
        }
        let inner = inside(Rect { width, ..area });
        let rows = (self.content)(app, theme, inner).rows() + 2;
        (width, height(rows))
    }
}

/// Returns the contents of a panel and its explanation. A panel whose figure a watched program did not report shows the line of code that
/// would report it. A panel that would give the fault away says when it is shown.
fn content_and_explanation<'a>(
    panel: Panel,
    app: &'a App,
    theme: &'a Theme,
    area: Rect,
) -> (Content<'a>, &'static [&'static str]) {
    if let Some(figure) = watched::unreported(panel, app) {
        return (figure.content(app, theme, area), &[]);
    }
    match PANELS.iter().find(|row| row.panel == panel) {
        // The panel of the lints decides itself what it hides.
        Some(row) if panel == Panel::Lints || !app.reading().withholds(panel.into_str()) => {
            ((row.content)(app, theme, area), (row.explanation)(app))
        }
        _ => (lints::later(app, theme, area), &[]),
    }
}

/// Draws a panel in its box. Returns how many lines it can scroll.
pub fn draw(panel: Panel, area: Rect, app: &App, theme: &Theme, frame: &mut Frame<'_>) -> u16 {
    let focused = app.view.focus == Some(panel);
    let is_strip = is_strip(app);
    let mut inner = if is_strip {
        inside_strip(area)
    } else {
        inside(area)
    };
    let (mut content, explanation) = content_and_explanation(panel, app, theme, inner);
    let explanation = content.matching_explanation(explanation);
    if focused && app.view.expanded && !is_strip {
        draw_reading(&explanation, &mut inner, theme, frame);
        (content, _) = content_and_explanation(panel, app, theme, inner);
    } else if !is_strip && !app.reading().marks_row(panel) {
        // While the learner marks a row of the panel, the panel shows figures only.
        content.explanation = explanation;
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
    if let Some((content, area)) = cards::failure(app, theme, body) {
        draw_in_card(content, Scroll::at(0), area, theme.bad, theme, frame);
    }
}

/// Draws a card with its own background on top of everything. Returns how many lines it can scroll.
pub(super) fn draw_in_card(
    content: Content<'_>,
    mut scroll: Scroll,
    area: Rect,
    border: Style,
    theme: &Theme,
    frame: &mut Frame<'_>,
) -> u16 {
    let title = (
        content.title.clone().unwrap_or_default(),
        theme.title_focused,
    );
    let block = framed(title, &content.aside, border, area.width, theme);
    frame.render_widget(Clear, area);
    frame.render_widget(block.style(theme.text), area);
    frame.render_stateful_widget(Inside { content, theme }, inside(area), &mut scroll);
    scroll.limit
}

/// Returns the entry of a list at row `y` of the screen, when the card of the list is in `area`; `None` where no entry is.
pub fn entry_at(overlay: Overlay, y: u16, area: Rect, app: &App) -> Option<usize> {
    let row = CARDS.iter().find(|row| row.overlay == overlay)?;
    let inner = inside(area);
    let theme = Theme::plain(app.view.markers);
    (row.content)(app, &theme, inner).entry_at(y, inner)
}
