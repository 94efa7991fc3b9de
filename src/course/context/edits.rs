//! A learner who copied the course with `init` may edit its starters and answers where they are. Then those files are the
//! learner's, and the stage or exercise begins with the ones inside the program. Everything else is the copy's own, and stays
//! broken where it is broken.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::course::config_file::parse;
use crate::course::source::Loader;
use crate::course::text::hash;
use crate::course::{Course, CourseFiles, embedded};
use protocol::config::RunConfig;

/// A starter of a stage that was edited in place.
#[derive(Clone, Debug)]
pub(super) struct EditedStarter {
    pub path: PathBuf,
    pub config: RunConfig,
    /// What the file held at first.
    pub original: String,
}

/// Finds edited starters and answers, and gives their stages and exercises back what they began with; returns those of
/// stages, by id. Only a course with the id of the one inside the program can be a copy of it.
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
        let (Some(original), Ok(text)) = (embedded::text(&file), source.read(&file)) else {
            continue;
        };
        let config = parse(&text, &source.shown(&file)).ok();
        let Some(config) = config.filter(|config| *config != stage.broken) else {
            continue;
        };
        let instead = [(file.clone(), original.clone())].into();
        if again(course, source, &stage.path, instead) {
            let edit = EditedStarter {
                path: root.join(&file),
                config,
                original,
            };
            found.insert(stage.id.clone(), edit);
        }
    }
    for exercise in &builtin.exercises {
        let files = exercise.files().into_iter();
        let edited = files.filter_map(|file| {
            let path = format!("{}/{}", exercise.path, file.name);
            let original = embedded::text(&path)?;
            let edited = match source.read(&path) {
                Ok(text) => hash(&text) != hash(&original),
                // One that is gone was the learner's to remove; what cannot be read is said.
                Err(_) => !source.exists(&path),
            };
            edited.then_some((path, original))
        });
        let edited: BTreeMap<String, String> = edited.collect();
        // A folder that is gone is gone.
        if !edited.is_empty() && source.exists(&format!("{}/exercise.toml", exercise.path)) {
            again(course, source, &exercise.path, edited);
        }
    }
    course.stages.sort_by_key(|stage| stage.number);
    course.exercises.sort_by(|a, b| a.folder().cmp(b.folder()));
    course.broken.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

/// Reads the stage or exercise at `path` again, with these texts in place of the learner's: those are a fault of a course,
/// but not of a learner. Tells whether it can be used.
fn again(
    course: &mut Course,
    source: &CourseFiles,
    path: &str,
    instead: BTreeMap<String, String>,
) -> bool {
    let folder = path.rsplit('/').next().unwrap_or_default();
    let mut loader = Loader::new(source);
    loader.instead = instead;
    course.stages.retain(|stage| stage.path != path);
    course.exercises.retain(|exercise| exercise.path != path);
    course.broken.retain(|broken| broken.folder != folder);
    course.add(&loader, folder);
    let of_it = format!("{}/", source.shown(path));
    let problems = &mut course.problems;
    problems.retain(|problem| !problem.path.starts_with(&of_it));
    let found = loader.problems.into_inner().into_iter();
    problems.extend(found.filter(|problem| problem.path.starts_with(&of_it)));
    course.broken.iter().all(|broken| broken.folder != folder)
}
