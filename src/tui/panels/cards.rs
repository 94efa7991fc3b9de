//! Cards over the panels: the verdict of a paired run, an engine that is gone, a run that could not be done.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{card, ms, sentence, show};
use crate::app::guide::{next_move, number};
use crate::app::{App, RunState};
use crate::protocol::{FailedKind, Pair, Verdict};
use crate::tui::layout::centred;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Draws the card that the state calls for, if any.
pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    match &app.run.state {
        RunState::EngineGone { reason } => {
            let step = app
                .step()
                .map_or_else(String::new, |step| format!(" at step {step}"));
            let said = format!(
                "The run ended{step}. What it showed stays on the screen, and your progress is kept."
            );
            failure(frame, area, "the engine is gone", reason, &said, app, theme);
        }
        RunState::Failed { kind, reason } => {
            let (title, said) = match kind {
                FailedKind::Usage => (
                    "this cannot run",
                    "Nothing was started; the stage is as it was.",
                ),
                FailedKind::Device => (
                    "the device is not here",
                    "Choose another one from the list of devices.",
                ),
                FailedKind::Internal => (
                    "the engine could not do that",
                    "The log has what it said before.",
                ),
            };
            failure(frame, area, title, reason, said, app, theme);
        }
        _ => {}
    }
}

fn failure(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    reason: &str,
    said: &str,
    app: &App,
    theme: &Theme,
) {
    let columns = area.width.min(64);
    let wide = usize::from(columns.saturating_sub(4));
    let mut lines = text::wrap_plain(reason, wide, theme.strong);
    lines.truncate(usize::from(area.height.saturating_sub(6)).max(1));
    lines.push(Line::default());
    lines.extend(text::wrap_plain(said, wide, theme.text));
    lines.push(Line::default());
    lines.push(sentence(&next_move(app), app, theme, theme.text));
    let rows = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .saturating_add(2);
    let inner = card(
        frame,
        centred(area, columns, rows),
        title,
        "",
        theme.bad,
        theme,
    );
    show(frame, inner, lines, 0, theme);
}

/// The verdict of a paired run, while it is measured and after.
pub fn verdict(app: &App, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(pair) = &app.study.pair else {
        let waiting = Line::styled("pairs: the first one is running", theme.dim);
        return if app.run.pairing {
            vec![waiting]
        } else {
            Vec::new()
        };
    };
    let (mark, style, said) = match pair.verdict {
        Verdict::Faster => (theme.symbols.good, theme.good, "fixed is faster".to_owned()),
        Verdict::Slower => (
            theme.symbols.warning,
            theme.bad,
            "fixed is slower".to_owned(),
        ),
        Verdict::Same => ("=", theme.text, "the same within noise".to_owned()),
        Verdict::Unclear if pair.done => ("?", theme.warning, format!("unclear (n={})", pair.n)),
        Verdict::Unclear => ("?", theme.warning, format!("unclear so far (n={})", pair.n)),
    };
    let mut head = vec![Span::styled(format!("{mark} {said}"), style)];
    if pair.n > 0 {
        head.push(Span::styled(
            format!("  {}x", three(pair.ratio)),
            theme.strong,
        ));
        let (low, high) = (three(pair.low), three(pair.high));
        let used: usize = head.iter().map(Span::width).sum();
        let interval = match format!("  95 % between {low} and {high}") {
            it if used + text::width(&it) <= width => it,
            _ => format!("  95 %: {low}–{high}"),
        };
        head.push(Span::styled(interval, theme.text));
    }
    let progress = if pair.done {
        let (a, b) = (ms(pair.a_ms.median), ms(pair.b_ms.median));
        let still = match pair.verdict {
            Verdict::Unclear => format!(
                "; a difference beyond {:.1} % is ruled out",
                100.0 * beyond(pair)
            ),
            _ => String::new(),
        };
        format!(
            "{} pairs, the median of A over B; A {a} ms, B {b} ms{still}",
            pair.n
        )
    } else {
        let left = pair.remaining_s.clamp(0.0, 1e6);
        format!("pair {} of {}, about {left:.0} s left", pair.n, pair.wanted)
    };
    let mut lines = vec![Line::from(head), Line::styled(progress, theme.dim)];
    if !pair.done && pair.wanted > 0 && width > 20 {
        let share = f64::from(pair.n) / f64::from(pair.wanted);
        lines.push(Line::styled(
            theme.symbols.bar(share, (width as u16).min(40)),
            theme.b,
        ));
    }
    lines
}

/// How far from 1 the interval reaches.
fn beyond(pair: &Pair) -> f64 {
    (1.0 - pair.low).abs().max((pair.high - 1.0).abs())
}

fn three(ratio: f64) -> String {
    if ratio.is_finite() && ratio < 100.0 {
        format!("{ratio:.3}")
    } else {
        number(ratio)
    }
}
