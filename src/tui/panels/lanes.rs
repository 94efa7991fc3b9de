//! The card of the lanes (`threads` on the screen) shows a step of a workgroup in the learner's kernel: the source, a mark for each lane, and
//! for each load and store the rows of memory with the number of lanes at each place.
//!
//! ```text
//! step 3 of 14  workgroup 0 of 2  `one row`  N = 64
//!    3     let i = id.x;
//! ▸  4     out[i] = gate[2 * i];
//! lanes  ■ 32
//!   0 ■■■■■■■■ ■■■■■■■■ ■■■■■■■■ ■■■■■■■■
//! 32 lanes read 32 elements, every second one, gate[0] to gate[62]
//! gate[0]        ■·■·■·■· ■·■·■·■· ■·■·■·■· ■·■·■·■·
//! gate[32]       ■·■·■·■· ■·■·■·■· ■·■·■·■· ■·■·■·■·
//! ```

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
const LABEL_WIDTH: usize = 15;
/// The width of a row of memory: its label and its cells, with a gap after each eight cells.
const ROW_WIDTH: usize = LABEL_WIDTH + CELLS + CELLS / 8 - 1;
/// The columns between two rows side by side.
const GAP: usize = 3;
/// The width of a lane's number.
const NUMBER_WIDTH: usize = 4;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    let recorded = match &app.exercise.lanes.found {
        Some(Ok(recorded)) => recorded,
        not_recorded => {
            w.text(match not_recorded {
                Some(Err(why)) => why.as_str(),
                _ => "The kernel runs on the host, all lanes of a workgroup together.",
            });
            return Content::titled("threads", w.lines);
        }
    };
    let run = &recorded.run;
    let step = app.exercise.lanes.at;
    let cut = if run.cut { " and more" } else { "" };
    let parts = [
        format!("step {} of {}{cut}", step + 1, run.steps.len()),
        format!("workgroup {} of {}", run.group, run.groups),
        format!("`{}`", recorded.shape),
        recorded.sizes.clone(),
    ];
    let position = text::joined(parts.iter().map(String::as_str), w.columns, "  ");
    let mut head = vec![Line::styled(position, theme.dim)];
    // The source takes a third of the rows.
    let rows = usize::from(area.height).saturating_sub(1);
    let source_rows = usize::from((area.height / 3).max(3)).min(rows);
    head.extend(source(run, step, source_rows, &w));
    head.resize(1 + source_rows, Line::default());
    let rows_left = rows - source_rows;
    lanes(run, step, rows_left / 3, &mut w);
    for fault in run.faults_at(step) {
        for (index, line) in fault.text.iter().enumerate() {
            if index == 0 {
                w.marked(theme.mark(false), line, theme.strong);
            } else {
                w.line(line.clone(), theme.text);
            }
        }
    }
    memory(run, step, rows_left, &mut w);
    Content {
        head,
        ..Content::titled(format!("threads of {}", recorded.file), w.lines)
    }
}

