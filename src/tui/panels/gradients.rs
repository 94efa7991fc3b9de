//! The gradient audit: which share of the parameters is trained at all. A gradient counts when it is finite and not
//! zero; tensors without one are named.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{missing, open, show, slot_label, slot_letter, slots};
use crate::app::guide::{number, percent};
use crate::app::{App, Panel};
use crate::course::placeholder::show as count;
use crate::protocol::{GradientRow, Gradients};
use crate::tui::text;
use crate::tui::theme::Theme;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let shown = app
        .run
        .shown()
        .gradients
        .as_ref()
        .or_else(|| app.run.ghost()?.gradients.as_ref());
    let aside = shown.map_or(String::new(), |it| format!("step {}", it.step));
    let inner = open(frame, area, Panel::Gradients, &aside, app, theme);
    let label = if inner.width < 34 {
        slot_letter
    } else {
        slot_label
    };
    let mut lines = Vec::new();
    for (slot, run) in slots(app) {
        let Some(it) = &run.gradients else { continue };
        lines.push(share(label(slot, app, theme), it, inner.width, theme));
    }
    match shown {
        None => lines.push(missing("no gradients were audited yet", theme)),
        Some(it) => lines.extend(detail(it, inner.width, theme)),
    }
    show(
        frame,
        inner,
        lines,
        app.view.scroll_of(Panel::Gradients),
        theme,
    )
}

fn share(
    mut spans: Vec<Span<'static>>,
    it: &Gradients,
    width: u16,
    theme: &Theme,
) -> Line<'static> {
    let whole = it.params_pct >= 100.0 - 1e-9;
    let (mark, style) = if whole {
        (theme.symbols.good, theme.good)
    } else {
        (theme.symbols.bad, theme.bad)
    };
    spans.push(Span::styled(
        format!("  {mark} {} %", percent(it.params_pct)),
        style,
    ));
    spans.push(Span::styled(
        if width >= 40 {
            " of parameters "
        } else {
            " trained "
        },
        theme.text,
    ));
    let used: usize = spans.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(used).min(30) as u16;
    if room > 4 {
        spans.push(Span::styled(
            theme.symbols.bar(it.params_pct / 100.0, room),
            style,
        ));
    }
    Line::from(spans)
}

fn detail(it: &Gradients, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let without: Vec<&GradientRow> = it.rows.iter().filter(|row| !has_gradient(row)).collect();
    let mut lines = vec![Line::from(vec![
        Span::styled(
            format!("{} of {} tensors", it.with_grad, it.tensors),
            theme.text,
        ),
        Span::styled(
            format!(", norm {}", number(it.norm.0)),
            if it.norm.0.is_finite() {
                theme.dim
            } else {
                theme.bad
            },
        ),
    ])];
    if !without.is_empty() {
        lines.push(Line::styled("without a gradient:", theme.bad));
    }
    let mut rows: Vec<&GradientRow> = it.rows.iter().collect();
    // Missing ones first, the largest first; then the largest norms.
    rows.sort_by(|a, b| {
        let norm = |row: &GradientRow| row.norm.map_or(0.0, |norm| norm.0);
        has_gradient(a).cmp(&has_gradient(b)).then_with(|| {
            if has_gradient(a) {
                norm(b).total_cmp(&norm(a))
            } else {
                b.parameters.cmp(&a.parameters)
            }
        })
    });
    // A narrow panel keeps the names and the norms.
    let count_wide = if width >= 44 { 12 } else { 0 };
    let name = usize::from(width).saturating_sub(count_wide + 9);
    lines.extend(rows.into_iter().map(|row| {
        let norm = row
            .norm
            .map_or_else(|| "none".to_owned(), |norm| number(norm.0));
        let style = if has_gradient(row) {
            theme.text
        } else {
            theme.bad
        };
        Line::from(vec![
            Span::styled(text::left(&row.name, name), style),
            Span::styled(
                text::right(&count(row.parameters as f64, 0), count_wide),
                theme.dim,
            ),
            Span::styled(text::right(&norm, 9), style),
        ])
    }));
    lines
}

fn has_gradient(row: &GradientRow) -> bool {
    row.norm
        .is_some_and(|norm| norm.0.is_finite() && norm.0 != 0.0)
}
