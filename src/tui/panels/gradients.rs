//! The panel of the gradients shows which share of the parameters is trained at all. A gradient counts when it is finite and not zero.
//! Tensors without such a gradient are named.
//!
//! ```text
//! ● A broken  ✗ 11.5 % of parameters ███▌
//! 1 of 38 tensors, norm 1.84
//! without a gradient:
//! layers.0.mlp.gate.weight           65,536     none
//! layers.0.attention.query.weight    16,384     none
//! embedding.weight                  128,000     1.20
//! ```
//!
//! A narrow panel leaves out the counts, then the beginnings of the names.

use std::cmp::Reverse;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Content, Figure, Picture, Renderer};
use crate::app::App;
use crate::tui::surface::{measured, short_label};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::thresholds::ZEROS_PERCENT;
use protocol::units::{number, percent, show};
use protocol::{GradientRow, Gradients};

pub(super) const EXPLANATION: &[&str] = &[
    "One profiled step. A tensor counts when its gradient is finite and not zero. \
     The header's `trained` is the share of all parameters in tensors that count: below 100 %, a part \
     of the model never learns.",
    "norm: the root of the sum of squares. zero: the share of a tensor's elements that are exactly \
     zero, shown where the loss is scaled or some are zero.",
];

/// The smallest width of a tensor's name.
const MIN_NAME: usize = 23;
/// The columns of a tensor's figures.
const COLUMNS: [FigureColumn; 3] = [("count", 12), ("zero", 9), ("norm", 9)];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(gradients) = measured(app, |run| run.gradients.as_ref()) else {
        return Content::missing("no gradients were audited yet", theme, area);
    };
    let (_, shown) = gradients.shown;
    let mut content = Content::with_aside(format!("step {}", shown.step));
    let mut figures = Vec::new();
    for (slot, audit) in gradients.all {
        let label = short_label(slot, area.width, app, theme);
        content.lines([trained(label, audit, area.width, theme)]);
        let run = app.shown_run().slot_name(slot);
        let ink = theme.slot(slot);
        let name = format!("{}: parameters with a gradient", slot.into_str());
        let value = format!("{} %", percent(audit.params_pct));
        let share = audit.params_pct / 100.0;
        figures.push(judged(name, value, share, trains_all(audit), ink).details(&run));
        if slot == app.shown_run().active {
            let name = format!("{}: tensors with a gradient", slot.into_str());
            let value = format!("{}/{}", audit.with_grad, audit.tensors);
            let share = f64::from(audit.with_grad) / f64::from(audit.tensors.max(1));
            let all_have = audit.with_grad == audit.tensors;
            figures.push(judged(name, value, share, all_have, ink).details(run));
        }
    }
    let free_rows = usize::from(area.height / 4).saturating_sub(figures.len());
    figures.extend(most_zeros(shown, theme).take(free_rows));
    for figure in figures {
        content.figure(Renderer::Large, figure);
    }
    content.lines(tensors(shown, area.width, theme));
    content
}

/// Returns a figure of the large renderer that is right or wrong. `share`, 0 to 1, is the length of its bar.
fn judged(name: String, value: String, share: f64, good: bool, ink: Style) -> Figure {
    let mut figure = Figure::new(name, value, Picture::Bar(share), ink);
    figure.values[0].good = Some(good);
    figure
}

/// Returns a figure for each tensor whose zeros are counted, the tensor with the most zeros first.
fn most_zeros(audit: &Gradients, theme: &Theme) -> impl Iterator<Item = Figure> {
    let mut zeros: Vec<(&GradientRow, f64)> = audit
        .rows
        .iter()
        .filter_map(|row| Some((row, row.zero_pct?)))
        .filter(|(_, zero)| audit.loss_scale.is_some() || *zero > 0.0)
        .collect();
    zeros.sort_by(|(_, zero), (_, other)| other.total_cmp(zero));
    zeros.into_iter().map(|(row, zero)| {
        let name = short_name(row).to_owned();
        let value = format!("{} %", percent(zero));
        let is_good = zero < ZEROS_PERCENT;
        judged(name, value, zero / 100.0, is_good, theme.bad).details("zeros")
    })
}

/// Returns true if every parameter has a gradient.
fn trains_all(audit: &Gradients) -> bool {
    audit.params_pct >= 100.0
}