/// Returns the lines of the source around the line that runs at a step. Lines that a fault names are marked.
fn source(run: &WorkgroupRun, step: usize, rows: usize, w: &ProseWriter<'_>) -> Vec<Line<'static>> {
    let theme = w.theme;
    let present = run.steps.get(step).map_or(1, |step| step.line as usize);
    let count = run.text.lines().count();
    let skipped = present
        .saturating_sub(rows / 2 + 1)
        .min(count.saturating_sub(rows));
    let faulty_lines: Vec<usize> = run
        .faults_at(step)
        .flat_map(|fault| {
            let other = fault.other.map(|(step, _)| step);
            [Some(fault.step), other].into_iter().flatten()
        })
        .map(|step| run.steps[step].line as usize)
        .collect();
    let numbered = (skipped + 1..).zip(run.text.lines().skip(skipped).take(rows));
    numbered
        .map(|(number, code)| {
            let mut line = numbered_line(number, &harmless(code), theme);
            let mark = if number == present {
                line.spans[1].style = theme.strong;
                Span::styled(theme.symbols.pointer, theme.key)
            } else if faulty_lines.contains(&number) {
                Span::styled(theme.symbols.bad, theme.bad)
            } else {
                Span::raw(" ")
            };
            line.spans.insert(0, mark);
            text::fit(line, w.columns)
        })
        .collect()
}

/// Writes the number of lanes in each state at a step, and a mark for each lane in at most `rows` rows.
fn lanes(run: &WorkgroupRun, step: usize, rows: usize, w: &mut ProseWriter<'_>) {
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
    let (states, _) = run.states(step);
    let columns = w.columns.saturating_sub(NUMBER_WIDTH);
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
    for (state, count) in run.counts(step) {
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
    // A mark for several lanes shows the most important state.
    let importance = |state: &LaneState| match state {
        LaneState::Faulty => 4,
        LaneState::Runs => 3,
        LaneState::Waits => 2,
        LaneState::Idle => 1,
        LaneState::Ended => 0,
    };
    let cells: Vec<LaneState> = states
        .chunks(lanes_per_mark)
        .filter_map(|lanes| lanes.iter().copied().max_by_key(importance))
        .collect();
    for (row, cells) in cells.chunks(width).enumerate() {
        let number = format!("{:>3} ", row * width * lanes_per_mark);
        let mut spans = vec![Span::styled(number, theme.dim)];
        spans.extend(spaced(cells.iter().map(|state| mark(*state))));
        w.lines.push(Line::from(spans));
    }
}

/// Writes each access of a step as a sentence with its rows of memory. Rows that do not fit into a card of `height` lines are left out, but at
/// least one line of rows stands below each sentence.
fn memory(run: &WorkgroupRun, step: usize, height: usize, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let accesses = run.steps.get(step).map_or(&[][..], |step| &step.accesses);
    if accesses.is_empty() {
        return;
    }
    let rows_per_line = ((w.columns + GAP) / (ROW_WIDTH + GAP)).max(1);
    let sentences: Vec<Vec<Line<'static>>> = accesses
        .iter()
        .map(|access| text::wrapped(&access.sentence(), theme.text, w.columns))
        .collect();
    let used = w.lines.len() + 1 + sentences.iter().map(Vec::len).sum::<usize>();
    let lines_per_access = height.saturating_sub(used) / accesses.len();
    for (access, sentence) in accesses.iter().zip(sentences) {
        w.lines.extend(sentence);
        let rows = run.rows(step, access);
        let all_fit = rows.len().div_ceil(rows_per_line) <= lines_per_access.max(1);
        let shown = if all_fit {
            rows.len()
        } else {
            (lines_per_access.saturating_sub(1)).max(1) * rows_per_line
        };
        for side_by_side in rows[..shown].chunks(rows_per_line) {
            let mut spans = Vec::new();
            for row in side_by_side {
                if !spans.is_empty() {
                    spans.push(Span::raw(" ".repeat(GAP)));
                }
                let label = text::left(&row.label, LABEL_WIDTH);
                spans.push(Span::styled(label, theme.dim));
                spans.extend(spaced(cells(row, theme)));
            }
            w.lines.push(Line::from(spans));
        }
        let more = rows.len() - shown;
        if more > 0 && lines_per_access > 1 {
            w.line(format!("… {more} more rows"), theme.dim);
        }
    }
    w.dim(&format!(
        "One row is a {LINE_BYTES}-byte cache line, one mark is 4 bytes. 2 to 9, +: number of lanes."
    ));
}

/// Returns a mark for each cell of a row of memory, with its style: the number of lanes there, or the mark of a fault.
fn cells(row: &MemoryRow, theme: &Theme) -> Vec<(&'static str, Style)> {
    const COUNTS: [&str; 10] = ["·", "■", "2", "3", "4", "5", "6", "7", "8", "9"];
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
