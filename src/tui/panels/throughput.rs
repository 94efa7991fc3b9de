//! The panel of the throughput shows how fast the runs train: medians of unprofiled steps with their spread, A beside B, the state of the
//! measurement, and the wall average, which counts everything. A time that does not end at a sync is marked.
//!
//! ```text
//!            samples/s  step ms    middle half     n      state
//! ○ A broken     44.35    180.4    178.0–183.1    40     steady
//! ● B fixed      50.12    160.0    158.1–163.2    60     steady
//! 2,838 tokens/s  ·  13.10 of 98.00 GFLOP/s (13.4 %)
//! step times ▃▆▃█▅▂▇▄▁▇▄▁▆▃█▅▂█▅▁▄▁▆▃█▅▂█▅▂▇▄▁▆▃  177.1–182.8 ms
//! ```
//!
//! On small screens and on a projector the rate stands in large numerals instead of the table.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::cards;
use super::content::{Block, Content, Renderer, missing};
use crate::app::{App, ThemeName};
use crate::tui::digits;
use crate::tui::surface::{is_strip, slot_label, slots};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::story::RunStory;
use protocol::units::{duration, ms, number, percent, show};
use protocol::{ENQUEUE, Throughput, TimingState};

/// Returns the explanation of the panel, which depends on whether the run waits for the device.
pub(super) fn explanation(app: &App) -> &'static [&'static str] {
    if app.shown_run().shown().synced() {
        &[
            "samples/s: batch / median time of the n steps that were neither warm-up nor profiled; \
             by wall time where no step waits for the device. \
             Middle half: a quarter took less, a quarter more; the ± below is half of it, in samples/s; \
             p95: one step in twenty took longer.",
            "Of the last 64 steps: steady, the halves agree within 2 %; drifting, they are over 5 % apart; \
             noisy, the middle half spans over 10 %; settling, neither yet.",
        ]
    } else {
        &[
            "One step in eight of this run, or fewer, ends at a sync, which the ledger shows. \
             A time here ends when the work is submitted or, once the queue is full, when it has room \
             again: a median of such times is not the step time, and samples/s from it are not the \
             throughput.",
            "By wall time: samples since the start, over all the time since then. That is the throughput.",
        ]
    }
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let run = app.shown_run().shown();
    let width = usize::from(area.width);
    let Some(throughput) = &run.throughput else {
        return Content::text("", without_rate(app, theme, area));
    };
    let clock = match throughput.clock.as_str() {
        ENQUEUE => "enqueue only, ending at no device sync",
        "host-sync" => "host, ending at a device sync",
        other => other,
    };
    let mut content = Content::with_aside(format!("clock: {clock}"));
    let rate = throughput.samples_per_s;
    let short = if rate >= 100.0 {
        format!("{rate:.0}")
    } else {
        number(rate)
    };
    let columns = digits::width(&short).unwrap_or(0) + 1;
    let style = theme.slot(app.shown_run().active);
    let numerals = |text: String| {
        move |area: Rect, buffer: &mut Buffer| digits::fill(buffer, area, &text, style)
    };
    let wants_numerals = is_strip(app) || app.view.theme == ThemeName::Projector;
    if wants_numerals && area.height >= digits::ROWS && !theme.symbols.ascii {
        content.plot(Renderer::Normal, (columns, area.height), numerals(short));
        let beside = area.width.saturating_sub(columns + 1);
        let mut lines = beside_numerals(throughput, app, theme, beside);
        lines.truncate(area.height.into());
        content.lines(lines);
    } else {
        let mut lines = table(app, theme, area);
        lines.push(rates(run, width, theme));
        lines.extend(cards::verdict(app, width, theme));
        lines.extend(sparkline(run, area.width, theme));
        content.lines(lines);
    }
    // The other run's rate is left out: beside this one it would look like a comparison, and only pairs compare.
    let label = Line::from(vec![
        slot_label(app.shown_run().active, app, theme),
        Span::styled("   samples/s", theme.strong),
        Span::styled(format!("   {}", throughput.state), theme.dim),
    ]);
    content.add(Renderer::Large, Block::Lines(vec![label]));
    // The rate has as many decimals as in the sentence of a beat.
    let with_decimal = numerals(show(rate, 1));
    content.plot(Renderer::Large, (area.width, area.height), with_decimal);
    content
}

