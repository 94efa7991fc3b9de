//! The page of the open exercise stands in the place of the lesson: the task, the paths of its files, hints, and at the foot the result
//! of the last check or the progress of the present one.

mod card;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::question;
use crate::app::exercise::ExerciseState;
use crate::app::{Action, App, Overlay, ScreenSize};
use crate::course::Exercise;
use crate::course::placeholder::FigureSources;
use crate::course::save_file::letter;
use crate::tui::prose::ProseWriter;
use crate::tui::text;
use crate::tui::theme::Theme;

/// The lines that scroll, and the lines that stay at the foot.
pub(super) type Page = (Vec<Line<'static>>, Vec<Line<'static>>);

/// Returns the page of an exercise for an area.
pub(super) fn page<'a>(exercise: &'a Exercise, app: &'a App, theme: &'a Theme, area: Rect) -> Page {
    let known = app.exercise.state(exercise);
    let write = |parts: &[fn(&mut Part<'a>)]| {
        let mut part = Part {
            exercise,
            known,
            w: ProseWriter::new(app, theme, area.width),
        };
        for write_part in parts {
            write_part(&mut part);
        }
        part.w.lines
    };
    // The hints, which the learner asked for, stand above the task.
    let mut head = write(&[Part::hints, Part::task, Part::recorded]);
    let mut tail = write(&[Part::debrief, Part::answers]);
    let mut foot = write(&[Part::card]);
    // After a measurement the result stands above the task, and the foot belongs to the question.
    if known.is_some_and(|known| known.measured.is_some()) && app.measuring().is_none() {
        foot.append(&mut tail);
        foot.push(Line::default());
        foot.append(&mut head);
        head = std::mem::take(&mut foot);
    }
    tail.extend(write(&[Part::files, Part::look_back, Part::background]));
    foot.extend(write(&[Part::question]));
    // The result stays in view: at the foot where there is room for text above it, else before the text. In a small frame it is always
    // before the text, so that it does not jump from one check to the next.
    let height = usize::from(area.height);
    let small = app.view.screen_size() <= ScreenSize::Compact && app.question().is_none();
    let long = foot.len() * 5 > height * 3;
    let mut above = Vec::new();
    if (small || long) && foot.len() + head.len() + tail.len() > height {
        if known.is_some_and(|known| known.text_first) {
            above.append(&mut head);
            above.push(Line::default());
        }
        above.append(&mut foot);
        above.push(Line::default());
    }
    above.append(&mut head);
    above.extend(tail);
    (above, foot)
}

/// Returns the state of the exercise in one line, for the smallest frames.
pub(super) fn headline(app: &App, exercise: &Exercise, theme: &Theme) -> Line<'static> {
    let known = app.exercise.state(exercise);
    let report = known.and_then(|known| known.report.as_ref());
    let (state, style) = match report {
        _ if app.checking().is_some() => ("checking".to_owned(), theme.text),
        _ if app.measuring().is_some() => ("measuring".to_owned(), theme.text),
        None => (exercise.title.clone(), theme.text),
        Some(report) => {
            let mut wrong = report.card.iter().filter(|line| line.good == Some(false));
            let text = if report.passed {
                "passed"
            } else {
                wrong.next().map_or("not yet", |line| line.text.as_str())
            };
            let (mark, style) = theme.mark(report.passed);
            (format!("{mark} {text}"), style)
        }
    };
    let state = Span::styled(text::cut(&state, 200), style);
    Line::from(vec![label(exercise, theme), state])
}

/// Returns the short name that stands before the title, in lists and at the top.
pub(super) fn label(exercise: &Exercise, theme: &Theme) -> Span<'static> {
    Span::styled(format!("{} ", exercise.label()), theme.dim)
}

/// Returns the lines of `new` that `old` does not have. Lines of one character, which only close a block, are left out.
pub(super) fn new_lines<'a>(old: &'a str, new: &'a str) -> impl Iterator<Item = &'a str> {
    new.lines().filter(move |line| {
        line.trim().len() > 1 && !old.lines().any(|known| known.trim() == line.trim())
    })
}

/// Writes one part of the page.
struct Part<'a> {
    exercise: &'a Exercise,
    known: Option<&'a ExerciseState>,
    w: ProseWriter<'a>,
}

