//! The roofline: how fast each operation of the profiled step ran, against what this device was measured to allow at its
//! arithmetic intensity. An operation has one letter, small where A ran it and a capital where B did; the list beside it
//! says which, the longest first. A letter above the slope worked on what lay in a cache: the roof is that of memory.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{joined, missing, ms, open, show, slots};
use crate::app::guide::{number, percent};
use crate::app::{App, Panel};
use crate::profile::operations::{Operation, operations};
use crate::profile::roofline::{ceiling, ridge};
use crate::protocol::{Roof, Slot};
use crate::tui::chart::scatter::{Mark, Path, Scatter};
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::rate;

/// Letters of operations. Not a and b: those are the runs.
const LETTERS: &str = "cdefghijklmnopqrstuvwxyz";
/// Columns from which on the list stands beside the chart, and how many it then takes.
const WIDE: u16 = 70;
const LIST: (u16, u16) = (37, 72);
/// Rows from which on it stands below where it does not stand beside.
const TALL: u16 = 12;

/// The operations of the slots, each slot's longest first.
type Shown = Vec<(Slot, Vec<Operation>)>;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let roof = roof(app);
    let aside = roof.map_or(String::new(), |it| {
        format!("{} clock · peaks measured {}", it.clock, it.date)
    });
    let inner = open(frame, area, Panel::Roofline, &aside, app, theme);
    let shown: Shown = slots(app)
        .filter_map(|(slot, run)| Some((slot, operations(run.kernels.as_ref()?))))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    let (Some(roof), false) = (roof, shown.is_empty()) else {
        let why = missing(why_empty(app, roof.is_some()), theme);
        frame.render_widget(Paragraph::new(why).wrap(Wrap { trim: true }), inner);
        return 0;
    };
    let names = in_order(&shown);
    let mut legend = legend(app, &shown, roof, theme, inner.width);
    legend.truncate(usize::from(inner.height / 5).max(1));
    let rows = (legend.len() as u16).min(inner.height);
    frame.render_widget(
        Paragraph::new(legend),
        Rect {
            height: rows,
            ..inner
        },
    );
    let rest = Rect {
        y: inner.y + rows,
        height: inner.height - rows,
        ..inner
    };
    let (plot, list) = cut(rest);
    scatter(&shown, &names, roof, theme).render(plot, frame.buffer_mut());
    if list.height == 0 {
        return 0;
    }
    let columns = Columns::of(list.width, &names);
    frame.render_widget(
        Line::styled(columns.head(), theme.dim),
        Rect { height: 1, ..list },
    );
    let rows = Rect {
        y: list.y + 1,
        height: list.height - 1,
        ..list
    };
    let lines = table(&shown, &names, roof, theme, &columns);
    show(
        frame,
        rows,
        lines,
        app.view.scroll_of(Panel::Roofline),
        theme,
    )
}