/// Returns the lines of the panel while the shown run has no rate yet: the other run's rate, and the verdict of pairs, which can be measured
/// before the run has a median of its own.
fn without_rate(app: &App, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let mut lines = if slots(app).any(|(_, run)| run.throughput.is_some()) {
        table(app, theme, area)
    } else {
        missing(why_no_rate(app), theme, area)
    };
    let verdict = cards::verdict(app, usize::from(area.width), theme);
    if is_strip(app) && !verdict.is_empty() {
        return verdict;
    }
    lines.extend(verdict);
    lines.extend(sparkline(app.shown_run().shown(), area.width, theme));
    lines
}

/// Returns a row for each run and, in a panel of more than two rows, the headings above them.
fn table(app: &App, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let mut free = usize::from(area.width).saturating_sub(NAME_WIDTH);
    let columns = Columns::fit(COLUMNS, &[0, 1, 2, 3, 4, 5], &mut free);
    let mut lines = Vec::new();
    if area.height > 2 {
        // These rows measure each run alone, unlike the pairs below.
        let paired = app.shown_pair().is_some();
        let alone = if paired { "each alone" } else { "" };
        let head = text::left(alone, NAME_WIDTH) + &columns.heads();
        lines.push(Line::styled(head, theme.dim));
    }
    let pairing = app.shown_bench().pairing();
    for (slot, run) in slots(app) {
        let label = slot_label(slot, app, theme);
        lines.push(row(label, run, pairing, &columns, theme));
    }
    lines
}

/// Returns the reason why no run has a rate.
fn why_no_rate(app: &App) -> &'static str {
    if app.shown_run().shown().last.is_some() {
        "these steps are warm-up"
    } else {
        "no step has been trained yet"
    }
}

/// The width of a run's name.
const NAME_WIDTH: usize = 10;
/// The columns of the figures, the most important first.
const COLUMNS: [FigureColumn; 6] = [
    ("samples/s", 10),
    ("step ms", 9),
    ("middle half", 15),
    ("n", 6),
    ("state", 11),
    ("p95", 9),
];

/// Returns the row of a run. While both runs are measured in pairs (`pairing`), a run has no rate of its own.
fn row(
    label: Span<'static>,
    run: &RunStory,
    pairing: bool,
    columns: &Columns<6>,
    theme: &Theme,
) -> Line<'static> {
    let gap = Span::raw(" ".repeat(NAME_WIDTH.saturating_sub(label.width())));
    let mut spans = vec![label, gap];
    let Some(throughput) = &run.throughput else {
        let why = if pairing || run.of_pairs {
            "  in pairs, no run of its own"
        } else {
            "  not measured: warm-up"
        };
        spans.push(Span::styled(why, theme.dim));
        return Line::from(spans);
    };
    let (state, style) = state(throughput, theme);
    let times = throughput.step_ms;
    let figures = [
        (number(throughput.samples_per_s), theme.strong),
        (ms(times.median), theme.text),
        (middle_half(throughput), theme.text),
        (times.n.to_string(), theme.text),
        (state, style),
        (ms(times.p95), theme.text),
    ];
    spans.extend(columns.cells(figures));
    Line::from(spans)
}

/// Returns the quartiles of the step time, as in `178.0–183.1`.
fn middle_half(throughput: &Throughput) -> String {
    let times = throughput.step_ms;
    format!("{}–{}", ms(times.p25), ms(times.p75))
}

/// Returns the state of the measurement, such as `steady`, with its style.
fn state(throughput: &Throughput, theme: &Theme) -> (String, Style) {
    if throughput.clock == ENQUEUE {
        return ("no sync".to_owned(), theme.warning);
    }
    let style = match throughput.state {
        TimingState::Steady => theme.good,
        TimingState::Warming | TimingState::Settling => theme.dim,
        TimingState::Drifting | TimingState::Noisy => theme.warning,
    };
    (throughput.state.to_string(), style)
}

