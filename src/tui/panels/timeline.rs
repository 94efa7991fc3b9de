//! A timeline: lanes of devices and of the host over a span of time. A full cell is busy, a low one partly, an empty one is a gap;
//! names stand where they fit.

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Widget;

use super::content::Content;
use crate::app::App;
use crate::app::timeline::TimelineView;
use crate::sanitize;
use crate::tui::text;
use crate::tui::theme::Theme;
use gputrace::display::time;
use gputrace::model::{NONE, Slice, SliceKind, Trace};
use gputrace::names::{self, Family, TracePhase};
use gputrace::timeline::TimelineRow;

/// Lines above and below the lanes: the scale, and what is marked.
const ABOVE: usize = 1;
const BELOW: usize = 3;

/// How to read it.
pub const READING: &[&str] = &[
    "Host: one step and its phases, as the host's clocks had them. Device: the calls of the latest profile, each where it ran within \
     its phase; a phase's calls begin no earlier than the phase. Where only sums are known, those stand end to end.",
    "While the panel is marked, arrows move, + and - zoom, ( and ) go from kernel to kernel.",
];

/// The latest profiled step of the running slot.
pub fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some((view, slot, step, profile)) = app.view.timeline_of(app.shown_run()) else {
        return Content::missing("no step was profiled yet", theme, area);
    };
    let step = step.map_or(String::new(), |step| format!(" · step {step}"));
    let aside = format!(
        "{}{step}, profile of step {profile}",
        app.shown_run().slot_name(slot)
    );
    if app.reading().withholds("clocks") {
        // It would show where the time goes.
        let later = super::lints::later(app, theme, area);
        return Content { aside, ..later };
    }
    let mut content = Content::text(aside, Vec::new());
    content.plot(None, (area.width, area.height), move |area, buffer| {
        let (wide, high) = (usize::from(area.width), usize::from(area.height));
        Text::from(lines(&view, wide, high, theme)).render(area, buffer);
    });
    content
}

/// Columns of the names of lanes.
fn names_wide(columns: usize) -> usize {
    match columns {
        0..50 => 8,
        50..100 => 14,
        _ => 22,
    }
}

/// The first row that is seen where so many fit.
fn first(view: &TimelineView, rows: usize) -> usize {
    let most = view.timeline.rows.len().saturating_sub(rows);
    view.row.saturating_sub(rows / 2).min(most)
}

/// The row and the time of a cell of the panel, and how long a column lasts. Below the last row there is time, too.
pub fn at(view: &TimelineView, (x, y): (u16, u16), size: (u16, u16)) -> Option<(usize, i64, u64)> {
    let (columns, lines) = (usize::from(size.0), usize::from(size.1));
    let wide = names_wide(columns);
    let column = usize::from(x).checked_sub(wide)?;
    let line = usize::from(y).checked_sub(ABOVE)?;
    let rows = lines.saturating_sub(ABOVE + BELOW);
    let window = view.window(columns.saturating_sub(wide).max(1));
    let there = line < rows && column < window.columns;
    let (from, to) = (window.time(column), window.time(column + 1));
    there.then(|| {
        (
            first(view, rows) + line,
            from.midpoint(to),
            from.abs_diff(to),
        )
    })
}

/// The lines of a panel of this size.
pub fn lines(
    view: &TimelineView,
    columns: usize,
    height: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let wide = names_wide(columns);
    let window = view.window(columns.saturating_sub(wide).max(1));
    let rows = height.saturating_sub(ABOVE + BELOW);
    let first = first(view, rows);
    let mut out = vec![scale(view, wide, window.columns, theme)];
    if view.timeline.rows.is_empty() {
        out.push(Line::styled("nothing in this file has a time", theme.dim));
    }
    let shown = view.timeline.rows.iter().enumerate().skip(first).take(rows);
    let marked = view.slice.and_then(|at| view.trace.slices.get(at as usize));
    let link = marked.map(|it| it.link).filter(|it| *it != NONE);
    for (at, row) in shown {
        let style = theme.among(at == view.row, theme.dim);
        let name = text::left(&text::shorten(&lane_name(&view.trace, row), wide - 1), wide);
        let mut spans = vec![Span::styled(name, style)];
        let line = view.timeline.line(&view.trace, at, window);
        let mut cells: Vec<(char, Style)> = Vec::new();
        for cell in &line.cells {
            let drawn = |slice| {
                (
                    height_of(cell.filled, theme),
                    mark(view, slice, link, theme),
                )
            };
            cells.push(cell.slice.map_or((' ', theme.text), drawn));
        }
        for label in &line.labels {
            let marked = mark(view, label.slice, link, theme);
            let style = marked.add_modifier(Modifier::REVERSED);
            let bar = theme.symbols.vertical.chars();
            let text = sanitize::plain(&label.text);
            let letters = bar.chain(text.chars()).chain(std::iter::repeat(' '));
            let narrow = text.chars().count() == text.len();
            let below = cells[label.column..].iter_mut().take(label.width);
            for (cell, letter) in below.zip(letters) {
                let fits = narrow || letter.is_ascii() || "…│·".contains(letter);
                *cell = (if fits { letter } else { '·' }, style);
            }
        }
        let cells = cells.into_iter();
        spans.extend(cells.map(|(letter, style)| Span::styled(letter.to_string(), style)));
        out.push(Line::from(spans));
    }
    out.resize(height.saturating_sub(BELOW).max(out.len()), Line::default());
    out.extend(below(view, columns, theme));
    out
}

