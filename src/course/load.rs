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
        let problems = &mut course.problems;
        if stage::plain_name(language) {
            language.clone_into(&mut course.language);
        } else {
            let what = format!(
                "language `{}` is none; write a code such as `de`",
                text::one_line(language)
            );
            problems.push(FileError {
                path: source.shown("lessons"),
                line: 0,
                what,
            });
        }
        (course.id, course.title) = head(source, problems);
        for entry in source
            .entries("exercises")
            .into_iter()
            .filter(|entry| entry.folder)
        {
            let Some(kind) = kind(&entry.name) else {
                let path = source.shown("exercises");
                let what = format!(
                    "folder `{}` is neither a stage nor an exercise; name it like `07-name`, `k01-name`, `c01-name` or `d01-name`",
                    text::one_line(&entry.name.escape_debug().to_string())
                );
                problems.push(FileError {
                    path,
                    line: 0,
                    what,
                });
                continue;
            };
            match kind {
                Folder::Stage(number) => {
                    if let Some(stage) =
                        one_stage(source, &entry.name, number, &course.language, problems)
                        && is_new(source, &stage, &course.stages, problems)
                    {
                        course.stages.push(stage);
                    }
                }
                Folder::Exercise => {
                    if let Some(exercise) = exercise::read(source, &entry.name, problems) {
                        match taken(&exercise.id, &course.stages, &course.exercises) {
                            Some(other) => problems.push(FileError {
                                path: source
                                    .shown(&format!("exercises/{}/exercise.toml", entry.name)),
                                line: 1,
                                what: format!(
                                    "id `{}` is taken by `{other}`; choose another",
                                    exercise.id
                                ),
                            }),
                            None => course.exercises.push(exercise),
                        }
                    }
                }
            }
        }
        course.stages.sort_by_key(|stage| stage.number);
        if course.stages.is_empty() {
            let what =
                "holds no stage that can be used; add a folder like `01-name` with a stage.toml"
                    .to_owned();
            problems.push(FileError {
                path: source.shown("exercises"),
                line: 0,
                what,
            });
        }
        if let Some((path, _)) = translation::find(source, "glossary.md", &course.language) {
            course.glossary = one_lesson(source, &path, problems);
        }
        course.readings = readings(source, &course.language, &course.stages, problems);
        course
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
        let taken = stages.iter().any(|stage| stage.lesson_file == entry.name);
        let plain = stage::plain_file(&entry.name, &["md"]);
        !entry.folder && plain && !taken && entry.name != "glossary.md" && !numbered(&entry.name)
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

/// Who has this id already: progress is kept by id, so stages and exercises share them.
fn taken(id: &str, stages: &[Stage], exercises: &[exercise::Exercise]) -> Option<String> {
    let stages = stages.iter().map(|stage| (&stage.id, &stage.path));
    let exercises = exercises.iter().map(|one| (&one.id, &one.path));
    stages
        .chain(exercises)
        .find(|(known, _)| *known == id)
        .map(|(_, path)| path.clone())
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
            title = found.title;
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

/// Whether neither id nor number is taken.
fn is_new(source: &Source, stage: &Stage, known: &[Stage], problems: &mut Vec<FileError>) -> bool {
    let mut fail = |what| {
        let path = source.shown(&format!("{}/stage.toml", stage.path));
        problems.push(FileError {
            path,
            line: stage.id_line,
            what,
        });
        false
    };
    if let Some(other) = known.iter().find(|other| other.number == stage.number) {
        let taken = |n: u32| {
            source
                .entries("exercises")
                .iter()
                .any(|entry| entry.name.starts_with(&format!("{n:02}-")))
        };
        let free = (1..100).find(|n| !taken(*n)).unwrap_or(99);
        return fail(format!(
            "number {} is taken by `{}`; rename the folder, such as `{free:02}-{}`",
            stage.number, other.path, stage.id
        ));
    }
    if let Some(other) = known.iter().find(|other| other.id == stage.id) {
        return fail(format!(
            "id `{}` is taken by `{}`; choose another",
            stage.id, other.path
        ));
    }
    true
}

fn one_lesson(source: &Source, path: &str, problems: &mut Vec<FileError>) -> Option<Lesson> {
    let raw = source.text(path, problems)?;
    let mut parsed = lesson::parse(&raw, &source.shown(path));
    problems.append(&mut parsed.problems);
    Some(parsed.lesson)
}
