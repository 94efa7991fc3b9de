//! The screen: draws the state, and turns keys and mouse into messages. It never waits for the engine and draws only what is new.

pub mod board;
pub mod chart;
pub mod digits;
mod input;
pub mod keys;
pub mod layout;
mod list;
pub mod mouse;
pub mod opened;
pub mod panels;
pub mod prose;
mod reading;
mod run;
pub mod speaker;
pub mod surface;
pub mod symbols;
mod table;
pub mod terminal;
pub mod text;
pub mod theme;
mod votes;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear};

use crate::app::{App, AudienceScreen, DrawnFrame, ScreenSize};
use layout::Arrangement;
use panels::header::{self, Header};
use panels::status::{self, Guide};
pub use run::{SessionEnd, TerminalSession};
use surface::{Fitted, Scroll, Surface};
use theme::Theme;

/// Draws one frame. The result is how far each panel, and what lies on top, can scroll.
pub fn view(frame: &mut Frame<'_>, app: &App, theme: &Theme) -> DrawnFrame {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let covered = app.audience_screen();
    if covered == AudienceScreen::Blank {
        return DrawnFrame::default();
    }
    let frozen = app
        .presenter
        .frozen
        .as_deref()
        .filter(|_| covered == AudienceScreen::Frozen);
    let app = frozen.unwrap_or(app);
    let on_stage = app.beat().map(|_| theme.on_stage());
    let theme = on_stage.as_ref().unwrap_or(theme);
    let it = layout::arrange(area, app);
    let mut limits = DrawnFrame::default();
    if it.room == Some(ScreenSize::Numbers) {
        let lines = panels::numbers::lines(app, theme, area);
        frame.render_widget(Fitted(lines.into()), area);
    } else {
        draw_around(&it, frozen.is_some(), app, theme, frame);
        for (panel, area) in &it.panels {
            let scrolls = match app.beat() {
                Some(_) => panels::beat::draw(&mut surface(*area, app, theme, frame), *panel),
                None => panels::draw(*panel, *area, app, theme, frame),
            };
            limits.panels.push((*panel, scrolls));
            if app.marks_row(*panel) && app.view.overlay.is_none() {
                limits.rows = mark_row(frame, *area, app.view.row, theme);
            }
        }
        if let Some((overlay, area)) = it.overlay {
            step_back(frame, it.body, area, theme);
            limits.overlay = panels::draw_card(overlay, area, app, theme, frame);
        } else if let Some((card, area)) = panels::cards::of_failure(app, theme, it.body) {
            frame.render_stateful_widget(card, area, &mut Scroll::default());
        }
    }
    theme.symbols.finish(frame.buffer_mut());
    limits
}

/// Draws the lines above and below the panels.
fn draw_around(it: &Arrangement, frozen: bool, app: &App, theme: &Theme, frame: &mut Frame<'_>) {
    let unsaved = status::unsaved(app, theme, it.unsaved.width);
    frame.render_widget(Fitted(unsaved.into()), it.unsaved);
    frame.render_widget(Header::new(app, theme), it.header);
    let guide = Guide::new(app, theme, it.guide.width);
    frame.render_widget(guide, it.guide);
    let lines: [(LineOf, Rect); 3] = [
        (header::figures, it.vitals),
        (header::notice_busy, it.busy),
        (status::line, it.status),
    ];
    for (line, area) in lines.into_iter().filter(|(_, area)| !area.is_empty()) {
        frame.render_widget(Fitted(line(app, theme, area.width).into()), area);
    }
    match app.beat() {
        Some(_) => panels::beat::draw_foot(&mut surface(it.footer, app, theme, frame)),
        None => {
            let footer = panels::footer::line(app, theme, it.footer.width);
            frame.render_widget(Fitted(footer.into()), it.footer);
        }
    }
    if frozen {
        panels::beat::draw_frozen(&mut surface(it.footer, app, theme, frame));
    }
}

/// One line of so many columns.
type LineOf = fn(&App, &Theme, u16) -> Line<'static>;

fn surface<'a, 'f>(
    area: Rect,
    app: &'a App,
    theme: &'a Theme,
    frame: &'a mut Frame<'f>,
) -> Surface<'a, 'f> {
    Surface {
        frame,
        area,
        app,
        theme,
    }
}

/// Marks one of a panel's rows that have a figure; the result is what stands in them.
fn mark_row(frame: &mut Frame<'_>, panel: Rect, row: usize, theme: &Theme) -> Vec<String> {
    let buffer = frame.buffer_mut();
    let text = |y: u16| -> String {
        let columns = panel.left()..panel.right();
        columns.map(|x| buffer[(x, y)].symbol()).collect()
    };
    // Neither the title nor a line below the box.
    let inner = panel.top().saturating_add(1)..panel.bottom();
    let figures = |text: &str| {
        text.contains(|c: char| c.is_ascii_digit()) && text.contains(char::is_alphabetic)
    };
    let rows: Vec<(u16, String)> = inner
        .map(|y| (y, text(y)))
        .filter(|(_, text)| figures(text))
        .collect();
    if let Some((y, _)) = rows.get(row.min(rows.len().saturating_sub(1))) {
        let inner = Rect::new(panel.x + 1, *y, panel.width.saturating_sub(2), 1);
        buffer.set_style(inner, theme.selected);
    }
    rows.into_iter().map(|(_, text)| text).collect()
}

/// Dims what lies behind a card; its lines end a column before the card's begin.
fn step_back(frame: &mut Frame<'_>, body: Rect, card: Rect, theme: &Theme) {
    frame.buffer_mut().set_style(body, theme.behind);
    let around = Rect {
        x: card.x.saturating_sub(1),
        width: card.width.saturating_add(2),
        ..card
    };
    let around = around.intersection(body);
    frame.render_widget(Clear, around);
    frame.render_widget(Block::new().style(theme.text), around);
}
