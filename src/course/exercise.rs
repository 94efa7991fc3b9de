//! Reads one exercise: `exercise.toml` with its starter and its solution. A kernel exercise is a WGSL file with the
//! numbers it is held against; a config exercise is a `config.toml` with questions.

use super::source::Source;
use crate::config::file::FileError;

/// An exercise beside the stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Exercise {
    pub id: String,
    pub title: String,
}

/// Reads the folder `exercises/kNN-name` or `cNN-name`.
pub fn read(source: &Source, folder: &str, problems: &mut Vec<FileError>) -> Option<Exercise> {
    let path = format!("exercises/{folder}/exercise.toml");
    source.read(&path).map_err(|error| problems.push(error)).ok()?;
    None
}
