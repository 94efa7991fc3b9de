//! The screen: draws the state, turns keys and mouse into messages. It never waits for the engine, and it draws only when there
//! is something new.

pub mod chart;
pub mod digits;
pub mod keys;
pub mod layout;
pub mod mouse;
pub mod panels;
pub mod prose;
mod run;
pub mod symbols;
pub mod terminal;
pub mod text;
pub mod theme;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear};

use crate::app::{App, Limits, Overlay, Room};
pub use run::{Outcome, Session};
use theme::Theme;

/// Draws one frame. The result is how far each panel, and what lies on top, can scroll.
pub fn view(frame: &mut Frame<'_>, app: &App, theme: &Theme) -> Limits {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let it = layout::arrange(area, app);
    let mut limits = Limits::default();
    if it.room == Some(Room::Numbers) {
        panels::numbers::render(frame, area, app, theme);
    } else {
        panels::header::render(frame, it.header, app, theme);
        panels::header::render_vitals(frame, it.vitals, app, theme);
        for (panel, area) in &it.panels {
            limits
                .panels
                .push((*panel, panels::render(*panel, frame, *area, app, theme)));
        }
        panels::status::render_guide(frame, it.guide, app, theme);
        panels::status::render(frame, it.status, app, theme);
        panels::footer::render(frame, it.footer, app, theme);
        match it.overlay {
            Some((overlay, area)) => {
                // What lies behind steps back, and its lines end before the card's begin.
                frame.buffer_mut().set_style(it.body, theme.behind);
                let around = Rect {
                    x: area.x.saturating_sub(1),
                    width: area.width.saturating_add(2),
                    ..area
                };
                let around = around.intersection(it.body);
                frame.render_widget(Clear, around);
                frame.render_widget(Block::new().style(theme.text), around);
                limits.overlay = draw_overlay(overlay, frame, area, app, theme)
            }
            None => panels::cards::render(frame, it.body, app, theme),
        }
    }
    symbols::defuse(frame.buffer_mut());
    if theme.symbols.ascii {
        symbols::fold_to_ascii(frame.buffer_mut());
    }
    limits
}

fn draw_overlay(
    overlay: Overlay,
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    theme: &Theme,
) -> u16 {
    let draw = match overlay {
        Overlay::Help => panels::help::render,
        Overlay::Stages => panels::stages::render,
        Overlay::Devices => panels::devices::render,
        Overlay::Log => panels::log::render,
        Overlay::Problems => panels::log::render_problems,
        Overlay::Glossary => panels::glossary::render,
        Overlay::Solution => panels::solution::render,
        Overlay::Welcome => panels::welcome::render,
    };
    draw(frame, area, app, theme)
}
