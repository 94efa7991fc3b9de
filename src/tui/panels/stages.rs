//! The list of the course: the state of each stage, which predictions were right, and the score.

use ratatui::text::{Line, Span};

use crate::app::{App, Mode};
use crate::course::progress::{Prediction, StageState};
use crate::course::{Exercise, Stage, UnusableContent};
use crate::tui::surface::{Surface, chooses, height, joined, take_bottom};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Columns and rows that the card wants.
pub fn size(app: &App) -> (u16, u16) {
    (90, height(length(app)).saturating_add(2))
}

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
/// Below this width the legend is short.
const NARROW: usize = 72;

/// The line on which an entry of the list stands.
fn line_of(entry: usize, app: &App) -> usize {
    let (stages, exercises) = (app.course.stages.len(), app.course.exercises.len());
    let above = usize::from(entry >= stages && exercises > 0) * BETWEEN;
    // The free run and the mystery stand under what is broken and an empty line.
    let under = usize::from(entry >= stages + exercises) * (app.course.broken.len() + 1);
    HEAD + entry + above + under
}

/// Rows of the list itself in a card with room for so many lines.
fn rows_of_list(rows: u16) -> u16 {
    if rows < LOWEST { rows } else { rows - FOOT }
}

/// First line shown, so that the selected one stays in view; `rows` are those inside the card.
fn scrolled(app: &App, rows: u16) -> u16 {
    let end = line_of(app.view.selected, app) + 2;
    let last = length(app).saturating_sub(usize::from(FOOT)).min(end);
    height(last).saturating_sub(rows_of_list(rows))
}

/// The entry on a line inside the card, of which `rows` are shown.
pub fn entry_at(line: u16, rows: u16, app: &App) -> Option<usize> {
    let line = (line < rows_of_list(rows)).then_some(line + scrolled(app, rows))?;
    (0..count(app)).find(|entry| line_of(*entry, app) == usize::from(line))
}

fn count(app: &App) -> usize {
    app.course.stages.len() + app.course.exercises.len() + 2
}

/// Lines of the whole list and its foot.
fn length(app: &App) -> usize {
    line_of(count(app), app) + usize::from(FOOT)
}

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let aside = chooses("goes there", app);
    s.card("stages and exercises", &aside, theme.border_focused);
    let mut w = s.writer();
    let columns = w.columns;
    w.line(app.course.title.clone(), theme.heading);
    let stages = app.course.stages.iter().enumerate();
    w.lines
        .extend(stages.map(|(at, it)| stage(app, at, it, columns, theme)));
    if !app.course.exercises.is_empty() {
        w.blank();
        let about = "exercises: runs to predict, recordings to solve, kernels to write";
        w.line(text::cut(about, columns), theme.heading);
        let exercises = app.course.exercises.iter().enumerate();
        w.lines
            .extend(exercises.map(|(at, it)| exercise(app, at, it, columns, theme)));
    }
    let broken = app.course.broken.iter();
    w.lines
        .extend(broken.map(|it| broken_line(it, columns, theme)));
    w.blank();
    w.lines.extend(runs(app, columns, theme));
    let rows = s.area.height;
    if rows_of_list(rows) < rows {
        let foot = take_bottom(&mut s.area, FOOT);
        let rule = Line::styled(theme.symbols.rule.repeat(columns), theme.border);
        s.put(foot, vec![rule, legend(columns, theme), score(app, theme)]);
    }
    s.show(s.area, w.lines, scrolled(app, rows))
}

/// What the marks mean.
fn legend(columns: usize, theme: &Theme) -> Line<'static> {
    let symbols = &theme.symbols;
    let (here, gap) = match columns < NARROW {
        true => ("here", "  "),
        false => ("you are here", "    "),
    };
    let marks = [
        (symbols.good, "passed", theme.good),
        (symbols.live, "predicted", theme.text),
        (symbols.ghost, "begun", theme.text),
        (symbols.rule, "skipped", theme.text),
        (symbols.pointer, here, theme.key),
    ];
    let spans = marks.into_iter().flat_map(|(mark, words, style)| {
        let words = Span::styled(format!(" {words}{gap}"), theme.dim);
        [Span::styled(mark, style), words]
    });
    spans.collect()
}

