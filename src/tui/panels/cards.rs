//! Cards that open by themselves: an engine that is gone, a run that failed. And the verdict of a paired run, which several panels
//! show.

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

/// The card for the present state over an area, and where it lies.
pub(super) fn of_failure(app: &App, theme: &Theme, area: Rect) -> Option<(Content<'static>, Rect)> {
    let (title, reason, said) = match &app.shown_run().state {
        RunState::EngineGone { reason } => {
            let step = app.shown_run().step();
            let step = step.map_or_else(String::new, |step| format!(" at step {step}"));
            let said = format!(
                "The run ended{step}. What it showed stays on the screen, and your progress is kept."
            );
            ("the engine is gone", reason, said)
        }
        RunState::Failed { kind, reason } => {
            let (title, said) = match kind {
                FailedKind::Usage | FailedKind::Refused => (
                    "this cannot run",
                    "Nothing was started; the stage is as it was.",
                ),
                FailedKind::Device => ("no such device", "Choose another device from the list."),
                FailedKind::Internal => ("the engine failed", "The log has its last messages."),
            };
            (title, reason, said.to_owned())
        }
        _ => return None,
    };
    let columns = area.width.min(64);
    let mut w = ProseWriter::new(app, theme, usize::from(columns.saturating_sub(4)));
    w.plain(reason, theme.strong);
    let most = area.height.saturating_sub(6).max(1);
    w.lines.truncate(usize::from(most));
    w.blank();
    w.text(&said);
    w.blank();
    w.sentence(&next_move(app), theme.text);
    let place = centred(area, columns, height(w.lines.len() + 2));
    Some((Content::titled(title, w.lines), place))
}

/// The verdict of a paired run, while it is measured and after: what differs, what was found, the limits, and the interval at
/// each look.
pub fn verdict(app: &App, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(pair) = app.shown_pair() else {
        if !app.shown_bench().pairing() {
            return Vec::new();
        }
        let mut lines = titled(app, width, theme);
        lines.push(Line::styled("pairs: both warm up", theme.dim));
        return lines;
    };
    let n = pair.n;
    let ((mark, style), said) = match (pair.verdict, pair.low, pair.high) {
        (Verdict::Faster, ..) => (theme.mark(true), "B is faster"),
        (Verdict::Slower, ..) => ((theme.symbols.warning, theme.bad), "B is slower"),
        (Verdict::Same, ..) => (("=", theme.text), "less than 1 % apart"),
        (Verdict::Unclear, ..) if !pair.done => (theme.waiting(), "no verdict yet"),
        // A verdict asks for more than an interval beside 1.
        (_, Some(low), _) if low > 1.0 => (theme.waiting(), "B may be faster"),
        (_, _, Some(high)) if high < 1.0 => (theme.waiting(), "B may be slower"),
        _ => (theme.waiting(), "no clear difference"),
    };
    let said = match pair.verdict {
        Verdict::Unclear => format!("{said} (n={})", pair.judged()),
        _ => said.to_owned(),
    };
    let mut head = vec![Span::styled(format!("{mark} {said}"), style)];
    if n > 0 {
        let per = pair.tokens.map_or("", |_| " per token");
        let ratio = three_decimals(pair.ratio);
        let interval = pair.low.zip(pair.high);
        let [long, short] = match interval.map(|(low, high)| [low, high].map(three_decimals)) {
            Some([low, high]) => [
                format!("  95 % between {low} and {high}"),
                format!("  95 %: {low}–{high}"),
            ],
            None if pair.judged() >= 10 => ["  no interval yet", ""].map(str::to_owned),
            None => ["  no interval below 10 pairs", ""].map(str::to_owned),
        };
        // Each pair has a ratio, and this is the middle of theirs; the quotient of the medians below is another figure.
        let wordings = [(" pair by pair", long.clone()), ("", long), ("", short)];
        let wordings = wordings.map(|(by_pair, interval)| {
            let shown = Span::styled(format!("  {ratio}x{per}{by_pair}"), theme.strong);
            let said = [shown, Span::styled(interval, theme.text)];
            Line::from_iter(head.iter().cloned().chain(said))
        });
        head = text::longest(wordings, width).spans;
    }
    let progress = if pair.done {
        let tokens = pair
            .tokens
            .map(|them| them.map(|n| format!(" for {n} tokens")));
        let of = tokens.unwrap_or_default();
        let [a, b] = [&pair.a_ms, &pair.b_ms].map(|it| ms(it.median));
        let good = app.mode.pairs_with_good();
        let other = if good { "known good" } else { "A" };
        // How far from 1 the interval reaches.
        let beyond = pair
            .low
            .zip(pair.high)
            .map(|(low, high)| 100.0 * (1.0 - low).abs().max((high - 1.0).abs()))
            .filter(|_| pair.verdict == Verdict::Unclear);
        let [still, apart] = match beyond {
            Some(it) => [
                format!("; a difference above {it:.1} % is ruled out"),
                format!("; at most {it:.1} % apart"),
            ],
            None => Default::default(),
        };
        let both = match pair.tokens {
            Some([a, b]) => format!("; {a} and {b} tokens"),
            None => String::new(),
        };
        let forms = [
            format!(
                "{n} pairs; medians {other} {a} ms{}, B {b} ms{}{still}",
                of[0], of[1]
            ),
            format!("{n} pairs; medians {other} {a} ms, B {b} ms{both}{apart}"),
            format!("{n} pairs; {other} {a} ms, B {b} ms{both}{apart}"),
        ];
        text::longest(forms, width).to_string()
    } else {
        let (next, most, limit) = (pair.wanted, pair.limit_pairs, pair.limit_s);
        format!("pair {n}, next look at {next}; at most {most} pairs, {limit:.0} s")
    };
    let progress = vec![Span::styled(progress, theme.dim)];
    let mut lines = titled(app, width, theme);
    lines.extend(text::whole(head, width));
    lines.extend(text::whole(progress, width));
    lines.push(looks(pair, width, theme));
    lines
}

