//! Finds the starters and answers that a learner edited in a copy of the course made by `init`. These files belong to the learner: the
//! stage or exercise starts from the files inside the program. All other files belong to the copy, and their faults are reported.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::course::config_file::parse;
use crate::course::source::Loader;
use crate::course::text::hash;
use crate::course::{Course, CourseFiles, Exercise, embedded};
use protocol::config::RunConfig;

/// A starter of a stage that was edited in place.
#[derive(Clone, Debug)]
pub(super) struct EditedStarter {
    pub path: PathBuf,
    pub config: RunConfig,
    /// The text of the file in the course.
    pub original: String,
}

/// Finds edited starters and answers, and gives their stages and exercises the original texts. Returns the edited starters of stages by
/// id. Only a course with the id of the course inside the program can be a copy of it.
pub(super) fn adopt(course: &mut Course, source: &CourseFiles) -> BTreeMap<String, EditedStarter> {
    let mut found = BTreeMap::new();
    let CourseFiles::Folder { root, .. } = source else {
        return found;
    };
    let builtin = Course::builtin();
    if builtin.id != course.id {
        return found;
    }
    for stage in &builtin.stages {
        let file = format!("{}/config.toml", stage.path);
        let text = source.read(&file);
        let Ok(config) = text.and_then(|text| parse(&text, &source.shown(&file))) else {
            continue;
        };
        let Some(original) = embedded::text(&file) else {
            continue;
        };
        if config == stage.broken {
            continue;
        }
        let originals = [(file.clone(), original.clone())].into();
        if read_again(course, source, &stage.path, originals) {
            let edit = EditedStarter {
                path: root.join(&file),
                config,
                original,
            };
            found.insert(stage.id.clone(), edit);
        }
    }
    for exercise in &builtin.exercises {
        let originals = originals_of_edited(exercise, source);
        // An exercise whose whole folder was removed stays removed.
        if !originals.is_empty() && source.exists(&format!("{}/exercise.toml", exercise.path)) {
            read_again(course, source, &exercise.path, originals);
        }
    }
    course.stages.sort_by_key(|stage| stage.number);
    course.exercises.sort_by(|a, b| a.folder().cmp(b.folder()));
    course.broken.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

/// Returns the original texts of the exercise's files that the learner edited or removed, by path. A file that exists but cannot be read is
/// left out, because it must be reported.
fn originals_of_edited(exercise: &Exercise, source: &CourseFiles) -> BTreeMap<String, String> {
    let mut originals = BTreeMap::new();
    for file in exercise.files() {
        let path = format!("{}/{}", exercise.path, file.name);
        let Some(original) = embedded::text(&path) else {
            continue;
        };
        let is_edited = match source.read(&path) {
            Ok(text) => hash(&text) != hash(&original),
            Err(_) => !source.exists(&path),
        };
        if is_edited {
            originals.insert(path, original);
        }
    }
    originals
}

/// Reads the stage or exercise at `path` again, with these texts in place of the learner's. Returns true if it can be used. A learner's
/// text may have faults that a text of the course may not have.
fn read_again(
    course: &mut Course,
    source: &CourseFiles,
    path: &str,
    originals: BTreeMap<String, String>,
) -> bool {
    let folder = path.rsplit('/').next().unwrap_or_default();
    let mut loader = Loader::new(source);
    loader.replacements = originals;
    course.stages.retain(|stage| stage.path != path);
    course.exercises.retain(|exercise| exercise.path != path);
    course.broken.retain(|broken| broken.folder != folder);
    course.add(&loader, folder);
    let prefix = format!("{}/", source.shown(path));
    let problems = &mut course.problems;
    problems.retain(|problem| !problem.path.starts_with(&prefix));
    let found = loader.problems.into_inner().into_iter();
    problems.extend(found.filter(|problem| problem.path.starts_with(&prefix)));
    course.broken.iter().all(|broken| broken.folder != folder)
}
