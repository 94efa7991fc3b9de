//! Whether the parts of a step add up to the step: forward + backward + optimizer + residual, signed. A residual above
//! five percent is marked: some time is unaccounted for, or was counted before the work was done.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{missing, ms, open, show, slot_label, slots};
use crate::app::{App, Panel};
use crate::protocol::{Clocks, Phases, Slot};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Share of the step above which the residual is marked.
const TOLERANCE: f64 = 0.05;
const NAMES: [&str; 4] = ["forward", "backward", "optimizer", "residual"];

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = open(frame, area, Panel::Ledger, "ms of one step", app, theme);
    let mut lines = Vec::new();
    let known: Vec<(Slot, Phases)> = slots(app)
        .filter_map(|(slot, run)| Some((slot, run.phases().filter(|p| p.step > 0.0)?)))
        .collect();
    if known.is_empty() {
        lines.push(missing("no step has reported its phases yet", theme));
    }
    // The running slot first: it is the one to look at when there is room for one only.
    for (slot, phases) in known.iter().filter(|(slot, _)| *slot == app.run.active) {
        lines.extend(detail(*slot, phases, inner.width, app, theme));
    }
    for (slot, phases) in known.iter().filter(|(slot, _)| *slot != app.run.active) {
        lines.push(stacked(*slot, phases, inner.width, app, theme));
    }
    lines.push(clocks(app, theme));
    show(
        frame,
        inner,
        lines,
        app.view.scroll_of(Panel::Ledger),
        theme,
    )
}

/// One line per phase, and whether they close.
fn detail(slot: Slot, phases: &Phases, width: u16, app: &App, theme: &Theme) -> Vec<Line<'static>> {
    let parts = [
        phases.forward,
        phases.backward,
        phases.optimizer,
        phases.residual,
    ];
    let share = phases.residual / phases.step;
    let open = share.abs() > TOLERANCE;
    let mut lines = vec![stacked(slot, phases, width, app, theme)];
    let room = width.saturating_sub(33);
    for (at, value) in parts.into_iter().enumerate() {
        let style = if at == 3 && open {
            theme.bad
        } else {
            theme.phases[at]
        };
        let bar = theme.symbols.fills[at].repeat(
            usize::from((value.abs() / phases.step * f64::from(room)).round() as u16)
                .min(usize::from(room)),
        );
        let plain = if at == 3 && open {
            theme.bad
        } else {
            theme.text
        };
        let figure = if at == 3 {
            format!("{value:+.2}")
        } else {
            ms(value)
        };
        lines.push(Line::from(vec![
            Span::styled(text::left(NAMES[at], 11), plain),
            Span::styled(text::right(&figure, 10), plain),
            Span::styled(
                text::right(&format!("{:.1} %", 100.0 * value / phases.step), 9),
                plain,
            ),
            Span::raw("  "),
            Span::styled(bar, style),
        ]));
    }
    let sum = phases.forward + phases.backward + phases.optimizer;
    let (mark, style, says) = match share {
        s if s > TOLERANCE => (
            theme.symbols.bad,
            theme.bad,
            "time is missing from the phases",
        ),
        s if s < -TOLERANCE => (
            theme.symbols.bad,
            theme.bad,
            "the phases claim more than the step took",
        ),
        _ => (
            theme.symbols.good,
            theme.good,
            "the phases add up to the step",
        ),
    };
    lines.push(Line::from(vec![
        Span::styled(format!("{mark} {says}"), style),
        Span::styled(
            format!(": {} of {} ms", ms(sum), ms(phases.step)),
            theme.dim,
        ),
    ]));
    lines
}

/// The step as one bar, whose parts have their own fillings.
fn stacked(slot: Slot, phases: &Phases, width: u16, app: &App, theme: &Theme) -> Line<'static> {
    let mut spans = slot_label(slot, app, theme);
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(11_usize.saturating_sub(used) + 1)));
    let room = usize::from(width).saturating_sub(used.max(11) + 13);
    let parts = [
        phases.forward,
        phases.backward,
        phases.optimizer,
        phases.residual.max(0.0),
    ];
    // Bars are cut from one length, so that rounding neither gains nor loses a cell.
    let whole = parts
        .iter()
        .sum::<f64>()
        .max(phases.step)
        .max(f64::MIN_POSITIVE);
    let mut until = 0.0;
    let mut drawn = 0;
    for (at, part) in parts.into_iter().enumerate() {
        until += if part.is_finite() { part.max(0.0) } else { 0.0 };
        let end = ((until / whole * room as f64).round() as usize).min(room);
        let style = if at == 3 { theme.bad } else { theme.phases[at] };
        spans.push(Span::styled(
            theme.symbols.fills[at].repeat(end.saturating_sub(drawn)),
            style,
        ));
        drawn = end.max(drawn);
    }
    spans.push(Span::styled(
        format!(" {} ms", ms(phases.step)),
        theme.strong,
    ));
    Line::from(spans)
}

/// Three readings of one step, where the run took them.
fn clocks(app: &App, theme: &Theme) -> Line<'static> {
    let Some(Clocks {
        enqueue,
        host_sync,
        device,
    }) = app.run.shown().evidence.as_ref().and_then(|it| it.clocks)
    else {
        return Line::styled("three clocks: not measured yet", theme.dim);
    };
    let device = device.map_or_else(|| "not measured".to_owned(), ms);
    let bold = |text: String| Span::styled(text, theme.strong);
    Line::from(vec![
        Span::styled("clocks: enqueue ", theme.dim),
        bold(ms(enqueue)),
        Span::styled(" · with sync ", theme.dim),
        bold(ms(host_sync)),
        Span::styled(" · device ", theme.dim),
        bold(device),
    ])
}