/// The interval at each look so far, then the looks to come: `10: 0.912–1.320  20: 0.981–1.152  40  80`.
fn looks(pair: &Pair, width: usize, theme: &Theme) -> Line<'static> {
    let look = |look: &Look| match look.low.zip(look.high) {
        Some((low, high)) => {
            let [low, high] = [low, high].map(three_decimals);
            Span::styled(format!("{}: {low}–{high}  ", look.pairs), theme.text)
        }
        None => Span::styled(format!("{}  ", look.pairs), theme.dim),
    };
    let made = pair
        .looks
        .iter()
        .filter(|it| !pair.done || it.pairs <= pair.n);
    let mut spans: Vec<_> = made.map(look).collect();
    let head = Span::styled("looks  ", theme.dim);
    // The earliest looks say least.
    while head.width() + text::width_of(&spans) > width && spans.len() > 1 {
        spans.remove(0);
    }
    spans.insert(0, head);
    Line::from(spans)
}

/// What the learner's B has that A has not.
fn titled(app: &App, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    if !app.mode.is_live() || app.shown_bench().comparison.b_equals_a() {
        return Vec::new();
    }
    if app.mode.pairs_with_good() {
        let said = "B against a known-good configuration, not against A";
        return text::wrap(&[Span::styled(said, theme.text)], width, "", "   ");
    }
    let all = app.shown_bench().comparison.differences();
    let all: Vec<&str> = all.split(", ").collect();
    // One line, so that the verdict below it stays on the screen.
    let wordings = (0..=all.len()).rev().map(|named| {
        let said = match (named, all.len() - named) {
            (_, 0) => all.join(", "),
            (0, n) => format!("{n} knobs changed"),
            (_, n) => format!("{}, and {n} more", all[..named].join(", ")),
        };
        let said = Span::styled(said, theme.text);
        Line::from(vec![Span::styled("B: ", theme.b), said])
    });
    vec![text::longest(wordings, width)]
}

fn three_decimals(ratio: f64) -> String {
    match ratio {
        _ if ratio.is_finite() && ratio < 100.0 => format!("{ratio:.3}"),
        _ => number(ratio),
    }
}
