//! The page of the open exercise, in the place of the lesson: hints, the task, the paths of its files, and at the foot the card with the
//! result of the last check or the progress of the present one.
//!
//! ```text
//! The activation between the feed-forward products. Each file
//! has one wrong line. Fix it.
//! To write: 1 line in each of two files
//!
//! Your files; o opens the one to fix, saving checks both:
//! ~/.local/state/perflings/tiny-llama/work/swiglu/starter.wgsl
//! ── not yet ─────────────────────────────────────────────────
//! ✓ compiles: workgroups of 64 × 1 × 1
//! ```
//!
//! On a small screen the card stands above the task, so that the result is visible.

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
    let state = app.exercise.state(exercise);
    let writer = || ProseWriter::new(app, theme, area.width);
    let mut head = writer();
    // The hints, which the learner asked for, stand above the task.
    hints(exercise, &mut head);
    task(exercise, &mut head);
    recorded(exercise, state, &mut head);
    let mut tail = writer();
    debrief(exercise, state, &mut tail);
    answers(exercise, &mut tail);
    let mut foot = writer();
    if let Some(state) = state {
        card::write(state, &mut foot);
    }
    // After a measurement the result stands above the task, and the foot belongs to the question.
    if state.is_some_and(|state| state.measured.is_some()) && app.measuring().is_none() {
        foot.lines.append(&mut tail.lines);
        foot.blank();
        foot.lines.append(&mut head.lines);
        std::mem::swap(&mut head, &mut foot);
    }
    files(exercise, state, &mut tail);
    look_back(exercise, state, &mut tail);
    background(exercise, &mut tail);
    if let Some(open) = app.question() {
        foot.rule("question");
        question::choices(open, &mut foot);
    }
    // The result stays in view: at the foot where there is room for text above it, else before the text. On a small screen it is always
    // before the text, so that it does not jump from one check to the next.
    let height = usize::from(area.height);
    let is_small = app.view.screen_size() <= ScreenSize::Compact && app.question().is_none();
    let is_long = foot.lines.len() * 5 > height * 3;
    let all_lines = foot.lines.len() + head.lines.len() + tail.lines.len();
    let mut above = Vec::new();
    if (is_small || is_long) && all_lines > height {
        if state.is_some_and(|state| state.text_first) {
            above.append(&mut head.lines);
            above.push(Line::default());
        }
        above.append(&mut foot.lines);
        above.push(Line::default());
    }
    above.append(&mut head.lines);
    above.append(&mut tail.lines);
    (above, foot.lines)
}

/// Returns the state of the exercise in one line, for the smallest screens.
pub(super) fn headline(app: &App, exercise: &Exercise, theme: &Theme) -> Line<'static> {
    let state = app.exercise.state(exercise);
    let report = state.and_then(|state| state.report.as_ref());
    let (text, style) = match report {
        _ if app.checking().is_some() => ("checking".to_owned(), theme.text),
        _ if app.measuring().is_some() => ("measuring".to_owned(), theme.text),
        None => (exercise.title.clone(), theme.text),
        Some(report) => {
            let first_wrong = report.card.iter().find(|line| line.good == Some(false));
            let text = match first_wrong {
                _ if report.passed => "passed",
                Some(line) => &line.text,
                None => "not yet",
            };
            let (mark, style) = theme.mark(report.passed);
            (format!("{mark} {text}"), style)
        }
    };
    let shown = Span::styled(text::cut(&text, 200), style);
    Line::from(vec![label(exercise, theme), shown])
}

/// Returns the label of an exercise, such as `k01`, which stands before its title.
pub(super) fn label(exercise: &Exercise, theme: &Theme) -> Span<'static> {
    Span::styled(format!("{} ", exercise.label()), theme.dim)
}

/// Returns the lines of `new` that `old` does not have. Lines of one character, which only close a block, are left out.
pub(super) fn new_lines<'a>(old: &'a str, new: &'a str) -> impl Iterator<Item = &'a str> {
    new.lines().filter(move |line| {
        line.trim().len() > 1 && !old.lines().any(|other| other.trim() == line.trim())
    })
}

/// Writes the hints so far, the latest first.
fn hints(exercise: &Exercise, w: &mut ProseWriter<'_>) {
    let hints = &exercise.hints;
    let (shown, _) = w.app.reading().hints();
    for index in (0..shown.min(hints.len())).rev() {
        w.hint(index, hints);
        w.blank();
    }
}

/// Writes the task and its size, as in `To write: 1 line in each of two files`.
fn task(exercise: &Exercise, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.body(exercise.task.trim(), theme.strong);
    w.course_text(exercise.asks(), theme.dim, &exercise.size);
}

