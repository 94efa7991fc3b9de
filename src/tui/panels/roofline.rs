//! The roofline: how fast each operation of the profiled step ran, against what this device was measured to allow at its
//! arithmetic intensity. A and B have marks of their own. A mark above the slope worked on what lay in a cache: the roof is
//! that of memory. Empty only with its reason.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{missing, ms, open, show, slots};
use crate::app::guide::{number, percent};
use crate::app::{App, Panel};
use crate::profile::operations::{Operation, operations};
use crate::profile::roofline::{ceiling, ridge};
use crate::protocol::{Roof, Slot};
use crate::tui::chart::scatter::{Mark, Path, Scatter};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Columns of the table where it stands beside the chart.
const TABLE: u16 = 66;
/// Rows from which on it stands below.
const TALL: u16 = 15;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let roof = roof(app);
    let aside = roof.map_or(String::new(), |it| {
        format!("{} clock · measured {}", it.clock, it.date)
    });
    let inner = open(frame, area, Panel::Roofline, &aside, app, theme);
    let shown: Vec<(Slot, Vec<Operation>)> = slots(app)
        .filter_map(|(slot, run)| Some((slot, operations(run.kernels.as_ref()?))))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    let (Some(roof), false) = (roof, shown.is_empty()) else {
        let why = missing(why_empty(app, roof.is_some()), theme);
        frame.render_widget(Paragraph::new(why).wrap(Wrap { trim: true }), inner);
        return 0;
    };
    frame.render_widget(
        legend(app, roof, theme, inner.width),
        Rect {
            height: inner.height.min(1),
            ..inner
        },
    );
    let rest = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(1),
        ..inner
    };
    let (plot, list) = cut(rest);
    scatter(&shown, roof, theme, plot).render(plot, frame.buffer_mut());
    if list.height == 0 {
        return 0;
    }
    let head = Line::styled(Columns::of(list.width).head(), theme.dim);
    frame.render_widget(head, Rect { height: 1, ..list });
    let rows = Rect {
        y: list.y + 1,
        height: list.height - 1,
        ..list
    };
    let lines = table(&shown, roof, theme, list.width);
    show(
        frame,
        rows,
        lines,
        app.view.scroll_of(Panel::Roofline),
        theme,
    )
}

/// The roofs of the device that the shown runs ran on.
fn roof(app: &App) -> Option<&Roof> {
    slots(app).find_map(|(_, run)| run.started.as_ref()?.roof.as_deref())
}

fn why_empty(app: &App, calibrated: bool) -> &'static str {
    let started = slots(app).next().is_some();
    let reason = slots(app).find_map(|(_, run)| run.kernels.as_ref()?.reason.as_deref());
    match (started, calibrated, reason) {
        (false, ..) => "nothing has run yet",
        (true, false, _) => {
            "this device's peaks are not known. The log says why; `perflings doctor --calibrate` tries again"
        }
        (true, true, Some(_)) => "the profiler saw no operation on this device",
        (true, true, None) => "no step was profiled yet",
    }
}

/// The chart, and the table beside or below it where there is room.
fn cut(area: Rect) -> (Rect, Rect) {
    if area.width >= 2 * TABLE {
        let plot = Rect {
            width: area.width - TABLE - 2,
            ..area
        };
        let list = Rect {
            x: area.right() - TABLE,
            width: TABLE,
            ..area
        };
        return (plot, list);
    }
    let rows = if area.height >= TALL {
        area.height / 3
    } else {
        0
    };
    let plot = Rect {
        height: area.height - rows,
        ..area
    };
    let list = Rect {
        y: plot.bottom(),
        height: rows,
        ..area
    };
    (plot, list)
}

/// Whose mark is whose, and the roofs.
fn legend(app: &App, roof: &Roof, theme: &Theme, width: u16) -> Line<'static> {
    let mut spans = Vec::new();
    for (slot, _) in slots(app) {
        let name = format!("{} {}   ", mark(slot, theme), app.slot_name(slot));
        spans.push(Span::styled(name, theme.slot(slot)));
    }
    if slots(app).count() == 2 {
        spans.push(Span::styled(
            format!("{} both   ", theme.symbols.both),
            theme.dim,
        ));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let tail = format!("memory binds below {} FLOP/byte", number(ridge(roof)));
    if used + text::width(&tail) <= usize::from(width) {
        spans.push(Span::styled(tail, theme.dim));
    }
    Line::from(spans)
}

fn mark(slot: Slot, theme: &Theme) -> &'static str {
    theme.symbols.marks[usize::from(slot == Slot::B)]
}

