//! The card of the lanes shows what the lanes of a workgroup do in the learner's kernel, step by step: the source, a mark for each lane,
//! and for each load and store the rows of memory with the number of lanes at each place.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::Content;
use super::kernel::numbered_line;
use crate::app::App;
use crate::tui::prose::{ProseWriter, harmless};
use crate::tui::text;
use crate::tui::theme::Theme;
use wgsl_lockstep::lanes::{CELLS, LINE_BYTES, LaneState, MemoryRow, WorkgroupRun};

/// The width of the label of a row of memory.
const LABEL: usize = 15;
/// The width of a row of memory: its label and its cells, with a gap after each eight cells.
const ROW: usize = LABEL + CELLS + CELLS / 8 - 1;
/// The columns between two rows side by side.
const BETWEEN: usize = 3;
/// The width of a lane's number.
const NUMBER: usize = 4;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    let recorded = match &app.exercise.lanes.found {
        Some(Ok(found)) => found,
        found => {
            w.text(match found {
                Some(Err(why)) => why.as_str(),
                _ => "The kernel runs on the host, all lanes of a workgroup together.",
            });
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
    let position = text::joined(parts.iter().map(String::as_str), w.columns, "  ");
    let mut head = vec![Line::styled(position, theme.dim)];
    // The source takes a third of the rows.
    let rows = usize::from(area.height).saturating_sub(1);
    let source_rows = usize::from((area.height / 3).max(3)).min(rows);
    head.extend(source(run, at, source_rows, &w));
    head.resize(1 + source_rows, Line::default());
    let rows_left = rows - source_rows;
    lanes(run, at, rows_left / 3, &mut w);
    for fault in run.faults_at(at) {
        for (index, line) in fault.text.iter().enumerate() {
            if index == 0 {
                w.marked(theme.mark(false), line, theme.strong);
            } else {
                w.line(line.clone(), theme.text);
            }
        }
    }
    memory(run, at, rows_left, &mut w);
    Content {
        head,
        ..Content::titled(format!("threads of {}", recorded.file), w.lines)
    }
}

/// Returns the lines of the source around the line that runs at step `at`. Lines that a fault names are marked.
fn source(run: &WorkgroupRun, at: usize, rows: usize, w: &ProseWriter<'_>) -> Vec<Line<'static>> {
    let theme = w.theme;
    let line = run.steps.get(at).map_or(1, |step| step.line as usize);
    let count = run.text.lines().count();
    let from = line
        .saturating_sub(rows / 2 + 1)
        .min(count.saturating_sub(rows));
    let accused: Vec<usize> = run
        .faults_at(at)
        .flat_map(|fault| {
            let other = fault.other.map(|(step, _)| step);
            [Some(fault.step), other].into_iter().flatten()
        })
        .map(|step| run.steps[step].line as usize)
        .collect();
    let numbered = (from + 1..).zip(run.text.lines().skip(from).take(rows));
    numbered
        .map(|(number, code)| {
            let mark = if number == line {
                Span::styled(theme.symbols.pointer, theme.key)
            } else if accused.contains(&number) {
                Span::styled(theme.symbols.bad, theme.bad)
            } else {
                Span::raw(" ")
            };
            let mut whole = numbered_line(number, &harmless(code), theme);
            if number == line {
                whole.spans[1].style = theme.strong;
            }
            whole.spans.insert(0, mark);
            text::fit(whole, w.columns)
        })
        .collect()
}

/// Writes how many lanes are in which state, and a mark for each lane in at most `rows` rows.
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
    let width = [64, 32, 16]
        .into_iter()
        .find(|width| width + width / 8 <= columns + 1)
        .unwrap_or(8)
        .min(states.len().max(1));
    let mut lanes_per_mark = 1;
    while states.len().div_ceil(width * lanes_per_mark) > rows.max(1) {
        lanes_per_mark *= 2;
    }
    let mut counts = vec![Span::styled("lanes  ", theme.dim)];
    for (state, count) in run.counts(at) {
        let (symbol, style) = mark(state);
        if state != LaneState::Ended {
            counts.push(Span::styled(format!("{symbol} "), style));
        }
        counts.push(Span::styled(format!("{count}  "), theme.text));
    }
    if lanes_per_mark > 1 {
        let text = format!("one mark is {lanes_per_mark} lanes");
        counts.push(Span::styled(text, theme.dim));
    }
    w.runs(&counts, "", "");
    // A mark for several lanes shows the state that matters most.
    let rank = |state: &LaneState| match state {
        LaneState::Faulty => 4,
        LaneState::Runs => 3,
        LaneState::Waits => 2,
        LaneState::Idle => 1,
        LaneState::Ended => 0,
    };
    let cells: Vec<LaneState> = states
        .chunks(lanes_per_mark)
        .filter_map(|lanes| lanes.iter().copied().max_by_key(rank))
        .collect();
    for (row, cells) in cells.chunks(width).enumerate() {
        let number = format!("{:>3} ", row * width * lanes_per_mark);
        let mut spans = vec![Span::styled(number, theme.dim)];
        spans.extend(spaced(cells.iter().map(|state| mark(*state))));
        w.lines.push(Line::from(spans));
    }
}

/// Writes each access of step `at` as a sentence with its rows of memory. With the lines so far, at most about `height` lines are written.
fn memory(run: &WorkgroupRun, at: usize, height: usize, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let Some(step) = run.steps.get(at) else {
        return;
    };
    if step.accesses.is_empty() {
        return;
    }
    let side_by_side = ((w.columns + BETWEEN) / (ROW + BETWEEN)).max(1);
    let sentences: Vec<Vec<Line<'static>>> = step
        .accesses
        .iter()
        .map(|access| text::wrapped(&access.sentence(), theme.text, w.columns))
        .collect();
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
    w.dim(&format!(
        "One row is a {LINE_BYTES}-byte cache line, one mark is 4 bytes. 2 to 9, +: number of lanes."
    ));
}

/// Returns the marks of a row of memory, each with its style.
fn cells(row: &MemoryRow, w: &ProseWriter<'_>) -> Vec<(&'static str, Style)> {
    const COUNTS: [&str; 10] = ["·", "■", "2", "3", "4", "5", "6", "7", "8", "9"];
    let theme = w.theme;
    let mark = |(cell, lanes): (usize, &u16)| {
        let count = COUNTS.get(usize::from(*lanes)).copied().unwrap_or("+");
        match lanes {
            _ if row.faulty_cell == Some(cell) => (theme.symbols.bad, theme.bad),
            0 => (count, theme.dim),
            _ => (count, theme.strong),
        }
    };
    row.lanes.iter().enumerate().map(mark).collect()
}

/// Returns marks as spans, with a gap after each eight.
fn spaced(
    marks: impl IntoIterator<Item = (&'static str, Style)>,
) -> impl Iterator<Item = Span<'static>> {
    marks
        .into_iter()
        .enumerate()
        .flat_map(|(index, (mark, style))| {
            let gap = (index > 0 && index % 8 == 0).then(|| Span::raw(" "));
            gap.into_iter().chain([Span::styled(mark, style)])
        })
}
