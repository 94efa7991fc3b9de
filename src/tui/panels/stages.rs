//! The course at a glance: how far each stage has come, which predictions came true, and the score over all of them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{card, chooses, joined, show};
use crate::app::App;
use crate::course::progress::{Prediction, StageProgress, State};
use crate::course::{Exercise, Stage};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Lines above the first stage, and between the last stage and the first exercise.
const HEAD: usize = 1;
const BETWEEN: usize = 2;
/// Lines under the list, which never scroll: a rule, the legend, the score.
const FOOT: u16 = 3;
/// A card with fewer lines has no foot.
const LOWEST: u16 = 6;
/// Columns before the level, and of the level.
const MARKS: usize = 8;
const LEVEL: usize = 14;
/// Below this width the legend is told shortly.
const NARROW: usize = 72;

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

/// Rows of the list itself in a card with room for so many lines.
fn rows_of_list(rows: u16) -> u16 {
    if rows < LOWEST { rows } else { rows - FOOT }
}

/// First line shown, so that the selected one stays in view; `rows` are those inside the card.
pub fn scrolled(app: &App, rows: u16) -> u16 {
    let end = line_of(app.view.selected, app) + 2;
    let last = length(app).saturating_sub(usize::from(FOOT)).min(end);
    u16::try_from(last)
        .unwrap_or(u16::MAX)
        .saturating_sub(rows_of_list(rows))
}

/// The entry on a line inside the card, of which `rows` are shown.
pub fn entry_at(line: u16, rows: u16, app: &App) -> Option<usize> {
    if line >= rows_of_list(rows) {
        return None;
    }
    let line = usize::from(line) + usize::from(scrolled(app, rows));
    let count = app.course.stages.len() + app.course.exercises.len();
    (0..count).find(|entry| line_of(*entry, app) == line)
}

/// Lines of the whole list and its foot.
pub fn length(app: &App) -> usize {
    let count = app.course.stages.len() + app.course.exercises.len();
    line_of(count, app) + usize::from(FOOT)
}

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "stages and exercises",
        &chooses("goes there", app),
        theme.border_focused,
        theme,
    );
    let columns = usize::from(inner.width);
    let mut lines = vec![Line::styled(app.course.title.clone(), theme.heading)];
    let stages = app.course.stages.iter().enumerate();
    lines.extend(stages.map(|(at, stage)| row(app, at, stage, columns, theme)));
    if !app.course.exercises.is_empty() {
        lines.push(Line::default());
        let about = "exercises: runs to think through, recordings to solve, kernels to write";
        lines.push(Line::styled(text::cut(about, columns), theme.heading));
        let exercises = app.course.exercises.iter().enumerate();
        lines.extend(exercises.map(|(at, it)| exercise_row(app, at, it, columns, theme)));
    }
    let list = Rect {
        height: rows_of_list(inner.height),
        ..inner
    };
    if list.height < inner.height {
        let foot = Rect {
            y: list.bottom(),
            height: FOOT,
            ..inner
        };
        let rule = theme.symbols.rule.repeat(columns);
        let foot_lines = vec![
            Line::styled(rule, theme.border),
            legend(columns, theme),
            score(app, theme),
        ];
        frame.render_widget(Paragraph::new(foot_lines), foot);
    }
    // The selected line stays in view.
    show(frame, list, lines, scrolled(app, inner.height), theme)
}

