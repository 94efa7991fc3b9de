//! The panel of the timeline shows lanes of devices and of the host over a span of time. `perflings open` draws other programs' profiles
//! with it.
//!
//! ```text
//!               0.00 ms             177.0 ms wide             177.0 ms
//! device        │     │    │   █▇ │mlp.gate   │mlp.down █          │
//! host          │step
//!               │forward          │backward
//!
//! nothing is marked
//! longest gap in this lane: 33.77 ms at 134.4 ms
//! ```
//!
//! A full cell was busy all the time, a lower one part of it. An empty cell is a gap. Names stand where they fit.

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
use gputrace::timeline::RowCells;

/// The lines above the lanes, which hold the scale.
const ABOVE: usize = 1;
/// The lines below the lanes, which describe the marked slice.
const BELOW: usize = 3;

pub const EXPLANATION: &[&str] = &[
    "Host: one step and its phases, as the host's clocks had them. \
     Device: the calls of the latest profile, each where it ran within its phase; \
     a phase's calls begin no earlier than the phase. Where only sums are known, those stand end to end.",
    "While the panel is marked, arrows move, + and - zoom, ( and ) go from kernel to kernel.",
];

/// Returns the timeline of the latest profiled step of the running slot.
pub fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(timeline) = app.view.timeline_of(app.shown_run()) else {
        return Content::missing("no step was profiled yet", theme, area);
    };
    let of_step = timeline
        .phases_step
        .map_or(String::new(), |step| format!(" · step {step}"));
    let run = app.shown_run().slot_name(timeline.slot);
    let aside = format!("{run}{of_step}, profile of step {}", timeline.profile_step);
    if app.reading().withholds("clocks") {
        // The timeline would show where the time goes.
        let later = super::lints::later(app, theme, area);
        return Content { aside, ..later };
    }
    let mut content = Content::text(aside, Vec::new());
    content.plot(None, (area.width, area.height), move |area, buffer| {
        let lines = lines(&timeline.view, area.width.into(), area.height.into(), theme);
        Text::from(lines).render(area, buffer);
    });
    content
}

/// Returns the width of the names of lanes in a panel of this width.
fn name_width(columns: usize) -> usize {
    match columns {
        0..50 => 8,
        50..100 => 14,
        _ => 22,
    }
}

/// Returns the index of the first row to show where `rows` rows fit.
fn first(view: &TimelineView, rows: usize) -> usize {
    let most = view.timeline.rows.len().saturating_sub(rows);
    view.row.saturating_sub(rows / 2).min(most)
}

/// Returns the row and the time of the cell at column `x` and line `y` of a panel of `size` columns and lines, and the duration of a column
/// in ns. A cell below the last row has a time, too. `None` outside the lanes.
pub fn at(view: &TimelineView, (x, y): (u16, u16), size: (u16, u16)) -> Option<(usize, i64, u64)> {
    let columns = usize::from(size.0);
    let name_width = name_width(columns);
    let column = usize::from(x).checked_sub(name_width)?;
    let line = usize::from(y).checked_sub(ABOVE)?;
    let rows = usize::from(size.1).saturating_sub(ABOVE + BELOW);
    let window = view.window(columns.saturating_sub(name_width).max(1));
    if line >= rows || column >= window.columns {
        return None;
    }
    let begin = window.time(column);
    let end = window.time(column + 1);
    let row = first(view, rows) + line;
    Some((row, begin.midpoint(end), begin.abs_diff(end)))
}

/// Returns the lines of a timeline of `columns` columns and `height` lines.
pub fn lines(
    view: &TimelineView,
    columns: usize,
    height: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let name_width = name_width(columns);
    let window = view.window(columns.saturating_sub(name_width).max(1));
    let rows = height.saturating_sub(ABOVE + BELOW);
    let first = first(view, rows);
    let mut out = vec![scale(view, name_width, window.columns, theme)];
    if view.timeline.rows.is_empty() {
        out.push(Line::styled("nothing in this file has a time", theme.dim));
    }
    for (index, row) in view.timeline.rows.iter().enumerate().skip(first).take(rows) {
        let style = theme.among(index == view.row, theme.dim);
        let name = if row.depth == 0 {
            let lane = &view.trace.lanes[row.lane as usize];
            text::shorten(
                &sanitize::line(&view.trace.lane_title(lane)),
                name_width - 1,
            )
        } else {
            String::new()
        };
        let mut spans = vec![Span::styled(text::left(&name, name_width), style)];
        let line = view.timeline.line(&view.trace, index, window);
        for (letter, style) in cells(view, &line, theme) {
            spans.push(Span::styled(letter.to_string(), style));
        }
        out.push(Line::from(spans));
    }
    out.resize(height.saturating_sub(BELOW).max(out.len()), Line::default());
    out.extend(below(view, columns, theme));
    out
}

