//! The panel of the lints shows the plausibility lints that fired: the name, the reason, and what to do next.
//!
//! ```text
//! ▲ first-loss
//!   why:  the first loss is 120.6 and ln V is 6.91
//!   next: compare the spread of the logits in the evidence panel
//! ```

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

pub(super) const EXPLANATION: &[&str] = &[
    "A lint reports something that a correct run does not do: what was seen, and where to look next. \
     A run without lints may still be wrong.",
];

/// Returns the contents that stand in the place of a panel which would answer the stage's question.
pub(super) fn later<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut writer = ProseWriter::new(app, theme, area.width);
    writer.dim("Shown once you have answered what this stage asks.");
    Content::text("", writer.lines)
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let run = app.shown_run().shown();
    let mut writer = ProseWriter::new(app, theme, area.width);
    if run.last.is_none() {
        writer.line("no step to judge yet", theme.dim);
    } else if app.mode.plays_mystery() {
        let text = "left out in a mystery: find out what they would report";
        writer.line(text, theme.dim);
        return Content::text("", writer.lines);
    } else if app.mode.is_watching() {
        let text = "left out for this recording: find out what they would report";
        writer.line(text, theme.dim);
    } else if app.reading().withholds_mark(Panel::Lints.into_str()) {
        return later(app, theme, area);
    } else if run.lints.is_empty() {
        let text = format!("{} nothing implausible in ", theme.symbols.good);
        let label = slot_label(app.shown_run().active, app, theme);
        writer
            .lines
            .push(Line::from(vec![Span::styled(text, theme.good), label]));
    }
    for lint in &run.lints {
        let mark = theme.symbols.warning;
        writer.line(format!("{mark} {}", lint.name), theme.bad);
        writer.item("  why:  ", theme.dim, &lint.why);
        writer.item("  next: ", theme.dim, &lint.next);
        // Lints of the stages are explained by their stage.
        if watched::is_shown(app)
            && let Some(file) = page_of(&lint.name)
        {
            let pages = &app.lesson.course.readings;
            let page = pages.iter().find(|page| page.file == file);
            let title = page.map_or("", |page| page.title.as_str());
            let key = keys::label(Action::Open(Overlay::Glossary), app);
            writer.item("  page: ", theme.dim, &format!("{title}, {key}"));
        }
    }
    let count = match run.lints.len() {
        count @ 1.. if !app.is_unsolved() => format!("{count} found"),
        _ => String::new(),
    };
    Content::text(count, writer.lines)
}
