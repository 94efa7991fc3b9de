//! The gradient audit: which share of the parameters is trained at all. A gradient counts when it is finite and not
//! zero; tensors without one are named.

use std::cmp::Reverse;

use ratatui::text::{Line, Span};

use super::large::{self, Picture, Row};
use crate::limits::ZEROS_PERCENT;
use crate::panel::Panel;
use crate::protocol::{GradientRow, Gradients};
use crate::tui::surface::{Surface, letter, missing, short_label, slots};
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::{number, percent, show};

/// How to read it.
pub const READING: &[&str] = &[
    "One profiled step. A tensor counts when its gradient is finite and not zero. The header's `trained` is the share of \
             all parameters in tensors that count: below 100 %, a part of the model never learns.",
    "norm: the root of the sum of squares. zero: the share of a tensor's elements that are exactly zero, where the loss is \
             scaled or some are.",
];

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let ghost = || app.run.ghost()?.gradients.as_ref();
    let shown = app.run.shown().gradients.as_ref().or_else(ghost);
    let aside = shown.map_or(String::new(), |it| format!("step {}", it.step));
    s.open(Panel::Gradients, &aside);
    let mut lines = Vec::new();
    for (slot, run) in slots(app) {
        let Some(it) = &run.gradients else { continue };
        let label = short_label(slot, s.area.width, app, theme);
        lines.push(share(label, it, s.area.width, theme));
    }
    match shown {
        None => lines.push(missing("no gradients were audited yet", theme)),
        Some(it) => lines.extend(detail(it, s.area.width, theme)),
    }
    s.show_panel(Panel::Gradients, lines)
}

/// Which share has a gradient, and where zeros are counted the tensors with the most of them, in large.
pub fn draw_large(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let known = slots(app).filter_map(|(slot, run)| Some((slot, run.gradients.as_ref()?)));
    let row = |name: String, details: String, figure: String, share: f64, good: bool, ink| Row {
        name,
        style: theme.strong,
        details,
        figure,
        figure_style: theme.mark(good).1,
        picture: Picture::Bar(share),
        ink,
    };
    let (mut rows, mut zeros) = (Vec::new(), Vec::new());
    for (slot, it) in known {
        let all = it.params_pct >= 100.0;
        let name = format!("{}: parameters with a gradient", letter(slot));
        let (figure, share) = (
            format!("{}%", percent(it.params_pct)),
            it.params_pct / 100.0,
        );
        let ink = theme.slot(slot);
        rows.push(row(name, app.slot_name(slot), figure, share, all, ink));
        if slot == app.run.active {
            let figure = format!("{}/{}", it.with_grad, it.tensors);
            let share = f64::from(it.with_grad) / f64::from(it.tensors.max(1));
            let name = format!("{}: tensors with a gradient", letter(slot));
            rows.push(row(
                name,
                app.slot_name(slot),
                figure,
                share,
                it.with_grad == it.tensors,
                ink,
            ));
            let counted = it.rows.iter().filter_map(|row| Some((row, row.zero_pct?)));
            zeros = counted
                .filter(|(_, zero)| it.loss_scale.is_some() || *zero > 0.0)
                .collect();
        }
    }
    if rows.is_empty() {
        return s.missing("no gradients were audited yet");
    }
    zeros.sort_by(|a, b| b.1.total_cmp(&a.1));
    let room = usize::from(s.area.height / 4).saturating_sub(rows.len());
    for (of, zero) in zeros.into_iter().take(room) {
        let (name, figure) = (short_name(of).to_owned(), format!("{}%", percent(zero)));
        rows.push(row(
            name,
            "zeros".to_owned(),
            figure,
            zero / 100.0,
            zero < ZEROS_PERCENT,
            theme.bad,
        ));
    }
    large::draw(s, rows)
}

/// `0.attention.o_proj`: without what is the same in every name.
fn short_name(row: &GradientRow) -> &str {
    let short = row.name.trim_start_matches("layer.");
    short.trim_end_matches(".weight")
}