/// Returns the cells of a row of a lane: how busy each was, and over them the names that fit.
fn cells(view: &TimelineView, line: &RowCells, theme: &Theme) -> Vec<(char, Style)> {
    let link = marked(view)
        .map(|slice| slice.link)
        .filter(|link| *link != NONE);
    let mut cells = Vec::new();
    for cell in &line.cells {
        cells.push(match cell.slice {
            Some(slice) => (
                glyph_of_share(cell.filled, theme),
                slice_style(view, slice, link, theme),
            ),
            None => (' ', theme.text),
        });
    }
    for label in &line.labels {
        let style = slice_style(view, label.slice, link, theme).add_modifier(Modifier::REVERSED);
        let bar = theme.symbols.vertical.chars();
        let text = sanitize::plain(&label.text);
        let letters = bar.chain(text.chars()).chain(std::iter::repeat(' '));
        let covered = cells[label.column..].iter_mut().take(label.width);
        for (cell, letter) in covered.zip(letters) {
            // Another letter may take two cells, so a dot replaces it.
            let fits = letter.is_ascii() || "…│·".contains(letter);
            *cell = (if fits { letter } else { '·' }, style);
        }
    }
    cells
}

/// Returns the marked slice. `None` if none is marked.
fn marked(view: &TimelineView) -> Option<&Slice> {
    view.trace.slices.get(view.slice? as usize)
}

/// Returns the character for a cell of which a share, 0 to 1, is busy.
fn glyph_of_share(filled: f64, theme: &Theme) -> char {
    let full = theme.symbols.bar.last().copied().unwrap_or("#");
    let glyph = if filled >= 0.95 {
        full
    } else {
        theme.symbols.spark(filled, 0.0, 1.0)
    };
    glyph.chars().next().unwrap_or('#')
}

/// Returns the style of a slice. The marked slice and the slice that it is linked with stand out.
fn slice_style(view: &TimelineView, index: u32, link: Option<u32>, theme: &Theme) -> Style {
    if view.slice == Some(index) {
        return theme.strong.add_modifier(Modifier::UNDERLINED);
    }
    if link == Some(index) {
        return theme.warning.add_modifier(Modifier::UNDERLINED);
    }
    let slice = view.trace.slices.get(index as usize);
    slice.map_or(theme.text, |slice| kind_style(&view.trace, slice, theme))
}

/// Returns the style of a slice by its kind: of a kernel by its family, of a range by its phase.
fn kind_style(trace: &Trace, slice: &Slice, theme: &Theme) -> Style {
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

/// Returns the line with the step, in the columns of the names, and above the lanes the two ends of the visible time and its length.
fn scale(view: &TimelineView, name_width: usize, columns: usize, theme: &Theme) -> Line<'static> {
    let (from, to) = view.seen;
    let (origin, _) = view.timeline.bounds;
    let left = time(from.abs_diff(origin));
    let right = time(to.abs_diff(origin));
    let step = match view.step() {
        Some(step) => format!("step {}", step + 1),
        None => String::new(),
    };
    let free = columns.saturating_sub(text::width(&left) + text::width(&right));
    let length = format!("{} wide", time(from.abs_diff(to)));
    let middle = text::cut(&length, free.saturating_sub(2));
    let step = text::left(&text::cut(&step, name_width - 1), name_width);
    let line = format!("{step}{left}{middle:^free$}{right}");
    Line::styled(line, theme.dim)
}

/// Returns the lines below the lanes: the marked slice, its link, and the longest gap of the row.
fn below(view: &TimelineView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let trace = &view.trace;
    let (origin, _) = view.timeline.bounds;
    let row = |line: &str, style| Line::styled(text::cut(line, columns), style);
    let gap = match view.timeline.longest_gap(view.row, view.seen) {
        Some((from, to)) => {
            let start = time(from.abs_diff(origin));
            let length = time(from.abs_diff(to));
            format!("longest gap in this lane: {length} at {start}")
        }
        None => "no gap in this lane".to_owned(),
    };
    let Some(slice) = marked(view) else {
        return vec![
            Line::default(),
            row("nothing is marked", theme.dim),
            row(&gap, theme.dim),
        ];
    };
    let length = time(slice.ns());
    let start = time(slice.start.abs_diff(origin));
    let name = sanitize::line(trace.name(slice.name));
    let on_device = slice.kind.on_device();
    let link = match trace.linked(slice) {
        Some(other) => {
            let apart = time(other.start.abs_diff(slice.start));
            let name = sanitize::line(trace.name(other.name));
            if !on_device {
                format!("what it launched begins {apart} later: {name}")
            } else if other.start <= slice.start {
                format!("launched {apart} before by {name}")
            } else {
                format!("launched {apart} after it began, by {name}: the clocks differ")
            }
        }
        None if on_device => "its launch was not recorded".to_owned(),
        None => String::new(),
    };
    vec![
        row(&format!("{length} at {start}: {name}"), theme.strong),
        row(&link, theme.text),
        row(&gap, theme.dim),
    ]
}
