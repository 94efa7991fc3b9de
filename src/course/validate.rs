//! What `perflings course check` finds: first by reading alone, then by running every starter and every solution
//! through a closure that the caller supplies. It trains nothing itself.

mod arithmetic;
mod behaviour;
mod numbers;
mod prose;

use unicode_width::UnicodeWidthStr;

pub use behaviour::{Compare, Run, Tried, behaviour};

use super::check::{Metric, Starter};
use super::exercise::{Body, Exercise, substitute};
use super::lesson::{MarkKind, Parsed, parse};
use super::{Course, Source, Stage, placeholder, text, translation};
use crate::config::file::FileError;
use crate::config::nearest;

/// Widest line of a drawing, a table or a line of code: what cannot be wrapped must fit an overlay at 80 columns.
pub const READING_WIDTH: usize = 76;

/// What lessons may refer to, told by whoever knows.
pub struct Vocabulary<'a> {
    /// Labels of the keys, as the footer shows them.
    pub keys: &'a [String],
    /// Names of the lints.
    pub lints: &'a [String],
    /// Whether a command line is one that the program takes, else what is wrong with it.
    pub command: &'a dyn Fn(&str) -> Result<(), String>,
}

/// Everything wrong with the course that reading shows, the loader's own complaints first.
pub fn structure(source: &Source, course: &Course, vocabulary: &Vocabulary<'_>) -> Vec<FileError> {
    let mut found = course.problems.clone();
    for stage in &course.stages {
        stage_structure(source, stage, vocabulary, &mut found);
    }
    for exercise in &course.exercises {
        exercise_structure(source, exercise, &mut found);
    }
    let mut sources = numbers::Sources::read(source, course, &mut found);
    let lessons: Vec<String> = source
        .entries("lessons")
        .into_iter()
        .filter(|e| !e.folder && e.name.ends_with(".md"))
        .map(|e| e.name)
        .collect();
    for name in &lessons {
        lesson_structure(
            source,
            &format!("lessons/{name}"),
            "lessons",
            vocabulary,
            course,
            &mut sources,
            &mut found,
        );
    }
    for language in source
        .entries("lessons")
        .into_iter()
        .filter(|entry| entry.folder)
    {
        let folder = format!("lessons/{}", language.name);
        for entry in source.entries(&folder) {
            let path = format!("{folder}/{}", entry.name);
            if entry.name.ends_with(".md") {
                lesson_structure(
                    source,
                    &path,
                    &folder,
                    vocabulary,
                    course,
                    &mut sources,
                    &mut found,
                );
                translated(
                    source,
                    &path,
                    &format!("lessons/{}", entry.name),
                    &mut found,
                );
            } else if let Some(stem) = entry.name.strip_suffix(".toml") {
                translated(
                    source,
                    &path,
                    &format!("exercises/{stem}/stage.toml"),
                    &mut found,
                );
            }
        }
    }
    prose::check(source, &mut sources, &mut found);
    sources.unused(source, &mut found);
    let mut seen = Vec::new();
    found.retain(|error| {
        let new = !seen.contains(error);
        if new {
            seen.push(error.clone());
        }
        new
    });
    found
}

fn stage_structure(
    source: &Source,
    stage: &Stage,
    vocabulary: &Vocabulary<'_>,
    found: &mut Vec<FileError>,
) {
    let path = source.shown(&format!("{}/stage.toml", stage.path));
    let mut fail = |line, what| {
        found.push(FileError {
            path: path.clone(),
            line,
            what,
        })
    };
    let mut texts: Vec<&str> = vec![&stage.symptom, &stage.fault, &stage.fix];
    texts.extend(stage.cpu_note.as_deref());
    texts.extend(stage.hints.iter().map(String::as_str));
    texts.extend(stage.evidence.iter().map(|pointer| pointer.text.as_str()));
    texts.extend(stage.claims.iter().map(|claim| claim.text.as_str()));
    texts.extend(stage.cues.iter().map(|cue| cue.say.as_str()));
    for question in std::iter::once(&stage.prediction).chain(&stage.quiz) {
        texts.extend([question.prompt.as_str(), question.explanation.as_str()]);
        texts.extend(question.choices.iter().map(String::as_str));
    }
    for text in texts {
        for piece in placeholder::pieces(text) {
            if let placeholder::Piece::Name(name) = piece
                && let Some(what) = placeholder::problem(name)
            {
                fail(0, what);
            }
        }
    }
    if stage.quiz.is_empty() {
        fail(1, "has no quiz; write at least one `[[quiz]]`".to_owned());
    }
    if stage.evidence.is_empty() {
        fail(
            1,
            "points at no panel; write at least one `[[evidence]]`".to_owned(),
        );
    }
    let decides = |check: &&super::Check| !check.optional && check.metric != Metric::Quiz;
    if !stage
        .checks
        .iter()
        .filter(decides)
        .any(|check| check.starter == Starter::Fails)
    {
        let what = "no check fails on the starter; without one nothing shows the fault. Leave out `starter` on one".to_owned();
        fail(1, what);
    }
    for check in &stage.checks {
        if let Metric::Lint(name) = &check.metric
            && !vocabulary.lints.iter().any(|lint| lint == name)
        {
            let near = nearest(name, vocabulary.lints.iter().map(String::as_str));
            fail(
                check.line,
                format!("unknown lint `{name}`; the nearest known one is `{near}`"),
            );
        }
    }
}

