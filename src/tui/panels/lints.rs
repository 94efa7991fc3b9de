//! Plausibility lints that fired: the name, why, and what to do next.

use ratatui::text::{Line, Span};

use crate::panel::Panel;
use crate::tui::surface::{Surface, slot_label};

/// How to read it.
pub const READING: &[&str] = &[
    "A lint reports something that a correct run does not do: what was seen, and where to look next. A run without lints may still be wrong.",
];

/// Shown instead of lints that would answer the stage's question.
pub(super) const LATER: &str = "Shown once you have answered what this stage asks.";

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let run = app.run.shown();
    let count = match run.lints.len() {
        _ if app.is_unsolved() => String::new(),
        0 => String::new(),
        n => format!("{n} found"),
    };
    let told = !app.withholds_mark(Panel::Lints.name());
    s.open(Panel::Lints, if told { &count } else { "" });
    let mut w = s.writer();
    if run.started.is_none() || run.last.is_none() {
        w.line("no step to judge yet", theme.dim);
    } else if app.mode.plays_mystery() {
        w.line(
            "left out in a mystery: find out what they would report",
            theme.dim,
        );
        return s.show_panel(Panel::Lints, w.lines);
    } else if app.mode.is_watching() {
        w.line(
            "left out for this recording: find out what they would report",
            theme.dim,
        );
    } else if !told {
        w.plain(LATER, theme.dim);
        return s.show_panel(Panel::Lints, w.lines);
    } else if run.lints.is_empty() {
        let said = format!("{} nothing implausible in ", theme.symbols.good);
        let label = slot_label(app.run.active, app, theme);
        w.lines
            .push(Line::from(vec![Span::styled(said, theme.good), label]));
    }
    for lint in &run.lints {
        w.line(
            format!("{} {}", theme.symbols.warning, lint.name),
            theme.bad,
        );
        w.item("  why:  ", theme.dim, &lint.why, theme.text);
        w.item("  next: ", theme.dim, &lint.next, theme.text);
    }
    s.show_panel(Panel::Lints, w.lines)
}