/// Returns a line with tokens/s, the share of the peak and the wall average, as many of them as fit. For a run without syncs the line has the
/// rate at which work is submitted.
fn rates(run: &RunStory, columns: usize, theme: &Theme) -> Line<'static> {
    let Some(throughput) = &run.throughput else {
        return Line::default();
    };
    if let Some(rate) = throughput.enqueue_samples_per_s {
        let short = format!("no sync: submitted at {} samples/s", number(rate));
        let long = short.replace("no sync", "these step times end at no sync");
        let submitted = text::first_fitting([long, short], columns).to_string();
        let parts = [submitted.as_str(), "samples/s by wall time"];
        return Line::styled(text::joined(parts, columns, "  ·  "), theme.dim);
    }
    let mut parts = Vec::new();
    // A watched program may not report how many tokens a step has.
    if throughput.tokens_per_s > 0.0 {
        parts.push(format!("{} tokens/s", number(throughput.tokens_per_s)));
    }
    parts.push(match (throughput.flops, run.peak_flops()) {
        (Some(flops), Some((peak, Some(_)))) if flops > peak => {
            let flops = number(flops / 1e9);
            format!("{flops} GFLOP/s; the peak was measured under load")
        }
        (Some(flops), Some((peak, _))) if peak > 0.0 => format!(
            "{} of {} GFLOP/s ({} %)",
            number(flops / 1e9),
            number(peak / 1e9),
            percent(100.0 * flops / peak)
        ),
        (Some(flops), _) => format!("{} GFLOP/s", number(flops / 1e9)),
        (None, _) => "FLOP/s not measured".to_owned(),
    });
    let wall = number(throughput.wall_samples_per_s);
    parts.push(format!("wall average {wall} samples/s, profiles included"));
    let texts = parts.iter().map(String::as_str);
    Line::styled(text::joined(texts, columns, "  ·  "), theme.dim)
}

/// Returns recent step times as a row of heights between the shortest and the longest time. `None` without step times.
fn sparkline(run: &RunStory, width: u16, theme: &Theme) -> Option<Line<'static>> {
    const NAME: &str = "step times ";
    /// The columns of the two times after the row.
    const ENDS: usize = 22;
    let cells = usize::from(width).saturating_sub(NAME.len() + ENDS);
    let skip = run.step_ms.recent().len().saturating_sub(cells);
    let recent: Vec<f64> = run.step_ms.recent().skip(skip).map(|(_, ms)| ms).collect();
    let low = recent.iter().copied().reduce(f64::min)?;
    let high = recent.iter().copied().reduce(f64::max)?;
    let curve: String = recent
        .iter()
        .map(|ms| theme.symbols.spark(*ms, low, high))
        .collect();
    // Where one unit does not suit both times, each has its own.
    let ends = if low > 0.0 && low < 0.1 && high >= 0.1 {
        format!("  {} – {}", duration(low), duration(high))
    } else {
        format!("  {}–{} ms", ms(low), ms(high))
    };
    let style = theme.slot(run.description.slot);
    Some(Line::from(vec![
        Span::styled(NAME, theme.dim),
        Span::styled(curve, style),
        Span::styled(ends, theme.dim),
    ]))
}

/// Returns the lines beside the large numerals: the state and the spread of the measurement, the verdict of pairs, and the other run's rate.
fn beside_numerals(
    throughput: &Throughput,
    app: &App,
    theme: &Theme,
    columns: u16,
) -> Vec<Line<'static>> {
    let run = app.shown_run().shown();
    let width = usize::from(columns);
    let times = throughput.step_ms;
    let (state, style) = state(throughput, theme);
    let head = Line::from(vec![
        Span::styled("samples/s  ", theme.strong),
        slot_label(app.shown_run().active, app, theme),
        Span::styled(format!("  {state}  n {}", times.n), style),
    ]);
    let mut lines = vec![head];
    lines.extend(cards::verdict(app, width, theme));
    if lines.len() == 1 {
        let median = ms(times.median);
        let p95 = ms(times.p95);
        let half = middle_half(throughput);
        let spread = format!("step {median} ms, middle half {half}, p95 {p95}");
        lines.push(Line::styled(spread, theme.text));
    }
    lines.push(
        if let Some(other) = app.shown_run().other()
            && let Some(throughput) = &other.throughput
        {
            let rate = number(throughput.samples_per_s);
            let paired = app.shown_pair().is_some();
            let alone = if paired { " alone" } else { "" };
            let n = throughput.step_ms.n;
            let figures = format!("  {rate} samples/s{alone}, n {n}");
            let label = slot_label(other.description.slot, app, theme);
            Line::from(vec![label, Span::styled(figures, theme.dim)])
        } else {
            rates(run, width, theme)
        },
    );
    lines.extend(sparkline(run, columns, theme));
    lines
}