fn exercise_structure(source: &Source, exercise: &Exercise, found: &mut Vec<FileError>) {
    let path = source.shown(&format!("{}/exercise.toml", exercise.path));
    let mut fail = |what| {
        found.push(FileError {
            path: path.clone(),
            line: 0,
            what,
        })
    };
    if let Some(lesson) = &exercise.lesson
        && let Some(what) = link_problem(source, "lessons", lesson)
    {
        fail(what);
    }
    if let Body::Detective(detective) = &exercise.body
        && let Some((line, what)) = detective.problem()
    {
        found.push(FileError {
            path: detective.file.clone(),
            line,
            what,
        });
        return;
    }
    let Body::Kernel(body) = &exercise.body else {
        return;
    };
    for kernel in &body.kernels {
        let (file, sizes) = (&kernel.file, body.shapes.first().map(|shape| &shape.sizes));
        if file.starter == file.solution {
            fail(format!(
                "{} and its solution say the same; the starter must hold a task",
                file.name
            ));
        }
        for text in [&file.starter, &file.solution] {
            if let Some(Err((line, what))) = sizes.map(|sizes| substitute(text, sizes)) {
                fail(format!(
                    "{} or its solution, line {line}: {what}",
                    file.name
                ));
            }
        }
    }
}

fn lesson_structure(
    source: &Source,
    path: &str,
    folder: &str,
    vocabulary: &Vocabulary<'_>,
    course: &Course,
    sources: &mut numbers::Sources,
    found: &mut Vec<FileError>,
) {
    let shown = source.shown(path);
    let raw = match source.read(path) {
        Ok(raw) => raw,
        Err(error) => return found.push(error),
    };
    let Parsed {
        lesson,
        problems,
        marks,
    } = parse(&raw, &shown);
    found.extend(problems);
    let mut fail = |line, what| {
        found.push(FileError {
            path: shown.clone(),
            line,
            what,
        })
    };
    if lesson.sections.is_empty() {
        fail(0, "is empty; write the stage's lesson".to_owned());
    }
    let name = path.strip_prefix("lessons/").unwrap_or(path);
    sources.check(name, &prose::of_lesson(&marks), &mut fail);
    for mark in marks {
        match mark.kind {
            MarkKind::Prose => {}
            MarkKind::Exercise => {
                let known = |exercise: &Exercise| {
                    exercise.folder() == mark.text || exercise.label() == mark.text
                };
                if !course.exercises.iter().any(known) {
                    let near = nearest(&mark.text, course.exercises.iter().map(Exercise::folder));
                    let there = match near {
                        "" => "this course has none".to_owned(),
                        near => format!("the nearest is `{near}`"),
                    };
                    fail(
                        mark.line,
                        format!("there is no exercise `{}`; {there}", mark.text),
                    );
                }
            }
            MarkKind::Placeholder => {
                if let Some(what) = placeholder::problem(&mark.text) {
                    fail(mark.line, what);
                }
            }
            MarkKind::Key => {
                if !vocabulary.keys.contains(&mark.text) {
                    fail(
                        mark.line,
                        format!(
                            "there is no key `{}`; see `?` for the keys there are",
                            mark.text
                        ),
                    );
                }
            }
            MarkKind::Command => {
                if let Err(what) = (vocabulary.command)(&mark.text) {
                    fail(
                        mark.line,
                        format!("`{}` is no command: {}", mark.text, text::one_line(&what)),
                    );
                }
            }
            MarkKind::Link => {
                if let Some(what) = link_problem(source, folder, &mark.text) {
                    fail(mark.line, what);
                }
            }
            MarkKind::Code => {
                let width = mark.text.width();
                if width > READING_WIDTH {
                    fail(
                        mark.line,
                        format!(
                            "a line of code is {width} columns wide; keep it within {READING_WIDTH}"
                        ),
                    );
                }
                if mark.text.contains("{{") {
                    fail(
                        mark.line,
                        "a figure inside a code block is not filled in; move it into the text"
                            .to_owned(),
                    );
                }
            }
        }
    }
    for (i, line) in raw.lines().enumerate() {
        if line.width() > 120 && !line.starts_with('|') {
            fail(
                i + 1,
                format!("the line is {} columns wide; wrap it at 80", line.width()),
            );
        }
    }
}

fn link_problem(source: &Source, folder: &str, to: &str) -> Option<String> {
    if to.starts_with("https://") {
        return None;
    }
    let file = to.split('#').next().unwrap_or("");
    let near = || {
        let names: Vec<String> = source
            .entries(folder)
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        nearest(file, names.iter().map(String::as_str)).to_owned()
    };
    if to.contains("://") || to.contains(':') {
        return Some(format!(
            "a link to `{to}` is not followed; use https:// or a lesson's file name"
        ));
    }
    // A translation may link to a lesson that is not translated yet.
    let known = source.read(&format!("{folder}/{file}")).is_ok()
        || source.read(&format!("lessons/{file}")).is_ok();
    (!file.is_empty() && !known).then(|| {
        format!(
            "links to `{to}`, which is missing; the nearest lesson is `{}`",
            near()
        )
    })
}

/// Whether a translation was made from the original as it is.
fn translated(source: &Source, path: &str, original: &str, found: &mut Vec<FileError>) {
    let (Ok(raw), Ok(original_text)) = (source.read(path), source.read(original)) else {
        let what =
            format!("translates {original}, which cannot be read; name it like its original");
        return found.push(FileError {
            path: source.shown(path),
            line: 0,
            what,
        });
    };
    let now = text::hash(&original_text);
    let what = match translation::recorded(&raw) {
        Some(then) if then == now => return,
        Some(_) => {
            format!("is older than {original}; bring it up to date and record `translates` {now}")
        }
        None => {
            format!("does not say what it translates; record `translates` {now} for {original}")
        }
    };
    found.push(FileError {
        path: source.shown(path),
        line: 1,
        what,
    });
}
