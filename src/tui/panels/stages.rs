//! The list of the course: the state of each stage, which predictions were right, and the score.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::{App, Mode};
use crate::course::save_file::{Prediction, StageState};
use crate::course::{Exercise, Stage, UnusableContent};
use crate::tui::surface::{chooses, joined};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Columns before the level, and of the level.
const MARKS: usize = 8;
const LEVEL: usize = 14;
/// Below this width the legend is short.
const NARROW: usize = 72;

/// The stages, the exercises and the runs without either; the marks' meaning and the score below them.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut list = Content::titled("stages and exercises", Vec::new());
    list.aside = chooses("goes there", app);
    list.between([Line::styled(app.lesson.course.title.clone(), theme.heading)]);
    let (stages, exercises) = (&app.lesson.course.stages, &app.lesson.course.exercises);
    for (at, it) in stages.iter().enumerate() {
        list.entry(at, stage(app, at, it, columns, theme));
    }
    if !exercises.is_empty() {
        let about = "exercises: runs to predict, recordings to solve, kernels to write";
        let about = Line::styled(text::cut(about, columns), theme.heading);
        list.between([Line::default(), about]);
    }
    for (at, it) in exercises.iter().enumerate() {
        list.entry(stages.len() + at, exercise(app, at, it, columns, theme));
    }
    let broken = app.lesson.course.broken.iter();
    list.between(broken.map(|it| broken_line(it, columns, theme)));
    list.between([Line::default()]);
    runs(app, columns, theme, &mut list);
    let rule = Line::styled(theme.symbols.rule.repeat(columns), theme.border);
    list.foot = vec![rule, legend(columns, theme), score(app, theme, columns)];
    list.mark(app.view.selected);
    list
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
        (symbols.circle, "begun", theme.text),
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
fn score(app: &App, theme: &Theme, columns: usize) -> Line<'static> {
    const NAME: &str = "your predictions: ";
    let score = app.lesson.study.progress.calibration();
    let made = match score.answered {
        0 => "they count once their stage is passed".to_owned(),
        made => format!("{} of {made} were right", score.right),
    };
    let (held, ranges) = (score.held, score.ranges);
    let wordings = [
        format!("{made}; {held} of {ranges} ranges contained the measured figure"),
        format!("{made}; {held} of {ranges} ranges held"),
        made,
    ];
    let wordings = wordings.into_iter().skip(if ranges > 0 { 0 } else { 2 });
    let lines = wordings.map(|said| {
        let name = Span::styled(NAME, theme.dim);
        Line::from(vec![name, Span::styled(said, theme.strong)])
    });
    text::longest(lines, columns)
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
        let note = joined(
            self.notes.into_iter().flatten(),
            left.saturating_sub(2),
            ", ",
        );
        let (style, noted) = match self.selected {
            true => (theme.selected, theme.selected),
            false => (style, theme.dim),
        };
        let note = Span::styled(text::right(&note, left), noted);
        Line::from(vec![Span::styled(cells, style), note])
    }
}

fn exercise(app: &App, at: usize, it: &Exercise, columns: usize, theme: &Theme) -> Line<'static> {
    let known = app.lesson.study.progress.stage(&it.id);
    let entry = Entry {
        here: app.mode.exercise() == Some(at),
        selected: app.view.selected == app.lesson.course.stages.len() + at,
        state: known.state,
        label: it.label(),
        level: it.level.into_str(),
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
fn runs(app: &App, columns: usize, theme: &Theme, list: &mut Content<'_>) {
    let solved = match app.lesson.study.progress.mysteries.len() {
        0 => String::new(),
        n => format!(" ({n} solved)"),
    };
    let free = "free run: every knob, no questions".to_owned();
    let mystery = format!("mystery: a run with hidden faults to fix{solved}");
    let first = app.lesson.course.stages.len() + app.lesson.course.exercises.len();
    for (at, here, said) in [
        (first, matches!(app.mode, Mode::Free), free),
        (first + 1, matches!(app.mode, Mode::Mystery(_)), mystery),
    ] {
        let mark = theme.symbols.pointer_at(here);
        let said = text::left(&format!("{mark}   {said}"), columns);
        let selected = app.view.selected == at;
        let style = theme.among(selected, theme.text);
        list.entry(at, Line::styled(said, style));
    }
}

fn stage(app: &App, at: usize, it: &Stage, columns: usize, theme: &Theme) -> Line<'static> {
    let known = app.lesson.study.progress_of(it);
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
        here: at == app.lesson.study.at && app.mode.reads_stage(),
        selected: at == app.view.selected,
        state,
        label: &it.number.to_string(),
        level: it.level.into_str(),
        title: &it.title,
        notes: [predicted, known.solution_shown.then_some("solution shown")],
    };
    entry.line(columns, theme)
}