impl Part<'_> {
    fn plain(&mut self, text: &str) {
        self.w.body(text, self.w.theme.text);
    }

    /// Writes the hints so far, the latest first.
    fn hints(&mut self) {
        let hints = &self.exercise.hints;
        for at in (0..self.w.app.reading().hints().0.min(hints.len())).rev() {
            self.w.hint(at, hints);
            self.w.blank();
        }
    }

    fn task(&mut self) {
        let (exercise, theme) = (self.exercise, self.w.theme);
        self.w.body(exercise.task.trim(), theme.strong);
        self.w.course_text(exercise.asks, theme.dim, &exercise.size);
    }

    fn files(&mut self) {
        let files = self.known.map_or(&[][..], |known| &known.files);
        if files.is_empty() {
            return;
        }
        self.w.blank();
        let text = if self.exercise.configs().is_some() {
            "Your answer; {} opens the file, saving measures it:"
        } else if files.len() == 1 {
            "Your file; {} opens it, saving checks it:"
        } else {
            "Your files; {} opens the one to fix, saving checks both:"
        };
        self.w.keys(text, &[Action::OpenEditor]);
        for file in files {
            self.w.plain(file, self.w.theme.code);
        }
    }

    /// Says which stage or page explains the background.
    fn background(&mut self) {
        let lesson = self.exercise.lesson.as_deref().unwrap_or_default();
        let name = lesson.trim_end_matches(".md");
        let mut stages = self.w.app.lesson.course.stages.iter();
        let stage = stages.find(|stage| stage.path.rsplit('/').next() == Some(name));
        if let Some(stage) = stage {
            self.w.blank();
            let text = format!("Background: stage {} ({{}} goes there)", stage.number);
            self.w.keys(&text, &[Action::Stage(stage.number)]);
        } else if name == "glossary" {
            self.w.blank();
            let glossary = Action::Open(Overlay::Glossary);
            self.w.keys("Background: the glossary, {}", &[glossary]);
        }
    }

    /// After the exercise is passed, shows the lines in which the course's solution differs from the starter.
    fn look_back(&mut self) {
        let report = self.known.and_then(|known| known.report.as_ref());
        let passed = report.is_some_and(|report| report.passed);
        if !passed {
            return;
        }
        self.w.heading("Looking back");
        self.plain(
            "The course's solution has these lines where the starter had others. Is yours the same idea?",
        );
        for file in self.exercise.files() {
            for line in new_lines(&file.starter, &file.solution) {
                let code = format!("  {}", line.trim());
                self.w.plain(&code, self.w.theme.code);
            }
        }
    }

    /// After a measurement, explains what its figures show.
    fn debrief(&mut self) {
        let learner = &self.w.app.lesson.learner;
        let known = self.known;
        let measured = known.is_some_and(|known| known.asks_quiz(self.exercise, learner));
        if measured && let Some(debrief) = &self.exercise.debrief {
            self.w.heading("Looking back");
            self.plain(debrief.trim());
        }
    }

    /// Shows for each answered question whether the answer was right, and the reason.
    fn answers(&mut self) {
        let progress = &self.w.app.lesson.learner.progress;
        let given = progress.stage(&self.exercise.id).answers;
        let theme = self.w.theme;
        for (question, choice) in self.exercise.quiz.iter().zip(given) {
            let mark = theme.mark(choice == question.answer);
            self.w.blank();
            self.w.judged(mark, &question.explanation);
        }
    }

    fn question(&mut self) {
        if let Some(open) = self.w.app.question() {
            self.w.rule("question");
            question::choices(open, &mut self.w);
        }
    }

    /// Says where a recorded run was recorded. After the learner has named the fault, says whether that was right and what shows it.
    fn recorded(&mut self) {
        let theme = self.w.theme;
        let Some(detective) = self.exercise.detective() else {
            return;
        };
        self.w.blank();
        let origin = detective.badge();
        if detective.profile.is_some() {
            let label = self.exercise.label();
            self.plain(&format!(
                "Recorded on {origin}. Open it on a second terminal: perflings open {label}"
            ));
        } else {
            self.plain(&format!(
                "Recorded on {origin}. The lints are left out: find what they would have found."
            ));
        }
        let given = self.known.map_or(&[][..], |known| &known.quiz);
        let Some(choice) = given.last() else {
            return;
        };
        let question = &detective.question;
        self.w.blank();
        let (mark, style) = theme.mark(*choice == question.answer);
        if self.w.app.is_unsolved() {
            let hints = &self.exercise.hints;
            let hint = hints.get(given.len() - 1).map_or("", String::as_str);
            let marker = format!("{mark} It is not {}. Look again: ", letter(*choice));
            return self.w.course_text(&marker, style, hint);
        }
        let marker = if *choice == question.answer {
            format!("{mark} Correct: ")
        } else {
            format!("{mark} Not correct. The answer is: ")
        };
        let right_choice = question.choices.get(question.answer);
        let answer = right_choice.map_or("", String::as_str);
        self.w.course_text_in(&marker, style, answer, theme.strong);
        self.w.blank();
        let finished = detective.finished();
        let config = detective.config();
        let figures = config.as_ref().map(|config| FigureSources {
            slots: [finished, None],
            ..FigureSources::none(config)
        });
        let mut writer = ProseWriter::new(self.w.app, theme, self.w.columns);
        writer.figures = figures.as_ref();
        writer.body(question.explanation.trim(), theme.text);
        self.w.lines.extend(writer.lines);
    }

    fn card(&mut self) {
        if let Some(known) = self.known {
            card::write(known, &mut self.w);
        }
    }
}