/// The names of all operations, the longest of either run first: their place is their letter.
fn in_order(shown: &Shown) -> Vec<String> {
    let mut all: Vec<&Operation> = shown.iter().flat_map(|(_, found)| found).collect();
    all.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let mut names: Vec<String> = Vec::new();
    for name in all.into_iter().map(Operation::name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The letter of an operation in a run; none where there are more operations than letters.
fn letter(name: &str, slot: Slot, names: &[String]) -> Option<char> {
    let at = names.iter().position(|known| known == name)?;
    let letter = LETTERS.chars().nth(at)?;
    Some(match slot {
        Slot::A => letter,
        Slot::B => letter.to_ascii_uppercase(),
    })
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

/// The chart, and the list beside or below it where there is room.
fn cut(area: Rect) -> (Rect, Rect) {
    if area.width >= WIDE {
        let wide = (area.width / 2).clamp(LIST.0, LIST.1);
        let plot = Rect {
            width: area.width - wide - 1,
            ..area
        };
        let list = Rect {
            x: area.right() - wide,
            width: wide,
            ..area
        };
        return (plot, list);
    }
    let rows = if area.height >= TALL {
        area.height * 2 / 5
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

/// The roofs with their values, and whose letters are whose.
fn legend(app: &App, shown: &Shown, roof: &Roof, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let mut spans = Vec::new();
    for (slot, _) in shown {
        let letters = if *slot == Slot::A { "c-z" } else { "C-Z" };
        let name = format!("{letters}: {}   ", app.slot_name(*slot));
        spans.push(Span::styled(name, theme.slot(*slot)));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let says = [
        "a letter is an operation, the same in both runs".to_owned(),
        "a letter is an operation".to_owned(),
    ];
    let fits = |it: &&String| used + text::width(it) <= usize::from(width);
    if let Some(says) = says[usize::from(shown.len() < 2)..].iter().find(fits) {
        spans.push(Span::styled(says.clone(), theme.dim));
    }
    let roofs = [
        format!("memory {}", rate(roof.bytes.best, "B/s")),
        format!("compute {} (f32)", rate(roof.flops.best, "FLOP/s")),
        format!("they meet at {} FLOP/byte", number(ridge(roof))),
    ];
    let room = usize::from(width).saturating_sub(7);
    let roofs = format!("roofs: {}", joined(&roofs, room, " · "));
    vec![Line::from(spans), Line::styled(roofs, theme.reference)]
}

/// The roofs and a letter for every operation whose work and arithmetic are known, the longest first.
fn scatter(shown: &Shown, names: &[String], roof: &Roof, theme: &Theme) -> Scatter {
    let marks: Vec<Mark> = by_time(shown)
        .into_iter()
        .filter_map(|(slot, it)| {
            let reached = it.reached(Some(roof));
            Some(Mark {
                at: place(reached.intensity?, reached.flops_per_s?)?,
                letter: letter(&it.name(), slot, names)?,
                style: theme.slot(slot),
            })
        })
        .collect();
    let low = |pick: fn(&Mark) -> f64| marks.iter().map(pick).fold(f64::INFINITY, f64::min);
    let high = |pick: fn(&Mark) -> f64| marks.iter().map(pick).fold(0.0, f64::max);
    let bend = ridge(roof);
    let x = (
        low(|it| it.at.0).min(bend / 8.0) / 1.5,
        high(|it| it.at.0).max(bend * 8.0) * 1.5,
    );
    // Above the flat roof there is room for its name.
    let y = (
        low(|it| it.at.1).min(ceiling(roof, x.0)) / 1.5,
        high(|it| it.at.1).max(roof.flops.best) * 2.5,
    );
    let middle = (x.0 * bend).sqrt();
    let slope = Path {
        points: vec![(x.0, ceiling(roof, x.0)), (bend, roof.flops.best)],
        name: format!("memory {}", rate(roof.bytes.best, "B/s")),
        named_at: (middle, ceiling(roof, middle)),
        style: theme.reference,
    };
    let flat = Path {
        points: vec![(bend, roof.flops.best), (x.1, roof.flops.best)],
        name: format!("compute {}", rate(roof.flops.best, "FLOP/s")),
        named_at: (x.1, roof.flops.best),
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

/// A figure of the list: its heading, its width, and which of them go first where there is no room.
const FIGURES: [(&str, usize); 6] = [
    ("ms", 8),
    ("FLOP/B", 8),
    ("GFLOP/s", 9),
    ("GB/s", 8),
    ("roof", 7),
    ("binds", 8),
];
/// Places in `FIGURES`, the most telling first.
const RANKS: [usize; 6] = [0, 4, 5, 2, 1, 3];

/// Widths; 0 where a column has no room.
struct Columns {
    name: usize,
    figures: [usize; 6],
}

impl Columns {
    fn of(width: u16, names: &[String]) -> Self {
        let longest = names.iter().map(|it| text::width(it)).max().unwrap_or(0);
        let name = longest.clamp(12, 24);
        let mut room = usize::from(width).saturating_sub(2 + name);
        let mut figures = [0; 6];
        for at in RANKS {
            let wide = FIGURES[at].1;
            if wide > room {
                break;
            }
            (figures[at], room) = (wide, room - wide);
        }
        Self { name, figures }
    }

    fn head(&self) -> String {
        let cells = FIGURES.iter().zip(self.figures);
        let cells: String = cells
            .map(|((name, _), wide)| text::right(name, wide))
            .collect();
        format!("  {}{cells}", text::left("operation", self.name))
    }
}

/// Every operation of each slot, the longest first.
fn by_time(shown: &Shown) -> Vec<(Slot, &Operation)> {
    let mut all: Vec<(Slot, &Operation)> = shown
        .iter()
        .flat_map(|(slot, found)| found.iter().map(|it| (*slot, it)))
        .collect();
    all.sort_by(|a, b| b.1.ms.total_cmp(&a.1.ms));
    all
}

/// A line for each operation of each slot, side by side in time.
fn table(
    shown: &Shown,
    names: &[String],
    roof: &Roof,
    theme: &Theme,
    columns: &Columns,
) -> Vec<Line<'static>> {
    by_time(shown)
        .into_iter()
        .map(|(slot, it)| {
            let letter = letter(&it.name(), slot, names);
            line((slot, letter), it, roof, theme, columns)
        })
        .collect()
}

fn line(
    (slot, letter): (Slot, Option<char>),
    it: &Operation,
    roof: &Roof,
    theme: &Theme,
    columns: &Columns,
) -> Line<'static> {
    let reached = it.reached(Some(roof));
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    // Faster than memory allows: what it read lay in a cache.
    let cached = reached.share.is_some_and(|share| share > 1.0);
    let bound = match reached.memory_bound {
        Some(true) if cached => "cache",
        Some(true) => "memory",
        Some(false) => "compute",
        None => "-",
    };
    let share = reached
        .share
        .map_or_else(|| "-".to_owned(), |it| format!("{} %", percent(100.0 * it)));
    let cells = [
        (ms(it.ms), theme.strong),
        (figure(reached.intensity), Style::new()),
        (figure(reached.flops_per_s.map(|it| it / 1e9)), Style::new()),
        (figure(reached.bytes_per_s.map(|it| it / 1e9)), Style::new()),
        (share, theme.strong),
        (bound.to_owned(), theme.dim),
    ];
    let mut spans = vec![
        Span::styled(format!("{} ", letter.unwrap_or(' ')), theme.slot(slot)),
        Span::raw(text::left(&it.name(), columns.name)),
    ];
    spans.extend(
        cells
            .into_iter()
            .zip(columns.figures)
            .map(|((cell, style), wide)| Span::styled(text::right(&cell, wide), style)),
    );
    Line::from(spans)
}
