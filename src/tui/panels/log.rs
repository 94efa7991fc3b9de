//! What drivers, libraries and the engine wrote, and what could not be loaded.

use crate::app::Overlay;
use crate::app::log::Level;
use crate::tui::surface::{CardRow, Surface, closes, height};
use crate::tui::text;

pub const CARD: CardRow = CardRow {
    overlay: Overlay::Log,
    size: |_, area, _| (110, area.height),
    draw,
};

pub const PROBLEMS: CardRow = CardRow {
    overlay: Overlay::Problems,
    size: |app, _, _| {
        let problems = height(app.course.problems.len());
        (110, problems.saturating_mul(3).saturating_add(4))
    },
    draw: draw_problems,
};

/// The log, the latest line last.
fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    s.overlay("log");
    let mut w = s.writer();
    for entry in &app.log.entries {
        let style = match entry.level {
            Level::Error => theme.bad,
            Level::Warning => theme.warning,
            Level::Info | Level::Stray | Level::Harmless => theme.dim,
        };
        let mut text = entry.text.trim_end_matches('.').to_owned();
        if let Some(why) = entry.why {
            text += &format!(": {why}");
        }
        if entry.times > 1 {
            text += &format!(" ({} times)", entry.times);
        }
        let plain = entry.why.map_or(theme.text, |_| theme.dim);
        w.item(&text::left(entry.level.word(), 9), style, &text, plain);
    }
    if w.lines.is_empty() {
        w.line("the log is empty", theme.dim);
    }
    s.show_card(w.lines)
}

/// Files of the course that were skipped.
fn draw_problems(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    s.card("could not be loaded", &closes(app), theme.bad);
    let mut w = s.writer();
    for problem in &app.course.problems {
        w.marked(theme.mark(false), &problem.to_string(), theme.text);
    }
    let text = match app.course.problems.is_empty() {
        true => "every file of the course was loaded",
        false => "The rest of the course works.",
    };
    w.line(text, theme.dim);
    s.show_card(w.lines)
}
