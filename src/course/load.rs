//! Puts a course together from its files. Total: whatever is wrong with a file is named, and the rest is there.

use serde::Deserialize;

use super::source::Source;
use super::toml_file::TomlFile;
use super::{Course, Lesson, Reading, Stage, exercise, lesson, stage, text, translation};
use crate::config::file::FileError;

impl Course {
    /// The course inside this binary.
    pub fn builtin(language: &str) -> Self {
        Self::open(&Source::Embedded, language)
    }

    /// Reads a course with its prose in `language`, where there is such prose, else in English.
    pub fn open(source: &Source, language: &str) -> Self {
        let mut course = Self {
            language: "en".to_owned(),
            ..Self::default()
        };
        if stage::plain_name(language) {
            language.clone_into(&mut course.language);
        } else {
            let language = text::one_line(language);
            course.fail(
                source.shown("lessons"),
                0,
                format!("`{language}` is not a language; write a code such as `de`"),
            );
        }
        (course.id, course.title) = head(source, &mut course.problems);
        for entry in source.entries("exercises") {
            if entry.folder {
                course.add(source, &entry.name);
            }
        }
        course.stages.sort_by_key(|stage| stage.number);
        if course.stages.is_empty() {
            course.fail(
                source.shown("exercises"),
                0,
                "holds no stage that can be used; add a folder like `01-name` with a stage.toml",
            );
        }
        if let Some((path, _)) = translation::find(source, "glossary.md", &course.language) {
            course.glossary = one_lesson(source, &path, &mut course.problems);
        }
        course.readings = readings(
            source,
            &course.language,
            &course.stages,
            &mut course.problems,
        );
        course
    }

    fn fail(&mut self, path: String, line: usize, what: impl Into<String>) {
        self.problems.push(FileError {
            path,
            line,
            what: what.into(),
        });
    }

    /// Adds the stage or the exercise in a folder of `exercises/`, if it can be used and its id is free: progress is
    /// kept by id, so stages and exercises share them.
    fn add(&mut self, source: &Source, folder: &str) {
        match kind(folder) {
            Some(Folder::Stage(number)) => {
                let language = &self.language;
                let found = one_stage(source, folder, number, language, &mut self.problems);
                let Some(stage) = found else {
                    return;
                };
                let path = source.shown(&format!("{}/stage.toml", stage.path));
                if let Some(other) = self.stage(number) {
                    let entries = source.entries("exercises");
                    let is_free = |n: &u32| {
                        let prefix = format!("{n:02}-");
                        entries.iter().all(|entry| !entry.name.starts_with(&prefix))
                    };
                    let free = (1..100).find(is_free).unwrap_or(99);
                    let what = format!(
                        "number {number} is taken by `{}`; rename the folder, such as `{free:02}-{}`",
                        other.path, stage.id
                    );
                    self.fail(path, stage.id_line, what);
                } else if self.is_free(&stage.id, path, stage.id_line) {
                    self.stages.push(stage);
                }
            }
            Some(Folder::Exercise) => {
                let path = source.shown(&format!("exercises/{folder}/exercise.toml"));
                if let Some(exercise) = exercise::read(source, folder, &mut self.problems)
                    && self.is_free(&exercise.id, path, 1)
                {
                    self.exercises.push(exercise);
                }
            }
            None => {
                let folder = text::one_line(&folder.escape_debug().to_string());
                self.fail(
                    source.shown("exercises"),
                    0,
                    format!(
                        "folder `{folder}` is neither a stage nor an exercise; name it like `07-name`, `k01-name`, `c01-name` or `d01-name`"
                    ),
                );
            }
        }
    }

    /// Whether no stage or exercise has this id; reports the file at `path` otherwise.
    fn is_free(&mut self, id: &str, path: String, line: usize) -> bool {
        let stages = self.stages.iter().map(|stage| (&stage.id, &stage.path));
        let exercises = self.exercises.iter().map(|one| (&one.id, &one.path));
        let other = stages.chain(exercises).find(|(known, _)| *known == id);
        if let Some((_, other)) = other {
            let what = format!("id `{id}` is taken by `{other}`; choose another");
            self.fail(path, line, what);
            return false;
        }
        true
    }
}

