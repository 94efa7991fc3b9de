//! The card that opens by itself when an engine is gone or a run failed, and the verdict of a paired run, which several panels show:
//!
//! ```text
//! B: model.init normal-0.02
//! ✓ B is faster  1.138x pair by pair  95 %: 1.121–1.154
//! 40 pairs; medians A 205.0 ms, B 180.1 ms
//! looks  10: 0.991–1.262  20: 1.083–1.207  40: 1.121–1.154
//! ```

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::guide::next_move;
use crate::app::{App, RunState};
use crate::tui::prose::ProseWriter;
use crate::tui::surface::{centred, height};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::units::{ms, number};
use protocol::{FailedKind, Look, Pair, Verdict};

/// Returns the card of a failed run or a lost engine and its place in `area`; `None` while nothing has failed.
pub(super) fn failure(app: &App, theme: &Theme, area: Rect) -> Option<(Content<'static>, Rect)> {
    let (title, reason, advice) = match &app.shown_run().state {
        RunState::EngineGone { reason } => {
            let at_step = match app.shown_run().step() {
                Some(step) => format!(" at step {step}"),
                None => String::new(),
            };
            let advice = format!(
                "The run ended{at_step}. What it showed stays on the screen, and your progress is kept."
            );
            ("the engine is gone", reason, advice)
        }
        RunState::Failed { kind, reason } => {
            let (title, advice) = match kind {
                FailedKind::Usage | FailedKind::Refused => (
                    "this cannot run",
                    "Nothing was started; the stage is as it was.",
                ),
                FailedKind::Device => ("no such device", "Choose another device from the list."),
                FailedKind::Internal => ("the engine failed", "The log has its last messages."),
            };
            (title, reason, advice.to_owned())
        }
        _ => return None,
    };
    let columns = area.width.min(64);
    let mut writer = ProseWriter::new(app, theme, usize::from(columns.saturating_sub(4)));
    writer.plain(reason, theme.strong);
    let most = area.height.saturating_sub(6).max(1);
    writer.lines.truncate(usize::from(most));
    writer.blank();
    writer.text(&advice);
    writer.blank();
    writer.sentence(&next_move(app), theme.text);
    let place = centred(area, columns, height(writer.lines.len() + 2));
    Some((Content::titled(title, writer.lines), place))
}

/// Returns the verdict of a paired run, during and after the measurement: the difference between A and B, the finding, the progress, and the
/// interval at each look. Empty where nothing is measured in pairs.
pub fn verdict(app: &App, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(pair) = app.shown_pair() else {
        if !app.shown_bench().pairing() {
            return Vec::new();
        }
        let mut lines = difference(app, width, theme);
        lines.push(Line::styled("pairs: both warm up", theme.dim));
        return lines;
    };
    let mut lines = difference(app, width, theme);
    lines.extend(text::wrapped_if_wide(finding(pair, width, theme), width));
    let progress = if pair.done {
        medians(pair, app, width)
    } else {
        format!(
            "pair {}, next verdict at {}; at most {} pairs, {:.0} s",
            pair.n, pair.wanted, pair.limit_pairs, pair.limit_s
        )
    };
    let progress = vec![Span::styled(progress, theme.dim)];
    lines.extend(text::wrapped_if_wide(progress, width));
    lines.push(looks(pair, width, theme));
    lines
}

/// Returns the finding with its ratio and interval, as in `✓ B is faster  1.138x pair by pair  95 %: 1.121–1.154`.
fn finding(pair: &Pair, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    let ((mark, style), finding) = match (pair.verdict, pair.low, pair.high) {
        (Verdict::Faster, ..) => (theme.mark(true), "B is faster"),
        (Verdict::Slower, ..) => ((theme.symbols.warning, theme.bad), "B is slower"),
        (Verdict::Same, ..) => (("=", theme.text), "less than 1 % apart"),
        (Verdict::Unclear, ..) if !pair.done => (theme.waiting(), "no verdict yet"),
        // An interval that excludes 1 is not yet a verdict.
        (_, Some(low), _) if low > 1.0 => (theme.waiting(), "B may be faster"),
        (_, _, Some(high)) if high < 1.0 => (theme.waiting(), "B may be slower"),
        _ => (theme.waiting(), "no clear difference"),
    };
    let judged = match pair.verdict {
        Verdict::Unclear => format!(" (n={})", pair.judged()),
        _ => String::new(),
    };
    let head = format!("{mark} {finding}{judged}");
    let mut parts = vec![(0, Span::styled(head, style))];
    if pair.n > 0 {
        let per = if pair.tokens.is_some() {
            " per token"
        } else {
            ""
        };
        let ratio = format!("  {}x{per}", three_decimals(pair.ratio));
        parts.push((0, Span::styled(ratio, theme.strong)));
        // The ratio is the median of the pairs' ratios. The quotient of the medians below is another figure.
        parts.push((2, Span::styled(" pair by pair", theme.strong)));
        parts.push(match (pair.low, pair.high) {
            (Some(low), Some(high)) => {
                let [low, high] = [low, high].map(three_decimals);
                (0, Span::styled(format!("  95 %: {low}–{high}"), theme.text))
            }
            _ if pair.judged() >= 10 => (1, Span::styled("  no interval yet", theme.text)),
            _ => (1, Span::styled("  no interval below 10 pairs", theme.text)),
        });
    }
    text::ranked(parts, width).spans
}

