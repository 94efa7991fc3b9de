//! Plausibility lints that fired: the name, why, and what to do next.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use super::watched;
use crate::app::{Action, App, Overlay};
use crate::course::trace_lints::page_of;
use crate::panel::Panel;
use crate::tui::keys;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::slot_label;
use crate::tui::theme::Theme;

/// How to read it.
pub(super) const READING: &[&str] = &[
    "A lint reports something that a correct run does not do: what was seen, and where to look next. A run without lints may still be wrong.",
];

/// Shown instead of what would answer the stage's question.
pub(super) fn later<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    w.dim("Shown once you have answered what this stage asks.");
    Content::text("", w.lines)
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let run = app.shown_run().shown();
    let mut w = ProseWriter::new(app, theme, area.width);
    if run.last.is_none() {
        w.line("no step to judge yet", theme.dim);
    } else if app.mode.plays_mystery() {
        let said = "left out in a mystery: find out what they would report";
        w.line(said, theme.dim);
        return Content::text("", w.lines);
    } else if app.mode.is_watching() {
        let said = "left out for this recording: find out what they would report";
        w.line(said, theme.dim);
    } else if app.reading().withholds_mark(Panel::Lints.into_str()) {
        return later(app, theme, area);
    } else if run.lints.is_empty() {
        let said = format!("{} nothing implausible in ", theme.symbols.good);
        let label = slot_label(app.shown_run().active, app, theme);
        w.lines
            .push(Line::from(vec![Span::styled(said, theme.good), label]));
    }
    for lint in &run.lints {
        let mark = theme.symbols.warning;
        w.line(format!("{mark} {}", lint.name), theme.bad);
        w.item("  why:  ", theme.dim, &lint.why);
        w.item("  next: ", theme.dim, &lint.next);
        // Lints of the stages are explained by their stage.
        if let Some(page) = page_of(&lint.name).filter(|_| watched::is_shown(app)) {
            let page = app.lesson.course.readings.iter().find(|it| it.file == page);
            let title = page.map_or("", |page| page.title.as_str());
            let key = keys::label(Action::Open(Overlay::Glossary), app);
            w.item("  page: ", theme.dim, &format!("{title}, {key}"));
        }
    }
    let found = match run.lints.len() {
        n @ 1.. if !app.is_unsolved() => format!("{n} found"),
        _ => String::new(),
    };
    Content::text(found, w.lines)
}
