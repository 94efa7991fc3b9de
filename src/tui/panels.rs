//! The list of all panels and of all cards over them. A panel is a file with a row for this list; it reads no file, no
//! clock and starts no thread.

pub mod cards;
pub mod devices;
mod evidence;
mod exercise;
pub mod footer;
mod glossary;
mod gradients;
pub mod header;
mod help;
mod kernels;
mod ledger;
mod lesson;
mod lints;
mod log;
mod loss;
mod memory;
pub mod numbers;
mod question;
mod roofline;
mod solution;
pub mod stages;
pub mod status;
mod throughput;
mod welcome;

use super::surface::{CardRow, PanelRow, Surface};
use crate::app::Overlay;
use crate::panel::Panel;

/// Every panel. In a column of the largest layout they stand in this order.
pub const PANELS: &[&PanelRow] = &[
    &lesson::PANEL,
    &loss::PANEL,
    &throughput::PANEL,
    &kernels::PANEL,
    &roofline::PANEL,
    &ledger::PANEL,
    &gradients::PANEL,
    &memory::PANEL,
    &evidence::PANEL,
    &lints::PANEL,
];

/// Every card that can be opened over the panels.
pub const CARDS: &[&CardRow] = &[
    &help::CARD,
    &stages::CARD,
    &devices::CARD,
    &log::CARD,
    &log::PROBLEMS,
    &glossary::CARD,
    &solution::CARD,
    &welcome::CARD,
];

/// Draws a panel; the result is how many lines it can scroll.
pub fn draw(panel: Panel, surface: &mut Surface<'_, '_>) -> u16 {
    let row = PANELS.iter().find(|row| row.panel == panel);
    row.map_or(0, |row| (row.draw)(surface))
}

/// Draws a card; the result is how many lines it can scroll.
pub fn draw_card(overlay: Overlay, surface: &mut Surface<'_, '_>) -> u16 {
    let row = CARDS.iter().find(|row| row.overlay == overlay);
    row.map_or(0, |row| (row.draw)(surface))
}
