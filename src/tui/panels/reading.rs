//! How to read a panel: a few lines at its bottom while it has the whole screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::app::{App, Panel};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Rows that the panel itself keeps in any case.
const KEPT: u16 = 9;

/// Writes the text at the bottom of the area, under a rule, where there is room; the result is what is left.
pub fn below(frame: &mut Frame<'_>, area: Rect, panel: Panel, app: &App, theme: &Theme) -> Rect {
    let columns = usize::from(area.width.min(110));
    let lines: Vec<Line<'static>> = words(panel, app)
        .iter()
        .flat_map(|one| text::wrap_plain(one, columns, theme.dim))
        .collect();
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    if rows == 0 || area.height < rows.saturating_add(1 + KEPT) {
        return area;
    }
    let left = Rect {
        height: area.height - rows - 1,
        ..area
    };
    let rule = Rect {
        y: left.bottom(),
        height: 1,
        ..area
    };
    let title = format!("{0}{0} how to read this ", theme.symbols.rule);
    let rest = usize::from(area.width).saturating_sub(text::width(&title));
    let line = title + &theme.symbols.rule.repeat(rest);
    frame.render_widget(Line::styled(line, theme.dim), rule);
    let below = Rect {
        y: rule.bottom(),
        height: rows,
        ..area
    };
    frame.render_widget(Paragraph::new(lines), below);
    left
}

/// What a learner has to know, a sentence or two a line.
fn words(panel: Panel, app: &App) -> &'static [&'static str] {
    match panel {
        Panel::Lesson => &[],
        Panel::Loss => &[
            "The loss is the mean of -ln(chance given to the token that came next). ln V: all V tokens get the same chance. \
             Entropy: every token gets its true chance; nothing honest stays below.",
            "Step 0 is read before any update: it tells of the initial weights, and of nothing else.",
        ],
        Panel::Throughput if !app.run.shown().synced() => &[
            "This run waits for the device after no step. Such a time ends when the work is handed over, or, once the queue is \
             full, when there is room again: a median of the two is no step time, and samples/s made of it no throughput.",
            "The wall average is: samples since the start, over all the time since then.",
        ],
        Panel::Throughput => &[
            "samples/s: batch / median time of the n steps that were neither warm-up nor profiled. Middle half: a quarter took \
             less, a quarter more; the ± below is half of it, in samples/s. p95: one step in twenty took longer.",
            "Of the last 64 steps: steady, the halves agree within 2 %; drifting, they are over 5 % apart; noisy, the middle half \
             spans over 10 %; settling, neither yet. The wall average counts everything, profiles too.",
        ],
        Panel::Kernels => &[
            "One profiled step, which counts in no median. A row adds up all layers; fwd, bwd, opt: forward, backward, optimizer. \
             Rates follow from shapes, each operand moved once.",
            "% roof: the least time that this device's measured peaks allow, over the time taken. Over 100 %: data lay in a \
             cache, or the peak was measured low. Rest of the step: in no row.",
        ],
        Panel::Roofline => &[
            "Right: more arithmetic per byte moved. Up: faster. The slope is what memory delivers, the flat part what \
             arithmetic can do. roof: how near a letter comes; over 100 % under the slope, data lay in a cache.",
            "Bytes count each operand once, as shapes say. A letter far below the roof moves more than it must, or waits.",
        ],
        Panel::Ledger => &[
            "One step. Residual = step - (forward + backward + optimizer); over 5 % is marked. A phase's timer runs until the \
             calls return: only where it then waits for the device (a sync) is the work inside it.",
            "The header's residual is the median of many steps.",
        ],
        Panel::Gradients => &[
            "One profiled step. A tensor counts when its gradient is finite and not zero. The header's `trained` is the share of \
             all parameters in tensors that count: below 100 %, a part of the model never learns.",
            "norm: the root of the sum of squares.",
        ],
        Panel::Memory => &[
            "Weights, gradients and moments are counted from the tensors, 4 bytes a number; AdamW keeps two moments for each \
             weight. Peak: the most in use at once. The rest: what the backward pass needs of the forward pass, and scratch.",
        ],
        Panel::Evidence => &[
            "Logits: the scores of all tokens. Predicts its input: positions whose highest score is the token they were given. \
             Against reference: the largest difference from a plain model with the same weights, over the largest logit; \
             rounding stays below 1e-4.",
        ],
        Panel::Lints => &[
            "A lint is something that a sound run does not do: what was seen, and where to look next. A run in which none holds may still be wrong.",
        ],
    }
}
