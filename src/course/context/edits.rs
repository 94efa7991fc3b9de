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
        let Some(original) = embedded::text(&file) else {
            continue;
        };
        let Ok(text) = source.read(&file) else {
            continue;
        };
        let Ok(config) = parse(&text, &source.shown(&file)) else {
            continue;
        };
        if config == stage.broken {
            continue;
        }
        let (id, path) = (stage.id.clone(), root.join(&file));
        let folder = source.shown(&stage.path);
        match course.stages.iter_mut().find(|known| known.id == id) {
            Some(known) => {
                known.broken = stage.broken;
                known.files.clone_from(&stage.files);
            }
            // A fixed starter is a fault of a course, but not of a learner.
            None => {
                course
                    .problems
                    .retain(|problem| !problem.path.starts_with(&folder));
                course.stages.push(stage);
                course.stages.sort_by_key(|stage| stage.number);
            }
        }
        found.insert(
            id,
            Edit {
                path,
                config,
                original,
            },
        );
    }
    found
}

/// Answers and kernels that were written over their starters are the learner's; those exercises begin as shipped.
fn adopt_exercises(course: &mut Course, builtin: &Course, source: &Source) {
    for exercise in &builtin.exercises {
        let folder = source.shown(&exercise.path);
        match course
            .exercises
            .iter_mut()
            .find(|known| known.id == exercise.id)
        {
            Some(known) if known.files() == exercise.files() => {}
            Some(known) => known.clone_from(exercise),
            // An answer is a fault of a course, but not of a learner. A folder that is gone is gone.
            None if source.exists(&format!("{}/exercise.toml", exercise.path)) => {
                course
                    .problems
                    .retain(|problem| !problem.path.starts_with(&folder));
                course.exercises.push(exercise.clone());
            }
            None => {}
        }
    }
    course.exercises.sort_by(|a, b| a.folder().cmp(b.folder()));
}
