//! The course at a glance: how far each stage has come, which predictions came true, and the score over all of them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{card, chooses, show};
use crate::app::App;
use crate::course::progress::{Prediction, State};
use crate::course::{Exercise, Stage};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Lines above the first stage, and between the last stage and the first exercise.
const HEAD: usize = 2;
const BETWEEN: usize = 2;

/// The line on which an entry of the list stands.
fn line_of(entry: usize, app: &App) -> usize {
    let stage = entry < app.course.stages.len();
    let between = if stage || app.course.exercises.is_empty() {
        0
    } else {
        BETWEEN
    };
    HEAD + entry + between
}

/// First line shown, so that the selected one stays in view.
pub fn scrolled(app: &App, rows: u16) -> u16 {
    let end = line_of(app.view.selected, app) + 2;
    u16::try_from(end).unwrap_or(u16::MAX).saturating_sub(rows)
}

/// The entry on a line of the list.
pub fn entry_at(line: usize, app: &App) -> Option<usize> {
    let count = app.course.stages.len() + app.course.exercises.len();
    (0..count).find(|entry| line_of(*entry, app) == line)
}

/// Lines of the whole list.
pub fn length(app: &App) -> usize {
    let count = app.course.stages.len() + app.course.exercises.len();
    line_of(count, app) + 3
}

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "stages",
        &chooses("goes there", app),
        theme.border_focused,
        theme,
    );
    let columns = usize::from(inner.width);
    let mut lines = vec![
        Line::styled(app.course.title.clone(), theme.heading),
        Line::default(),
    ];
    lines.extend(
        app.course
            .stages
            .iter()
            .enumerate()
            .map(|(at, stage)| row(app, at, stage, columns, theme)),
    );
    if !app.course.exercises.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled(
            "exercises: runs to think through, recordings to solve, kernels to write",
            theme.heading,
        ));
        let exercises = app.course.exercises.iter().enumerate();
        lines.extend(exercises.map(|(at, it)| exercise_row(app, at, it, columns, theme)));
    }
    lines.push(Line::default());
    let score = app.study.progress.calibration();
    let said = match score.answered {
        0 => "predictions count once their stage is passed".to_owned(),
        made => format!("{} of {made} predictions came true", score.right),
    };
    lines.push(Line::from(vec![
        Span::styled("calibration: ", theme.dim),
        Span::styled(said, theme.strong),
    ]));
    if score.ranges > 0 {
        let held = format!(
            "{} of {} ranges held the measured figure",
            score.held, score.ranges
        );
        lines.push(Line::styled(held, theme.text));
    }
    // The selected line stays in view.
    let from = scrolled(app, inner.height);
    show(frame, inner, lines, from, theme)
}

fn exercise_row(
    app: &App,
    at: usize,
    exercise: &Exercise,
    columns: usize,
    theme: &Theme,
) -> Line<'static> {
    let known = app.exercise_progress(exercise);
    let (mark, style) = match known.state {
        State::Passed => (theme.symbols.good, theme.good),
        State::New => (" ", theme.dim),
        _ => (theme.symbols.ghost, theme.text),
    };
    let here = if app.exercises.open == Some(at) {
        theme.symbols.pointer
    } else {
        " "
    };
    let room = columns.saturating_sub(8 + 14 + 24);
    let shown = if known.solution_shown {
        ", solution shown"
    } else {
        ""
    };
    let cells = format!(
        "{here} {mark} {} {}  {}  {}",
        exercise.label(),
        text::left(&exercise.title, room),
        text::left(exercise.level.name(), 12),
        text::left(&format!("{}{shown}", known.state.name()), 24)
    );
    let selected = app.view.selected == app.course.stages.len() + at;
    let style = if selected { theme.selected } else { style };
    Line::styled(cells, style)
}

fn row(app: &App, at: usize, stage: &Stage, columns: usize, theme: &Theme) -> Line<'static> {
    let known = app.study.of(stage);
    let (mark, style) = match known.state {
        State::Passed => (theme.symbols.good, theme.good),
        State::New => (" ", theme.dim),
        _ => (theme.symbols.ghost, theme.text),
    };
    // Whether it came true is told once the stage is passed; before that the state says that it was made.
    let (state, predicted) = match (known.state, known.prediction) {
        (State::Predicted, Some(Prediction::Skipped)) => ("seen", "prediction skipped"),
        (State::Predicted, _) => ("predicted", ""),
        (state, None) => (state.name(), ""),
        (state, Some(Prediction::Skipped)) => (state.name(), "prediction skipped"),
        (State::Passed, Some(Prediction::Choice { right: true, .. })) => {
            ("passed", "predicted rightly")
        }
        (State::Passed, Some(_)) => ("passed", "predicted wrongly"),
        (state, Some(_)) => (state.name(), "predicted"),
    };
    let here = if at == app.study.at && app.exercises.open.is_none() {
        theme.symbols.pointer
    } else {
        " "
    };
    let room = columns.saturating_sub(6 + 13 + 10 + 20);
    let cells = format!(
        "{here} {mark} {} {}  {}  {}",
        stage.number,
        text::left(&stage.title, room),
        text::left(stage.level.name(), 12),
        text::left(state, 9)
    );
    let selected = at == app.view.selected;
    let style = if selected { theme.selected } else { style };
    Line::from(vec![
        Span::styled(cells, style),
        Span::styled(
            format!(" {predicted}"),
            if selected { style } else { theme.dim },
        ),
    ])
}
