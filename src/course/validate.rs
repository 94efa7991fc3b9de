//! Checks a course by reading it, for `perflings course check`: every figure, key, command, link and exercise that a text names must exist,
//! and a stage must have a quiz, evidence and a check that shows the fault. `judge::course` then runs every starter and every solution.

use unicode_width::UnicodeWidthStr;

use super::check::{Check, Metric, Starter};
use super::exercise::Exercise;
use super::lesson::{LessonReference, LessonReferenceKind, ParsedLesson, parse};
use super::source::Loader;
use super::{Course, CourseFiles, Stage, placeholder};
use crate::course::config_file::FileError;
use crate::sanitize;
use protocol::config::{nearest, unknown};

/// The widest line that reads well, in columns, and the largest width of a drawing or a line of code. These cannot be wrapped and must fit an
/// overlay at 80 columns.
pub const READING_WIDTH: usize = 76;

/// The names that texts may use and that other modules define.
pub struct Vocabulary<'a> {
    /// The labels of the keys, as the footer shows them.
    pub keys: &'a [String],
    /// The names of the lints.
    pub lints: &'a [String],
    /// Checks a command line. The error says why the program does not take it.
    pub command: &'a dyn Fn(&str) -> Result<(), String>,
}

/// Returns all faults of the course that reading shows; the reports of the loader come first.
pub fn structure(
    source: &CourseFiles,
    course: &Course,
    vocabulary: &Vocabulary<'_>,
) -> Vec<FileError> {
    let loader = Loader::new(source);
    loader.problems.borrow_mut().clone_from(&course.problems);
    let check = Structure {
        loader: &loader,
        course,
        vocabulary,
        lessons: &read_lessons(&loader),
    };
    for stage in &course.stages {
        check.stage(stage);
    }
    for exercise in &course.exercises {
        check.exercise(exercise);
    }
    for lesson in check.lessons {
        check.lesson(lesson);
    }
    let mut unique: Vec<FileError> = Vec::new();
    for problem in loader.problems.into_inner() {
        if !unique.contains(&problem) {
            unique.push(problem);
        }
    }
    unique
}

/// A check of a course by reading it. Problems are reported to the loader.
struct Structure<'a> {
    loader: &'a Loader<'a>,
    course: &'a Course,
    vocabulary: &'a Vocabulary<'a>,
    lessons: &'a [ReadLesson],
}

/// A file of `lessons/`.
struct ReadLesson {
    name: String,
    raw: String,
    parsed: ParsedLesson,
}

fn read_lessons(loader: &Loader<'_>) -> Vec<ReadLesson> {
    let mut lessons = Vec::new();
    for entry in loader.source.entries("lessons") {
        let path = format!("lessons/{}", entry.name);
        if !entry.is_folder
            && path.ends_with(".md")
            && let Some(raw) = loader.ok_or_report(loader.text(&path))
        {
            lessons.push(ReadLesson {
                name: entry.name,
                parsed: parse(&raw, &loader.source.shown(&path)),
                raw,
            });
        }
    }
    lessons
}

