//! How fast it trains: medians of unprofiled steps with their spread, A beside B, the state of the measurement, and
//! the wall average, which counts everything. A time that ends at no sync is called what it is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{as_strip, cards, duration, joined, missing, ms, open, show, slot_label, slots};
use crate::app::guide::{number, percent};
use crate::app::{App, Panel, SlotRun, ThemeName};
use crate::protocol::{State, Throughput};
use crate::tui::theme::Theme;
use crate::tui::{digits, text};

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let slot = app.run.shown();
    let aside = slot
        .throughput
        .as_ref()
        .map_or(String::new(), |it| format!("clock: {}", clock(&it.clock)));
    let inner = open(frame, area, Panel::Throughput, &aside, app, theme);
    let large_numerals = as_strip(app) || app.view.theme == ThemeName::Projector;
    if large_numerals && inner.height >= digits::ROWS && !theme.symbols.ascii {
        large(frame, inner, app, theme);
        return 0;
    }
    let mut lines = Vec::new();
    let columns = columns(inner.width);
    if slots(app).any(|(_, run)| run.throughput.is_some()) {
        if inner.height > 2 {
            lines.push(head(&columns, theme));
        }
        lines.extend(
            slots(app).map(|(slot, run)| row(slot_label(slot, app, theme), run, &columns, theme)),
        );
        lines.push(aside_line(slot, usize::from(inner.width), theme));
    } else {
        lines.push(missing(why_not(app), theme));
    }
    lines.extend(cards::verdict(app, usize::from(inner.width), theme));
    if let Some(line) = sparkline(slot, inner.width, theme) {
        lines.push(line);
    }
    show(
        frame,
        inner,
        lines,
        app.view.scroll_of(Panel::Throughput),
        theme,
    )
}

fn clock(clock: &str) -> &str {
    match clock {
        "enqueue" => "enqueue only, nothing waited for the device",
        "host-sync" => "host, ending at a device sync",
        other => other,
    }
}

fn why_not(app: &App) -> &'static str {
    if app.run.shown().last.is_some() {
        "these steps are warm-up"
    } else {
        "no step has been trained yet"
    }
}

/// A column: heading, width, content.
struct Column {
    head: &'static str,
    wide: usize,
    content: fn(&Throughput) -> String,
}

const COLUMNS: [Column; 6] = [
    Column {
        head: "samples/s",
        wide: 10,
        content: |it| number(it.samples_per_s),
    },
    Column {
        head: "step ms",
        wide: 9,
        content: |it| ms(it.step_ms.median),
    },
    Column {
        head: "middle half",
        wide: 15,
        content: |it| format!("{}–{}", ms(it.step_ms.p25), ms(it.step_ms.p75)),
    },
    Column {
        head: "n",
        wide: 6,
        content: |it| it.step_ms.n.to_string(),
    },
    Column {
        head: "state",
        wide: 11,
        content: |it| it.state.to_string(),
    },
    Column {
        head: "p95",
        wide: 9,
        content: |it| ms(it.step_ms.p95),
    },
];

/// Columns of the slot's name.
const NAME: usize = 10;

fn columns(width: u16) -> Vec<&'static Column> {
    let mut room = usize::from(width).saturating_sub(NAME);
    COLUMNS
        .iter()
        .take_while(|column| {
            let fits = column.wide <= room;
            room = room.saturating_sub(column.wide);
            fits
        })
        .collect()
}

fn head(columns: &[&Column], theme: &Theme) -> Line<'static> {
    let cells = columns
        .iter()
        .map(|column| text::right(column.head, column.wide));
    Line::styled(" ".repeat(NAME) + &cells.collect::<String>(), theme.dim)
}

fn row(
    label: Vec<Span<'static>>,
    run: &SlotRun,
    columns: &[&Column],
    theme: &Theme,
) -> Line<'static> {
    let mut spans = label;
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(NAME.saturating_sub(used))));
    match &run.throughput {
        None => spans.push(Span::styled("  not measured: warm-up", theme.dim)),
        Some(it) => spans.extend(columns.iter().map(|column| {
            let unsynced = it.clock == "enqueue";
            let style = match column.head {
                "samples/s" | "state" if unsynced => theme.warning,
                "samples/s" => theme.strong,
                "state" => state_style(it.state, theme),
                _ => theme.text,
            };
            let content = match column.head {
                "state" if unsynced => "no sync".to_owned(),
                _ => (column.content)(it),
            };
            Span::styled(text::right(&content, column.wide), style)
        })),
    }
    Line::from(spans)
}

fn state_style(state: State, theme: &Theme) -> Style {
    match state {
        State::Steady => theme.good,
        State::Warming | State::Settling => theme.dim,
        State::Drifting | State::Noisy => theme.warning,
    }
}

