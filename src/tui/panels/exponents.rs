//! The panel of the exponents shows how large the elements of all gradients are: a column for each power of two, or for several powers in
//! a narrow panel, and the share of elements that are exactly zero.
//!
//! ```text
//! ✗ zeros 42.3 %
//!                        █
//!                      █████
//!  ▁▁▁▁▁▁▁▁▁▂▂▃▄▅███████████▅▄▃▂▂▁▁▁▁
//!  2^-40           │2^-24, f16's least       2^4
//! ```

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

pub(super) const EXPLANATION: &[&str] = &[
    "All elements of the gradients of all weights in one profiled step, on a GPU a sample of each tensor, \
     without the loss scale. They are f32. Right: larger. A column is as high as its share. \
     Zeros have no exponent: they are counted in the first line.",
    "f16's smallest number is 2^-24: in an operand of a product, values below half of that become zero. \
     The sums of products are f32 and may lie left of it. The loss scale moves that limit to the left.",
];

/// The most rows of the plot, with the axis.
const MAX_HEIGHT: u16 = 17;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some((gradients, exponents)) = measured(app, |run| run.gradients.as_ref())
        .map(|measured| measured.shown.1)
        .and_then(|gradients| Some((gradients, gradients.exponents.as_ref()?)))
        .filter(|(_, exponents)| !exponents.counts.is_empty())
    else {
        return Content::missing("no gradients were audited yet", theme, area);
    };
    let head = head(gradients, exponents, area.width, theme);
    let mut content = Content::text(format!("step {}", gradients.step), vec![head]);
    content.plot(None, (area.width, MAX_HEIGHT), move |area, buffer| {
        let rows = area.height.saturating_sub(1).max(1);
        Text::from(columns(exponents, area.width, rows, theme)).render(area, buffer);
    });
    content
}

/// Returns the first line: the share of zeros and, where there is room, the loss scale and the number of steps left out.
fn head(gradients: &Gradients, exponents: &Exponents, width: u16, theme: &Theme) -> Line<'static> {
    let zeros = 100.0 * exponents.zeros as f64 / exponents.total().max(1) as f64;
    let (mark, style) = theme.mark(zeros < ZEROS_PERCENT);
    let text = format!("{mark} zeros {} %", percent(zeros));
    let mut parts = vec![(0, Span::styled(text, style))];
    if let Some(factor) = gradients.loss_scale {
        let text = format!(", loss scale {}", show(factor, 0));
        parts.push((1, Span::styled(text, theme.dim)));
    }
    if let Some(skipped) = gradients.skipped {
        let text = format!(", {skipped} left out");
        parts.push((2, Span::styled(text, theme.dim)));
    }
    text::ranked(parts, usize::from(width))
}

/// Returns the columns, `rows` rows high, and below them an axis with the powers at both ends and f16's smallest number.
fn columns(exponents: &Exponents, width: u16, rows: u16, theme: &Theme) -> Vec<Line<'static>> {
    let powers = exponents.counts.len();
    let width = usize::from(width).max(1);
    // In a narrow panel a column counts several powers, in a wide one it is several cells wide.
    let powers_per_column = powers.div_ceil(width);
    let cells_per_column = (width / powers).clamp(1, 3);
    let heights: Vec<f64> = exponents
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
    let column_of = |exponent: i32| {
        let power = (exponent - Exponents::LOWEST).max(0) as usize;
        power / powers_per_column * cells_per_column
    };
    let end = column_of(Exponents::HIGHEST) + cells_per_column;
    let lowest = format!("2^{}", Exponents::LOWEST);
    let smallest_f16 = format!("{}2^-24, f16's least", theme.symbols.vertical);
    let highest = format!("2^{}", Exponents::HIGHEST);
    let mut axis = String::new();
    for (column, label) in [
        (0, lowest),
        (column_of(-24), smallest_f16),
        (end.saturating_sub(3), highest),
    ] {
        let used = text::width(&axis);
        if used <= column && column + text::width(&label) <= width {
            axis.push_str(&" ".repeat(column - used));
            axis.push_str(&label);
        }
    }
    lines.push(Line::styled(axis, theme.dim));
    lines
}
