//! Memory of the training: weights, gradients, moments, and what is left of the peak. No figure where there is none.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{bytes, missing, open, show, slot_label, slot_letter, slots};
use crate::app::{App, Panel};
use crate::protocol::Memory;
use crate::tui::text;
use crate::tui::theme::Theme;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = open(frame, area, Panel::Memory, "", app, theme);
    let label = if inner.width < 34 {
        slot_letter
    } else {
        slot_label
    };
    let mut lines = Vec::new();
    for (slot, run) in slots(app) {
        let Some(it) = &run.memory else { continue };
        let mut spans = label(slot, app, theme);
        match (it.peak_bytes, it.current_bytes) {
            (Some(peak), _) => spans.push(Span::styled(
                format!("  peak {}", bytes(peak)),
                theme.strong,
            )),
            (None, Some(now)) => {
                spans.push(Span::styled(format!("  now {}", bytes(now)), theme.strong))
            }
            (None, None) => {}
        }
        lines.push(Line::from(spans));
    }
    match app
        .run
        .shown()
        .memory
        .as_ref()
        .or_else(|| app.run.ghost()?.memory.as_ref())
    {
        None => lines.push(missing("the engine has not reported it yet", theme)),
        Some(it) => lines.extend(kinds(it, inner.width, theme)),
    }
    show(
        frame,
        inner,
        lines,
        app.view.scroll_of(Panel::Memory),
        theme,
    )
}

fn kinds(it: &Memory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let known = it.weights + it.gradients + it.moments;
    let rest = it.peak_bytes.map(|peak| peak.saturating_sub(known));
    let whole = it.peak_bytes.unwrap_or(known).max(known).max(1);
    let room = width.saturating_sub(26);
    let kinds = [
        ("weights", it.weights),
        ("gradients", it.gradients),
        ("moments", it.moments),
    ];
    let mut lines: Vec<Line<'static>> = kinds
        .into_iter()
        .chain(rest.map(|rest| ("the rest", rest)))
        .enumerate()
        .map(|(at, (name, size))| {
            Line::from(vec![
                Span::styled(text::left(name, 11), theme.text),
                Span::styled(text::right(&bytes(size), 11), theme.text),
                Span::raw("  "),
                Span::styled(
                    theme.symbols.bar(size as f64 / whole as f64, room),
                    theme.phases[at.min(2)],
                ),
            ])
        })
        .collect();
    if let Some(reason) = &it.reason {
        lines.push(missing(reason, theme));
    }
    lines
}
