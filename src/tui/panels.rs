//! The table of all panels and that of all cards over them. A panel is a file and a row; it reads no file, no clock and
//! starts no thread.

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
mod welcome;

use content::ContentOf;
use ratatui::layout::Rect;
use ratatui::text::Line;
use strum::VariantArray;

use super::list::List;
use super::prose::READING;
use super::surface::{Surface, chooses, height, inside};
use super::theme::Theme;
use crate::app::{App, Overlay};
use crate::panel::Panel;

/// A panel.
pub struct PanelRow {
    pub panel: Panel,
    pub position: PanelPosition,
    /// What it shows, for both renderers: in its box, and large for the back of a room.
    content: ContentOf,
    /// How to read it, a sentence or two for each entry; shown below it while it has the whole screen.
    reading: fn(&App) -> &'static [&'static str],
}

/// Where a panel stands on a screen that has room for every panel. 0 rows: all that the others in its column leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelPosition {
    Left,
    Middle(u16),
    Right(u16),
    /// Half of so many rows on the right; its neighbour in the table has the other half.
    HalfRight(u16),
    /// In the place of another panel while it was asked for last.
    InsteadOf(Panel),
}

/// A card that can lie over the panels.
pub struct CardRow {
    pub overlay: Overlay,
    /// Columns and rows that it wants in an area of this size, borders included.
    pub size: fn(&App, Rect, &Theme) -> (u16, u16),
    /// Draws it; the result is how many lines it can scroll.
    draw: fn(&mut Surface<'_, '_>) -> u16,
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
    CardRow { overlay: Overlay::Help, size: |_, area, theme| help::size(area, theme), draw: help::draw },
    CardRow { overlay: Overlay::Stages, size: |app, area, theme| size_of_list(stages::list, 90, app, area, theme), draw: |s| draw_list(stages::list, "stages and exercises", "goes there", s) },
    CardRow { overlay: Overlay::Devices, size: |app, area, theme| size_of_list(devices::list, 90, app, area, theme), draw: |s| draw_list(devices::list, "devices", "moves the run", s) },
    CardRow { overlay: Overlay::Attempts, size: |app, area, theme| size_of_list(attempts::list, 100, app, area, theme), draw: |s| draw_list(attempts::list, "attempts", "makes it B", s) },
    CardRow { overlay: Overlay::Log, size: |_, area, _| (110, area.height), draw: log::draw },
    CardRow { overlay: Overlay::Problems, size: |app, _, _| log::size_of_problems(app), draw: log::draw_problems },
    CardRow { overlay: Overlay::Glossary, size: |_, area, _| (84, area.height), draw: glossary::draw },
    CardRow { overlay: Overlay::Solution, size: |_, area, _| (100, area.height), draw: solution::draw },
    CardRow { overlay: Overlay::Skipped, size: |_, area, _| (84, area.height), draw: skipped::draw },
    CardRow { overlay: Overlay::Summary, size: |app, area, theme| size_of_text(summary::lines, summary::widest(app), app, area, theme), draw: |s| draw_text(summary::lines, "what you have done", s) },
    CardRow { overlay: Overlay::Kernel, size: |app, area, _| kernel::size(app, area), draw: kernel::draw },
    CardRow { overlay: Overlay::Lanes, size: |_, area, _| (124, area.height), draw: lanes::draw },
    CardRow { overlay: Overlay::Room, size: |app, area, theme| size_of_text(room::lines, TEXT, app, area, theme), draw: |s| draw_text(room::lines, "the room", s) },
    CardRow { overlay: Overlay::Vote, size: |app, area, theme| size_of_text(room::question, TEXT, app, area, theme), draw: |s| draw_text(room::question, room::title_of_vote(s.app), s) },
    CardRow { overlay: Overlay::Welcome, size: |app, area, theme| size_of_text(welcome::lines, TEXT, app, area, theme), draw: |s| draw_text(welcome::lines, "welcome to perflings", s) },
];

/// Draws a panel; the result is how many lines it can scroll.
pub fn draw(panel: Panel, surface: &mut Surface<'_, '_>) -> u16 {
    draw_with(content::draw, panel, surface)
}

fn draw_with(
    renderer: fn(&mut Surface<'_, '_>, Panel, ContentOf) -> u16,
    panel: Panel,
    surface: &mut Surface<'_, '_>,
) -> u16 {
    let Some(row) = PANELS.iter().find(|row| row.panel == panel) else {
        return 0;
    };
    // The lints say themselves why they wait.
    if panel != Panel::Lints && surface.app.withholds(panel.into_str()) {
        surface.reading = &[];
        return renderer(surface, panel, lints::later);
    }
    surface.reading = (row.reading)(surface.app);
    renderer(surface, panel, row.content)
}

/// Draws a card; the result is how many lines it can scroll.
pub fn draw_card(overlay: Overlay, surface: &mut Surface<'_, '_>) -> u16 {
    let row = CARDS.iter().find(|row| row.overlay == overlay);
    row.map_or(0, |row| (row.draw)(surface))
}

/// The lines of a card that is a text, in so many columns.
type TextOf = fn(&App, &Theme, usize) -> Vec<Line<'static>>;
/// Columns of such a card.
const TEXT: u16 = READING as u16 + 4;

/// Columns and rows that a text wants.
fn size_of_text(of: TextOf, most: u16, app: &App, area: Rect, theme: &Theme) -> (u16, u16) {
    let columns = most.min(area.width);
    let lines = of(app, theme, usize::from(columns.saturating_sub(4)));
    (columns, height(lines.len() + 2))
}

fn draw_text(of: TextOf, title: &str, s: &mut Surface<'_, '_>) -> u16 {
    s.overlay(title);
    let lines = of(s.app, s.theme, usize::from(s.area.width));
    s.show_card(lines)
}

/// The entries of a card that is a list, in so many columns.
type ListOf = fn(&App, &Theme, usize) -> List;

/// Columns and rows that a list wants.
fn size_of_list(of: ListOf, columns: u16, app: &App, area: Rect, theme: &Theme) -> (u16, u16) {
    let inner = inside(Rect::new(0, 0, columns.min(area.width), area.height));
    (columns, of(app, theme, usize::from(inner.width)).rows())
}

fn draw_list(of: ListOf, title: &str, chosen: &str, s: &mut Surface<'_, '_>) -> u16 {
    s.card(title, &chooses(chosen, s.app), s.theme.border_focused);
    let list = of(s.app, s.theme, usize::from(s.area.width));
    let marked = s.app.view.selected;
    list.draw(s, marked)
}

/// The entry of a list on a row of the screen, its card being in `area`.
pub fn entry_at(overlay: Overlay, y: u16, area: Rect, app: &App) -> Option<usize> {
    let of = match overlay {
        Overlay::Stages => stages::list,
        Overlay::Devices => devices::list,
        Overlay::Attempts => attempts::list,
        _ => return None,
    };
    let (inner, theme) = (inside(area), Theme::plain(app.view.markers));
    let list = of(app, &theme, usize::from(inner.width));
    list.entry_at(y.checked_sub(inner.y)?, app.view.selected, inner.height)
}
