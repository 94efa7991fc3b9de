//! What the learner has done so far, in their own numbers: for each stage the prediction, what was measured, the fix; and
//! where to go on. After the last stage it is the end of the course.

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::content::Content;
use super::question::{bounds_with_unit, judged, with_unit};
use crate::app::estimate::POINTS;
use crate::app::{Action, App, Overlay};
use crate::course::check::Starter;
use crate::course::journey::{JourneyRow, LastJourney};
use crate::course::save_file::{Prediction, StageState};
use crate::course::{Stage, TextSpan as Words};
use crate::table;
use crate::tui::prose::{ProseWriter, READING};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::units::number;

/// Columns that the card takes at most.
pub(super) fn widest(app: &App) -> u16 {
    let table = app
        .lesson
        .journey
        .as_ref()
        .map_or(0, |it| widths(it).iter().sum());
    READING.max(table) as u16 + 4
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut w = ProseWriter::new(app, theme, columns.min(READING));
    let all = &app.lesson.course.stages;
    let passed = |stage: &&Stage| app.lesson.study.progress_of(stage).state == StageState::Passed;
    let done = all.iter().filter(passed).count();
    let begin = format!("{done} of {} stages passed. ", all.len());
    let rest = "Every number here was measured on your own machine.";
    let begin = Span::styled(begin, theme.strong);
    w.runs(&[begin, Span::styled(rest, theme.text)], "", "");
    w.blank();
    all.iter().for_each(|stage| of_stage(stage, &mut w));
    w.heading("In all");
    totals(&mut w);
    w.heading("Where to go on");
    let said = "{} lists every stage and exercise: runs to predict, recordings to solve, kernels to write.";
    w.keys(said, &[Action::Open(Overlay::Stages)]);
    let said =
        "`perflings --free` trains without a stage, with every knob: find a faster step than ours.";
    w.text(said);
    w.text("`perflings mystery` trains with faults drawn from a seed, to find and to fix.");
    journey(columns, &mut w);
    Content::titled("what you have done", w.lines)
}

/// A stage: its title, the prediction, what was measured, and the fix.
fn of_stage(stage: &Stage, w: &mut ProseWriter<'_>) {
    let (app, theme) = (w.app, w.theme);
    let known = app.lesson.study.progress_of(stage);
    let passed = known.state == StageState::Passed;
    let title = format!("{} {}", stage.number, stage.title);
    if !passed {
        let said = format!("{title}: not passed yet");
        return w.marked((theme.symbols.circle, theme.dim), &said, theme.dim);
    }
    w.blank();
    w.marked((theme.symbols.good, theme.good), &title, theme.strong);
    let mut said = vec![match known.prediction {
        Some(Prediction::Choice { right: true, .. }) => "Your prediction was right".to_owned(),
        Some(Prediction::Choice { .. }) => "Your prediction was different".to_owned(),
        Some(Prediction::Skipped) | None => "No prediction".to_owned(),
    }];
    if let (Some(of), Some((low, high)), Some(truth)) =
        (&stage.estimate, known.estimate, known.measured)
    {
        let inside = judged(of, (low, high), truth);
        let ([low, high], truth) = (bounds_with_unit(of, (low, high)), with_unit(of, truth));
        said.push(format!("range {low} to {high}, measured {truth}: {inside}"));
    }
    if let Some([ratio, low, high]) = known.ratio {
        let [ratio, low, high] = [ratio, low, high].map(number);
        said.push(format!(
            "A took {ratio}x [{low}, {high}] of your B's time per token"
        ));
    }
    let key = stage.checks.iter().find(|it| it.starter == Starter::Fails);
    if let (Some(check), Some(found)) = (key, &known.found) {
        said.push(format!("{}: measured {found}", check.name));
    }
    if !known.answers.is_empty() {
        let (right, of) = (app.lesson.study.right_at_first(stage), stage.quiz.len());
        said.push(format!(
            "{right} of {of} questions right at the first answer"
        ));
    }
    w.item("  ", theme.dim, &said.join("; "));
    if !stage.fix.is_empty() && !stage.fix.contains("{{") {
        w.item("  the course's fix: ", theme.dim, &stage.fix);
    }
}

/// The score over all stages.
fn totals(w: &mut ProseWriter<'_>) {
    let score = w.app.lesson.study.progress.calibration();
    let points = (w.app.lesson.range_points(), POINTS * score.ranges);
    w.plain(&score.said(Some(points)), w.theme.strong);
}

/// Columns between two of a table.
const GAP: usize = 2;
/// Widest column; a longer text wraps.
const WIDEST: usize = 48;

/// The table of `perflings run all`; where there is none, how to make it.
fn journey(columns: usize, w: &mut ProseWriter<'_>) {
    w.heading("Every stage, broken and fixed");
    let Some(found) = &w.app.lesson.journey else {
        let said = "`perflings run all` measures every stage in turns, broken and fixed, against the plain baseline, and prints one \
                    table, which is then shown here as well.";
        return w.text(said);
    };
    let age = match found.days {
        0 => "today".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    };
    let mut part = String::new();
    if found.interrupted {
        part += " It was interrupted: rows are missing.";
    }
    // A row reveals its stage's fault.
    let stages = &w.app.lesson.course.stages;
    let hidden = |row: &JourneyRow| {
        let stage = stages.iter().find(|it| it.number == row.stage);
        stage.is_some_and(|stage| !w.app.lesson.study.predicted(stage))
    };
    let rows: Vec<&JourneyRow> = found.rows.iter().filter(|row| !hidden(row)).collect();
    if rows.len() < found.rows.len() {
        part += " Stages that you have not predicted yet are left out.";
    }
    let said = format!(
        "`perflings run all` measured this at {} on {}, {} ({age}).{part}",
        found.preset, found.device, found.date
    );
    w.text(&said);
    let words = |text: &String| vec![Words::Text(text.clone())];
    w.columns = columns;
    for shown in parts(&widths(found), columns) {
        let cells = |row: &Vec<String>| {
            let cells = shown
                .iter()
                .map(|at| row.get(*at).map_or_else(Vec::new, words));
            cells.collect::<Vec<_>>()
        };
        let rows: Vec<Vec<Vec<Words>>> = rows.iter().map(|row| cells(&row.cells)).collect();
        w.blank();
        w.table(&cells(&found.head), &rows);
    }
    w.columns = columns.min(READING);
}

/// How wide each column would be, with the gap before it.
fn widths(found: &LastJourney) -> Vec<usize> {
    let rows = found.rows.iter().map(|row| &row.cells).chain([&found.head]);
    let rows = rows.map(Vec::as_slice);
    let widths = table::widths(rows, found.head.len(), |cell| text::width(cell));
    let with_gap = |wide: usize| GAP + wide.min(WIDEST);
    widths.into_iter().map(with_gap).collect()
}

/// As many tables below each other as it takes to show every column; each begins with the first one.
fn parts(widths: &[usize], columns: usize) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut left = 0;
    for (at, wide) in widths.iter().enumerate().skip(1) {
        match parts.last_mut().filter(|_| *wide <= left) {
            Some(part) => part.push(at),
            None => {
                parts.push(vec![0, at]);
                left = (columns + GAP).saturating_sub(widths[0]);
            }
        }
        left = left.saturating_sub(*wide);
    }
    parts
}
