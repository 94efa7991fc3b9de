//! What drivers, libraries and the engine wrote, and what could not be loaded.

use crate::app::App;
use crate::app::log::LogLevel;
use crate::tui::surface::{Surface, closes, height};
use crate::tui::text;

/// Columns and rows that the card of the problems wants.
pub(super) fn size_of_problems(app: &App) -> (u16, u16) {
    let problems = height(app.lesson.course.problems.len());
    (110, problems.saturating_mul(3).saturating_add(4))
}

/// The log, the latest line last.
pub(super) fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    s.overlay("log");
    let mut w = s.writer();
    for entry in &app.devices.log.entries {
        let style = match entry.level {
            LogLevel::Error => theme.bad,
            LogLevel::Warning => theme.warning,
            LogLevel::Info | LogLevel::Stray | LogLevel::Harmless => theme.dim,
        };
        let mut text = entry.text.trim_end_matches('.').to_owned();
        if let Some(why) = entry.why {
            text += &format!(": {why}");
        }
        if entry.times > 1 {
            text += &format!(" ({} times)", entry.times);
        }
        let plain = entry.why.map_or(theme.text, |_| theme.dim);
        w.item(&text::left(entry.level.into_str(), 9), style, &text, plain);
    }
    if w.lines.is_empty() {
        w.line("the log is empty", theme.dim);
    }
    s.show_card(w.lines)
}

/// Files of the course that were skipped.
pub(super) fn draw_problems(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    s.card("could not be loaded", &closes(app), theme.bad);
    let mut w = s.writer();
    for problem in &app.lesson.course.problems {
        w.marked(theme.mark(false), &problem.to_string(), theme.text);
    }
    let text = match app.lesson.course.problems.is_empty() {
        true => "every file of the course was loaded",
        false => "The rest of the course works.",
    };
    w.line(text, theme.dim);
    s.show_card(w.lines)
}
