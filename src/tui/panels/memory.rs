//! Memory of the training: weights, gradients, moments, and what is left of the peak. No figure where there is none.

use ratatui::text::{Line, Span};

use crate::panel::Panel;
use crate::protocol::Memory;
use crate::tui::surface::{Surface, missing, short_label, slots};
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::bytes;

/// How to read it.
pub const READING: &[&str] = &[
    "Weights, gradients and moments are counted from the tensors, 4 bytes a number; AdamW keeps two moments for each \
             weight. Peak: the most in use at once. The rest: what the backward pass needs of the forward pass, and scratch.",
];

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    s.open(Panel::Memory, "");
    let mut lines = Vec::new();
    for (slot, run) in slots(app) {
        let Some(it) = &run.memory else { continue };
        let size = match (it.peak_bytes, it.current_bytes) {
            (Some(peak), _) => format!("  peak {}", bytes(peak)),
            (None, Some(now)) => format!("  now {}", bytes(now)),
            (None, None) => String::new(),
        };
        let label = short_label(slot, s.area.width, app, theme);
        lines.push(Line::from(vec![label, Span::styled(size, theme.strong)]));
    }
    let ghost = || app.run.ghost()?.memory.as_ref();
    match app.run.shown().memory.as_ref().or_else(ghost) {
        None => lines.push(missing("the engine has not reported it yet", theme)),
        Some(it) => lines.extend(kinds(it, s.area.width, theme)),
    }
    s.show_panel(Panel::Memory, lines)
}

fn kinds(it: &Memory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let known = it.weights + it.gradients + it.moments;
    let rest = it.peak_bytes.map(|peak| peak.saturating_sub(known));
    let whole = it.peak_bytes.unwrap_or(known).max(known).max(1);
    let kinds = [
        ("weights", Some(it.weights)),
        ("gradients", Some(it.gradients)),
        ("moments", Some(it.moments)),
        ("the rest", rest),
    ];
    let mut lines = Vec::new();
    for (at, (name, size)) in kinds.into_iter().enumerate() {
        let Some(size) = size else { continue };
        let (name, figure) = (text::left(name, 11), text::right(&bytes(size), 11));
        let share = size as f64 / whole as f64;
        let bar = theme.symbols.bar(share, width.saturating_sub(26));
        lines.push(Line::from(vec![
            Span::styled(format!("{name}{figure}  "), theme.text),
            Span::styled(bar, theme.phases[at.min(2)]),
        ]));
    }
    lines.extend(it.reason.as_ref().map(|reason| missing(reason, theme)));
    lines
}