/// The roofs and a mark for every operation whose work and arithmetic are known.
fn scatter(shown: &[(Slot, Vec<Operation>)], roof: &Roof, theme: &Theme, plot: Rect) -> Scatter {
    let named = usize::from(plot.height / 3).clamp(2, 8);
    let mut marks = Vec::new();
    for (slot, found) in shown {
        let places = found.iter().filter_map(|it| {
            let reached = it.reached(Some(roof));
            Some((it, place(reached.intensity?, reached.flops_per_s?)?))
        });
        for (index, (it, at)) in places.enumerate() {
            marks.push(Mark {
                at,
                kind: usize::from(*slot == Slot::B),
                name: (index < named).then(|| it.name()),
                style: theme.slot(*slot),
            });
        }
    }
    let low = |pick: fn(&Mark) -> f64| marks.iter().map(pick).fold(f64::INFINITY, f64::min);
    let high = |pick: fn(&Mark) -> f64| marks.iter().map(pick).fold(0.0, f64::max);
    let bend = ridge(roof);
    let x = (
        low(|it| it.at.0).min(bend / 8.0) / 1.5,
        high(|it| it.at.0).max(bend * 8.0) * 1.5,
    );
    let y = (
        low(|it| it.at.1).min(ceiling(roof, x.0)) / 1.5,
        high(|it| it.at.1).max(roof.flops.best) * 1.6,
    );
    let slope = Path {
        points: vec![(x.0, ceiling(roof, x.0)), (bend, roof.flops.best)],
        name: format!("{} memory", rate(roof.bytes.best, "B/s")),
        style: theme.reference,
    };
    let flat = Path {
        points: vec![(bend, roof.flops.best), (x.1, roof.flops.best)],
        name: format!("{} arithmetic", rate(roof.flops.best, "FLOP/s")),
        style: theme.reference,
    };
    Scatter {
        x,
        y,
        names: ["FLOP/byte", "GFLOP/s"],
        units: (1.0, 1e9),
        paths: vec![slope, flat],
        marks,
        axis: theme.dim,
        symbols: theme.symbols,
    }
}

/// A place on logarithmic axes.
fn place(x: f64, y: f64) -> Option<(f64, f64)> {
    (x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite()).then_some((x, y))
}

/// `98.0 GFLOP/s`, `3.35 TB/s`.
pub fn rate(value: f64, unit: &str) -> String {
    let (divisor, prefix) = match value.abs() {
        it if it >= 1e12 => (1e12, "T"),
        it if it >= 1e9 => (1e9, "G"),
        _ => (1e6, "M"),
    };
    format!("{} {prefix}{unit}", number(value / divisor))
}

/// Widths; 0 where a column has no room.
struct Columns {
    name: usize,
    bound: usize,
}

/// The mark before the name; then time, intensity, GFLOP/s, GB/s and the share of the roof.
const FIGURES: [usize; 5] = [9, 10, 9, 8, 7];

impl Columns {
    fn of(width: u16) -> Self {
        let room = usize::from(width).saturating_sub(2 + FIGURES.iter().sum::<usize>());
        let bound = if room >= 28 { 8 } else { 0 };
        Self {
            name: (room - bound).min(30),
            bound,
        }
    }

    fn head(&self) -> String {
        let names = ["ms", "FLOP/B", "GFLOP/s", "GB/s", "roof"];
        let mut line = format!("  {}", text::left("operation", self.name));
        for (name, wide) in names.iter().zip(FIGURES) {
            line += &text::right(name, wide);
        }
        line + &text::right("binds", self.bound)
    }
}

/// A line for each operation of each slot, the longest first, the slots side by side in time.
fn table(
    shown: &[(Slot, Vec<Operation>)],
    roof: &Roof,
    theme: &Theme,
    width: u16,
) -> Vec<Line<'static>> {
    let columns = Columns::of(width);
    let mut all: Vec<(Slot, &Operation)> = shown
        .iter()
        .flat_map(|(slot, found)| found.iter().map(|it| (*slot, it)))
        .collect();
    all.sort_by(|a, b| b.1.ms.total_cmp(&a.1.ms));
    all.into_iter()
        .map(|(slot, it)| line(slot, it, roof, theme, &columns))
        .collect()
}

fn line(
    slot: Slot,
    it: &Operation,
    roof: &Roof,
    theme: &Theme,
    columns: &Columns,
) -> Line<'static> {
    let reached = it.reached(Some(roof));
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let cells = [
        (ms(it.ms), theme.strong),
        (figure(reached.intensity), Style::new()),
        (figure(reached.flops_per_s.map(|it| it / 1e9)), Style::new()),
        (figure(reached.bytes_per_s.map(|it| it / 1e9)), Style::new()),
        (
            reached
                .share
                .map_or_else(|| "-".to_owned(), |it| format!("{} %", percent(100.0 * it))),
            theme.strong,
        ),
    ];
    let mut spans = vec![
        Span::styled(format!("{} ", mark(slot, theme)), theme.slot(slot)),
        Span::raw(text::left(&it.name(), columns.name)),
    ];
    spans.extend(
        cells
            .into_iter()
            .zip(FIGURES)
            .map(|((cell, style), wide)| Span::styled(text::right(&cell, wide), style)),
    );
    // Faster than memory allows: what it read lay in a cache.
    let cached = reached.share.is_some_and(|share| share > 1.0);
    let bound = match reached.memory_bound {
        Some(true) if cached => "cache",
        Some(true) => "memory",
        Some(false) => "FLOP/s",
        None => "-",
    };
    spans.push(Span::styled(text::right(bound, columns.bound), theme.dim));
    Line::from(spans)
}
