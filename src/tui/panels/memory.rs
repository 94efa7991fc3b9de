//! Memory of the training: weights, gradients, moments, and what is left of the peak. No figure where there is none.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::large::{self, Picture, Row};
use crate::panel::Panel;
use crate::protocol::{Memory, Slot};
use crate::tui::surface::{Surface, missing, short_label, slots, take_bottom};
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

/// The peaks of both runs, and what the shown one is made of, in large.
pub fn draw_large(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let ghost = || Some((app.run.active.other(), app.run.ghost()?.memory.as_ref()?));
    let shown = app.run.shown().memory.as_ref();
    let Some((slot, it)) = shown.map(|it| (app.run.active, it)).or_else(ghost) else {
        return s.missing("the engine has not reported it yet");
    };
    let row = |name: String, details: &str, size: u64, whole: u64, ink: Style| Row {
        name,
        style: theme.strong,
        details: details.to_owned(),
        figure: bytes(size),
        figure_style: theme.strong,
        picture: Picture::Bar(size as f64 / whole.max(1) as f64),
        ink,
    };
    let peaks = slots(app).filter_map(|(slot, run)| Some((slot, run.memory.as_ref()?.peak_bytes?)));
    let peaks: Vec<(Slot, u64)> = peaks.collect();
    let most = peaks.iter().map(|(_, peak)| *peak).max().unwrap_or(0);
    let mut rows = Vec::new();
    if peaks.len() > 1 {
        let peak = |(slot, peak)| {
            row(
                format!("{} peak", app.slot_name(slot)),
                "",
                peak,
                most,
                theme.slot(slot),
            )
        };
        rows.extend(peaks.into_iter().map(peak));
    }
    let (kinds, whole) = parts(it);
    let of = |(at, name, size): (usize, &str, u64)| {
        row(
            name.to_owned(),
            &app.slot_name(slot),
            size,
            whole.max(most),
            theme.phases[at.min(2)],
        )
    };
    rows.extend(kinds.into_iter().map(of));
    if let Some(reason) = &it.reason {
        let below = take_bottom(&mut s.area, 1);
        s.put(below, missing(reason, theme));
    }
    large::draw(s, rows)
}

/// What the memory is made of, as far as it is known, and the whole of it.
fn parts(it: &Memory) -> (Vec<(usize, &'static str, u64)>, u64) {
    let known = it.weights + it.gradients + it.moments;
    let rest = it.peak_bytes.map(|peak| peak.saturating_sub(known));
    let kinds = [
        ("weights", Some(it.weights)),
        ("gradients", Some(it.gradients)),
        ("moments", Some(it.moments)),
        ("the rest", rest),
    ];
    let kinds = kinds.into_iter().enumerate();
    let kinds = kinds.filter_map(|(at, (name, size))| Some((at, name, size?)));
    (
        kinds.collect(),
        it.peak_bytes.unwrap_or(known).max(known).max(1),
    )
}

fn kinds(it: &Memory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let (kinds, whole) = parts(it);
    let mut lines = Vec::new();
    for (at, name, size) in kinds {
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