/// Returns the medians of A and B at the end of a measurement and, without a verdict, the largest difference that is still possible, in the
/// longest wording that fits.
fn medians(pair: &Pair, app: &App, width: usize) -> String {
    let n = pair.n;
    let with_good = app.mode.pairs_with_good();
    let other = if with_good { "known good" } else { "A" };
    let a = ms(pair.a_ms.median);
    let b = ms(pair.b_ms.median);
    let ([for_a, for_b], both) = match pair.tokens {
        Some([a, b]) => (
            [a, b].map(|tokens| format!(" for {tokens} tokens")),
            format!("; {a} and {b} tokens"),
        ),
        None => Default::default(),
    };
    let [ruled_out, apart] = match (pair.verdict, pair.low, pair.high) {
        (Verdict::Unclear, Some(low), Some(high)) => {
            // The end of the interval that is farther from 1.
            let percent = 100.0 * (1.0 - low).abs().max((high - 1.0).abs());
            [
                format!("; a difference above {percent:.1} % is ruled out"),
                format!("; at most {percent:.1} % apart"),
            ]
        }
        _ => Default::default(),
    };
    let wordings = [
        format!("{n} pairs; medians {other} {a} ms{for_a}, B {b} ms{for_b}{ruled_out}"),
        format!("{n} pairs; medians {other} {a} ms, B {b} ms{both}{apart}"),
        format!("{n} pairs; {other} {a} ms, B {b} ms{both}{apart}"),
    ];
    text::first_fitting(wordings, width).to_string()
}

/// Returns the interval at each look so far, then the looks to come, as in `10: 0.912–1.320  20: 0.981–1.152  40  80`.
fn looks(pair: &Pair, width: usize, theme: &Theme) -> Line<'static> {
    let look_span = |look: &Look| match look.low.zip(look.high) {
        Some((low, high)) => {
            let [low, high] = [low, high].map(three_decimals);
            Span::styled(format!("{}: {low}–{high}  ", look.pairs), theme.text)
        }
        None => Span::styled(format!("{}  ", look.pairs), theme.dim),
    };
    // After the end there are no looks to come.
    let looks: Vec<&Look> = pair
        .looks
        .iter()
        .filter(|look| !pair.done || look.pairs <= pair.n)
        .collect();
    let mut parts = vec![(0, Span::styled("looks  ", theme.dim))];
    // Where columns are short, the earliest looks are left out, because their intervals are the widest.
    let ranks = (0..looks.len() as u8).rev();
    parts.extend(ranks.zip(looks.into_iter().map(look_span)));
    text::ranked(parts, width)
}

/// Returns the line that names the knobs in which the learner's B differs from A. Empty where nothing differs, and where no run of this
/// program is shown.
fn difference(app: &App, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    if !app.mode.is_live() || app.shown_bench().comparison.b_equals_a() {
        return Vec::new();
    }
    if app.mode.pairs_with_good() {
        let text = "B against a known-good configuration, not against A";
        return text::wrap(&[Span::styled(text, theme.text)], width, "", "   ");
    }
    let differences = app.shown_bench().comparison.differences();
    let knobs: Vec<&str> = differences.split(", ").collect();
    // As many knobs are named as fit on one line, so that the verdict below stays on the screen.
    let wordings = (0..=knobs.len()).rev().map(|named| {
        let names = knobs[..named].join(", ");
        let text = match (named, knobs.len() - named) {
            (_, 0) => names,
            (0, more) => format!("{more} knobs changed"),
            (_, more) => format!("{names}, and {more} more"),
        };
        Line::from(vec![
            Span::styled("B: ", theme.b),
            Span::styled(text, theme.text),
        ])
    });
    vec![text::first_fitting(wordings, width)]
}

/// Returns a ratio with three decimals, which are as many as its interval can tell apart. Large ratios have fewer.
fn three_decimals(ratio: f64) -> String {
    if ratio.is_finite() && ratio < 100.0 {
        format!("{ratio:.3}")
    } else {
        number(ratio)
    }
}
