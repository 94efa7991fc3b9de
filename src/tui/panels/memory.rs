//! The panel of the memory shows the memory of the training: weights, gradients, moments, and the rest of the peak, as far as the device
//! reports it.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture, Size, missing};
use crate::app::App;
use crate::tui::surface::{measured, short_label};
use crate::tui::theme::Theme;
use protocol::Slot;
use protocol::units::bytes;

/// The explanation of the panel.
pub(super) const READING: &[&str] = &[
    "Weights, gradients and moments are counted from the tensors, 4 bytes a number; AdamW keeps two moments for each \
             weight. Peak: the most in use at once, measured. The rest: what the backward pass needs of the forward pass, and scratch.",
];

/// Returns the peaks of both runs and the parts of the shown run's peak.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut content = Content::default();
    let Some(known) = measured(app, |run| run.memory.as_ref()) else {
        return Content::missing("the engine has not reported it yet", theme, area);
    };
    for (slot, memory) in &known.all {
        let size = match (memory.peak_bytes, memory.current_bytes) {
            (Some(peak), _) => format!("  peak {} measured", bytes(peak)),
            (None, Some(now)) => format!("  now {} measured", bytes(now)),
            (None, None) => String::new(),
        };
        let label = short_label(*slot, area.width, app, theme);
        content.lines([Line::from(vec![label, Span::styled(size, theme.strong)])]);
    }
    let (slot, shown) = known.shown;
    let peaks: Vec<(Slot, u64)> = known
        .all
        .iter()
        .filter_map(|(slot, memory)| Some((*slot, memory.peak_bytes?)))
        .collect();
    let counted = shown.weights + shown.gradients + shown.moments;
    // All bars have one scale.
    let largest = peaks.iter().map(|(_, peak)| *peak).fold(counted, u64::max);
    let bar = |size: u64| Picture::Bar(size as f64 / largest.max(1) as f64);
    if peaks.len() > 1 {
        for (slot, peak) in &peaks {
            let name = format!("{} peak", app.shown_run().slot_name(*slot));
            let figure = Figure::new(name, bytes(*peak), bar(*peak), theme.slot(*slot));
            content.figure(Size::Large, figure);
        }
    }
    let rest = shown.peak_bytes.map(|peak| peak.saturating_sub(counted));
    let [forward, backward, optimizer, _] = theme.phases;
    let kinds = [
        ("weights", Some(shown.weights), forward),
        ("gradients", Some(shown.gradients), backward),
        ("moments", Some(shown.moments), optimizer),
        ("the rest", rest, optimizer),
    ];
    for (name, size, ink) in kinds {
        let Some(size) = size else { continue };
        let figure = Figure::new(name, bytes(size), bar(size), ink);
        content.figure(None, figure.details(app.shown_run().slot_name(slot)));
    }
    if let Some(reason) = &shown.reason {
        content.add(None, Block::Lines(missing(reason, theme, area)));
    }
    content
}
