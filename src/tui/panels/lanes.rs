//! What the lanes of a workgroup do in the learner's kernel, step by step: the source, the lanes as columns, and for each load and
//! store the rows of memory with a mark for each lane.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::Content;
use super::kernel::numbered_line;
use crate::app::App;
use crate::tui::prose::{ProseWriter, harmless};
use crate::tui::surface::joined;
use crate::tui::text;
use crate::tui::theme::Theme;
use wgsl_lockstep::lanes::{CELLS, LINE_BYTES, LaneState, MemoryRow, WorkgroupRun};

/// Columns of a row's label, and of its cells with a gap after each eight.
const LABEL: usize = 15;
const ROW: usize = LABEL + CELLS + CELLS / 8 - 1;
/// Columns between two rows side by side.
const BETWEEN: usize = 3;
/// Columns of a lane's number.
const NUMBER: usize = 4;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    let recorded = match &app.exercise.lanes.found {
        Some(Ok(found)) => found,
        found => {
            let said = match found {
                Some(Err(why)) => why.as_str(),
                _ => "The kernel runs on the host, all lanes of a workgroup together.",
            };
            w.text(said);
            return Content::titled("threads", w.lines);
        }
    };
    let (run, at) = (&recorded.run, app.exercise.lanes.at);
    let cut = if run.cut { " and more" } else { "" };
    let parts = [
        format!("step {} of {}{cut}", at + 1, run.steps.len()),
        format!("workgroup {} of {}", run.group, run.groups),
        format!("`{}`", recorded.shape),
        recorded.sizes.clone(),
    ];
    let said = joined(parts.iter().map(String::as_str), w.columns, "  ");
    let mut head = vec![Line::styled(said, theme.dim)];
    // A third of the rows is the source's.
    let rows = usize::from(area.height).saturating_sub(1);
    let of_source = usize::from((area.height / 3).max(3)).min(rows);
    head.extend(source(run, at, of_source, &w));
    head.resize(1 + of_source, Line::default());
    let rows = rows - of_source;
    lanes(run, at, rows / 3, &mut w);
    for fault in run.faults_at(at) {
        let mut text = fault.text.iter();
        if let Some(what) = text.next() {
            w.marked(theme.mark(false), what, theme.strong);
        }
        text.for_each(|line| w.line(line.clone(), theme.text));
    }
    memory(run, at, rows, &mut w);
    Content {
        head,
        ..Content::titled(format!("threads of {}", recorded.file), w.lines)
    }
}

