//! What drivers, libraries and the engine wrote aside, and what could not be loaded.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{card, closes, show};
use crate::app::App;
use crate::app::log::Level;
use crate::tui::text;
use crate::tui::theme::Theme;

/// The log pane, the latest line last.
pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "log",
        &closes(app),
        theme.border_focused,
        theme,
    );
    let mut lines = Vec::new();
    for entry in &app.log.entries {
        let style = match entry.level {
            Level::Error => theme.bad,
            Level::Warning => theme.warning,
            Level::Info | Level::Stray | Level::Harmless => theme.dim,
        };
        let (words, told) = match entry.why {
            Some(why) => (format!(": {why}"), theme.dim),
            None => (String::new(), theme.text),
        };
        let times = if entry.times > 1 {
            format!(" ({} times)", entry.times)
        } else {
            String::new()
        };
        let marker = text::left(entry.level.word(), 9);
        lines.extend(text::wrap_item(
            &marker,
            style,
            &format!("{}{words}{times}", entry.text.trim_end_matches('.')),
            usize::from(inner.width),
            told,
        ));
    }
    if lines.is_empty() {
        lines.push(Line::styled("nothing was written aside", theme.dim));
    }
    show(frame, inner, lines, app.view.overlay_scroll, theme)
}

/// Files of the course that were skipped.
pub fn render_problems(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "could not be loaded",
        &closes(app),
        theme.bad,
        theme,
    );
    let mut lines = Vec::new();
    for problem in &app.course.problems {
        let marker = format!("{} ", theme.symbols.bad);
        lines.extend(text::wrap_item(
            &marker,
            theme.bad,
            &problem.to_string(),
            usize::from(inner.width),
            theme.text,
        ));
    }
    let all_well = app.course.problems.is_empty();
    let text = if all_well {
        "every file of the course was loaded"
    } else {
        "The rest of the course works."
    };
    lines.push(Line::from(Span::styled(text, theme.dim)));
    show(frame, inner, lines, app.view.overlay_scroll, theme)
}