/// Returns the name of a tensor without the parts that all names share, as in `0.attention.o_proj`.
fn short_name(row: &GradientRow) -> &str {
    let short = row.name.trim_start_matches("layer.");
    short.trim_end_matches(".weight")
}

/// Returns the line of a run: the share of its parameters that has a gradient, in figures and as a bar.
fn trained(label: Span<'static>, audit: &Gradients, width: u16, theme: &Theme) -> Line<'static> {
    let (mark, style) = theme.mark(trains_all(audit));
    let of_what = if width < 40 {
        " trained "
    } else {
        " of parameters "
    };
    let mut spans = vec![
        label,
        Span::styled(format!("  {mark} {} %", percent(audit.params_pct)), style),
        Span::styled(of_what, theme.text),
    ];
    let free = usize::from(width).saturating_sub(text::width_of(&spans));
    if free > 4 {
        let share = audit.params_pct / 100.0;
        let bar = theme.symbols.bar(share, free.min(30) as u16);
        spans.push(Span::styled(bar, style));
    }
    Line::from(spans)
}

/// Returns a summary and a line for each tensor: first the tensors without a gradient, the largest first, then the others by their norm.
fn tensors(audit: &Gradients, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let mut lines = vec![summary(audit, width, theme)];
    let (mut with, mut without): (Vec<_>, Vec<_>) =
        audit.rows.iter().partition(|row| has_gradient(row));
    if !without.is_empty() {
        lines.push(Line::styled("without a gradient:", theme.bad));
    }
    let norm = |row: &GradientRow| row.norm.map_or(0.0, |norm| norm.0);
    with.sort_by(|row, other| norm(other).total_cmp(&norm(row)));
    without.sort_by_key(|row| Reverse(row.parameters));
    // A narrow panel keeps the names and the norms.
    let has_zeros = |row: &GradientRow| row.zero_pct > Some(0.0);
    let zeros = audit.loss_scale.is_some() || audit.rows.iter().any(has_zeros);
    let order: &[usize] = if zeros { &[2, 1, 0] } else { &[2, 0] };
    let mut free = width.saturating_sub(MIN_NAME).max(18);
    let columns = Columns::fit(COLUMNS, order, &mut free);
    let name_width = width.saturating_sub(columns.width());
    if zeros {
        let head = text::left("tensor", name_width) + &columns.heads();
        lines.push(Line::styled(head, theme.dim));
    }
    let fits = |row: &GradientRow| text::width(&row.name) <= name_width;
    let all_fit = audit.rows.iter().all(fits);
    for row in without.into_iter().chain(with) {
        let norm = row.norm.map_or("none".to_owned(), |norm| number(norm.0));
        let style = if has_gradient(row) {
            theme.text
        } else {
            theme.bad
        };
        let count = show(row.parameters as f64, 0);
        let name = if all_fit { &row.name } else { short_name(row) };
        let mut spans = vec![Span::styled(text::name(name, name_width), style)];
        let figures = [(count, theme.dim), zeros_of(row, theme), (norm, style)];
        spans.extend(columns.cells(figures));
        lines.push(Line::from(spans));
    }
    lines
}

/// Returns the line `1 of 38 tensors, norm 1.84`.
fn summary(audit: &Gradients, width: usize, theme: &Theme) -> Line<'static> {
    let tensors = format!("{} of {} tensors", audit.with_grad, audit.tensors);
    let norm = format!(", norm {}", number(audit.norm.0));
    let finite = audit.norm.0.is_finite();
    let style = if finite { theme.dim } else { theme.bad };
    let parts = vec![
        (0, Span::styled(tensors, theme.text)),
        (1, Span::styled(norm, style)),
    ];
    text::ranked(parts, width)
}

/// Returns the share of zeros in a tensor's gradient and its style. A large share is a fault. The text is empty if zeros are not counted.
fn zeros_of(row: &GradientRow, theme: &Theme) -> (String, Style) {
    match row.zero_pct {
        Some(share) if share >= ZEROS_PERCENT => (format!("{} %", percent(share)), theme.bad),
        Some(share) => (format!("{} %", percent(share)), theme.dim),
        None => (String::new(), theme.dim),
    }
}

fn has_gradient(row: &GradientRow) -> bool {
    row.norm
        .is_some_and(|norm| norm.0.is_finite() && norm.0 != 0.0)
}
