//! The open exercise, in the lesson's place: the task, where its files are, hints, and at the foot what the last check
//! found, or how far the present one has come.

mod looking_back;
mod result;
mod runs;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

pub use self::looking_back::new_lines;
use super::{open_as, question, show};
use crate::app::exercise::ExerciseState;
use crate::app::guide::sentence;
use crate::app::{Action, App, Panel, Room};
use crate::course::Exercise;
use crate::course::exercise::Body;
use crate::tui::theme::Theme;
use crate::tui::{prose, text};

/// Draws it; the result is how far the text can scroll.
pub fn render(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    exercise: &Exercise,
    theme: &Theme,
) -> u16 {
    let name = format!("exercise {}", exercise.label());
    let panel = (Panel::Lesson, name.as_str());
    let inner = open_as(frame, area, panel, exercise.level.name(), app, theme);
    let columns = usize::from(inner.width);
    let page = Page {
        app,
        exercise,
        desk: app.exercises.of(exercise),
        columns,
        theme,
    };
    // What was just asked for comes first.
    let (mut head, mut tail) = (page.hints(), Vec::new());
    head.extend(page.task());
    page.files(&mut tail);
    page.look_back(&mut tail);
    let mut found = Vec::new();
    page.debrief(&mut found);
    page.answers(&mut found);
    page.named(&mut head);
    page.background(&mut tail);
    let mut foot = page.result();
    // Once runs were measured, what they show comes before the task, and the foot is the question's.
    if page.desk.is_some_and(|desk| desk.measured.is_some()) && app.measuring().is_none() {
        foot.append(&mut found);
        foot.push(Line::default());
        foot.append(&mut head);
        head = std::mem::take(&mut foot);
    } else {
        found.append(&mut tail);
        tail = found;
    }
    if let Some(open) = app.question() {
        foot.push(question::rule("question", columns, theme));
        foot.extend(question::choices(open, app, columns, None, theme));
    }
    // What was found stays in view: at the foot where there is room for text above it, else before the text. In a
    // small frame it is always before, so that it does not jump from one check to the next.
    let height = usize::from(inner.height);
    let small = app.view.room() <= Room::Compact && app.question().is_none();
    let long = foot.len() * 5 > height * 3;
    let mut text = Vec::new();
    if (small || long) && foot.len() + head.len() + tail.len() > height {
        if app.mode.exercise().is_some_and(|open| open.text_first) {
            text.append(&mut head);
            text.push(Line::default());
        }
        text.append(&mut foot);
        text.push(Line::default());
    }
    text.append(&mut head);
    text.append(&mut tail);
    let rows = u16::try_from(foot.len())
        .unwrap_or(inner.height)
        .min(inner.height);
    let (above, below) = (
        Rect {
            height: inner.height - rows,
            ..inner
        },
        Rect {
            y: inner.bottom() - rows,
            height: rows,
            ..inner
        },
    );
    show(frame, below, foot, 0, theme);
    show(frame, above, text, app.view.scroll_of(Panel::Lesson), theme)
}

/// The state of the exercise in one line, for the smallest frames.
pub fn headline(app: &App, exercise: &Exercise, theme: &Theme) -> Line<'static> {
    let desk = app.exercises.of(exercise);
    let report = desk.and_then(|desk| desk.report.as_ref());
    let (said, style) = match report {
        _ if app.checking().is_some() => ("is checked".to_owned(), theme.text),
        _ if app.measuring().is_some() => ("is measured".to_owned(), theme.text),
        None => (exercise.title.clone(), theme.text),
        Some(report) if report.passed => (format!("{} passed", theme.symbols.good), theme.good),
        Some(report) => {
            let wrong = report.card.iter().find(|line| line.good == Some(false));
            let text = wrong.map_or("not yet", |line| line.text.as_str());
            (format!("{} {text}", theme.symbols.bad), theme.bad)
        }
    };
    Line::from(vec![
        Span::styled(format!("{} ", exercise.label()), theme.dim),
        Span::styled(text::cut(&said, 200), style),
    ])
}

struct Page<'a> {
    app: &'a App,
    exercise: &'a Exercise,
    desk: Option<&'a ExerciseState>,
    columns: usize,
    theme: &'a Theme,
}

impl Page<'_> {
    fn item(
        &self,
        marker: &str,
        style: ratatui::style::Style,
        body: &str,
        out: &mut Vec<Line<'static>>,
    ) {
        let theme = self.theme;
        out.extend(prose::item(
            marker,
            style,
            body,
            self.columns,
            theme.text,
            None,
        ));
    }

    fn task(&self) -> Vec<Line<'static>> {
        let theme = self.theme;
        let body = self.exercise.task.trim();
        let mut out = prose::item("", theme.dim, body, self.columns, theme.strong, None);
        let what = match self.exercise.body {
            Body::Kernel(_) => "To write: ",
            Body::Config(_) | Body::Detective(_) => "To answer: ",
        };
        self.item(what, theme.dim, &self.exercise.size, &mut out);
        out
    }

    fn files(&self, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        let Some(files) = self.desk.map(|desk| &desk.files) else {
            return;
        };
        if files.is_empty() {
            return;
        }
        out.push(Line::default());
        let said = if self.exercise.configs().is_some() {
            "Your answer; {} opens the file, saving measures it:"
        } else if files.len() == 1 {
            "Your file; {} opens it, saving checks it:"
        } else {
            "Your files; {} opens the one to mend, saving checks both:"
        };
        self.keys(said, &[Action::OpenEditor], out);
        for file in files {
            out.extend(text::wrap_plain(file, self.columns, theme.code));
        }
    }

    /// A sentence that names keys.
    fn keys(&self, said: &str, keys: &[Action], out: &mut Vec<Line<'static>>) {
        let said = sentence(said, keys);
        let line = super::sentence(&said, self.app, self.theme, self.theme.dim);
        let runs: Vec<(String, Style)> = line
            .spans
            .into_iter()
            .map(|span| (span.content.into_owned(), span.style))
            .collect();
        out.extend(text::wrap(
            &runs,
            self.columns,
            Span::raw(""),
            Span::raw(""),
        ));
    }

    /// The hints so far, the latest first.
    fn hints(&self) -> Vec<Line<'static>> {
        let count = self.exercise.hints.len();
        let shown = self.app.hints().0;
        let mut out = Vec::new();
        for (at, hint) in self.exercise.hints.iter().enumerate().take(shown).rev() {
            let marker = format!("Hint {}/{count}  ", at + 1);
            self.item(&marker, self.theme.warning, hint.trim(), &mut out);
            out.push(Line::default());
        }
        out
    }

    fn background(&self, out: &mut Vec<Line<'static>>) {
        let Some(lesson) = &self.exercise.lesson else {
            return;
        };
        let name = lesson.trim_end_matches(".md");
        let stage = self
            .app
            .course
            .stages
            .iter()
            .find(|stage| stage.path.rsplit('/').next() == Some(name));
        let line = match stage {
            Some(stage) => sentence(
                &format!("Background: stage {} ({{}} goes there)", stage.number),
                &[Action::Stage(stage.number)],
            ),
            None if name == "glossary" => sentence(
                "Background: the glossary, {}",
                &[Action::Open(crate::app::Overlay::Glossary)],
            ),
            None => return,
        };
        out.push(Line::default());
        let theme = self.theme;
        out.push(super::sentence(&line, self.app, theme, theme.dim));
    }
}

/// The short name before the title, in lists and at the top.
pub fn label(exercise: &Exercise, theme: &Theme) -> Span<'static> {
    Span::styled(format!("{} ", exercise.label()), theme.dim)
}