/// Tokens, the wall average and the share of the peak.
fn aside_line(run: &SlotRun, columns: usize, theme: &Theme) -> Line<'static> {
    let Some(it) = &run.throughput else {
        return Line::default();
    };
    let mut parts = vec![format!("{} tokens/s", number(it.tokens_per_s))];
    parts.push(format!(
        "wall average {} samples/s",
        number(it.wall_samples_per_s)
    ));
    if it.clock == "enqueue" {
        // Rates of such times are none; the wall's clock runs through all of it.
        parts[0] = "these times wait for nothing".to_owned();
        parts.swap(0, 1);
        return Line::styled(joined(&parts, columns, "  ·  "), theme.dim);
    }
    match (it.flops, it.peak_flops) {
        (Some(flops), Some(peak)) if peak > 0.0 => parts.push(format!(
            "{} of {} GFLOP/s ({} %)",
            number(flops / 1e9),
            number(peak / 1e9),
            percent(100.0 * flops / peak)
        )),
        (Some(flops), _) => parts.push(format!("{} GFLOP/s", number(flops / 1e9))),
        (None, _) => parts.push("FLOP/s not measured".to_owned()),
    }
    // The share of the peak says more than the wall average where only one fits.
    parts.swap(1, 2);
    Line::styled(joined(&parts, columns, "  ·  "), theme.dim)
}

/// Recent step times, each at its height between the shortest and the longest.
fn sparkline(run: &SlotRun, width: u16, theme: &Theme) -> Option<Line<'static>> {
    const NAMED: &str = "step times ";
    let room = usize::from(width).saturating_sub(NAMED.len() + 22);
    let skip = run.step_ms.recent().len().saturating_sub(room);
    let recent: Vec<f64> = run.step_ms.recent().skip(skip).map(|(_, ms)| ms).collect();
    let low = recent.iter().copied().reduce(f64::min)?;
    let high = recent.iter().copied().reduce(f64::max)?;
    let curve: String = recent
        .iter()
        .map(|value| theme.symbols.spark(*value, low, high))
        .collect();
    let style = theme.slot(run.started.as_ref()?.run.slot);
    Some(Line::from(vec![
        Span::styled(NAMED, theme.dim),
        Span::styled(curve, style),
        Span::styled(format!("  {}", span(low, high)), theme.dim),
    ]))
}

/// Shortest and longest, with a unit each where one would not do for both.
fn span(low: f64, high: f64) -> String {
    if low > 0.0 && low < 0.1 && high >= 0.1 {
        format!("{} – {}", duration(low), duration(high))
    } else {
        format!("{}–{} ms", ms(low), ms(high))
    }
}

/// The strip of small screens: large numerals, and beside them how sure they are.
fn large(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let run = app.run.shown();
    let Some(it) = &run.throughput else {
        frame.render_widget(missing(why_not(app), theme), Rect { height: 1, ..area });
        return;
    };
    let figure = match it.samples_per_s {
        x if x >= 1000.0 => format!("{x:.0}"),
        x if x.is_finite() => format!("{x:.1}"),
        _ => "-".to_owned(),
    };
    let wide = digits::width(&figure).unwrap_or(0);
    let beside = area.width.saturating_sub(wide + 2);
    digits::draw(
        frame.buffer_mut(),
        area.x,
        area.y,
        &figure,
        theme.slot(app.run.active),
    );
    let spread = format!(
        "step {} ms, middle half {}–{}, p95 {}",
        ms(it.step_ms.median),
        ms(it.step_ms.p25),
        ms(it.step_ms.p75),
        ms(it.step_ms.p95)
    );
    let mut head = vec![Span::styled("samples/s  ", theme.strong)];
    head.extend(slot_label(app.run.active, app, theme));
    let (state, style) = match it.clock.as_str() {
        "enqueue" => ("no sync".to_owned(), theme.warning),
        _ => (it.state.to_string(), state_style(it.state, theme)),
    };
    head.push(Span::styled(
        format!("  {state}  n {}", it.step_ms.n),
        style,
    ));
    let mut lines = vec![Line::from(head), Line::styled(spread, theme.text)];
    let verdict = cards::verdict(app, usize::from(beside), theme);
    if !verdict.is_empty() {
        lines.truncate(1);
        lines.extend(verdict);
    }
    match (
        app.run.ghost(),
        app.run.ghost().and_then(|ghost| ghost.throughput.as_ref()),
    ) {
        (Some(ghost), Some(was)) => {
            let slot = ghost
                .started
                .as_ref()
                .map_or(app.run.active, |started| started.run.slot);
            let mut spans = slot_label(slot, app, theme);
            spans.push(Span::styled(
                format!(
                    "  {} samples/s{}, n {}",
                    number(was.samples_per_s),
                    if was.clock == "enqueue" {
                        " without sync"
                    } else {
                        ""
                    },
                    was.step_ms.n
                ),
                theme.dim,
            ));
            lines.push(Line::from(spans));
        }
        _ => lines.push(aside_line(run, beside.into(), theme)),
    }
    if let Some(line) = sparkline(run, beside, theme) {
        lines.push(line);
    }
    let beside = Rect {
        x: area.x + wide + 2,
        width: beside,
        ..area
    };
    show(
        frame,
        beside,
        lines.into_iter().take(usize::from(area.height)).collect(),
        0,
        theme,
    );
}