/// Writes the paths of the learner's files.
fn files(exercise: &Exercise, state: Option<&ExerciseState>, w: &mut ProseWriter<'_>) {
    let files = state.map_or(&[][..], |state| &state.files);
    if files.is_empty() {
        return;
    }
    w.blank();
    let text = if exercise.configs().is_some() {
        "Your answer; {} opens the file, saving measures it:"
    } else if files.len() == 1 {
        "Your file; {} opens it, saving checks it:"
    } else {
        "Your files; {} opens the one to fix, saving checks both:"
    };
    w.keys(text, &[Action::OpenEditor]);
    for file in files {
        w.plain(file, w.theme.code);
    }
}

/// Writes which stage or page explains the background, and the key that goes there.
fn background(exercise: &Exercise, w: &mut ProseWriter<'_>) {
    let lesson = exercise.lesson.as_deref().unwrap_or_default();
    let stages = &w.app.lesson.course.stages;
    if let Some(stage) = stages.iter().find(|stage| stage.lesson_file == lesson) {
        w.blank();
        let text = format!("Background: stage {} ({{}} goes there)", stage.number);
        w.keys(&text, &[Action::Stage(stage.number)]);
    } else if lesson == "glossary.md" {
        w.blank();
        let glossary = Action::Open(Overlay::Glossary);
        w.keys("Background: the glossary, {}", &[glossary]);
    }
}

/// Writes the lines in which the course's solution differs from the starter, once the exercise is passed.
fn look_back(exercise: &Exercise, state: Option<&ExerciseState>, w: &mut ProseWriter<'_>) {
    let report = state.and_then(|state| state.report.as_ref());
    let passed = report.is_some_and(|report| report.passed);
    if !passed {
        return;
    }
    w.heading("Looking back");
    let text = "The course's solution has these lines where the starter had others. \
                Is yours the same idea?";
    w.body(text, w.theme.text);
    for file in exercise.files() {
        for line in new_lines(&file.starter, &file.solution) {
            let code = format!("  {}", line.trim());
            w.plain(&code, w.theme.code);
        }
    }
}

/// Writes the text that explains the figures, once they are measured.
fn debrief(exercise: &Exercise, state: Option<&ExerciseState>, w: &mut ProseWriter<'_>) {
    let learner = &w.app.lesson.learner;
    let measured = state.is_some_and(|state| state.asks_quiz(exercise, learner));
    if measured && let Some(debrief) = &exercise.debrief {
        w.heading("Looking back");
        w.body(debrief.trim(), w.theme.text);
    }
}

/// Writes for each answered question a mark for right or wrong and the explanation.
fn answers(exercise: &Exercise, w: &mut ProseWriter<'_>) {
    let progress = &w.app.lesson.learner.progress;
    let given = progress.stage(&exercise.id).answers;
    let theme = w.theme;
    for (question, choice) in exercise.quiz.iter().zip(given) {
        let mark = theme.mark(choice == question.answer);
        w.blank();
        w.judged(mark, &question.explanation);
    }
}

/// Writes where the run of a detective's case was recorded. After the learner's answer, writes if it was right and the explanation.
fn recorded(exercise: &Exercise, state: Option<&ExerciseState>, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let Some(detective) = exercise.detective() else {
        return;
    };
    w.blank();
    let origin = detective.badge();
    let text = if detective.profile.is_some() {
        let label = exercise.label();
        format!("Recorded on {origin}. Open it on a second terminal: perflings open {label}")
    } else {
        format!("Recorded on {origin}. The lints are left out: find what they would have found.")
    };
    w.body(&text, theme.text);
    let given = state.map_or(&[][..], |state| &state.quiz);
    let Some(choice) = given.last() else {
        return;
    };
    let question = &detective.question;
    w.blank();
    let (mark, style) = theme.mark(*choice == question.answer);
    if w.app.is_unsolved() {
        let hints = &exercise.hints;
        let hint = hints.get(given.len() - 1).map_or("", String::as_str);
        let marker = format!("{mark} It is not {}. Look again: ", letter(*choice));
        return w.course_text(&marker, style, hint);
    }
    let marker = if *choice == question.answer {
        format!("{mark} Correct: ")
    } else {
        format!("{mark} Not correct. The answer is: ")
    };
    let right_choice = question.choices.get(question.answer);
    let answer = right_choice.map_or("", String::as_str);
    w.course_text_in(&marker, style, answer, theme.strong);
    w.blank();
    let finished = detective.finished();
    let config = detective.config();
    let figures = config.as_ref().map(|config| FigureSources {
        slots: [finished, None],
        ..FigureSources::none(config)
    });
    let mut writer = ProseWriter::new(w.app, theme, w.columns);
    writer.figures = figures.as_ref();
    writer.body(question.explanation.trim(), theme.text);
    w.lines.extend(writer.lines);
}
