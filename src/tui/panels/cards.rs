//! Cards over the panels that nobody opens: an engine that is gone, a run that could not be done. And the verdict of a
//! paired run, which several panels show.

use ratatui::text::{Line, Span};

use crate::app::guide::next_move;
use crate::app::{App, RunState};
use crate::protocol::{FailedKind, Verdict};
use crate::tui::prose::{Writer, sentence};
use crate::tui::surface::{Surface, centred, height};
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::{ms, number};

/// Draws the card that the state calls for, if any.
pub fn draw(s: &mut Surface<'_, '_>) {
    match &s.app.run.state {
        RunState::EngineGone { reason } => {
            let step = s.app.step();
            let step = step.map_or_else(String::new, |step| format!(" at step {step}"));
            let said = format!(
                "The run ended{step}. What it showed stays on the screen, and your progress is kept."
            );
            failure(s, "the engine is gone", reason, &said);
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
                FailedKind::Internal => ("the engine failed", "The log has its last messages."),
            };
            failure(s, title, reason, said);
        }
        _ => {}
    }
}

fn failure(s: &mut Surface<'_, '_>, title: &str, reason: &str, said: &str) {
    let (app, theme) = (s.app, s.theme);
    let columns = s.area.width.min(64);
    let mut w = Writer::new(app, theme, usize::from(columns.saturating_sub(4)));
    w.plain(reason, theme.strong);
    w.lines
        .truncate(usize::from(s.area.height.saturating_sub(6)).max(1));
    w.blank();
    w.plain(said, theme.text);
    w.blank();
    w.lines
        .push(sentence(&next_move(app), app, theme, theme.text));
    let rows = height(w.lines.len()).saturating_add(2);
    s.area = centred(s.area, columns, rows);
    s.card(title, "", theme.bad);
    s.show(s.area, w.lines, 0);
}

/// The verdict of a paired run, while it is measured and after.
pub fn verdict(app: &App, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(pair) = &app.study.pair else {
        let waiting = Line::styled("pairs: the first one is running", theme.dim);
        return app.run.pairing.then_some(waiting).into_iter().collect();
    };
    let (good, warning) = (theme.symbols.good, theme.symbols.warning);
    let n = pair.n;
    let (mark, style, said) = match pair.verdict {
        Verdict::Faster => (good, theme.good, "fixed is faster".to_owned()),
        Verdict::Slower => (warning, theme.bad, "fixed is slower".to_owned()),
        Verdict::Same => ("=", theme.text, "no difference beyond noise".to_owned()),
        Verdict::Unclear if pair.done => (
            theme.symbols.ghost,
            theme.warning,
            format!("no clear difference (n={n})"),
        ),
        Verdict::Unclear => (
            theme.symbols.ghost,
            theme.warning,
            format!("no verdict yet (n={n})"),
        ),
    };
    let mut head = vec![Span::styled(format!("{mark} {said}"), style)];
    if n > 0 {
        let [ratio, low, high] = [pair.ratio, pair.low, pair.high].map(three_decimals);
        head.push(Span::styled(format!("  {ratio}x"), theme.strong));
        let long = format!("  95 % between {low} and {high}");
        let fits = text::width_of(&head) + text::width(&long) <= width;
        let short = format!("  95 %: {low}–{high}");
        head.push(Span::styled(if fits { long } else { short }, theme.text));
    }
    let progress = if pair.done {
        let (a, b) = (ms(pair.a_ms.median), ms(pair.b_ms.median));
        // How far from 1 the interval reaches.
        let beyond = 100.0 * (1.0 - pair.low).abs().max((pair.high - 1.0).abs());
        let still = match pair.verdict {
            Verdict::Unclear => format!("; a difference beyond {beyond:.1} % is ruled out"),
            _ => String::new(),
        };
        format!("{n} pairs, the median of A over B; A {a} ms, B {b} ms{still}")
    } else {
        let left = pair.remaining_s.clamp(0.0, 1e6);
        format!("pair {n} of {}, about {left:.0} s left", pair.wanted)
    };
    let mut lines = vec![Line::from(head), Line::styled(progress, theme.dim)];
    if !pair.done && pair.wanted > 0 && width > 20 {
        let share = f64::from(n) / f64::from(pair.wanted);
        let bar = theme.symbols.bar(share, width.min(40) as u16);
        lines.push(Line::styled(bar, theme.b));
    }
    lines
}

fn three_decimals(ratio: f64) -> String {
    match ratio {
        _ if ratio.is_finite() && ratio < 100.0 => format!("{ratio:.3}"),
        _ => number(ratio),
    }
}