/// The share of the parameters that has a gradient, in figures and as a bar.
fn share(label: Span<'static>, it: &Gradients, width: u16, theme: &Theme) -> Line<'static> {
    let (mark, style) = theme.mark(it.params_pct >= 100.0);
    let says = match width {
        0..40 => " trained ",
        _ => " of parameters ",
    };
    let mut spans = vec![
        label,
        Span::styled(format!("  {mark} {} %", percent(it.params_pct)), style),
        Span::styled(says, theme.text),
    ];
    let room = usize::from(width)
        .saturating_sub(text::width_of(&spans))
        .min(30);
    if room > 4 {
        let bar = theme.symbols.bar(it.params_pct / 100.0, room as u16);
        spans.push(Span::styled(bar, style));
    }
    Line::from(spans)
}

/// Tensors without a gradient first, the largest first; then the others by their norm.
fn detail(it: &Gradients, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let norm = format!(", norm {}", number(it.norm.0));
    let finite = it.norm.0.is_finite();
    let mut lines = vec![Line::from(vec![
        Span::styled(
            format!("{} of {} tensors", it.with_grad, it.tensors),
            theme.text,
        ),
        Span::styled(norm, if finite { theme.dim } else { theme.bad }),
    ])];
    if !it.rows.iter().all(has_gradient) {
        lines.push(Line::styled("without a gradient:", theme.bad));
    }
    let (mut rows, mut without): (Vec<_>, Vec<_>) =
        it.rows.iter().partition(|row| has_gradient(row));
    let size = |row: &&GradientRow| row.norm.map_or(0.0, |norm| norm.0);
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    without.sort_by_key(|row| Reverse(row.parameters));
    // A narrow panel keeps the names and the norms.
    let zeros = it.loss_scale.is_some() || it.rows.iter().any(|row| row.zero_pct > Some(0.0));
    let zero_wide = if zeros { 9 } else { 0 };
    let count_wide = if width >= 44 + zero_wide { 12 } else { 0 };
    let name_wide = usize::from(width).saturating_sub(usize::from(count_wide + zero_wide) + 9);
    if zeros {
        let [count, zero] = [("count", count_wide), ("zero", zero_wide)]
            .map(|(head, wide)| text::right(if wide > 0 { head } else { "" }, usize::from(wide)));
        let head = format!(
            "{}{count}{zero}{}",
            text::left("tensor", name_wide),
            text::right("norm", 9)
        );
        lines.push(Line::styled(head, theme.dim));
    }
    for row in without.into_iter().chain(rows) {
        let norm = row
            .norm
            .map_or_else(|| "none".to_owned(), |it| number(it.0));
        let style = if has_gradient(row) {
            theme.text
        } else {
            theme.bad
        };
        let count = show(row.parameters as f64, 0);
        let fits = text::width(&row.name) <= name_wide;
        let name = if fits { &row.name } else { short_name(row) };
        lines.push(Line::from(vec![
            Span::styled(text::left(name, name_wide), style),
            Span::styled(text::right(&count, usize::from(count_wide)), theme.dim),
            zero(row, usize::from(zero_wide), theme),
            Span::styled(text::right(&norm, 9), style),
        ]));
    }
    lines
}

/// The share of zeros; much of it is a fault.
fn zero(row: &GradientRow, width: usize, theme: &Theme) -> Span<'static> {
    let share = row.zero_pct.filter(|_| width > 0);
    let style = match share {
        Some(share) if share >= ZEROS_PERCENT => theme.bad,
        _ => theme.dim,
    };
    let text = share.map_or(String::new(), |share| format!("{} %", percent(share)));
    Span::styled(text::right(&text, width), style)
}

fn has_gradient(row: &GradientRow) -> bool {
    row.norm
        .is_some_and(|norm| norm.0.is_finite() && norm.0 != 0.0)
}
