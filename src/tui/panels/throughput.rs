//! How fast it trains: medians of unprofiled steps with their spread, A beside B, the state of the measurement, and
//! the wall average, which counts everything. A time that does not end at a sync is marked.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::cards;
use super::content::{Block, Content, Size, missing};
use crate::app::{App, ThemeName};
use crate::tui::digits;
use crate::tui::surface::{is_strip, joined, slot_label, slots};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::story::RunStory;
use protocol::units::{duration, ms, number, percent, show};
use protocol::{ENQUEUE, Throughput, TimingState};

/// How to read it, which depends on whether the run waits for the device.
pub(super) fn reading(app: &App) -> &'static [&'static str] {
    match app.shown_run().shown().synced() {
        false => &[
            "One step in eight of this run, or fewer, ends at a sync, which the ledger shows. A time here ends when the work is submitted or, once \
             the queue is full, when it has room again: a median of such times is not the step time, and samples/s from it are not the \
             throughput.",
            "By wall time: samples since the start, over all the time since then. That is the throughput.",
        ],
        true => &[
            "samples/s: batch / median time of the n steps that were neither warm-up nor profiled; by wall time where no step waits for the device. Middle half: a quarter took \
             less, a quarter more; the ± below is half of it, in samples/s; p95: one step in twenty took longer.",
            "Of the last 64 steps: steady, the halves agree within 2 %; drifting, they are over 5 % apart; noisy, the middle half \
             spans over 10 %; settling, neither yet.",
        ],
    }
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let run = app.shown_run().shown();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let Some(it) = &run.throughput else {
        return Content::text("", without(app, theme, area));
    };
    let clock = match it.clock.as_str() {
        ENQUEUE => "enqueue only, ending at no device sync",
        "host-sync" => "host, ending at a device sync",
        other => other,
    };
    let mut content = Content::beside(format!("clock: {clock}"));
    let rate = it.samples_per_s;
    let short = match rate >= 100.0 {
        true => format!("{rate:.0}"),
        false => number(rate),
    };
    let columns = digits::width(&short).unwrap_or(0) + 1;
    let style = theme.slot(app.shown_run().active);
    let numerals = |said: String| {
        move |area: Rect, buffer: &mut Buffer| digits::fill(buffer, area, &said, style)
    };
    let from_afar = is_strip(app) || app.view.theme == ThemeName::Projector;
    if from_afar && area.height >= digits::ROWS && !theme.symbols.ascii {
        content.plot(Size::Normal, (columns, area.height), numerals(short));
        let columns = area.width.saturating_sub(columns + 1);
        let mut lines = beside_numerals(it, app, theme, columns);
        lines.truncate(height);
        content.lines(lines);
    } else {
        let mut lines = table(app, theme, area);
        lines.push(rates(run, width, theme));
        lines.extend(cards::verdict(app, width, theme));
        lines.extend(sparkline(run, area.width, theme));
        if let Some(means) = means(it) {
            let means = text::wrapped(means, theme.dim, width);
            let fits = lines.len() + means.len() <= height;
            lines.extend(means.into_iter().filter(|_| fits));
        }
        content.lines(lines);
    }
    // The other run's rate beside it would look like a comparison, which only pairs are.
    let label = Line::from(vec![
        slot_label(app.shown_run().active, app, theme),
        Span::styled("   samples/s", theme.strong),
        Span::styled(format!("   {}", it.state), theme.dim),
    ]);
    content.add(Size::Large, Block::Lines(vec![label]));
    // With the decimals that the sentence of a beat has.
    let whole = numerals(show(rate, 1));
    content.plot(Size::Large, (area.width, area.height), whole);
    content
}

/// Without a rate of the run that is shown: the other run's, and pairs, which may be measured before a run of its own has a median.
fn without(app: &App, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let mut lines = match slots(app).any(|(_, run)| run.throughput.is_some()) {
        true => table(app, theme, area),
        false => missing(why_not(app), theme, area),
    };
    let verdict = cards::verdict(app, usize::from(area.width), theme);
    if is_strip(app) && !verdict.is_empty() {
        return verdict;
    }
    lines.extend(verdict);
    lines.extend(sparkline(app.shown_run().shown(), area.width, theme));
    lines
}

/// A row for each run, below their headings.
fn table(app: &App, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let mut room = usize::from(area.width).saturating_sub(NAME);
    let columns = Columns::fit(COLUMNS, &[0, 1, 2, 3, 4, 5], &mut room);
    // Pairs measure both sides in turns; these rows do not.
    let alone = app.shown_pair().map_or("", |_| "each alone");
    let head = text::left(alone, NAME) + &columns.heads();
    let head = (area.height > 2).then(|| Line::styled(head, theme.dim));
    let pairing = app.shown_bench().pairing();
    let rows = slots(app).map(|(slot, run)| {
        let label = slot_label(slot, app, theme);
        row(label, run, pairing, &columns, theme)
    });
    head.into_iter().chain(rows).collect()
}

fn why_not(app: &App) -> &'static str {
    match app.shown_run().shown().last {
        Some(_) => "these steps are warm-up",
        None => "no step has been trained yet",
    }
}

/// Columns of the slot's name, and of the figures, the most important first.
const NAME: usize = 10;
#[rustfmt::skip]
const COLUMNS: [FigureColumn; 6] = [
    ("samples/s", 10),
    ("step ms", 9),
    ("middle half", 15),
    ("n", 6),
    ("state", 11),
    ("p95", 9),
];