impl Structure<'_> {
    fn stage(&self, stage: &Stage) {
        let path = format!("{}/stage.toml", stage.path);
        let mut texts: Vec<&str> = vec![&stage.symptom, &stage.fault, &stage.fix];
        texts.extend(stage.cpu_note.as_deref());
        texts.extend(stage.hints.iter().map(String::as_str));
        texts.extend(stage.evidence.iter().map(|pointer| pointer.text.as_str()));
        texts.extend(stage.claims.iter().map(|claim| claim.text.as_str()));
        for cue in &stage.cues {
            texts.extend([cue.say.as_str(), &cue.large, &cue.notes]);
        }
        for question in std::iter::once(&stage.prediction).chain(&stage.quiz) {
            texts.extend([question.prompt.as_str(), question.explanation.as_str()]);
            texts.extend(question.choices.iter().map(String::as_str));
        }
        for piece in texts.into_iter().flat_map(placeholder::pieces) {
            if let placeholder::TextPiece::Name(name) = piece
                && let Some(message) = placeholder::problem(name)
            {
                let line = self.line_where(&path, |line| line.contains(name));
                self.loader.report_at(&path, line, message);
            }
        }
        for (key, text) in [("symptom", &stage.symptom), ("fault", &stage.fault)] {
            if let Some(sentence) = placeholder::first_omitted_sentence(text, &stage.broken) {
                let message = format!(
                    "`{key}`: the sentence “{sentence}” cannot be shown before a run; \
                     write its words first, and its figures after a colon"
                );
                let line = self.line_where(&path, |line| line.starts_with(key));
                self.loader.report_at(&path, line, message);
            }
        }
        if stage.quiz.is_empty() {
            self.loader
                .report_at(&path, 1, "has no quiz; write at least one `[[quiz]]`");
        }
        if stage.evidence.is_empty() {
            let message = "points at no panel; write at least one `[[evidence]]`";
            self.loader.report_at(&path, 1, message);
        }
        let shows_fault = |check: &Check| {
            !check.optional && check.metric != Metric::Quiz && check.starter == Starter::Fails
        };
        if !stage.checks.iter().any(shows_fault) {
            let message = "no check fails on the starter, so nothing shows the fault; \
                           leave out `starter` in one check";
            self.loader.report_at(&path, 1, message);
        }
        self.lints(&path, &stage.checks);
    }

    /// Returns the number of the first line of a file of the course for which `is_line` is true, from 1; 0 if there is none.
    fn line_where(&self, path: &str, is_line: impl Fn(&str) -> bool) -> usize {
        let text = self.loader.text(path).unwrap_or_default();
        text.lines().position(is_line).map_or(0, |index| index + 1)
    }

    /// Reports checks on lints that do not exist.
    fn lints(&self, path: &str, checks: &[Check]) {
        for check in checks {
            if let Metric::Lint(name) = &check.metric
                && !self.vocabulary.lints.contains(name)
            {
                let known = self.vocabulary.lints.iter().map(String::as_str);
                let message = unknown("lint", name, known);
                self.loader.report_at(path, check.line, message);
            }
        }
    }

    fn exercise(&self, exercise: &Exercise) {
        let path = format!("{}/exercise.toml", exercise.path);
        if let Some(lesson) = &exercise.lesson
            && let Some(message) = self
                .link_problem(lesson)
                .or_else(|| self.pointer_problem(exercise, lesson))
        {
            let line = self.line_where(&path, |line| line.starts_with("lesson"));
            self.loader.report_at(&path, line, message);
        }
        if let Some(detective) = exercise.detective() {
            self.lints(&path, &detective.shows.concat());
        }
        for problem in exercise.problems(&self.loader.source.shown(&path)) {
            self.loader.report(problem);
        }
    }

    fn lesson(&self, ReadLesson { name, raw, parsed }: &ReadLesson) {
        let path = format!("lessons/{name}");
        for problem in &parsed.problems {
            self.loader.report(problem.clone());
        }
        if parsed.lesson.sections.is_empty() {
            self.loader
                .report_at(&path, 0, "is empty; write the stage's lesson");
        }
        for reference in &parsed.references {
            if let Some(message) = self.reference_problem(reference) {
                self.loader.report_at(&path, reference.line, message);
            }
        }
        for (number, line) in (1..).zip(raw.lines()) {
            if line.width() > 120 && !line.starts_with('|') {
                let message = format!("the line is {} columns wide; wrap it at 80", line.width());
                self.loader.report_at(&path, number, message);
            }
        }
    }

    /// Returns the problem of something that a lesson refers to; `None` if it exists.
    fn reference_problem(&self, reference: &LessonReference) -> Option<String> {
        let text = &reference.text;
        match reference.kind {
            LessonReferenceKind::Exercise => {
                let exercises = &self.course.exercises;
                let is_named = |exercise: &Exercise| exercise_is_named(exercise, text);
                if exercises.iter().any(is_named) {
                    return None;
                }
                let folders = exercises.iter().map(Exercise::folder);
                Some(match nearest(text, folders) {
                    "" => format!("there is no exercise `{text}`; this course has none"),
                    near => format!("there is no exercise `{text}`; the nearest is `{near}`"),
                })
            }
            LessonReferenceKind::Placeholder => placeholder::problem(text),
            LessonReferenceKind::Key => (!self.vocabulary.keys.contains(text))
                .then(|| format!("there is no key `{text}`; press `?` for a list of the keys")),
            LessonReferenceKind::Command => (self.vocabulary.command)(text).err().map(|message| {
                format!(
                    "`{text}` is not a command: {}",
                    sanitize::one_line(&message)
                )
            }),
            LessonReferenceKind::Link => self.link_problem(text),
            LessonReferenceKind::Code if text.width() > READING_WIDTH => Some(format!(
                "a line of code is {} columns wide; keep it within {READING_WIDTH}",
                text.width()
            )),
            LessonReferenceKind::Code => text.contains("{{").then(|| {
                "a figure inside a code block is not filled in; move it into the text".to_owned()
            }),
        }
    }

    /// Returns the problem of an exercise whose `lesson` does not name it although other lessons do.
    fn pointer_problem(&self, exercise: &Exercise, lesson: &str) -> Option<String> {
        let is_named = |reference: &LessonReference| {
            reference.kind == LessonReferenceKind::Exercise
                && exercise_is_named(exercise, &reference.text)
        };
        let naming: Vec<&str> = self
            .lessons
            .iter()
            .filter(|page| page.parsed.references.iter().any(is_named))
            .map(|page| page.name.as_str())
            .collect();
        if naming.is_empty() || naming.contains(&lesson) {
            return None;
        }
        let all = naming.join("` or `");
        Some(format!(
            "`lesson` is `{lesson}`, which does not name this exercise; write `{all}`, which does"
        ))
    }

    /// Returns the problem of a link in a lesson; `None` if its target exists.
    fn link_problem(&self, to: &str) -> Option<String> {
        if to.starts_with("https://") {
            return None;
        }
        if to.contains(':') {
            return Some(format!(
                "a link to `{to}` is not followed; use https:// or a lesson's file name"
            ));
        }
        let file = to.split('#').next().unwrap_or("");
        let path = format!("lessons/{file}");
        if file.is_empty() || self.loader.source.read(&path).is_ok() {
            return None;
        }
        let entries = self.loader.source.entries("lessons");
        let near = nearest(file, entries.iter().map(|entry| entry.name.as_str()));
        Some(format!(
            "links to `{to}`, which is missing; the nearest lesson is `{near}`"
        ))
    }
}

/// Returns true if a lesson that writes `name` means this exercise.
fn exercise_is_named(exercise: &Exercise, name: &str) -> bool {
    exercise.folder() == name || exercise.label() == name
}
