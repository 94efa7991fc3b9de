//! The card with the list of the course: the state of each stage and exercise, which predictions were right, and the score.
//!
//! ```text
//! ▸ ○ 1   beginner      A loss that should not exist
//!   ✓ 2   intermediate  The same loss, other answers     prediction right
//!     3   beginner      A step that does not add up
//! …
//! ✓ passed   ● predicted   ○ begun   ─ skipped   ▸ here
//! your predictions: 1 of 1 were right
//! ```

use std::borrow::Cow;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::{App, Mode};
use crate::course::save_file::{Prediction, StageState};
use crate::course::{Exercise, Stage, UnusableContent};
use crate::tui::surface::choose_hint;
use crate::tui::text;
use crate::tui::theme::Theme;

/// The columns of an entry before its level.
const MARKS: usize = 8;
/// The columns of the level.
const LEVEL: usize = 14;

/// Returns the list of the stages, the exercises, the free run and the mystery, with the legend and the score below it.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut list = Content::titled("stages and exercises", Vec::new());
    list.aside = choose_hint("goes there", app);
    list.between([Line::styled(app.lesson.course.title.clone(), theme.heading)]);
    let course = &app.lesson.course;
    for (index, stage) in course.stages.iter().enumerate() {
        let entry = stage_entry(app, index, stage);
        list.entry(index, entry.line(columns, theme));
    }
    if !course.exercises.is_empty() {
        let text = "exercises: runs to predict, recordings to solve, kernels to write";
        let heading = Line::styled(text::cut(text, columns), theme.heading);
        list.between([Line::default(), heading]);
    }
    for (index, exercise) in course.exercises.iter().enumerate() {
        let entry = exercise_entry(app, index, exercise);
        list.entry(course.stages.len() + index, entry.line(columns, theme));
    }
    for content in &course.broken {
        list.between([broken_line(content, columns, theme)]);
    }
    list.between([Line::default()]);
    runs(app, theme, &mut list);
    let rule = Line::styled(theme.symbols.rule.repeat(columns), theme.border);
    list.foot = vec![rule, legend(theme), score(app, theme, columns)];
    list.mark(app.view.selected);
    list
}

/// Returns the line that explains the marks.
fn legend(theme: &Theme) -> Line<'static> {
    let symbols = &theme.symbols;
    let marks = [
        (symbols.good, "passed", theme.good),
        (symbols.live, "predicted", theme.text),
        (symbols.circle, "begun", theme.text),
        (symbols.rule, "skipped", theme.text),
        (symbols.pointer, "here", theme.key),
    ];
    marks
        .into_iter()
        .flat_map(|(mark, meaning, style)| {
            let meaning = Span::styled(format!(" {meaning}   "), theme.dim);
            [Span::styled(mark, style), meaning]
        })
        .collect()
}

/// Returns the line that says how many predictions and ranges were right.
fn score(app: &App, theme: &Theme, columns: usize) -> Line<'static> {
    let score = app.lesson.learner.progress.calibration();
    let made = match score.answered {
        0 => "they count once their stage is passed".to_owned(),
        made => format!("{} of {made} were right", score.right),
    };
    let mut parts = vec![
        (0, Span::styled("your predictions: ", theme.dim)),
        (0, Span::styled(made, theme.strong)),
    ];
    if score.ranges > 0 {
        let ranges = format!("; {} of {} ranges held", score.held, score.ranges);
        parts.push((1, Span::styled(ranges, theme.strong)));
        parts.push((2, Span::styled(" the measured figure", theme.strong)));
    }
    text::ranked(parts, columns)
}

/// A stage or an exercise in the list.
struct Entry<'a> {
    /// True for the stage or exercise that is open.
    is_open: bool,
    state: StageState,
    /// The number of a stage, or the name of an exercise, such as `k01`.
    label: Cow<'a, str>,
    level: &'a str,
    title: &'a str,
    notes: [Option<&'static str>; 2],
}