fn row(
    label: Span<'static>,
    run: &RunStory,
    pairing: bool,
    columns: &Columns<6>,
    theme: &Theme,
) -> Line<'static> {
    let gap = Span::raw(" ".repeat(NAME.saturating_sub(label.width())));
    let mut spans = vec![label, gap];
    let Some(it) = &run.throughput else {
        let why = match pairing || run.of_pairs {
            true => "  in pairs, no run of its own",
            false => "  not measured: warm-up",
        };
        spans.push(Span::styled(why, theme.dim));
        return Line::from(spans);
    };
    let (state, style) = state(it, theme);
    let figures = [
        (number(it.samples_per_s), theme.strong),
        (ms(it.step_ms.median), theme.text),
        (middle_half(it), theme.text),
        (it.step_ms.n.to_string(), theme.text),
        (state, style),
        (ms(it.step_ms.p95), theme.text),
    ];
    spans.extend(columns.cells(figures));
    Line::from(spans)
}

fn middle_half(it: &Throughput) -> String {
    format!("{}–{}", ms(it.step_ms.p25), ms(it.step_ms.p75))
}

/// How settled the measurement is.
fn state(it: &Throughput, theme: &Theme) -> (String, Style) {
    if it.clock == ENQUEUE {
        return ("no sync".to_owned(), theme.warning);
    }
    let style = match it.state {
        TimingState::Steady => theme.good,
        TimingState::Warming | TimingState::Settling => theme.dim,
        TimingState::Drifting | TimingState::Noisy => theme.warning,
    };
    (it.state.to_string(), style)
}

/// What a state other than steady means.
fn means(it: &Throughput) -> Option<&'static str> {
    match it.state {
        _ if it.clock == ENQUEUE => None,
        TimingState::Steady | TimingState::Warming => None,
        TimingState::Settling => {
            Some("settling: too few steps yet, or their times still change a little")
        }
        TimingState::Drifting => {
            Some("drifting: the later half of up to 64 steps is over 5 % off the earlier")
        }
        TimingState::Noisy => Some("noisy: the middle half of the step times spans over 10 %"),
    }
}

/// Tokens, the share of the peak and the wall average, as many as fit.
fn rates(run: &RunStory, columns: usize, theme: &Theme) -> Line<'static> {
    let Some(it) = &run.throughput else {
        return Line::default();
    };
    let wall = number(it.wall_samples_per_s);
    let wall = format!("wall average {wall} samples/s, profiles included");
    // Another program may not tell how many tokens a step has.
    let tells_tokens = it.tokens_per_s > 0.0;
    let tokens = tells_tokens.then(|| format!("{} tokens/s", number(it.tokens_per_s)));
    let flops = match (it.flops, run.peak_flops()) {
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
    };
    let handed = it.enqueue_samples_per_s.map(|rate| {
        let short = format!("no sync: submitted at {} samples/s", number(rate));
        let long = short.replace("no sync", "these step times end at no sync");
        text::longest([long, short], columns).to_string()
    });
    let parts = match &handed {
        Some(handed) => vec![handed.as_str(), "samples/s by wall time"],
        None => {
            let tokens = tokens.as_deref().into_iter();
            tokens.chain([flops.as_str(), &wall]).collect()
        }
    };
    Line::styled(joined(parts, columns, "  ·  "), theme.dim)
}

/// Recent step times, each at its height between the shortest and the longest.
fn sparkline(run: &RunStory, width: u16, theme: &Theme) -> Option<Line<'static>> {
    const NAMED: &str = "step times ";
    let room = usize::from(width).saturating_sub(NAMED.len() + 22);
    let skip = run.step_ms.recent().len().saturating_sub(room);
    let recent = run.step_ms.recent().skip(skip).map(|(_, ms)| ms);
    let recent: Vec<f64> = recent.collect();
    let low = recent.iter().copied().reduce(f64::min)?;
    let high = recent.iter().copied().reduce(f64::max)?;
    let curve = recent.iter().map(|it| theme.symbols.spark(*it, low, high));
    // A unit each where one would not do for both.
    let span = if low > 0.0 && low < 0.1 && high >= 0.1 {
        format!("  {} – {}", duration(low), duration(high))
    } else {
        format!("  {}–{} ms", ms(low), ms(high))
    };
    let style = theme.slot(run.description.slot);
    Some(Line::from(vec![
        Span::styled(NAMED, theme.dim),
        Span::styled(curve.collect::<String>(), style),
        Span::styled(span, theme.dim),
    ]))
}

/// Beside the large numerals of small screens: how sure they are.
fn beside_numerals(it: &Throughput, app: &App, theme: &Theme, columns: u16) -> Vec<Line<'static>> {
    let (run, width) = (app.shown_run().shown(), usize::from(columns));
    let (state, style) = state(it, theme);
    let head = Line::from(vec![
        Span::styled("samples/s  ", theme.strong),
        slot_label(app.shown_run().active, app, theme),
        Span::styled(format!("  {state}  n {}", it.step_ms.n), style),
    ]);
    let mut lines = vec![head];
    lines.extend(cards::verdict(app, width, theme));
    if lines.len() == 1 {
        let (median, p95) = (ms(it.step_ms.median), ms(it.step_ms.p95));
        let half = middle_half(it);
        let spread = format!("step {median} ms, middle half {half}, p95 {p95}");
        lines.push(Line::styled(spread, theme.text));
    }
    let other = app.shown_run().other();
    let was = other.and_then(|other| Some((other, other.throughput.as_ref()?)));
    lines.push(match was {
        Some((other, was)) => {
            let slot = other.description.slot;
            let rate = number(was.samples_per_s);
            let alone = app.shown_pair().map_or("", |_| " alone");
            let said = format!("  {rate} samples/s{alone}, n {}", was.step_ms.n);
            let label = slot_label(slot, app, theme);
            Line::from(vec![label, Span::styled(said, theme.dim)])
        }
        None => rates(run, width, theme),
    });
    lines.extend(sparkline(run, columns, theme));
    lines
}
