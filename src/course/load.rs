//! Loads a course from its files. A fault of a file is reported, and the rest of the course is loaded. The name of a folder says what it
//! holds: `07-name` is stage 7, and `k01-name` is an exercise.

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
        let head = loader
            .ok_or_report(head(&loader))
            .unwrap_or_else(|| CourseToml {
                id: "course".to_owned(),
                title: "A course without a title".to_owned(),
                agenda: Vec::new(),
            });
        let mut course = Self {
            id: head.id,
            title: head.title,
            agendas: head.agenda,
            ..Self::default()
        };
        for entry in source.entries("exercises") {
            if entry.is_folder {
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
            course.glossary = read_lesson(&loader, glossary);
        }
        course.readings = readings(&loader, &course.stages);
        course.problems = loader.problems.into_inner();
        course
    }

    /// Adds the stage or the exercise in a folder of `exercises/`. If it cannot be used, it is added to `broken`.
    pub(super) fn add(&mut self, loader: &Loader<'_>, folder: &str) {
        let reported = loader.problems.borrow().len();
        let added = match folder_kind(folder) {
            Some(FolderKind::Stage(number)) => self.add_stage(loader, folder, number),
            Some(FolderKind::Exercise) => self.add_exercise(loader, folder),
            None => return report_folder(loader, folder),
        };
        let first_problem = loader.problems.borrow().get(reported).cloned();
        if added.is_none()
            && let Some(why) = first_problem
        {
            self.broken.push(UnusableContent {
                folder: folder.to_owned(),
                why,
            });
        }
    }

    /// Adds a stage; `None` if it cannot be used, or if its number or its id is taken.
    fn add_stage(&mut self, loader: &Loader<'_>, folder: &str, number: u32) -> Option<()> {
        let stage = read_stage(loader, folder, number)?;
        let path = format!("{}/stage.toml", stage.path);
        if let Some(other) = self.stage(number) {
            let free = first_free_number(loader.source);
            let message = format!(
                "number {number} is taken by `{}`; rename the folder, such as `{free:02}-{}`",
                other.path, stage.id
            );
            loader.report_at(&path, stage.id_line, message);
            return None;
        }
        self.check_id_is_free(loader, &stage.id, &path, stage.id_line)
            .then(|| self.stages.push(stage))
    }

    /// Adds an exercise; `None` if it cannot be used, or if its id is taken.
    fn add_exercise(&mut self, loader: &Loader<'_>, folder: &str) -> Option<()> {
        let exercise = loader.ok_or_report(exercise::read(loader, folder))?;
        let path = format!("{}/exercise.toml", exercise.path);
        self.check_id_is_free(loader, &exercise.id, &path, 1)
            .then(|| self.exercises.push(exercise))
    }

    /// Returns true if no stage or exercise has this id. Otherwise the id is reported as a problem of the file at `path`. Progress is kept
    /// by id, so a stage and an exercise cannot have the same id.
    fn check_id_is_free(&self, loader: &Loader<'_>, id: &str, path: &str, line: usize) -> bool {
        let stage = self.stage_by_id(id).map(|stage| &stage.path);
        let exercise = self.exercise_by_id(id).map(|exercise| &exercise.path);
        let other = stage.or(exercise);
        if let Some(other) = other {
            let message = format!("id `{id}` is taken by `{other}`; choose another");
            loader.report_at(path, line, message);
        }
        other.is_none()
    }
}

/// Reports a folder of `exercises/` whose name is that of neither a stage nor an exercise.
fn report_folder(loader: &Loader<'_>, folder: &str) {
    let shown = sanitize::one_line(folder);
    let examples: Vec<String> = exercise::KINDS
        .iter()
        .map(|kind| format!("`{}01-name`", kind.letter))
        .collect();
    let message = format!(
        "folder `{shown}` is neither a stage nor an exercise; name it like `07-name`, {}",
        examples.join(" or ")
    );
    loader.report_at("exercises", 0, message);
}

/// Returns the smallest number that no folder of a stage has.
fn first_free_number(source: &CourseFiles) -> u32 {
    let entries = source.entries("exercises");
    let is_free = |number: &u32| {
        let prefix = format!("{number:02}-");
        entries.iter().all(|entry| !entry.name.starts_with(&prefix))
    };
    (1..100).find(is_free).unwrap_or(99)
}

/// Reads the lessons that belong to no stage, in the order of their names.
fn readings(loader: &Loader<'_>, stages: &[Stage]) -> Vec<BackgroundText> {
    loader
        .source
        .entries("lessons")
        .into_iter()
        .filter(|entry| !entry.is_folder && is_reading(&entry.name, stages))
        .filter_map(|entry| read_reading(loader, entry.name))
        .collect()
}

/// Returns true for a file of `lessons/` that is neither the glossary nor a stage's lesson. `07-name.md` belongs to a stage, even if the
/// stage could not be loaded.
fn is_reading(file: &str, stages: &[Stage]) -> bool {
    let is_of_stage = stages.iter().any(|stage| stage.lesson_file == file);
    let kind = folder_kind(file.strip_suffix(".md").unwrap_or(file));
    let is_numbered = matches!(kind, Some(FolderKind::Stage(_)));
    let is_plain = stage::plain_file(file, &["md"]);
    is_plain && file != "glossary.md" && !is_of_stage && !is_numbered
}

fn read_reading(loader: &Loader<'_>, file: String) -> Option<BackgroundText> {
    let path = format!("lessons/{file}");
    let lesson = read_lesson(loader, &path)?;
    let raw = loader.source.read(&path).ok()?;
    let heading = raw.lines().find_map(|line| line.strip_prefix("# "));
    Some(BackgroundText {
        title: sanitize::one_line(heading.unwrap_or(&file)),
        file,
        lesson,
    })
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

/// The content of a folder of `exercises/`.
enum FolderKind {
    /// A stage with this number.
    Stage(u32),
    Exercise,
}

/// Returns the content of a folder with this name; `None` for a name that is that of neither a stage nor an exercise.
fn folder_kind(name: &str) -> Option<FolderKind> {
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

/// Reads a stage with its lesson. Faults are reported.
fn read_stage(loader: &Loader<'_>, folder: &str, number: u32) -> Option<Stage> {
    let mut stage = stage::read(loader, folder, number)?;
    let path = format!("lessons/{}", stage.lesson_file);
    stage.lesson = read_lesson(loader, &path).unwrap_or_default();
    Some(stage)
}

/// Reads a lesson. Faults are reported.
fn read_lesson(loader: &Loader<'_>, path: &str) -> Option<Lesson> {
    let raw = loader.ok_or_report(loader.text(path))?;
    let parsed = lesson::parse(&raw, &loader.source.shown(path));
    for problem in parsed.problems {
        loader.report(problem);
    }
    Some(parsed.lesson)
}
