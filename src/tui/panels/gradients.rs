//! The gradient audit: which share of the parameters is trained at all. A gradient counts when it is finite and not
//! zero; tensors without one are named.

use std::cmp::Reverse;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Content, Figure, Picture, Size};
use crate::app::App;
use crate::tui::surface::{measured, short_label};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::thresholds::ZEROS_PERCENT;
use protocol::units::{number, percent, show};
use protocol::{GradientRow, Gradients};

/// How to read it.
pub(super) const READING: &[&str] = &[
    "One profiled step. A tensor counts when its gradient is finite and not zero. The header's `trained` is the share of \
             all parameters in tensors that count: below 100 %, a part of the model never learns.",
    "norm: the root of the sum of squares. zero: the share of a tensor's elements that are exactly zero, shown where the \
             loss is scaled or some are zero.",
];

/// Columns of a tensor's name, at least, and of its figures.
const NAME: usize = 23;
const COLUMNS: [FigureColumn; 3] = [("count", 12), ("zero", 9), ("norm", 9)];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(known) = measured(app, |run| run.gradients.as_ref()) else {
        return Content::missing("no gradients were audited yet", theme, area);
    };
    let (_, it) = known.shown;
    let mut content = Content::beside(format!("step {}", it.step));
    for (slot, it) in known.all {
        let label = short_label(slot, area.width, app, theme);
        content.lines([share(label, it, area.width, theme)]);
        let (of, ink) = (app.shown_run().slot_name(slot), theme.slot(slot));
        let name = format!("{}: parameters with a gradient", slot.into_str());
        let value = format!("{} %", percent(it.params_pct));
        let figure = large(name, value, it.params_pct / 100.0, is_all(it), ink);
        content.figure(Size::Large, figure.details(&of));
        if slot == app.shown_run().active {
            let name = format!("{}: tensors with a gradient", slot.into_str());
            let value = format!("{}/{}", it.with_grad, it.tensors);
            let share = f64::from(it.with_grad) / f64::from(it.tensors.max(1));
            let figure = large(name, value, share, it.with_grad == it.tensors, ink);
            content.figure(Size::Large, figure.details(of));
        }
    }
    // Where zeros are counted, the tensors with the most of them.
    let counted = it.rows.iter().filter_map(|row| Some((row, row.zero_pct?)));
    let counted = counted.filter(|(_, zero)| it.loss_scale.is_some() || *zero > 0.0);
    let mut zeros: Vec<(&GradientRow, f64)> = counted.collect();
    zeros.sort_by(|a, b| b.1.total_cmp(&a.1));
    let taken = content.blocks.iter();
    let taken = taken.filter(|(size, _)| *size == Some(Size::Large)).count();
    let room = usize::from(area.height / 4).saturating_sub(taken);
    for (row, zero) in zeros.into_iter().take(room) {
        let (name, value) = (short_name(row).to_owned(), format!("{} %", percent(zero)));
        let figure = large(name, value, zero / 100.0, zero < ZEROS_PERCENT, theme.bad);
        content.figure(Size::Large, figure.details("zeros"));
    }
    content.lines(detail(it, area.width, theme));
    content
}

fn large(name: String, value: String, share: f64, good: bool, ink: Style) -> Figure {
    let mut figure = Figure::new(name, value, Picture::Bar(share), ink);
    figure.values[0].good = Some(good);
    figure
}

/// Every parameter has a gradient.
fn is_all(it: &Gradients) -> bool {
    it.params_pct >= 100.0
}

/// `0.attention.o_proj`: without what is the same in every name.
fn short_name(row: &GradientRow) -> &str {
    let short = row.name.trim_start_matches("layer.");
    short.trim_end_matches(".weight")
}

/// The share of the parameters that has a gradient, in figures and as a bar.
fn share(label: Span<'static>, it: &Gradients, width: u16, theme: &Theme) -> Line<'static> {
    let (mark, style) = theme.mark(is_all(it));
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
    let tensors = format!("{} of {} tensors", it.with_grad, it.tensors);
    let mut first = vec![Span::styled(tensors, theme.text)];
    if text::width_of(&first) + text::width(&norm) <= usize::from(width) {
        let style = if finite { theme.dim } else { theme.bad };
        first.push(Span::styled(norm, style));
    }
    let mut lines = vec![Line::from(first)];
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
    let order: &[usize] = if zeros { &[2, 1, 0] } else { &[2, 0] };
    let mut room = usize::from(width).saturating_sub(NAME).max(18);
    let columns = Columns::fit(COLUMNS, order, &mut room);
    let name_wide = usize::from(width).saturating_sub(columns.width());
    if zeros {
        let head = text::left("tensor", name_wide) + &columns.heads();
        lines.push(Line::styled(head, theme.dim));
    }
    let mut names = it.rows.iter().map(|row| text::width(&row.name));
    let whole = names.all(|wide| wide <= name_wide);
    for row in without.into_iter().chain(rows) {
        let norm = row.norm.map_or("none".to_owned(), |norm| number(norm.0));
        let has = has_gradient(row);
        let style = if has { theme.text } else { theme.bad };
        let count = show(row.parameters as f64, 0);
        let name = if whole { &row.name } else { short_name(row) };
        let mut spans = vec![Span::styled(text::name(name, name_wide), style)];
        let figures = [(count, theme.dim), zero(row, theme), (norm, style)];
        spans.extend(columns.cells(figures));
        lines.push(Line::from(spans));
    }
    lines
}

/// The share of zeros; much of it is a fault.
fn zero(row: &GradientRow, theme: &Theme) -> (String, Style) {
    let style = match row.zero_pct {
        Some(share) if share >= ZEROS_PERCENT => theme.bad,
        _ => theme.dim,
    };
    let share = |it: f64| format!("{} %", percent(it));
    (row.zero_pct.map_or(String::new(), share), style)
}

fn has_gradient(row: &GradientRow) -> bool {
    row.norm
        .is_some_and(|norm| norm.0.is_finite() && norm.0 != 0.0)
}
