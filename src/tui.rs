//! The screen draws the state and turns keys and the mouse into messages. It never waits for the engine and draws only what is new.

pub mod board;
pub mod chart;
pub mod digits;
mod drawing;
mod input;
pub mod keys;
pub mod layout;
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
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear};

use crate::app::{App, AudienceScreen, DrawnFrame, ScreenSize};
use layout::Arrangement;
use panels::{header, status};
pub use run::{SessionEnd, TerminalSession};
use surface::put;
use theme::Theme;

/// Draws one frame. Returns how many lines each panel and the open card can scroll.
pub fn view(frame: &mut Frame<'_>, app: &App, theme: &Theme) -> DrawnFrame {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    if app.presenter.audience_screen(app.beat()) == AudienceScreen::Blank {
        return DrawnFrame::default();
    }
    let stage_theme = app.beat().map(|_| theme.on_stage());
    let theme = stage_theme.as_ref().unwrap_or(theme);
    let arrangement = layout::arrange(area, app);
    let mut limits = DrawnFrame::default();
    if arrangement.screen_size == ScreenSize::Numbers {
        put(frame, area, panels::numbers::lines(app, theme, area));
    } else {
        draw_lines_around(frame, &arrangement, app, theme);
        let draw = if app.beat().is_some() {
            panels::beat::draw
        } else {
            panels::draw
        };
        for (panel, area) in arrangement.panels {
            let scrolls = draw(panel, area, app, theme, frame);
            limits.panels.push((panel, scrolls));
            if app.reading().marks_row(panel) && app.view.overlay.is_none() {
                limits.rows = mark_row(frame, area, app.view.row, theme);
            }
        }
        match arrangement.overlay {
            Some((overlay, area)) => {
                dim_behind(frame, arrangement.body, area, theme);
                limits.overlay = panels::draw_card(overlay, area, app, theme, frame);
            }
            None => panels::draw_failure(arrangement.body, app, theme, frame),
        }
    }
    theme.symbols.finish(frame.buffer_mut());
    limits
}

/// Draws the lines above the panels (notices, header, vitals) and below them (guide, status, footer).
fn draw_lines_around(frame: &mut Frame<'_>, areas: &Arrangement, app: &App, theme: &Theme) {
    let unsaved = status::unsaved(app, theme, areas.unsaved.width);
    put(frame, areas.unsaved, unsaved);
    let header = header::line(app, theme, areas.header.width);
    put(frame, areas.header, header);
    let vitals = header::vitals_line(app, theme, areas.vitals.width);
    put(frame, areas.vitals, vitals);
    let busy = header::busy_line(app, theme, areas.busy.width);
    put(frame, areas.busy, busy);
    status::draw_guide(app, theme, areas.guide, frame.buffer_mut());
    let status = status::line(app, theme, areas.status.width);
    put(frame, areas.status, status);
    let footer = panels::beat::foot(app, theme, areas.footer.width)
        .unwrap_or_else(|| panels::footer::line(app, theme, areas.footer.width));
    put(frame, areas.footer, footer);
}

/// Draws the frozen screen of an audience: the frame that it saw last. The bottom line names the key that ends the freeze.
pub fn view_frozen(frame: &mut Frame<'_>, last: &Buffer, app: &App, theme: &Theme) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    for position in last.area.intersection(area).positions() {
        frame.buffer_mut()[position] = last[position].clone();
    }
    let line = surface::take_bottom(&mut area.clone(), 1);
    put(frame, line, panels::beat::frozen(app, theme));
    theme.symbols.finish(frame.buffer_mut());
}

/// Marks row number `row` among a panel's rows that have a figure. Returns the texts of these rows.
fn mark_row(frame: &mut Frame<'_>, panel: Rect, row: usize, theme: &Theme) -> Vec<String> {
    let buffer = frame.buffer_mut();
    let text_of_row = |y: u16| -> String {
        (panel.left()..panel.right())
            .map(|x| buffer[(x, y)].symbol())
            .collect()
    };
    let below_title = panel.top().saturating_add(1)..panel.bottom();
    let has_figure = |text: &str| {
        text.contains(|c: char| c.is_ascii_digit()) && text.contains(char::is_alphabetic)
    };
    let rows: Vec<(u16, String)> = below_title
        .map(|y| (y, text_of_row(y)))
        .filter(|(_, text)| has_figure(text))
        .collect();
    if let Some((y, _)) = rows.get(row.min(rows.len().saturating_sub(1))) {
        let marked = Rect::new(panel.x + 1, *y, panel.width.saturating_sub(2), 1);
        buffer.set_style(marked, theme.selected);
    }
    rows.into_iter().map(|(_, text)| text).collect()
}

/// Dims the panels behind a card and clears one column on each side of it.
fn dim_behind(frame: &mut Frame<'_>, body: Rect, card: Rect, theme: &Theme) {
    frame.buffer_mut().set_style(body, theme.behind);
    let around = Rect {
        x: card.x.saturating_sub(1),
        width: card.width.saturating_add(2),
        ..card
    }
    .intersection(body);
    frame.render_widget(Clear, around);
    frame.render_widget(Block::new().style(theme.text), around);
}
