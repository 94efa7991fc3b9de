//! The card of the summary shows the learner's results: for each stage the prediction, the measured figures and the fix, then the score,
//! where to go on, and the table of the last `perflings run all`. After the last stage the card ends the course.
//!
//! ```text
//! 1 of 9 stages passed. Every number here was measured on your own machine.
//!
//! ✓ 1 A loss that should not exist
//!   Your prediction was right; range 5 nats to 8 nats, measured 6.91 nats:
//!   inside, 3 of 4 points
//!   the course's fix: every matrix starts as N(0, 0.02)
//! ○ 2 The same loss, other answers: not passed yet
//! ```

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::content::Content;
use super::question::{bounds_with_unit, judged, with_unit};
use crate::app::estimate::POINTS;
use crate::app::{Action, App, Overlay};
use crate::course::check::{Check, Starter};
use crate::course::journey::{JourneyRow, LastJourney};
use crate::course::save_file::{Prediction, StageState};
use crate::course::{Stage, TextSpan};
use crate::table;
use crate::tui::prose::{ProseWriter, READING};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::units::number;

/// Returns the columns that the card wants, borders included.
pub(super) fn columns(app: &App) -> u16 {
    let table = match &app.lesson.journey {
        Some(journey) => widths(journey).iter().sum(),
        None => 0,
    };
    READING.max(table) as u16 + 4
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut w = ProseWriter::new(app, theme, columns.min(READING));
    let stages = &app.lesson.course.stages;
    let is_passed =
        |stage: &&Stage| app.lesson.learner.progress_of(stage).state == StageState::Passed;
    let passed = stages.iter().filter(is_passed).count();
    let count = format!("{passed} of {} stages passed. ", stages.len());
    let source = "Every number here was measured on your own machine.";
    let runs = [
        Span::styled(count, theme.strong),
        Span::styled(source, theme.text),
    ];
    w.runs(&runs, "", "");
    w.blank();
    for stage in stages {
        write_stage(stage, &mut w);
    }
    w.heading("In all");
    totals(&mut w);
    w.heading("Where to go on");
    let text = "{} lists every stage and exercise: runs to predict, recordings to solve, kernels to \
                write.";
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
    let theme = w.theme;
    let learner = &w.app.lesson.learner;
    let progress = learner.progress_of(stage);
    let title = format!("{} {}", stage.number, stage.title);
    if progress.state != StageState::Passed {
        let text = format!("{title}: not passed yet");
        return w.marked((theme.symbols.circle, theme.dim), &text, theme.dim);
    }
    w.blank();
    w.marked(theme.mark(true), &title, theme.strong);
    let mut parts = vec![match progress.prediction {
        Some(Prediction::Choice { right: true, .. }) => "Your prediction was right".to_owned(),
        Some(Prediction::Choice { .. }) => "Your prediction was different".to_owned(),
        Some(Prediction::Skipped) | None => "No prediction".to_owned(),
    }];
    if let (Some(estimate), Some(range), Some(truth)) =
        (&stage.estimate, progress.estimate, progress.measured)
    {
        let [low, high] = bounds_with_unit(estimate, range);
        let measured = with_unit(estimate, truth);
        let judged = judged(estimate, range, truth);
        parts.push(format!(
            "range {low} to {high}, measured {measured}: {judged}"
        ));
    }
    if let Some(figures) = progress.ratio {
        let [ratio, low, high] = figures.map(number);
        parts.push(format!(
            "A took {ratio}x [{low}, {high}] of your B's time per token"
        ));
    }
    let decides = |check: &&Check| check.starter == Starter::Fails;
    if let (Some(check), Some(found)) = (stage.checks.iter().find(decides), &progress.found) {
        parts.push(format!("{}: measured {found}", check.name));
    }
    if !progress.answers.is_empty() {
        let right = learner.right_at_first(stage);
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
const MAX_COLUMN: usize = 48;

/// Writes the table of the last `perflings run all`, or how to make it.
fn journey(columns: usize, w: &mut ProseWriter<'_>) {
    w.heading("Every stage, broken and fixed");
    let Some(journey) = &w.app.lesson.journey else {
        let text = "`perflings run all` measures every stage in turns, broken and fixed, against the \
                    plain baseline, and prints one table, which is then shown here as well.";
        return w.text(text);
    };
    let age = match journey.days {
        0 => "today".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    };
    // A row would reveal the fault of its stage.
    let stages = &w.app.lesson.course.stages;
    let is_hidden = |row: &JourneyRow| {
        let stage = stages.iter().find(|stage| stage.number == row.stage);
        stage.is_some_and(|stage| !w.app.lesson.learner.predicted(stage))
    };
    let rows: Vec<&JourneyRow> = journey.rows.iter().filter(|row| !is_hidden(row)).collect();
    let mut notes = String::new();
    if journey.interrupted {
        notes += " It was interrupted: rows are missing.";
    }
    if rows.len() < journey.rows.len() {
        notes += " Stages that you have not predicted yet are left out.";
    }
    w.text(&format!(
        "`perflings run all` measured this at {} on {}, {} ({age}).{notes}",
        journey.preset, journey.device, journey.date
    ));
    w.columns = columns;
    for shown in split_columns(&widths(journey), columns) {
        let cells = |row: &[String]| -> Vec<Vec<TextSpan>> {
            let texts = shown.iter().map(|column| row.get(*column).cloned());
            texts
                .map(|text| text.map(TextSpan::Text).into_iter().collect())
                .collect()
        };
        let body: Vec<_> = rows.iter().map(|row| cells(&row.cells)).collect();
        w.blank();
        w.table(&cells(&journey.head), &body);
    }
    w.columns = columns.min(READING);
}

/// Returns the wanted width of each column, with the gap before it.
fn widths(journey: &LastJourney) -> Vec<usize> {
    let rows = journey.rows.iter().map(|row| row.cells.as_slice());
    let all = rows.chain([journey.head.as_slice()]);
    table::widths(all, journey.head.len(), |cell| text::width(cell))
        .into_iter()
        .map(|width| GAP + width.min(MAX_COLUMN))
        .collect()
}

/// Splits a table into tables that fit into `columns`. Returns the indices of the columns of each. Each table begins with the first column,
/// which names its rows.
fn split_columns(widths: &[usize], columns: usize) -> Vec<Vec<usize>> {
    let mut tables: Vec<Vec<usize>> = Vec::new();
    let mut free = 0;
    for (column, width) in widths.iter().enumerate().skip(1) {
        match tables.last_mut() {
            Some(table) if *width <= free => table.push(column),
            _ => {
                tables.push(vec![0, column]);
                free = (columns + GAP).saturating_sub(widths[0]);
            }
        }
        free = free.saturating_sub(*width);
    }
    tables
}
