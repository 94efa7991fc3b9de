//! The folder of an exercise while it is read: its `exercise.toml` and its other files.

use serde::de::DeserializeOwned;

use crate::course::config_file::FileError;
use crate::course::source::Loader;
use crate::course::toml_file::TomlFile;

/// The keys of `exercise.toml` that every kind has.
pub(super) const HEAD: &[&str] = &[
    "id", "kind", "title", "level", "task", "size", "hints", "lesson", "quiz", "debrief",
];

/// The folder of an exercise, with what its readers need.
pub(super) struct ExerciseFolder<'a> {
    pub(super) loader: &'a Loader<'a>,
    /// The path: `exercises/k01-swiglu`.
    pub(super) path: &'a str,
    /// The file `exercise.toml`.
    pub(super) file: &'a TomlFile<'a>,
}

impl ExerciseFolder<'_> {
    /// Reads the keys of `exercise.toml` that only this kind has.
    pub(super) fn own<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        self.file.all_but(HEAD)
    }

    /// Returns the path of a file in the folder.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Reads a file in the folder, without control characters.
    pub(super) fn text(&self, name: &str) -> Result<String, FileError> {
        self.loader.clean(&self.path_of(name))
    }
}