impl Entry<'_> {
    fn line(&self, columns: usize, theme: &Theme) -> Line<'static> {
        let symbols = &theme.symbols;
        let (mark, style) = match self.state {
            StageState::Passed => (symbols.good, theme.good),
            StageState::Predicted => (symbols.live, theme.text),
            StageState::Seen => (symbols.circle, theme.text),
            StageState::Skipped => (symbols.rule, theme.dim),
            StageState::New => (" ", theme.dim),
        };
        let pointer = symbols.pointer_at(self.is_open);
        let title = text::cut(self.title, columns.saturating_sub(MARKS + LEVEL));
        let label = text::left(&self.label, MARKS - 4);
        let level = text::left(self.level, LEVEL);
        let cells = format!("{pointer} {mark} {label}{level}{title}");
        let free = columns.saturating_sub(text::width(&cells));
        let notes = self.notes.into_iter().flatten();
        let note = text::joined(notes, free.saturating_sub(2), ", ");
        Line::from(vec![
            Span::styled(cells, style),
            Span::styled(text::right(&note, free), theme.dim),
        ])
    }
}

fn exercise_entry<'a>(app: &App, index: usize, exercise: &'a Exercise) -> Entry<'a> {
    let progress = app.lesson.learner.progress.stage(&exercise.id);
    Entry {
        is_open: app.mode.exercise() == Some(index),
        state: progress.state,
        label: exercise.label().into(),
        level: exercise.level.into_str(),
        title: &exercise.title,
        notes: [None, progress.solution_shown.then_some("solution shown")],
    }
}

/// Returns the line of a stage or an exercise that could not be loaded. It cannot be selected.
fn broken_line(content: &UnusableContent, columns: usize, theme: &Theme) -> Line<'static> {
    let mark = theme.symbols.bad;
    let label = text::left(content.label(), MARKS - 4);
    let level = text::left("broken", LEVEL);
    let line = format!("  {mark} {label}{level}{}", content.why);
    Line::styled(text::cut(&line, columns), theme.bad)
}

/// Adds the run without a stage and the mystery to the end of the list.
fn runs(app: &App, theme: &Theme, list: &mut Content<'_>) {
    let solved = match app.lesson.learner.progress.mysteries.len() {
        0 => String::new(),
        count => format!(" ({count} solved)"),
    };
    let free = "free run: every knob, no questions".to_owned();
    let mystery = format!("mystery: a run with hidden faults to fix{solved}");
    let first = app.lesson.course.stages.len() + app.lesson.course.exercises.len();
    for (entry, is_open, text) in [
        (first, matches!(app.mode, Mode::Free), free),
        (first + 1, matches!(app.mode, Mode::Mystery(_)), mystery),
    ] {
        let pointer = theme.symbols.pointer_at(is_open);
        let line = format!("{pointer}   {text}");
        list.entry(entry, Line::styled(line, theme.text));
    }
}

fn stage_entry<'a>(app: &App, index: usize, stage: &'a Stage) -> Entry<'a> {
    let progress = app.lesson.learner.progress_of(stage);
    // The list judges a prediction only after the stage is passed.
    let judged = match (progress.state, progress.prediction) {
        (_, Some(Prediction::Skipped)) => Some("prediction skipped"),
        (StageState::Passed, Some(Prediction::Choice { right: true, .. })) => {
            Some("prediction right")
        }
        (StageState::Passed, Some(_)) => Some("prediction wrong"),
        _ => None,
    };
    let state = match (progress.state, progress.prediction) {
        // A skipped prediction is noted beside the title.
        (StageState::Predicted, Some(Prediction::Skipped)) => StageState::Seen,
        (state, _) => state,
    };
    Entry {
        is_open: index == app.lesson.learner.at && app.mode.reads_stage(),
        state,
        label: stage.number.to_string().into(),
        level: stage.level.into_str(),
        title: &stage.title,
        notes: [judged, progress.solution_shown.then_some("solution shown")],
    }
}
