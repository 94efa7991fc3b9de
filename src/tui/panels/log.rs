//! Two cards: the log of drivers, libraries and the engine, and the list of files of the course that could not be loaded.
//!
//! ```text
//! ╭ log ───────────────────────────────────────────────────╮
//! │ note     error: XDG_RUNTIME_DIR is invalid: no window  │
//! │          is opened here (2 times)                      │
//! │ output   vulkan: device lost                           │
//! ╰────────────────────────────────────────────────────────╯
//! ```

use ratatui::layout::Rect;

use super::content::Content;
use crate::app::App;
use crate::app::log::LogLevel;
use crate::tui::prose::ProseWriter;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Returns the log, the latest line last.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
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
        // An entry with an explanation needs no attention.
        let text_style = match entry.why {
            Some(_) => theme.dim,
            None => theme.text,
        };
        let level = text::left(entry.level.into_str(), 9);
        w.item_in(&level, style, &text, text_style);
    }
    if w.lines.is_empty() {
        w.line("the log is empty", theme.dim);
    }
    Content::titled("log", w.lines)
}

/// Returns the list of the files of the course that were skipped, with the reasons.
pub(super) fn problems<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    for problem in &app.lesson.course.problems {
        w.marked(theme.mark(false), &problem.to_string(), theme.text);
    }
    let text = if app.lesson.course.problems.is_empty() {
        "every file of the course was loaded"
    } else {
        "The rest of the course works."
    };
    w.line(text, theme.dim);
    Content::titled("could not be loaded", w.lines)
}
