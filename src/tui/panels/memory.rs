//! Memory of the training: weights, gradients, moments, and the rest of the peak, as far as the device reports it.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture, Size, missing};
use crate::app::App;
use crate::tui::surface::{measured, short_label};
use crate::tui::theme::Theme;
use protocol::Slot;
use protocol::units::bytes;

/// How to read it.
pub(super) const READING: &[&str] = &[
    "Weights, gradients and moments are counted from the tensors, 4 bytes a number; AdamW keeps two moments for each \
             weight. Peak: the most in use at once, measured. The rest: what the backward pass needs of the forward pass, and scratch.",
];

/// The peaks of both runs, and what that of the shown one is made of.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut content = Content::default();
    let Some(known) = measured(app, |run| run.memory.as_ref()) else {
        return Content::missing("the engine has not reported it yet", theme, area);
    };
    for (slot, it) in &known.all {
        let size = match (it.peak_bytes, it.current_bytes) {
            (Some(peak), _) => format!("  peak {} measured", bytes(peak)),
            (None, Some(now)) => format!("  now {} measured", bytes(now)),
            (None, None) => String::new(),
        };
        let label = short_label(*slot, area.width, app, theme);
        content.lines([Line::from(vec![label, Span::styled(size, theme.strong)])]);
    }
    let (slot, it) = known.shown;
    let peaks = known.all.iter();
    let peaks = peaks.filter_map(|(slot, it)| Some((*slot, it.peak_bytes?)));
    let known = it.weights + it.gradients + it.moments;
    let peaks: Vec<(Slot, u64)> = peaks.collect();
    // One scale for the whole list.
    let most = peaks.iter().map(|(_, peak)| *peak).fold(known, u64::max);
    let bar = |size: u64| Picture::Bar(size as f64 / most.max(1) as f64);
    for (slot, peak) in peaks.iter().filter(|_| peaks.len() > 1) {
        let name = format!("{} peak", app.shown_run().slot_name(*slot));
        let figure = Figure::new(name, bytes(*peak), bar(*peak), theme.slot(*slot));
        content.figure(Size::Large, figure);
    }
    let rest = it.peak_bytes.map(|peak| peak.saturating_sub(known));
    let kinds = [
        ("weights", Some(it.weights)),
        ("gradients", Some(it.gradients)),
        ("moments", Some(it.moments)),
        ("the rest", rest),
    ];
    for (at, (name, size)) in kinds.into_iter().enumerate() {
        let Some(size) = size else { continue };
        let ink = theme.phases[at.min(2)];
        let figure = Figure::new(name, bytes(size), bar(size), ink);
        content.figure(None, figure.details(app.shown_run().slot_name(slot)));
    }
    let reason = it.reason.as_ref();
    let reason = reason.map_or_else(Vec::new, |it| missing(it, theme, area));
    content.add(None, Block::Lines(reason));
    content
}
