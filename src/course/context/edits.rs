//! A learner who copied the course with `init` may edit its starters where they are. Then the copy's `config.toml`
//! is the learner's, and the stage begins with the one inside the program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::RunConfig;
use crate::config::file::parse;
use crate::course::{Course, Source, embedded};

/// A starter that was edited in place.
#[derive(Clone, Debug)]
pub struct Edit {
    pub path: PathBuf,
    pub config: RunConfig,
    /// What the file held at first.
    pub original: String,
}

/// Finds edited starters, by stage id, and gives those stages back what they began with. Only a course with the id
/// of the one inside the program can be a copy of it.
pub fn adopt(course: &mut Course, source: &Source) -> BTreeMap<String, Edit> {
    let mut found = BTreeMap::new();
    let Source::Folder { root, .. } = source else {
        return found;
    };
    let builtin = Course::builtin(&course.language);
    if builtin.id != course.id {
        return found;
    }
    adopt_exercises(course, &builtin, source);
    for stage in builtin.stages {
        let file = format!("{}/config.toml", stage.path);
        let (Some(original), Ok(text)) = (embedded::text(&file), source.read(&file)) else {
            continue;
        };
        let Ok(config) = parse(&text, &source.shown(&file)) else {
            continue;
        };
        if config == stage.broken {
            continue;
        }
        let edit = Edit {
            path: root.join(&file),
            config,
            original,
        };
        found.insert(stage.id.clone(), edit);
        let mut stages = course.stages.iter_mut();
        if let Some(known) = stages.find(|known| known.id == stage.id) {
            (known.broken, known.files) = (stage.broken, stage.files);
        } else {
            // A fixed starter is a fault of a course, but not of a learner.
            forgive(course, &source.shown(&stage.path));
            course.stages.push(stage);
        }
    }
    course.stages.sort_by_key(|stage| stage.number);
    found
}

/// Answers and kernels that were written over their starters are the learner's; those exercises begin as shipped.
fn adopt_exercises(course: &mut Course, builtin: &Course, source: &Source) {
    for exercise in &builtin.exercises {
        let mut exercises = course.exercises.iter_mut();
        match exercises.find(|known| known.id == exercise.id) {
            Some(known) if known.files() == exercise.files() => {}
            Some(known) => known.clone_from(exercise),
            // An answer is a fault of a course, but not of a learner. A folder that is gone is gone.
            None if source.exists(&format!("{}/exercise.toml", exercise.path)) => {
                forgive(course, &source.shown(&exercise.path));
                course.exercises.push(exercise.clone());
            }
            None => {}
        }
    }
    course.exercises.sort_by(|a, b| a.folder().cmp(b.folder()));
}

/// Takes back what was reported of a folder.
fn forgive(course: &mut Course, folder: &str) {
    let problems = &mut course.problems;
    problems.retain(|problem| !problem.path.starts_with(folder));
}
