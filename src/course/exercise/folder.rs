//! The folder of an exercise while it is read: its `exercise.toml`, and the files beside it.

use serde::de::DeserializeOwned;

use crate::course::config_file::FileError;
use crate::course::source::Loader;
use crate::course::toml_file::TomlFile;

/// Keys of `exercise.toml` that every kind has.
pub(super) const HEAD: &[&str] = &[
    "id", "kind", "title", "level", "task", "size", "hints", "lesson", "quiz", "debrief",
];

/// A folder that is read.
pub(super) struct ExerciseFolder<'a> {
    pub(super) loader: &'a Loader<'a>,
    /// `exercises/k01-swiglu`.
    pub(super) path: &'a str,
    /// Its `exercise.toml`.
    pub(super) file: &'a TomlFile<'a>,
}

impl ExerciseFolder<'_> {
    /// The keys of `exercise.toml` that the kind has for itself.
    pub(super) fn own<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        self.file.value(HEAD, false)
    }

    /// The path of a file beside it.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// The text of a file beside it.
    pub(super) fn text(&self, name: &str) -> Result<String, FileError> {
        self.loader.clean(&self.path_of(name))
    }
}