/// How good the predictions are so far.
fn score(app: &App, theme: &Theme) -> Line<'static> {
    let score = app.study.progress.calibration();
    let mut said = match score.answered {
        0 => "they count once their stage is passed".to_owned(),
        made => format!("{} of {made} were right", score.right),
    };
    if score.ranges > 0 {
        let (held, ranges) = (score.held, score.ranges);
        said += &format!("; {held} of {ranges} ranges contained the measured figure");
    }
    Line::from(vec![
        Span::styled("your predictions: ", theme.dim),
        Span::styled(said, theme.strong),
    ])
}

/// The line of a stage or an exercise: its name, its level, its title, and notes.
struct Entry<'a> {
    here: bool,
    selected: bool,
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
            StageState::Seen => (symbols.ghost, theme.text),
            StageState::Skipped => (symbols.rule, theme.dim),
            StageState::New => (" ", theme.dim),
        };
        let here = if self.here { symbols.pointer } else { " " };
        let title = text::cut(self.title, columns.saturating_sub(MARKS + LEVEL));
        let label = text::left(self.label, MARKS - 4);
        let level = text::left(self.level, LEVEL);
        let cells = format!("{here} {mark} {label}{level}{title}");
        let left = columns.saturating_sub(text::width(&cells));
        let note = joined(
            self.notes.into_iter().flatten(),
            left.saturating_sub(2),
            ", ",
        );
        let note = if text::width(&note) + 2 > left {
            ""
        } else {
            &note
        };
        let (style, noted) = match self.selected {
            true => (theme.selected, theme.selected),
            false => (style, theme.dim),
        };
        let note = Span::styled(text::right(note, left), noted);
        Line::from(vec![Span::styled(cells, style), note])
    }
}

fn exercise(app: &App, at: usize, it: &Exercise, columns: usize, theme: &Theme) -> Line<'static> {
    let known = app.study.progress.stage(&it.id);
    let entry = Entry {
        here: app.mode.exercise().is_some_and(|open| open.at == at),
        selected: app.view.selected == app.course.stages.len() + at,
        state: known.state,
        label: it.label(),
        level: it.level.name(),
        title: &it.title,
        notes: [None, known.solution_shown.then_some("solution shown")],
    };
    entry.line(columns, theme)
}

/// One that cannot be used. It cannot be selected either.
fn broken_line(it: &UnusableContent, columns: usize, theme: &Theme) -> Line<'static> {
    let label = text::left(it.label(), MARKS - 4);
    let said = format!(
        "  {} {label}{}{}",
        theme.symbols.bad,
        text::left("broken", LEVEL),
        it.why
    );
    Line::styled(text::cut(&said, columns), theme.bad)
}

/// The run without a stage and the mystery, under both lists.
fn runs(app: &App, columns: usize, theme: &Theme) -> [Line<'static>; 2] {
    let solved = match app.study.progress.mysteries.len() {
        0 => String::new(),
        n => format!(" ({n} solved)"),
    };
    let said = [
        (
            matches!(app.mode, Mode::Free),
            "free run: every knob, no questions".to_owned(),
        ),
        (
            matches!(app.mode, Mode::Mystery(_)),
            format!("mystery: a run with hidden faults to fix{solved}"),
        ),
    ];
    let first = count(app) - said.len();
    let mut at = first;
    said.map(|(here, said)| {
        let selected = app.view.selected == at;
        at += 1;
        let mark = if here { theme.symbols.pointer } else { " " };
        let said = format!("{mark}   {said}");
        let style = if selected { theme.selected } else { theme.text };
        Line::styled(text::left(&text::cut(&said, columns), columns), style)
    })
}

fn stage(app: &App, at: usize, it: &Stage, columns: usize, theme: &Theme) -> Line<'static> {
    let known = app.study.of(it);
    // Whether the prediction was right is shown once the stage is passed.
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
        here: at == app.study.at && app.mode.reads_stage(),
        selected: at == app.view.selected,
        state,
        label: &it.number.to_string(),
        level: it.level.name(),
        title: &it.title,
        notes: [predicted, known.solution_shown.then_some("solution shown")],
    };
    entry.line(columns, theme)
}
