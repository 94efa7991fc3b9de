//! The list of the course shows the state of each stage and exercise, which predictions were right, and the score.

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

/// Returns the list of the stages, the exercises and the runs without either. The meaning of the marks and the score stand below it.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut list = Content::titled("stages and exercises", Vec::new());
    list.aside = choose_hint("goes there", app);
    list.between([Line::styled(app.lesson.course.title.clone(), theme.heading)]);
    let (stages, exercises) = (&app.lesson.course.stages, &app.lesson.course.exercises);
    for (index, stage) in stages.iter().enumerate() {
        list.entry(index, stage_line(app, index, stage, columns, theme));
    }
    if !exercises.is_empty() {
        let heading = "exercises: runs to predict, recordings to solve, kernels to write";
        let heading = Line::styled(text::cut(heading, columns), theme.heading);
        list.between([Line::default(), heading]);
    }
    for (index, exercise) in exercises.iter().enumerate() {
        let line = exercise_line(app, index, exercise, columns, theme);
        list.entry(stages.len() + index, line);
    }
    let broken = app.lesson.course.broken.iter();
    list.between(broken.map(|content| broken_line(content, columns, theme)));
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
        .flat_map(|(mark, words, style)| {
            let words = Span::styled(format!(" {words}   "), theme.dim);
            [Span::styled(mark, style), words]
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
    here: bool,
    state: StageState,
    label: &'a str,
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
        let here = symbols.pointer_at(self.here);
        let title = text::cut(self.title, columns.saturating_sub(MARKS + LEVEL));
        let label = text::left(self.label, MARKS - 4);
        let level = text::left(self.level, LEVEL);
        let cells = format!("{here} {mark} {label}{level}{title}");
        let left = columns.saturating_sub(text::width(&cells));
        let note = text::joined(
            self.notes.into_iter().flatten(),
            left.saturating_sub(2),
            ", ",
        );
        Line::from(vec![
            Span::styled(cells, style),
            Span::styled(text::right(&note, left), theme.dim),
        ])
    }
}

fn exercise_line(
    app: &App,
    index: usize,
    exercise: &Exercise,
    columns: usize,
    theme: &Theme,
) -> Line<'static> {
    let known = app.lesson.learner.progress.stage(&exercise.id);
    let entry = Entry {
        here: app.mode.exercise() == Some(index),
        state: known.state,
        label: exercise.label(),
        level: exercise.level.into_str(),
        title: &exercise.title,
        notes: [None, known.solution_shown.then_some("solution shown")],
    };
    entry.line(columns, theme)
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
        n => format!(" ({n} solved)"),
    };
    let free = "free run: every knob, no questions".to_owned();
    let mystery = format!("mystery: a run with hidden faults to fix{solved}");
    let first = app.lesson.course.stages.len() + app.lesson.course.exercises.len();
    for (entry, here, words) in [
        (first, matches!(app.mode, Mode::Free), free),
        (first + 1, matches!(app.mode, Mode::Mystery(_)), mystery),
    ] {
        let mark = theme.symbols.pointer_at(here);
        let line = format!("{mark}   {words}");
        list.entry(entry, Line::styled(line, theme.text));
    }
}

fn stage_line(
    app: &App,
    index: usize,
    stage: &Stage,
    columns: usize,
    theme: &Theme,
) -> Line<'static> {
    let known = app.lesson.learner.progress_of(stage);
    // The list says whether a prediction was right only after the stage is passed.
    let predicted = match (known.state, known.prediction) {
        (_, Some(Prediction::Skipped)) => Some("prediction skipped"),
        (StageState::Passed, Some(Prediction::Choice { right: true, .. })) => {
            Some("prediction right")
        }
        (StageState::Passed, Some(_)) => Some("prediction wrong"),
        _ => None,
    };
    let state = match (known.state, known.prediction) {
        // A skipped prediction is noted beside the title.
        (StageState::Predicted, Some(Prediction::Skipped)) => StageState::Seen,
        (state, _) => state,
    };
    let entry = Entry {
        here: index == app.lesson.learner.at && app.mode.reads_stage(),
        state,
        label: &stage.number.to_string(),
        level: stage.level.into_str(),
        title: &stage.title,
        notes: [predicted, known.solution_shown.then_some("solution shown")],
    };
    entry.line(columns, theme)
}
