//! The panel of the exponents shows how large the elements of all gradients are: a column for each power of two or for a few of them, and
//! the share of elements that are exactly zero. The gradients panel says which tensors they belong to.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Widget;

use super::content::Content;
use crate::app::App;
use crate::tui::surface::measured;
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::thresholds::ZEROS_PERCENT;
use protocol::units::{percent, show};
use protocol::{Exponents, Gradients};

/// The explanation of the panel.
pub(super) const READING: &[&str] = &[
    "All elements of the gradients of all weights in one profiled step, on a GPU a sample of each tensor, without the loss scale. \
             They are f32. Right: larger. A column is as high as its share. Zeros have no exponent: they are counted in the first line.",
    "f16's smallest number is 2^-24: in an operand of a product, values below half of that become zero. The sums of products are \
             f32 and may lie left of it. The loss scale moves that limit to the left.",
];

/// The rows of the columns and their axis in the panel's box.
const TALLEST: u16 = 17;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let audit = measured(app, |run| run.gradients.as_ref()).map(|known| known.shown.1);
    let (audit, sizes) = match audit.and_then(|audit| Some((audit, audit.exponents.as_ref()?))) {
        Some((audit, sizes)) if !sizes.counts.is_empty() => (audit, sizes),
        _ => return Content::missing("no gradients were audited yet", theme, area),
    };
    let head = head(audit, sizes, area.width, theme);
    let mut content = Content::text(format!("step {}", audit.step), vec![head]);
    content.plot(None, (area.width, TALLEST), move |area, buffer| {
        let rows = area.height.saturating_sub(1).max(1);
        Text::from(columns(sizes, area.width, rows, theme)).render(area, buffer);
    });
    content
}

/// Returns the first line: the share of zeros and, as far as there is room, the loss scale and the number of steps left out.
fn head(audit: &Gradients, sizes: &Exponents, width: u16, theme: &Theme) -> Line<'static> {
    let share = 100.0 * sizes.zeros as f64 / sizes.total().max(1) as f64;
    let (mark, style) = theme.mark(share < ZEROS_PERCENT);
    let mut parts = vec![(
        0,
        Span::styled(format!("{mark} zeros {} %", percent(share)), style),
    )];
    if let Some(factor) = audit.loss_scale {
        let text = format!(", loss scale {}", show(factor, 0));
        parts.push((1, Span::styled(text, theme.dim)));
    }
    if let Some(skipped) = audit.skipped {
        let text = format!(", {skipped} left out");
        parts.push((2, Span::styled(text, theme.dim)));
    }
    text::ranked(parts, usize::from(width))
}

/// Returns the chart: a column for each power of two or for a few of them, and an axis with the powers at both ends and f16's least number.
fn columns(sizes: &Exponents, width: u16, rows: u16, theme: &Theme) -> Vec<Line<'static>> {
    let bins = sizes.counts.len();
    let wide = usize::from(width).max(1);
    // Where room is short, a column counts several powers; where it is ample, a column is several cells wide.
    let powers_per_column = bins.div_ceil(wide);
    let cells_per_column = (wide / bins).clamp(1, 3);
    let heights: Vec<f64> = sizes
        .counts
        .chunks(powers_per_column)
        .map(|counts| counts.iter().map(|count| *count as f64).sum())
        .collect();
    let mut lines: Vec<Line<'static>> = theme
        .symbols
        .columns(&heights, rows)
        .into_iter()
        .map(|row| {
            let cells = row.into_iter().map(|cell| cell.repeat(cells_per_column));
            Line::styled(cells.collect::<String>(), theme.phases[1])
        })
        .collect();
    let position = |exponent: i32| {
        let bin = (exponent - Exponents::LOWEST).max(0) as usize;
        bin / powers_per_column * cells_per_column
    };
    let mut axis = String::new();
    let end = position(Exponents::HIGHEST) + cells_per_column;
    for (column, label) in [
        (0, format!("2^{}", Exponents::LOWEST)),
        (
            position(-24),
            format!("{}2^-24, f16's least", theme.symbols.vertical),
        ),
        (end.saturating_sub(3), format!("2^{}", Exponents::HIGHEST)),
    ] {
        let used = text::width(&axis);
        if used <= column && column + text::width(&label) <= wide {
            axis.push_str(&" ".repeat(column - used));
            axis.push_str(&label);
        }
    }
    lines.push(Line::styled(axis, theme.dim));
    lines
}
