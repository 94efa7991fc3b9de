//! The screen: draws the state, and turns keys and mouse into messages. It never waits for the engine and draws only what is new.

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
use panels::{header, status};
pub use run::{SessionEnd, TerminalSession};
use surface::put;
use theme::Theme;

/// Draws one frame. The result is how far each panel, and what lies on top, can scroll.
pub fn view(frame: &mut Frame<'_>, app: &App, theme: &Theme) -> DrawnFrame {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    if app.presenter.audience_screen(app.beat()) == AudienceScreen::Blank {
        return DrawnFrame::default();
    }
    let on_stage = app.beat().map(|_| theme.on_stage());
    let theme = on_stage.as_ref().unwrap_or(theme);
    let it = layout::arrange(area, app);
    let mut limits = DrawnFrame::default();
    if it.room == Some(ScreenSize::Numbers) {
        put(frame, area, panels::numbers::lines(app, theme, area));
    } else {
        let unsaved = status::unsaved(app, theme, it.unsaved.width);
        put(frame, it.unsaved, unsaved);
        let (header, vitals) = (it.header, it.vitals);
        put(frame, header, header::line(app, theme, header.width));
        put(frame, vitals, header::vitals_line(app, theme, vitals.width));
        put(frame, it.busy, header::busy_line(app, theme, it.busy.width));
        let draw = match app.beat() {
            Some(_) => panels::beat::draw,
            None => panels::draw,
        };
        for (panel, area) in it.panels {
            let scrolls = draw(panel, area, app, theme, frame);
            limits.panels.push((panel, scrolls));
            if app.reading().marks_row(panel) && app.view.overlay.is_none() {
                limits.rows = mark_row(frame, area, app.view.row, theme);
            }
        }
        status::draw_guide(app, theme, it.guide, frame.buffer_mut());
        put(frame, it.status, status::line(app, theme, it.status.width));
        let of_beat = panels::beat::foot(app, theme, it.footer.width);
        let foot = of_beat.unwrap_or_else(|| panels::footer::line(app, theme, it.footer.width));
        put(frame, it.footer, foot);
        match it.overlay {
            Some((overlay, area)) => {
                step_back(frame, it.body, area, theme);
                limits.overlay = panels::draw_card(overlay, area, app, theme, frame);
            }
            None => panels::draw_failure(it.body, app, theme, frame),
        }
    }
    theme.symbols.finish(frame.buffer_mut());
    limits
}

/// Draws what an audience sees while its screen is frozen: the last frame that it saw, and in its last line which key goes on.
pub fn view_frozen(frame: &mut Frame<'_>, last: &Buffer, app: &App, theme: &Theme) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    for at in last.area.intersection(area).positions() {
        frame.buffer_mut()[at] = last[at].clone();
    }
    let line = surface::take_bottom(&mut area.clone(), 1);
    put(frame, line, panels::beat::frozen(app, theme));
    theme.symbols.finish(frame.buffer_mut());
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
