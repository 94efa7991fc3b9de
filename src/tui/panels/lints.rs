//! Plausibility lints that hold now: the name, why, and what to do next.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{open, show, slot_label};
use crate::app::{App, Panel};
use crate::tui::text;
use crate::tui::theme::Theme;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let run = app.run.shown();
    let count = match run.lints.len() {
        0 => String::new(),
        1 => "1 holds".to_owned(),
        n => format!("{n} hold"),
    };
    let inner = open(frame, area, Panel::Lints, &count, app, theme);
    let mut lines = Vec::new();
    if run.started.is_none() || run.last.is_none() {
        lines.push(Line::styled("nothing to judge yet", theme.dim));
    } else if app.riddle() || app.mode.is_watching() {
        let said = "left out of this recording: what they would say is yours to find";
        lines.push(Line::styled(said, theme.dim));
    } else if run.lints.is_empty() {
        let mut spans = vec![Span::styled(
            format!("{} nothing implausible in ", theme.symbols.good),
            theme.good,
        )];
        spans.extend(slot_label(app.run.active, app, theme));
        lines.push(Line::from(spans));
    }
    let width = usize::from(inner.width);
    for lint in &run.lints {
        lines.push(Line::styled(
            format!("{} {}", theme.symbols.warning, lint.name),
            theme.bad,
        ));
        lines.extend(text::wrap_item(
            "  why:  ", theme.dim, &lint.why, width, theme.text,
        ));
        lines.extend(text::wrap_item(
            "  next: ", theme.dim, &lint.next, width, theme.text,
        ));
    }
    show(frame, inner, lines, app.view.scroll_of(Panel::Lints), theme)
}
