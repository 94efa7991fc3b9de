//! Reads one `exercise.toml` with the other files of its folder, and reports the first fault. Each kind reads its own keys.

use serde::Deserialize;

use super::folder::{ExerciseFolder, HEAD};
use super::{Exercise, ExerciseKind, ExerciseWork, config, detective, kernel};
use crate::course::config_file::FileError;
use crate::course::source::Loader;
use crate::course::stage::check_head;
use crate::course::toml_file;

/// All kinds of exercises.
#[rustfmt::skip] // One line for each kind.
pub static KINDS: [ExerciseKind; 3] = [
    ExerciseKind { name: "kernel", letter: 'k', asks: "To write: ", read: |folder| kernel::read(folder).map(ExerciseWork::Kernels) },
    ExerciseKind { name: "config", letter: 'c', asks: "To answer: ", read: |folder| config::read(folder).map(ExerciseWork::Configs) },
    ExerciseKind { name: "detective", letter: 'd', asks: "To answer: ", read: |folder| detective::read(folder).map(ExerciseWork::Detective) },
];

/// Returns true for the label of an exercise, such as `k03`: the letter of a kind and two digits.
pub fn is_label(text: &str) -> bool {
    let digits = text.strip_prefix(|letter: char| KINDS.iter().any(|kind| kind.letter == letter));
    digits.and_then(two_digits).is_some()
}

/// Returns true for a text that begins with a label: `k03-copy`, `k03`.
pub fn names_exercise(text: &str) -> bool {
    text.split('-').next().is_some_and(is_label)
}

/// Reads a number of exactly two digits; `None` for anything else.
pub(in crate::course) fn two_digits(text: &str) -> Option<u32> {
    if text.len() != 2 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[derive(Deserialize)]
struct KindToml {
    kind: String,
}

/// Reads the folder `exercises/kNN-name`, `cNN-name` or `dNN-name`.
///
/// # Errors
/// The first fault.
pub fn read(loader: &Loader<'_>, folder: &str) -> Result<Exercise, FileError> {
    let path = format!("exercises/{folder}");
    toml_file::open(loader, &format!("{path}/exercise.toml"), |file| {
        let KindToml { kind: name } = file.value(&["kind"], true)?;
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
            let known = KINDS.iter().map(|kind| kind.name);
            return Err(file.unknown("kind", "kind", &name, known));
        };
        let path = path.as_str();
        let work = (kind.read)(&ExerciseFolder { loader, path, file })?;
        let found: Exercise = file.value(HEAD, true)?;
        check_head(file, (&found.id, "swiglu"), &found.hints, &found.quiz);
        Ok(Exercise {
            kind: kind.name,
            asks: kind.asks,
            work,
            path: path.to_owned(),
            ..found
        })
    })
}
