//! A learner who copied the course with `init` may edit its starters where they are. Then the copy's `config.toml`
//! is the learner's, and the stage begins with the one inside the program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::RunConfig;
use crate::config::file::parse;
use crate::course::exercise::Body;
use crate::course::{Course, Exercise, Source, embedded};

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
    for exercise in builtin.exercises {
        let known = course.exercises.iter_mut().find(|it| it.id == exercise.id);
        if let Some(known) = known {
            give_back_starters(known, exercise);
        }
    }
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
            // A mended starter is a fault of a course, but not of a learner.
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

/// What the learner made of a starter is not what the exercise begins with.
fn give_back_starters(known: &mut Exercise, original: Exercise) {
    let (Body::Kernel(known), Body::Kernel(original)) = (&mut known.body, original.body) else {
        return;
    };
    for (known, original) in known.kernels.iter_mut().zip(original.kernels) {
        if known.file.name == original.file.name {
            known.file.starter = original.file.starter;
        }
    }
}