/// Lessons that belong to no stage, in the order of their names: background to turn to.
fn readings(
    source: &Source,
    language: &str,
    stages: &[Stage],
    problems: &mut Vec<FileError>,
) -> Vec<Reading> {
    let entries = source.entries("lessons").into_iter();
    let loose = entries.filter(|entry| {
        let of_stage = stages.iter().any(|stage| stage.lesson_file == entry.name);
        let plain = stage::plain_file(&entry.name, &["md"]);
        !entry.folder && plain && !of_stage && entry.name != "glossary.md" && !numbered(&entry.name)
    });
    loose
        .filter_map(|entry| {
            let (path, _) = translation::find(source, &entry.name, language)?;
            let raw = source.text(&path, problems)?;
            let title = raw.lines().find_map(|line| line.strip_prefix("# "));
            let title = text::one_line(title.unwrap_or(&entry.name));
            let mut parsed = lesson::parse(&raw, &source.shown(&path));
            problems.append(&mut parsed.problems);
            Some(Reading {
                file: entry.name,
                title,
                lesson: parsed.lesson,
            })
        })
        .collect()
}

/// `07-name.md` is a stage's, even of one that could not be loaded.
fn numbered(name: &str) -> bool {
    name.split_once('-')
        .is_some_and(|(head, _)| two_digits(head).is_some())
}

/// `course.toml` as it is written.
#[derive(Deserialize)]
struct CourseToml {
    id: String,
    title: String,
}

/// Id and title from `course.toml`; stand-ins where there is none.
fn head(source: &Source, problems: &mut Vec<FileError>) -> (String, String) {
    let path = "exercises/course.toml";
    let (mut id, mut title) = ("course".to_owned(), "A course without a title".to_owned());
    if let Some(raw) = source.text(path, problems) {
        let (file, found) = TomlFile::read::<CourseToml>(&raw, &source.shown(path));
        if let Some(found) = found {
            stage::check_id(&file, &found.id, "tiny-llama");
            if stage::plain_name(&found.id) {
                id = found.id;
            }
            if !found.title.is_empty() {
                title = found.title;
            }
        }
        file.finish(problems);
    }
    (id, title)
}

enum Folder {
    Stage(u32),
    Exercise,
}

/// What a folder's name says it holds.
fn kind(name: &str) -> Option<Folder> {
    let (head, rest) = name.split_once('-')?;
    if !stage::plain_name(rest) {
        return None;
    }
    match head.strip_prefix(['k', 'c', 'd']) {
        Some(digits) => two_digits(digits).map(|_| Folder::Exercise),
        None => two_digits(head).filter(|n| *n > 0).map(Folder::Stage),
    }
}

fn two_digits(text: &str) -> Option<u32> {
    (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn one_stage(
    source: &Source,
    folder: &str,
    number: u32,
    language: &str,
    problems: &mut Vec<FileError>,
) -> Option<Stage> {
    let mut stage = stage::read(source, folder, number, problems)?;
    let path = format!("lessons/{}", stage.lesson_file);
    let (path, found) = translation::find(source, &stage.lesson_file, language)
        .unwrap_or_else(|| (path, stage.language.clone()));
    if let Some(lesson) = one_lesson(source, &path, problems) {
        (stage.lesson, stage.language) = (lesson, found);
    }
    if language != "en" {
        translation::apply(source, folder, language, &mut stage, problems);
    }
    Some(stage)
}

fn one_lesson(source: &Source, path: &str, problems: &mut Vec<FileError>) -> Option<Lesson> {
    let raw = source.text(path, problems)?;
    let mut parsed = lesson::parse(&raw, &source.shown(path));
    problems.append(&mut parsed.problems);
    Some(parsed.lesson)
}