/// What the marks mean.
fn legend(columns: usize, theme: &Theme) -> Line<'static> {
    let symbols = &theme.symbols;
    let (here, gap) = if columns < NARROW {
        ("here", "  ")
    } else {
        ("you are here", "    ")
    };
    let marks = [
        (symbols.good, "passed", theme.good),
        (symbols.live, "predicted", theme.text),
        (symbols.ghost, "begun", theme.text),
        (symbols.rule, "jumped over", theme.text),
        (symbols.pointer, here, theme.key),
    ];
    let spans = marks.into_iter().flat_map(|(mark, words, style)| {
        [
            Span::styled(mark, style),
            Span::styled(format!(" {words}{gap}"), theme.dim),
        ]
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// How good the predictions are so far.
fn score(app: &App, theme: &Theme) -> Line<'static> {
    let score = app.study.progress.calibration();
    let mut said = match score.answered {
        0 => "they count once their stage is passed".to_owned(),
        made => format!("{} of {made} came true", score.right),
    };
    if score.ranges > 0 {
        said += &format!(
            "; {} of {} ranges held the measured figure",
            score.held, score.ranges
        );
    }
    Line::from(vec![
        Span::styled("your predictions: ", theme.dim),
        Span::styled(said, theme.strong),
    ])
}

/// One line: where the learner is, how far it has come, its name, its level, its title, and what there is to note.
struct Entry<'a> {
    here: bool,
    selected: bool,
    state: State,
    label: &'a str,
    level: &'a str,
    title: &'a str,
    notes: Vec<&'static str>,
}

impl Entry<'_> {
    fn line(&self, columns: usize, theme: &Theme) -> Line<'static> {
        let symbols = &theme.symbols;
        let (mark, style) = match self.state {
            State::Passed => (symbols.good, theme.good),
            State::Predicted => (symbols.live, theme.text),
            State::Seen => (symbols.ghost, theme.text),
            State::Skipped => (symbols.rule, theme.dim),
            State::New => (" ", theme.dim),
        };
        let here = if self.here { symbols.pointer } else { " " };
        let room = columns.saturating_sub(MARKS + LEVEL);
        let title = text::cut(self.title, room);
        let left = room.saturating_sub(text::width(&title) + 2);
        let notes: Vec<String> = self.notes.iter().map(ToString::to_string).collect();
        let note = match joined(&notes, left, ", ") {
            note if text::width(&note) <= left => note,
            _ => String::new(),
        };
        let cells = format!(
            "{here} {mark} {}{}{title}",
            text::left(self.label, MARKS - 4),
            text::left(self.level, LEVEL),
        );
        let note = text::right(&note, columns.saturating_sub(text::width(&cells)));
        let (style, noted) = if self.selected {
            (theme.selected, theme.selected)
        } else {
            (style, theme.dim)
        };
        Line::from(vec![Span::styled(cells, style), Span::styled(note, noted)])
    }
}

fn exercise_row(
    app: &App,
    at: usize,
    exercise: &Exercise,
    columns: usize,
    theme: &Theme,
) -> Line<'static> {
    let known = app.exercise_progress(exercise);
    let entry = Entry {
        here: app.mode.exercise().is_some_and(|open| open.at == at),
        selected: app.view.selected == app.course.stages.len() + at,
        state: known.state,
        label: exercise.label(),
        level: exercise.level.name(),
        title: &exercise.title,
        notes: shown(&known),
    };
    entry.line(columns, theme)
}

fn row(app: &App, at: usize, stage: &Stage, columns: usize, theme: &Theme) -> Line<'static> {
    let known = app.study.of(stage);
    // Whether it came true is told once the stage is passed.
    let predicted = match (known.state, known.prediction) {
        (_, Some(Prediction::Skipped)) => Some("prediction skipped"),
        (State::Passed, Some(Prediction::Choice { right: true, .. })) => Some("predicted rightly"),
        (State::Passed, Some(_)) => Some("predicted wrongly"),
        _ => None,
    };
    let state = match (known.state, known.prediction) {
        // The skipped one is told beside the title.
        (State::Predicted, Some(Prediction::Skipped)) => State::Seen,
        (state, _) => state,
    };
    let entry = Entry {
        here: at == app.study.at && app.mode.exercise().is_none(),
        selected: at == app.view.selected,
        state,
        label: &stage.number.to_string(),
        level: stage.level.name(),
        title: &stage.title,
        notes: predicted.into_iter().chain(shown(&known)).collect(),
    };
    entry.line(columns, theme)
}

fn shown(known: &StageProgress) -> Vec<&'static str> {
    let shown = known.solution_shown.then_some("solution shown");
    shown.into_iter().collect()
}