/// What stands for a share that is filled.
fn height_of(filled: f64, theme: &Theme) -> char {
    let full = theme.symbols.bar.last().copied().unwrap_or("#");
    let glyph = match filled {
        0.95.. => full,
        _ => theme.symbols.spark(filled, 0.0, 1.0),
    };
    glyph.chars().next().unwrap_or('#')
}

fn mark(view: &TimelineView, slice: u32, link: Option<u32>, theme: &Theme) -> Style {
    if view.slice == Some(slice) {
        return theme.strong.add_modifier(Modifier::UNDERLINED);
    }
    if link == Some(slice) {
        return theme.warning.add_modifier(Modifier::UNDERLINED);
    }
    let slice = view.trace.slices.get(slice as usize);
    slice.map_or(theme.text, |it| style(&view.trace, it, theme))
}

/// The style of a slice: a kernel's by its family, a range's by its phase.
fn style(trace: &Trace, slice: &Slice, theme: &Theme) -> Style {
    let [forward, backward, optimizer, residual] = theme.phases;
    let name = trace.name(slice.name);
    match slice.kind {
        SliceKind::Kernel | SliceKind::Graph => match trace.family(slice.name) {
            Family::Product => forward,
            Family::Attention => backward,
            Family::Optimizer => optimizer,
            Family::Reduction => residual,
            Family::Copy => theme.a,
            Family::Communication => theme.warning,
            Family::Elementwise | Family::Other => theme.b,
        },
        SliceKind::Copy | SliceKind::Memset => theme.a,
        SliceKind::Sync => theme.warning,
        SliceKind::Launch | SliceKind::GraphLaunch => {
            theme.link.remove_modifier(Modifier::UNDERLINED)
        }
        _ => match names::phase(name) {
            Some(TracePhase::Forward) => forward,
            Some(TracePhase::Backward) => backward,
            Some(TracePhase::Optimizer) => optimizer,
            None => theme.dim,
        },
    }
}

fn lane_name(trace: &Trace, row: &TimelineRow) -> String {
    match row.depth {
        0 => sanitize::line(&trace.lane_title(&trace.lanes[row.lane as usize])),
        _ => String::new(),
    }
}

/// The ends of what is seen, and which step that is.
fn scale(view: &TimelineView, wide: usize, columns: usize, theme: &Theme) -> Line<'static> {
    let (from, to) = view.seen;
    let [left, right] = [from, to].map(|at| time(at.abs_diff(view.timeline.bounds.0)));
    let middle = format!("{} wide", time(from.abs_diff(to)));
    let step = view
        .step()
        .map_or(String::new(), |at| format!("step {}", at + 1));
    let room = columns.saturating_sub(text::width(&left) + text::width(&right));
    let middle = text::cut(&middle, room.saturating_sub(2));
    let pad = room.saturating_sub(text::width(&middle));
    let line = format!(
        "{}{left}{}{middle}{}{right}",
        text::left(&text::cut(&step, wide - 1), wide),
        " ".repeat(pad / 2),
        " ".repeat(pad - pad / 2)
    );
    Line::styled(line, theme.dim)
}

/// What is marked, what it is linked with, and the longest gap of the row.
fn below(view: &TimelineView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let trace = &view.trace;
    let origin = view.timeline.bounds.0;
    let row = |line: String, style| Line::styled(text::cut(&line, columns), style);
    let gap = view.timeline.longest_gap(view.row, view.seen);
    let gap = gap.map_or("no gap in this lane".to_owned(), |(from, to)| {
        let (at, long) = (time(from.abs_diff(origin)), time(from.abs_diff(to)));
        format!("longest gap in this lane: {long} at {at}")
    });
    let Some(it) = view.slice.and_then(|at| trace.slices.get(at as usize)) else {
        return vec![
            Line::default(),
            row("nothing is marked".to_owned(), theme.dim),
            row(gap, theme.dim),
        ];
    };
    let (long, at) = (time(it.ns()), time(it.start.abs_diff(origin)));
    let said = format!("{long} at {at}: {}", sanitize::line(trace.name(it.name)));
    let linked = trace.linked(it).map(|other| {
        let apart = time(other.start.abs_diff(it.start));
        let name = sanitize::line(trace.name(other.name));
        match it.kind.on_device() {
            true if other.start <= it.start => format!("launched {apart} before by {name}"),
            true => format!("launched {apart} after it began, by {name}: the clocks differ"),
            false => format!("what it launched begins {apart} later: {name}"),
        }
    });
    let launched = it.kind.on_device().then_some("its launch was not recorded");
    let linked = linked.unwrap_or_else(|| launched.unwrap_or_default().to_owned());
    vec![
        row(said, theme.strong),
        row(linked, theme.text),
        row(gap, theme.dim),
    ]
}
