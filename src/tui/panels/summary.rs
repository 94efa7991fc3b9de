//! The card of the summary shows what the learner has done, in the learner's own numbers: for each stage the prediction, the measured
//! figures and the fix; and where to go on. After the last stage it is the end of the course.

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::content::Content;
use super::question::{bounds_with_unit, judged, with_unit};
use crate::app::estimate::POINTS;
use crate::app::{Action, App, Overlay};
use crate::course::check::{Check, Starter};
use crate::course::journey::{JourneyRow, LastJourney};
use crate::course::save_file::{Prediction, StageState};
use crate::course::{Stage, TextSpan as Words};
use crate::table;
use crate::tui::prose::{ProseWriter, READING};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::units::number;

/// Returns the columns that the card wants.
pub(super) fn widest(app: &App) -> u16 {
    let table = match &app.lesson.journey {
        Some(journey) => widths(journey).iter().sum(),
        None => 0,
    };
    READING.max(table) as u16 + 4
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut w = ProseWriter::new(app, theme, columns.min(READING));
    let all = &app.lesson.course.stages;
    let passed = |stage: &&Stage| app.lesson.learner.progress_of(stage).state == StageState::Passed;
    let done = all.iter().filter(passed).count();
    let count = format!("{done} of {} stages passed. ", all.len());
    let source = "Every number here was measured on your own machine.";
    let runs = [
        Span::styled(count, theme.strong),
        Span::styled(source, theme.text),
    ];
    w.runs(&runs, "", "");
    w.blank();
    for stage in all {
        write_stage(stage, &mut w);
    }
    w.heading("In all");
    totals(&mut w);
    w.heading("Where to go on");
    let text = "{} lists every stage and exercise: runs to predict, recordings to solve, kernels to write.";
    w.keys(text, &[Action::Open(Overlay::Stages)]);
    w.text(
        "`perflings --free` trains without a stage, with every knob: find a faster step than ours.",
    );
    w.text("`perflings mystery` trains with faults drawn from a seed, to find and to fix.");
    journey(columns, &mut w);
    Content::titled("what you have done", w.lines)
}

/// Writes a stage: its title, the prediction, the measured figures, and the fix.
fn write_stage(stage: &Stage, w: &mut ProseWriter<'_>) {
    let (app, theme) = (w.app, w.theme);
    let known = app.lesson.learner.progress_of(stage);
    let title = format!("{} {}", stage.number, stage.title);
    if known.state != StageState::Passed {
        let text = format!("{title}: not passed yet");
        return w.marked((theme.symbols.circle, theme.dim), &text, theme.dim);
    }
    w.blank();
    w.marked((theme.symbols.good, theme.good), &title, theme.strong);
    let mut parts = vec![match known.prediction {
        Some(Prediction::Choice { right: true, .. }) => "Your prediction was right".to_owned(),
        Some(Prediction::Choice { .. }) => "Your prediction was different".to_owned(),
        Some(Prediction::Skipped) | None => "No prediction".to_owned(),
    }];
    if let (Some(estimate), Some(range), Some(truth)) =
        (&stage.estimate, known.estimate, known.measured)
    {
        let [low, high] = bounds_with_unit(estimate, range);
        let measured = with_unit(estimate, truth);
        let judged = judged(estimate, range, truth);
        parts.push(format!(
            "range {low} to {high}, measured {measured}: {judged}"
        ));
    }
    if let Some(figures) = known.ratio {
        let [ratio, low, high] = figures.map(number);
        parts.push(format!(
            "A took {ratio}x [{low}, {high}] of your B's time per token"
        ));
    }
    let decides = |check: &&Check| check.starter == Starter::Fails;
    if let (Some(check), Some(found)) = (stage.checks.iter().find(decides), &known.found) {
        parts.push(format!("{}: measured {found}", check.name));
    }
    if !known.answers.is_empty() {
        let right = app.lesson.learner.right_at_first(stage);
        let all = stage.quiz.len();
        parts.push(format!(
            "{right} of {all} questions right at the first answer"
        ));
    }
    w.item("  ", theme.dim, &parts.join("; "));
    if !stage.fix.is_empty() && !stage.fix.contains("{{") {
        w.item("  the course's fix: ", theme.dim, &stage.fix);
    }
}

/// Writes the score over all stages.
fn totals(w: &mut ProseWriter<'_>) {
    let score = w.app.lesson.learner.progress.calibration();
    let points = (w.app.lesson.range_points(), POINTS * score.ranges);
    w.plain(&score.sentence(Some(points)), w.theme.strong);
}

/// The gap between two columns of a table.
const GAP: usize = 2;
/// The largest width of a column; a longer text wraps.
const WIDEST: usize = 48;

/// Writes the table of the last `perflings run all`, or how to make it.
fn journey(columns: usize, w: &mut ProseWriter<'_>) {
    w.heading("Every stage, broken and fixed");
    let Some(found) = &w.app.lesson.journey else {
        let text = "`perflings run all` measures every stage in turns, broken and fixed, against the plain baseline, and prints one \
                    table, which is then shown here as well.";
        return w.text(text);
    };
    let age = match found.days {
        0 => "today".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    };
    let mut notes = String::new();
    if found.interrupted {
        notes += " It was interrupted: rows are missing.";
    }
    // A row would reveal the fault of its stage.
    let stages = &w.app.lesson.course.stages;
    let is_hidden = |row: &JourneyRow| {
        let stage = stages.iter().find(|stage| stage.number == row.stage);
        stage.is_some_and(|stage| !w.app.lesson.learner.predicted(stage))
    };
    let rows: Vec<&JourneyRow> = found.rows.iter().filter(|row| !is_hidden(row)).collect();
    if rows.len() < found.rows.len() {
        notes += " Stages that you have not predicted yet are left out.";
    }
    w.text(&format!(
        "`perflings run all` measured this at {} on {}, {} ({age}).{notes}",
        found.preset, found.device, found.date
    ));
    w.columns = columns;
    for shown in split_columns(&widths(found), columns) {
        let cell = |row: &Vec<String>, column: usize| match row.get(column) {
            Some(text) => vec![Words::Text(text.clone())],
            None => Vec::new(),
        };
        let cells =
            |row: &Vec<String>| -> Vec<_> { shown.iter().map(|at| cell(row, *at)).collect() };
        let rows: Vec<Vec<Vec<Words>>> = rows.iter().map(|row| cells(&row.cells)).collect();
        w.blank();
        w.table(&cells(&found.head), &rows);
    }
    w.columns = columns.min(READING);
}

/// Returns the width that each column would like, with the gap before it.
fn widths(found: &LastJourney) -> Vec<usize> {
    let rows = found.rows.iter().map(|row| &row.cells).chain([&found.head]);
    let slices = rows.map(Vec::as_slice);
    table::widths(slices, found.head.len(), |cell| text::width(cell))
        .into_iter()
        .map(|wide| GAP + wide.min(WIDEST))
        .collect()
}

/// Splits a table into tables that fit into `columns`, each as a list of its columns. Each table begins with the first column.
fn split_columns(widths: &[usize], columns: usize) -> Vec<Vec<usize>> {
    let mut tables: Vec<Vec<usize>> = Vec::new();
    let mut left = 0;
    for (column, wide) in widths.iter().enumerate().skip(1) {
        match tables.last_mut() {
            Some(table) if *wide <= left => table.push(column),
            _ => {
                tables.push(vec![0, column]);
                left = (columns + GAP).saturating_sub(widths[0]);
            }
        }
        left = left.saturating_sub(*wide);
    }
    tables
}
