//! The open exercise, in the lesson's place: the task, where its files are, hints, and at the foot what the last check
//! found, or how far the present one has come.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{open_as, question, show};
use crate::app::exercise::{Desk, InModel};
use crate::app::guide::sentence;
use crate::app::{Action, App, Panel, Room};
use crate::course::Exercise;
use crate::course::exercise::{Body, Configs};
use crate::course::placeholder::{Figures, Lookup};
use crate::protocol::CardLine;
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
        desk: app.exercises.desk(exercise),
        columns,
        theme,
    };
    let (mut head, mut tail) = (page.task(), Vec::new());
    page.hints(&mut head);
    page.files(&mut tail);
    page.look_back(&mut tail);
    page.answers(&mut tail);
    page.named(&mut head);
    page.background(&mut tail);
    let mut foot = page.result();
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
    let desk = app.exercises.desk(exercise);
    let report = desk.and_then(|desk| desk.report.as_ref());
    let (said, style) = match report {
        _ if app.checking().is_some() => ("is checked".to_owned(), theme.text),
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
    desk: Option<&'a Desk>,
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
        if let Body::Config(configs) = &self.exercise.body {
            self.commands(configs, &mut out);
        }
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
        let keys = [Action::OpenEditor];
        let said = if files.len() == 1 {
            "Your file; {} opens it, saving checks it:"
        } else {
            "Your files; {} opens the one to mend, saving checks both:"
        };
        out.push(super::sentence(
            &sentence(said, &keys),
            self.app,
            theme,
            theme.dim,
        ));
        for file in files {
            out.extend(text::wrap_plain(file, self.columns, theme.code));
        }
    }

    /// What measures a configuration exercise.
    fn commands(&self, configs: &Configs, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        out.push(Line::default());
        let asked = configs
            .checks
            .iter()
            .filter_map(|check| check.answer.as_ref());
        for (key, ask) in asked {
            self.item(&format!("{key}: "), theme.key, ask, out);
        }
        let said = format!(
            "Say it first, then measure, in another terminal: perflings check {} --answer …",
            self.exercise.label()
        );
        self.item("", theme.text, &said, out);
        if let Some(sweep) = &configs.sweep {
            let key = sweep.key.rsplit('.').next().unwrap_or(&sweep.key);
            let said = format!(
                "perflings bench --sweep {key}={} measures it, in another terminal.",
                sweep.values.join(",")
            );
            self.item("", theme.dim, &said, out);
            for with in &sweep.with {
                self.item("and again with ", theme.dim, with, out);
            }
        }
        if !configs.rank.is_empty() {
            let said =
                "Put these in order before you measure them; perflings bench --ablate ranks them:";
            self.item("", theme.dim, said, out);
            for change in &configs.rank {
                let set = change.set.join(", ");
                self.item("· ", theme.dim, &format!("{} ({set})", change.label), out);
            }
        }
    }

    fn hints(&self, out: &mut Vec<Line<'static>>) {
        let count = self.exercise.hints.len();
        let shown = self.app.exercises.hints as usize;
        for (at, hint) in self.exercise.hints.iter().take(shown).enumerate() {
            out.push(Line::default());
            let marker = format!("Hint {}/{count}  ", at + 1);
            self.item(&marker, self.theme.warning, hint.trim(), out);
        }
    }

    /// Once it is passed: the lines in which the course's solution differs from the starter.
    fn look_back(&self, out: &mut Vec<Line<'static>>) {
        let passed = self
            .desk
            .and_then(|desk| desk.report.as_ref())
            .is_some_and(|report| report.passed);
        let (true, Some(kernels)) = (passed, self.exercise.kernels()) else {
            return;
        };
        out.push(Line::default());
        out.push(Line::styled("Looking back", self.theme.heading));
        self.item(
            "",
            self.theme.dim,
            "The course's solution has these lines where the starter had others. Is yours the same idea?",
            out,
        );
        for kernel in &kernels.kernels {
            for line in new_lines(&kernel.file.starter, &kernel.file.solution) {
                let line = format!("  {}", line.trim());
                out.extend(text::wrap_plain(&line, self.columns, self.theme.code));
            }
        }
    }

    /// Questions that were answered, and why.
    fn answers(&self, out: &mut Vec<Line<'static>>) {
        let given = self.desk.map_or(&[][..], |desk| &desk.quiz);
        for (question, choice) in self.exercise.quiz.iter().zip(given) {
            let (mark, style) = if *choice == question.answer {
                (self.theme.symbols.good, self.theme.good)
            } else {
                (self.theme.symbols.bad, self.theme.bad)
            };
            out.push(Line::default());
            self.item(&format!("{mark} "), style, &question.explanation, out);
        }
    }

    /// A recorded run's fault, once it was named: whether rightly, and what shows it.
    fn named(&self, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        let Body::Detective(detective) = &self.exercise.body else {
            return;
        };
        out.push(Line::default());
        let said = format!(
            "Recorded on {}. The lints are left out: find what they would have found.",
            detective.badge()
        );
        self.item("", theme.dim, &said, out);
        let Some(choice) = self.desk.and_then(|desk| desk.quiz.first()) else {
            return;
        };
        let question = &detective.question;
        let (mark, style, word) = if *choice == question.answer {
            (theme.symbols.good, theme.good, "It is so: ")
        } else {
            (theme.symbols.bad, theme.bad, "It is not so. It is: ")
        };
        out.push(Line::default());
        let truth = question.choices.get(question.answer);
        let marker = format!("{mark} {word}");
        out.extend(prose::item(
            &marker,
            style,
            truth.map_or("", String::as_str),
            self.columns,
            theme.strong,
            None,
        ));
        let (finished, config) = (detective.finished(), detective.config());
        let figures = config.as_ref().map(|config| Figures {
            run: finished.as_ref(),
            ..Figures::none(config)
        });
        out.push(Line::default());
        out.extend(prose::item(
            "",
            theme.dim,
            question.explanation.trim(),
            self.columns,
            theme.text,
            figures.as_ref().map(|it| it as &dyn Lookup),
        ));
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

    /// The card of the last check, or of the one in progress.
    fn result(&self) -> Vec<Line<'static>> {
        let theme = self.theme;
        let Some(desk) = self.desk else {
            return Vec::new();
        };
        let mut out = Vec::new();
        if let Some(checking) = &desk.checking {
            let seconds = self.app.now_ms.saturating_sub(checking.since_ms) / 1000;
            out.push(question::rule("checking", self.columns, theme));
            out.extend(checking.card.iter().flat_map(|line| self.card_line(line)));
            let now = format!("{}, {seconds} s", checking.now);
            let mark = format!("{} ", theme.symbols.ghost);
            out.extend(text::wrap_item(
                &mark,
                theme.warning,
                &now,
                self.columns,
                theme.text,
            ));
        } else if let Some(report) = &desk.report {
            let (title, on) = match (report.passed, &report.failed) {
                (_, Some(_)) => ("not checked", None),
                (true, None) => ("passed", report.device.as_ref()),
                (false, None) => ("not yet", report.device.as_ref()),
            };
            out.push(question::rule(title, self.columns, theme));
            out.extend(report.card.iter().flat_map(|line| self.card_line(line)));
            if let Some(device) = on {
                let slow = if device.kind == "vulkan-cpu" {
                    ", a CPU driver: being right counts there, speed does not"
                } else {
                    ""
                };
                let said = format!(
                    "checked in {:.1} s on {}{slow}",
                    report.seconds, device.name
                );
                out.extend(text::wrap_plain(&said, self.columns, theme.dim));
            }
        }
        out.extend(self.in_model(desk));
        out
    }

    fn card_line(&self, line: &CardLine) -> Vec<Line<'static>> {
        let theme = self.theme;
        let (mark, style) = match line.good {
            Some(true) => (theme.symbols.good, theme.good),
            Some(false) => (theme.symbols.bad, theme.bad),
            None => (" ", theme.dim),
        };
        let body = if line.good == Some(false) {
            theme.strong
        } else {
            theme.text
        };
        text::wrap_item(&format!("{mark} "), style, &line.text, self.columns, body)
    }

    fn in_model(&self, desk: &Desk) -> Vec<Line<'static>> {
        let theme = self.theme;
        let last_good = desk.report.as_ref().is_some_and(|report| !report.passed);
        let (mark, style, said) = match &desk.in_model {
            InModel::No => return Vec::new(),
            InModel::Asked => (
                theme.symbols.ghost,
                theme.warning,
                "your kernel takes over at the next step".to_owned(),
            ),
            InModel::Since(step) => {
                let which = if last_good {
                    "your last good kernel"
                } else {
                    "your kernel"
                };
                let since = step.map_or_else(String::new, |step| format!(" since step {step}"));
                (
                    theme.symbols.live,
                    theme.good,
                    format!("the model computes with {which}{since}"),
                )
            }
            InModel::Not(why) => (
                theme.symbols.ghost,
                theme.dim,
                format!("the model keeps its own kernel: {why}"),
            ),
        };
        let mut out: Vec<Line<'static>> = Vec::new();
        out.extend(text::wrap_item(
            &format!("{mark} "),
            style,
            &said,
            self.columns,
            theme.text,
        ));
        out
    }
}

/// Lines of `new` that `old` has not, without what only closes a block.
pub fn new_lines<'a>(old: &'a str, new: &'a str) -> impl Iterator<Item = &'a str> {
    new.lines().filter(move |line| {
        line.trim().len() > 1 && !old.lines().any(|known| known.trim() == line.trim())
    })
}

/// The short name before the title, in lists and at the top.
pub fn label(exercise: &Exercise, theme: &Theme) -> Span<'static> {
    Span::styled(format!("{} ", exercise.label()), theme.dim)
}