/// The lines around the one that runs; those that a fault names are marked.
fn source(run: &WorkgroupRun, at: usize, rows: usize, w: &ProseWriter<'_>) -> Vec<Line<'static>> {
    let theme = w.theme;
    let step = run.steps.get(at);
    let line = step.map_or(1, |it| it.line as usize);
    let count = run.text.lines().count();
    let from = line
        .saturating_sub(rows / 2 + 1)
        .min(count.saturating_sub(rows));
    let accused = run.faults_at(at).flat_map(|fault| {
        let other = fault.other.map(|(step, _)| step);
        [Some(fault.step), other].into_iter().flatten()
    });
    let accused: Vec<usize> = accused.map(|it| run.steps[it].line as usize).collect();
    let numbered = (from + 1..).zip(run.text.lines().skip(from).take(rows));
    let lines = numbered.map(|(number, code)| {
        let mark = match number {
            _ if number == line => Span::styled(theme.symbols.pointer, theme.key),
            _ if accused.contains(&number) => Span::styled(theme.symbols.bad, theme.bad),
            _ => Span::raw(" "),
        };
        let mut whole = numbered_line(number, &harmless(code), theme);
        if number == line {
            whole.spans[1].style = theme.strong;
        }
        whole.spans.insert(0, mark);
        text::fit(whole, w.columns)
    });
    lines.collect()
}

/// How many lanes do what, and a mark for each of them, in at most so many rows.
fn lanes(run: &WorkgroupRun, at: usize, rows: usize, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let mark = |state: LaneState| -> (&'static str, Style) {
        match state {
            LaneState::Runs => ("■", theme.strong),
            LaneState::Waits => (theme.symbols.vertical, theme.warning),
            LaneState::Idle => ("·", theme.dim),
            LaneState::Ended => (" ", theme.dim),
            LaneState::Faulty => (theme.symbols.bad, theme.bad),
        }
    };
    let (states, _) = run.states(at);
    let columns = w.columns.saturating_sub(NUMBER);
    let widths = [64, 32, 16];
    let width = widths.into_iter().find(|it| it + it / 8 <= columns + 1);
    let width = width.unwrap_or(8).min(states.len().max(1));
    let mut each = 1;
    while states.len().div_ceil(width * each) > rows.max(1) {
        each *= 2;
    }
    let mut said = vec![Span::styled("lanes  ", theme.dim)];
    for (state, count) in run.counts(at) {
        let (symbol, style) = mark(state);
        if state != LaneState::Ended {
            said.push(Span::styled(format!("{symbol} "), style));
        }
        said.push(Span::styled(format!("{count}  "), theme.text));
    }
    if each > 1 {
        said.push(Span::styled(format!("one mark is {each} lanes"), theme.dim));
    }
    w.runs(&said, "", "");
    // Of several lanes in a cell, the one that matters most.
    let rank = |state: &LaneState| match state {
        LaneState::Faulty => 4,
        LaneState::Runs => 3,
        LaneState::Waits => 2,
        LaneState::Idle => 1,
        LaneState::Ended => 0,
    };
    let cells = states
        .chunks(each)
        .filter_map(|it| it.iter().copied().max_by_key(rank));
    let cells: Vec<LaneState> = cells.collect();
    for (row, cells) in cells.chunks(width).enumerate() {
        let number = format!("{:>3} ", row * width * each);
        let mut spans = vec![Span::styled(number, theme.dim)];
        spans.extend(spaced(cells.iter().map(|state| mark(*state))));
        w.lines.push(Line::from(spans));
    }
}

/// Each access as a sentence with its rows of memory; `height` lines are there for these and all before.
fn memory(run: &WorkgroupRun, at: usize, height: usize, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let Some(step) = run.steps.get(at) else {
        return;
    };
    if step.accesses.is_empty() {
        return;
    }
    let side_by_side = ((w.columns + BETWEEN) / (ROW + BETWEEN)).max(1);
    let sentences = step.accesses.iter().map(|it| {
        let mut own = ProseWriter::new(w.app, theme, w.columns);
        own.text(&it.sentence());
        own.lines
    });
    let sentences: Vec<Vec<Line<'static>>> = sentences.collect();
    let used = w.lines.len() + 1 + sentences.iter().map(Vec::len).sum::<usize>();
    let room = height.saturating_sub(used) / step.accesses.len();
    for (access, sentence) in step.accesses.iter().zip(sentences) {
        w.lines.extend(sentence);
        let rows = run.rows(at, access);
        let shown = match rows.len().div_ceil(side_by_side) {
            all if all <= room.max(1) => rows.len(),
            _ => (room.saturating_sub(1)).max(1) * side_by_side,
        };
        for rows in rows[..shown].chunks(side_by_side) {
            let mut spans = Vec::new();
            for row in rows {
                if !spans.is_empty() {
                    spans.push(Span::raw(" ".repeat(BETWEEN)));
                }
                spans.push(Span::styled(text::left(&row.label, LABEL), theme.dim));
                spans.extend(spaced(cells(row, w)));
            }
            w.lines.push(Line::from(spans));
        }
        let more = rows.len() - shown;
        if more > 0 && room > 1 {
            w.line(format!("… {more} more rows"), theme.dim);
        }
    }
    let said = format!(
        "A row is {LINE_BYTES} bytes, a line of memory; a mark 4 bytes. 2 to 9, +: so many lanes."
    );
    w.dim(&said);
}

/// The marks of a row of memory.
fn cells(row: &MemoryRow, w: &ProseWriter<'_>) -> Vec<(&'static str, Style)> {
    const COUNTS: [&str; 10] = ["·", "■", "2", "3", "4", "5", "6", "7", "8", "9"];
    let theme = w.theme;
    let marks = row.lanes.iter().enumerate().map(|(cell, lanes)| {
        let mark = COUNTS.get(usize::from(*lanes)).copied().unwrap_or("+");
        match lanes {
            _ if row.fought == Some(cell) => (theme.symbols.bad, theme.bad),
            0 => (mark, theme.dim),
            _ => (mark, theme.strong),
        }
    });
    marks.collect()
}

/// Marks with a gap after each eight.
fn spaced(
    marks: impl IntoIterator<Item = (&'static str, Style)>,
) -> impl Iterator<Item = Span<'static>> {
    marks
        .into_iter()
        .enumerate()
        .flat_map(|(at, (mark, style))| {
            let gap = (at > 0 && at % 8 == 0).then(|| Span::raw(" "));
            gap.into_iter().chain([Span::styled(mark, style)])
        })
}
