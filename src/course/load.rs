//! Loads a course from its files. A fault of a file is reported, and the rest of the course is loaded.

use serde::Deserialize;

use super::source::{CourseFiles, Loader};
use super::{
    Agenda, BackgroundText, Course, Lesson, Stage, UnusableContent, exercise, lesson, stage,
    toml_file,
};
use crate::course::config_file::FileError;
use crate::sanitize;

impl Course {
    /// Loads the course inside this binary.
    pub fn builtin() -> Self {
        Self::open(&CourseFiles::Embedded)
    }

    /// Loads a course. Its faults are in `problems`.
    pub fn open(source: &CourseFiles) -> Self {
        let loader = Loader::new(source);
        let mut course = Self::default();
        let head = loader
            .ok_or_report(head(&loader))
            .unwrap_or_else(|| CourseToml {
                id: "course".to_owned(),
                title: "A course without a title".to_owned(),
                agenda: Vec::new(),
            });
        course.id = head.id;
        course.title = head.title;
        course.agendas = head.agenda;
        for entry in source.entries("exercises") {
            if entry.folder {
                course.add(&loader, &entry.name);
            }
        }
        course.stages.sort_by_key(|stage| stage.number);
        if course.stages.is_empty() {
            let message =
                "holds no stage that can be used; add a folder like `01-name` with a stage.toml";
            loader.report_at("exercises", 0, message);
        }
        let glossary = "lessons/glossary.md";
        if source.exists(glossary) {
            course.glossary = one_lesson(&loader, glossary);
        }
        course.readings = readings(&loader, &course.stages);
        course.problems = loader.problems.into_inner();
        course
    }

    /// Adds the stage or the exercise in a folder of `exercises/`. If it cannot be used, it is added to `broken`.
    pub(super) fn add(&mut self, loader: &Loader<'_>, folder: &str) {
        let known = self.len();
        let reported = loader.problems.borrow().len();
        self.add_sound(loader, folder);
        let first_problem = loader.problems.borrow().get(reported).cloned();
        if self.len() == known
            && kind(folder).is_some()
            && let Some(why) = first_problem
        {
            let folder = folder.to_owned();
            self.broken.push(UnusableContent { folder, why });
        }
    }

    fn len(&self) -> usize {
        self.stages.len() + self.exercises.len()
    }

    /// Adds the stage or the exercise in a folder if it can be used and its id is free. Progress is kept by id, so a stage and an exercise
    /// cannot have one id.
    fn add_sound(&mut self, loader: &Loader<'_>, folder: &str) {
        match kind(folder) {
            Some(FolderKind::Stage(number)) => {
                let Some(stage) = one_stage(loader, folder, number) else {
                    return;
                };
                let path = format!("{}/stage.toml", stage.path);
                if let Some(other) = self.stage(number) {
                    let entries = loader.source.entries("exercises");
                    let is_free = |n: &u32| {
                        let prefix = format!("{n:02}-");
                        entries.iter().all(|entry| !entry.name.starts_with(&prefix))
                    };
                    let free = (1..100).find(is_free).unwrap_or(99);
                    let message = format!(
                        "number {number} is taken by `{}`; rename the folder, such as `{free:02}-{}`",
                        other.path, stage.id
                    );
                    loader.report_at(&path, stage.id_line, message);
                } else if self.is_free(loader, &stage.id, &path, stage.id_line) {
                    self.stages.push(stage);
                }
            }
            Some(FolderKind::Exercise) => {
                let path = format!("exercises/{folder}/exercise.toml");
                if let Some(exercise) = loader.ok_or_report(exercise::read(loader, folder))
                    && self.is_free(loader, &exercise.id, &path, 1)
                {
                    self.exercises.push(exercise);
                }
            }
            None => {
                let folder = sanitize::one_line(folder);
                let examples: Vec<String> = exercise::KINDS
                    .iter()
                    .map(|kind| format!("`{}01-name`", kind.letter))
                    .collect();
                let message = format!(
                    "folder `{folder}` is neither a stage nor an exercise; name it like `07-name`, {}",
                    examples.join(" or ")
                );
                loader.report_at("exercises", 0, message);
            }
        }
    }

    /// Returns true if no stage or exercise has this id. Otherwise the id is reported as a problem of the file at `path`.
    fn is_free(&self, loader: &Loader<'_>, id: &str, path: &str, line: usize) -> bool {
        let stages = self.stages.iter().map(|stage| (&stage.id, &stage.path));
        let exercises = self.exercises.iter().map(|one| (&one.id, &one.path));
        let other = stages.chain(exercises).find(|(known, _)| *known == id);
        if let Some((_, other)) = other {
            let message = format!("id `{id}` is taken by `{other}`; choose another");
            loader.report_at(path, line, message);
        }
        other.is_none()
    }
}

/// Reads the lessons that belong to no stage, in the order of their names.
fn readings(loader: &Loader<'_>, stages: &[Stage]) -> Vec<BackgroundText> {
    let entries = loader.source.entries("lessons").into_iter();
    let of_no_stage = entries.filter(|entry| {
        let is_of_stage = stages.iter().any(|stage| stage.lesson_file == entry.name);
        let is_plain = stage::plain_file(&entry.name, &["md"]);
        // `07-name.md` belongs to a stage, even if the stage could not be loaded.
        let is_numbered = matches!(
            kind(&entry.name.replace(".md", "")),
            Some(FolderKind::Stage(_))
        );
        let is_glossary = entry.name == "glossary.md";
        !entry.folder && is_plain && !is_of_stage && !is_glossary && !is_numbered
    });
    let reading = |file: String| {
        let path = format!("lessons/{file}");
        let lesson = one_lesson(loader, &path)?;
        let raw = loader.source.read(&path).ok()?;
        let heading = raw.lines().find_map(|line| line.strip_prefix("# "));
        Some(BackgroundText {
            title: sanitize::one_line(heading.unwrap_or(&file)),
            file,
            lesson,
        })
    };
    of_no_stage
        .filter_map(|entry| reading(entry.name))
        .collect()
}

/// The file `course.toml`, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CourseToml {
    id: String,
    title: String,
    #[serde(default)]
    agenda: Vec<Agenda>,
}

/// Reads `exercises/course.toml`.
fn head(loader: &Loader<'_>) -> Result<CourseToml, FileError> {
    let path = "exercises/course.toml";
    toml_file::read(loader, path, |file, found: CourseToml| {
        stage::check_id(file, &found.id, "tiny-llama")?;
        Ok(found)
    })
}

enum FolderKind {
    Stage(u32),
    Exercise,
}

/// Returns the kind of content that the name of a folder tells; `None` for another name.
fn kind(name: &str) -> Option<FolderKind> {
    let (head, rest) = name.split_once('-')?;
    if !stage::plain_name(rest) {
        return None;
    }
    if exercise::is_label(head) {
        return Some(FolderKind::Exercise);
    }
    let number = exercise::two_digits(head).filter(|number| *number > 0)?;
    Some(FolderKind::Stage(number))
}

fn one_stage(loader: &Loader<'_>, folder: &str, number: u32) -> Option<Stage> {
    let mut stage = stage::read(loader, folder, number)?;
    let path = format!("lessons/{}", stage.lesson_file);
    stage.lesson = one_lesson(loader, &path).unwrap_or_default();
    Some(stage)
}

fn one_lesson(loader: &Loader<'_>, path: &str) -> Option<Lesson> {
    let raw = loader.ok_or_report(loader.text(path))?;
    let parsed = lesson::parse(&raw, &loader.source.shown(path));
    for problem in parsed.problems {
        loader.report(problem);
    }
    Some(parsed.lesson)
}
