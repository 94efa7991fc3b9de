//! The panel of the gradients shows which share of the parameters is trained at all. A gradient counts when it is finite and not zero;
//! tensors without such a gradient are named.

use std::cmp::Reverse;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture, Size};
use crate::app::App;
use crate::tui::surface::{measured, short_label};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::thresholds::ZEROS_PERCENT;
use protocol::units::{number, percent, show};
use protocol::{GradientRow, Gradients};

/// The explanation of the panel.
pub(super) const READING: &[&str] = &[
    "One profiled step. A tensor counts when its gradient is finite and not zero. The header's `trained` is the share of \
             all parameters in tensors that count: below 100 %, a part of the model never learns.",
    "norm: the root of the sum of squares. zero: the share of a tensor's elements that are exactly zero, shown where the \
             loss is scaled or some are zero.",
];

/// The fewest columns of a tensor's name.
const NAME: usize = 23;
/// The columns of a tensor's figures.
const COLUMNS: [FigureColumn; 3] = [("count", 12), ("zero", 9), ("norm", 9)];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(known) = measured(app, |run| run.gradients.as_ref()) else {
        return Content::missing("no gradients were audited yet", theme, area);
    };
    let (_, shown) = known.shown;
    let mut content = Content::beside(format!("step {}", shown.step));
    for (slot, audit) in known.all {
        let label = short_label(slot, area.width, app, theme);
        content.lines([share(label, audit, area.width, theme)]);
        let (run, ink) = (app.shown_run().slot_name(slot), theme.slot(slot));
        let name = format!("{}: parameters with a gradient", slot.into_str());
        let value = format!("{} %", percent(audit.params_pct));
        let share = audit.params_pct / 100.0;
        let figure = large(name, value, share, trains_all(audit), ink);
        content.figure(Size::Large, figure.details(&run));
        if slot == app.shown_run().active {
            let name = format!("{}: tensors with a gradient", slot.into_str());
            let value = format!("{}/{}", audit.with_grad, audit.tensors);
            let share = f64::from(audit.with_grad) / f64::from(audit.tensors.max(1));
            let figure = large(name, value, share, audit.with_grad == audit.tensors, ink);
            content.figure(Size::Large, figure.details(run));
        }
    }
    // Where zeros are counted, the tensors with the most zeros are shown, too.
    let mut zeros: Vec<(&GradientRow, f64)> = shown
        .rows
        .iter()
        .filter_map(|row| Some((row, row.zero_pct?)))
        .filter(|(_, zero)| shown.loss_scale.is_some() || *zero > 0.0)
        .collect();
    zeros.sort_by(|(_, zero), (_, other)| other.total_cmp(zero));
    let is_large = |block: &&(Option<Size>, Block<'_>)| block.0 == Some(Size::Large);
    let taken = content.blocks.iter().filter(is_large).count();
    let room = usize::from(area.height / 4).saturating_sub(taken);
    for (row, zero) in zeros.into_iter().take(room) {
        let name = short_name(row).to_owned();
        let value = format!("{} %", percent(zero));
        let figure = large(name, value, zero / 100.0, zero < ZEROS_PERCENT, theme.bad);
        content.figure(Size::Large, figure.details("zeros"));
    }
    content.lines(detail(shown, area.width, theme));
    content
}

fn large(name: String, value: String, share: f64, good: bool, ink: Style) -> Figure {
    let mut figure = Figure::new(name, value, Picture::Bar(share), ink);
    figure.values[0].good = Some(good);
    figure
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

/// Returns a line with the share of the parameters that has a gradient, in figures and as a bar.
fn share(label: Span<'static>, audit: &Gradients, width: u16, theme: &Theme) -> Line<'static> {
    let (mark, style) = theme.mark(trains_all(audit));
    let words = if width < 40 {
        " trained "
    } else {
        " of parameters "
    };
    let mut spans = vec![
        label,
        Span::styled(format!("  {mark} {} %", percent(audit.params_pct)), style),
        Span::styled(words, theme.text),
    ];
    let room = usize::from(width)
        .saturating_sub(text::width_of(&spans))
        .min(30);
    if room > 4 {
        let bar = theme.symbols.bar(audit.params_pct / 100.0, room as u16);
        spans.push(Span::styled(bar, style));
    }
    Line::from(spans)
}

/// Returns a line for each tensor: first those without a gradient, the largest first, then the others by their norm.
fn detail(audit: &Gradients, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let norm = format!(", norm {}", number(audit.norm.0));
    let tensors = format!("{} of {} tensors", audit.with_grad, audit.tensors);
    let finite = audit.norm.0.is_finite();
    let style = if finite { theme.dim } else { theme.bad };
    let summary = vec![
        (0, Span::styled(tensors, theme.text)),
        (1, Span::styled(norm, style)),
    ];
    let mut lines = vec![text::ranked(summary, usize::from(width))];
    let (mut with, mut without): (Vec<_>, Vec<_>) =
        audit.rows.iter().partition(|row| has_gradient(row));
    if !without.is_empty() {
        lines.push(Line::styled("without a gradient:", theme.bad));
    }
    let norm = |row: &&GradientRow| row.norm.map_or(0.0, |norm| norm.0);
    with.sort_by(|row, other| norm(other).total_cmp(&norm(row)));
    without.sort_by_key(|row| Reverse(row.parameters));
    // A narrow panel keeps the names and the norms.
    let has_zeros = |row: &GradientRow| row.zero_pct > Some(0.0);
    let zeros = audit.loss_scale.is_some() || audit.rows.iter().any(has_zeros);
    let order: &[usize] = if zeros { &[2, 1, 0] } else { &[2, 0] };
    let mut room = usize::from(width).saturating_sub(NAME).max(18);
    let columns = Columns::fit(COLUMNS, order, &mut room);
    let name_wide = usize::from(width).saturating_sub(columns.width());
    if zeros {
        let head = text::left("tensor", name_wide) + &columns.heads();
        lines.push(Line::styled(head, theme.dim));
    }
    let fits = |row: &GradientRow| text::width(&row.name) <= name_wide;
    let whole = audit.rows.iter().all(fits);
    for row in without.into_iter().chain(with) {
        let norm = row.norm.map_or("none".to_owned(), |norm| number(norm.0));
        let style = if has_gradient(row) {
            theme.text
        } else {
            theme.bad
        };
        let count = show(row.parameters as f64, 0);
        let name = if whole { &row.name } else { short_name(row) };
        let mut spans = vec![Span::styled(text::name(name, name_wide), style)];
        let figures = [(count, theme.dim), zero(row, theme), (norm, style)];
        spans.extend(columns.cells(figures));
        lines.push(Line::from(spans));
    }
    lines
}

/// Returns the share of zeros and its style; a large share is a fault.
fn zero(row: &GradientRow, theme: &Theme) -> (String, Style) {
    let style = match row.zero_pct {
        Some(share) if share >= ZEROS_PERCENT => theme.bad,
        _ => theme.dim,
    };
    let share = match row.zero_pct {
        Some(share) => format!("{} %", percent(share)),
        None => String::new(),
    };
    (share, style)
}

fn has_gradient(row: &GradientRow) -> bool {
    row.norm
        .is_some_and(|norm| norm.0.is_finite() && norm.0 != 0.0)
}
