//! The table of all panels and that of all cards over them. A panel is a file and a row; it reads no file, no clock and
//! starts no thread.

pub mod attempts;
pub mod beat;
pub mod cards;
mod content;
pub mod devices;
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
pub mod stages;
pub mod status;
mod summary;
mod threads;
mod throughput;
pub mod timeline;
mod welcome;

use content::ContentOf;
use ratatui::layout::Rect;

use super::surface::Surface;
use super::theme::Theme;
use crate::app::{App, Overlay};
use crate::panel::Panel;

/// A panel.
pub struct PanelRow {
    pub panel: Panel,
    pub position: PanelPosition,
    drawing: PanelDrawing,
    /// How to read it, a sentence or two for each entry; shown below it while it has the whole screen.
    reading: fn(&App) -> &'static [&'static str],
}

/// How a panel is drawn: in its box, and large for the back of a room. What draws says how many lines it can scroll.
enum PanelDrawing {
    /// Figures, for both renderers.
    Figures(ContentOf),
    /// Drawings of its own.
    Own {
        normal: fn(&mut Surface<'_, '_>) -> u16,
        large: fn(&mut Surface<'_, '_>) -> u16,
    },
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
pub const PANELS: [PanelRow; Panel::ALL.len()] = [
    PanelRow { panel: Panel::Lesson, position: PanelPosition::Left, drawing: PanelDrawing::Own { normal: lesson::draw, large: lesson::draw }, reading: |_| &[] },
    PanelRow { panel: Panel::Loss, position: PanelPosition::Middle(0), drawing: PanelDrawing::Own { normal: loss::draw, large: loss::draw_bare }, reading: |_| loss::READING },
    PanelRow { panel: Panel::Throughput, position: PanelPosition::Middle(9), drawing: PanelDrawing::Own { normal: throughput::draw, large: throughput::draw_bare }, reading: throughput::reading },
    PanelRow { panel: Panel::Kernels, position: PanelPosition::Right(0), drawing: PanelDrawing::Figures(kernels::content), reading: |_| kernels::READING },
    PanelRow { panel: Panel::Roofline, position: PanelPosition::InsteadOf(Panel::Kernels), drawing: PanelDrawing::Own { normal: roofline::draw, large: roofline::draw_bare }, reading: |_| roofline::READING },
    PanelRow { panel: Panel::Ledger, position: PanelPosition::Middle(11), drawing: PanelDrawing::Figures(ledger::content), reading: |_| ledger::READING },
    PanelRow { panel: Panel::Gradients, position: PanelPosition::HalfRight(9), drawing: PanelDrawing::Figures(gradients::content), reading: |_| gradients::READING },
    PanelRow { panel: Panel::Exponents, position: PanelPosition::InsteadOf(Panel::Kernels), drawing: PanelDrawing::Own { normal: exponents::draw, large: exponents::draw_bare }, reading: |_| exponents::READING },
    PanelRow { panel: Panel::Memory, position: PanelPosition::HalfRight(9), drawing: PanelDrawing::Figures(memory::content), reading: |_| memory::READING },
    PanelRow { panel: Panel::Evidence, position: PanelPosition::Right(10), drawing: PanelDrawing::Figures(evidence::content), reading: |_| evidence::READING },
    PanelRow { panel: Panel::Lints, position: PanelPosition::Right(8), drawing: PanelDrawing::Own { normal: lints::draw, large: lints::draw }, reading: |_| lints::READING },
    PanelRow { panel: Panel::Timeline, position: PanelPosition::InsteadOf(Panel::Ledger), drawing: PanelDrawing::Own { normal: timeline::draw, large: timeline::draw }, reading: |_| timeline::READING },
];

/// Every card that can be opened over the panels.
#[rustfmt::skip]
pub const CARDS: [CardRow; 15] = [
    CardRow { overlay: Overlay::Help, size: |_, area, theme| help::size(area, theme), draw: help::draw },
    CardRow { overlay: Overlay::Stages, size: |app, _, _| stages::size(app), draw: stages::draw },
    CardRow { overlay: Overlay::Devices, size: |app, _, _| devices::size(app), draw: devices::draw },
    CardRow { overlay: Overlay::Attempts, size: |app, _, _| attempts::size(app), draw: attempts::draw },
    CardRow { overlay: Overlay::Log, size: |_, area, _| (110, area.height), draw: log::draw },
    CardRow { overlay: Overlay::Problems, size: |app, _, _| log::size_of_problems(app), draw: log::draw_problems },
    CardRow { overlay: Overlay::Glossary, size: |_, area, _| (84, area.height), draw: glossary::draw },
    CardRow { overlay: Overlay::Solution, size: |_, area, _| (100, area.height), draw: solution::draw },
    CardRow { overlay: Overlay::Skipped, size: |_, area, _| (84, area.height), draw: skipped::draw },
    CardRow { overlay: Overlay::Summary, size: summary::size, draw: summary::draw },
    CardRow { overlay: Overlay::Kernel, size: |app, area, _| kernel::size(app, area), draw: kernel::draw },
    CardRow { overlay: Overlay::Threads, size: |_, area, _| threads::size(area), draw: threads::draw },
    CardRow { overlay: Overlay::Room, size: room::size, draw: room::draw },
    CardRow { overlay: Overlay::Vote, size: room::size_of_vote, draw: room::draw_vote },
    CardRow { overlay: Overlay::Welcome, size: welcome::size, draw: welcome::draw },
];

/// Draws a panel; the result is how many lines it can scroll.
pub fn draw(panel: Panel, surface: &mut Surface<'_, '_>) -> u16 {
    let row = PANELS.iter().find(|row| row.panel == panel);
    row.map_or(0, |row| {
        // The lints say themselves why they wait.
        if panel != Panel::Lints && surface.app.withholds(panel.name()) {
            surface.open(panel, "");
            let mut w = surface.writer();
            w.plain(lints::LATER, surface.theme.dim);
            return surface.show_panel(panel, w.lines);
        }
        surface.reading = (row.reading)(surface.app);
        match row.drawing {
            PanelDrawing::Figures(content) => content::draw(surface, panel, content),
            PanelDrawing::Own { normal, .. } => normal(surface),
        }
    })
}

/// Draws a panel for the back of a room.
fn draw_large(panel: Panel, surface: &mut Surface<'_, '_>) -> u16 {
    let row = PANELS.iter().find(|row| row.panel == panel);
    row.map_or(0, |row| {
        surface.reading = (row.reading)(surface.app);
        match row.drawing {
            PanelDrawing::Figures(content) => large::draw(surface, content),
            PanelDrawing::Own { large, .. } => large(surface),
        }
    })
}

/// Draws a card; the result is how many lines it can scroll.
pub fn draw_card(overlay: Overlay, surface: &mut Surface<'_, '_>) -> u16 {
    let row = CARDS.iter().find(|row| row.overlay == overlay);
    row.map_or(0, |row| (row.draw)(surface))
}
