//! The panel of the memory shows the memory of the training: weights, gradients, moments, and the rest of the peak where the device reports
//! a peak.
//!
//! ```text
//! ○ A broken  peak 29.7 MiB measured
//! ● B fixed  peak 29.7 MiB measured
//! weights        4.2 MiB  ██████
//! gradients      4.2 MiB  ██████
//! moments        8.5 MiB  ████████████
//! the rest      12.7 MiB  ██████████████████
//! ```

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture, Renderer, missing};
use crate::app::App;
use crate::tui::surface::{measured, short_label};
use crate::tui::theme::Theme;
use protocol::Slot;
use protocol::units::bytes;

pub(super) const EXPLANATION: &[&str] = &[
    "Weights, gradients and moments are counted from the tensors, 4 bytes a number; \
     AdamW keeps two moments for each weight. Peak: the most in use at once, measured. \
     The rest: what the backward pass needs of the forward pass, and scratch.",
];

/// Returns the peaks of both runs and the parts of the shown run's peak.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(memory) = measured(app, |run| run.memory.as_ref()) else {
        return Content::missing("the engine has not reported it yet", theme, area);
    };
    let mut content = Content::default();
    for (slot, memory) in &memory.all {
        let size = match (memory.peak_bytes, memory.current_bytes) {
            (Some(peak), _) => format!("  peak {} measured", bytes(peak)),
            (None, Some(now)) => format!("  now {} measured", bytes(now)),
            (None, None) => String::new(),
        };
        let label = short_label(*slot, area.width, app, theme);
        content.lines([Line::from(vec![label, Span::styled(size, theme.strong)])]);
    }
    let (slot, shown) = memory.shown;
    let peaks: Vec<(Slot, u64)> = memory
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
            content.figure(Renderer::Large, figure);
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
