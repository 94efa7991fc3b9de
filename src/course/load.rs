//! Puts a course together from its files. Total: whatever is wrong with a file is named, and the rest is there.

use serde::Deserialize;

use super::source::{CourseFiles, Loader};
use super::{
    Agenda, BackgroundText, Course, Lesson, Stage, UnusableContent, exercise, lesson, stage,
    toml_file,
};
use crate::course::config_file::FileError;
use crate::sanitize;

impl Course {
    /// The course inside this binary.
    pub fn builtin() -> Self {
        Self::open(&CourseFiles::Embedded)
    }

    /// Reads a course.
    pub fn open(source: &CourseFiles) -> Self {
        let loader = Loader::new(source);
        let mut course = Self::default();
        let head = loader.usable(head(&loader)).unwrap_or_else(|| CourseToml {
            id: "course".to_owned(),
            title: "A course without a title".to_owned(),
            agenda: Vec::new(),
        });
        (course.id, course.title, course.agendas) = (head.id, head.title, head.agenda);
        for entry in source.entries("exercises") {
            if entry.folder {
                course.add(&loader, &entry.name);
            }
        }
        course.stages.sort_by_key(|stage| stage.number);
        if course.stages.is_empty() {
            let what =
                "holds no stage that can be used; add a folder like `01-name` with a stage.toml";
            loader.fail("exercises", 0, what);
        }
        let glossary = "lessons/glossary.md";
        if source.exists(glossary) {
            course.glossary = one_lesson(&loader, glossary);
        }
        course.readings = readings(&loader, &course.stages);
        course.problems = loader.problems.into_inner();
        course
    }

    /// Adds the stage or the exercise in a folder of `exercises/`; one that cannot be used is noted as broken.
    pub(super) fn add(&mut self, loader: &Loader<'_>, folder: &str) {
        let (known, reported) = (self.len(), loader.problems.borrow().len());
        self.add_sound(loader, folder);
        let why = loader.problems.borrow().get(reported).cloned();
        if let Some(why) = why.filter(|_| self.len() == known && kind(folder).is_some()) {
            let folder = folder.to_owned();
            self.broken.push(UnusableContent { folder, why });
        }
    }

    fn len(&self) -> usize {
        self.stages.len() + self.exercises.len()
    }

    /// Adds it if it can be used and its id is free: progress is kept by id, so stages and exercises share them.
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
                    let what = format!(
                        "number {number} is taken by `{}`; rename the folder, such as `{free:02}-{}`",
                        other.path, stage.id
                    );
                    loader.fail(&path, stage.id_line, what);
                } else if self.is_free(loader, &stage.id, &path, stage.id_line) {
                    self.stages.push(stage);
                }
            }
            Some(FolderKind::Exercise) => {
                let path = format!("exercises/{folder}/exercise.toml");
                if let Some(exercise) = loader.usable(exercise::read(loader, folder))
                    && self.is_free(loader, &exercise.id, &path, 1)
                {
                    self.exercises.push(exercise);
                }
            }
            None => {
                let folder = sanitize::one_line(folder);
                let like = exercise::KINDS
                    .iter()
                    .map(|row| format!("`{}01-name`", row.letter));
                let like = like.collect::<Vec<_>>().join(" or ");
                let what = format!("name it like `07-name`, {like}");
                let what = format!("folder `{folder}` is neither a stage nor an exercise; {what}");
                loader.fail("exercises", 0, what);
            }
        }
    }

    /// Whether no stage or exercise has this id; reports the file at `path` otherwise.
    fn is_free(&self, loader: &Loader<'_>, id: &str, path: &str, line: usize) -> bool {
        let stages = self.stages.iter().map(|stage| (&stage.id, &stage.path));
        let exercises = self.exercises.iter().map(|one| (&one.id, &one.path));
        let other = stages.chain(exercises).find(|(known, _)| *known == id);
        if let Some((_, other)) = other {
            let what = format!("id `{id}` is taken by `{other}`; choose another");
            loader.fail(path, line, what);
        }
        other.is_none()
    }
}

/// Lessons that belong to no stage, in the order of their names: background to turn to.
fn readings(loader: &Loader<'_>, stages: &[Stage]) -> Vec<BackgroundText> {
    let entries = loader.source.entries("lessons").into_iter();
    let loose = entries.filter(|entry| {
        let of_stage = stages.iter().any(|stage| stage.lesson_file == entry.name);
        let plain = stage::plain_file(&entry.name, &["md"]);
        // `07-name.md` is a stage's, even of one that could not be loaded.
        let numbered = matches!(
            kind(&entry.name.replace(".md", "")),
            Some(FolderKind::Stage(_))
        );
        !entry.folder && plain && !of_stage && entry.name != "glossary.md" && !numbered
    });
    let reading = |file: String| {
        let path = format!("lessons/{file}");
        let lesson = one_lesson(loader, &path)?;
        let raw = loader.source.read(&path).ok()?;
        let title = raw.lines().find_map(|line| line.strip_prefix("# "));
        let title = sanitize::one_line(title.unwrap_or(&file));
        Some(BackgroundText {
            file,
            title,
            lesson,
        })
    };
    loose.filter_map(|entry| reading(entry.name)).collect()
}

/// `course.toml` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CourseToml {
    id: String,
    title: String,
    #[serde(default)]
    agenda: Vec<Agenda>,
}

/// `exercises/course.toml`.
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

/// What a folder's name says it holds.
fn kind(name: &str) -> Option<FolderKind> {
    let (head, rest) = name.split_once('-')?;
    if !stage::plain_name(rest) {
        return None;
    }
    match exercise::is_label(head) {
        true => Some(FolderKind::Exercise),
        false => exercise::two_digits(head)
            .filter(|n| *n > 0)
            .map(FolderKind::Stage),
    }
}

fn one_stage(loader: &Loader<'_>, folder: &str, number: u32) -> Option<Stage> {
    let mut stage = stage::read(loader, folder, number)?;
    let path = format!("lessons/{}", stage.lesson_file);
    stage.lesson = one_lesson(loader, &path).unwrap_or_default();
    Some(stage)
}

fn one_lesson(loader: &Loader<'_>, path: &str) -> Option<Lesson> {
    let raw = loader.usable(loader.text(path))?;
    let parsed = lesson::parse(&raw, &loader.source.shown(path));
    parsed.problems.into_iter().for_each(|it| loader.report(it));
    Some(parsed.lesson)
}
