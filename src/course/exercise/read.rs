//! Reads one `exercise.toml` with the files beside it, and reports the first fault. Each kind reads what is its own.

use serde::Deserialize;

use super::folder::{ExerciseFolder, HEAD};
use super::{Exercise, ExerciseKind, ExerciseWork, config, detective, kernel};
use crate::course::config_file::FileError;
use crate::course::source::Loader;
use crate::course::stage::check_head;
use crate::course::toml_file;

/// Every kind.
#[rustfmt::skip] // One line for each kind.
pub static KINDS: [ExerciseKind; 3] = [
    ExerciseKind { name: "kernel", letter: 'k', asks: "To write: ", read: |it| kernel::read(it).map(ExerciseWork::Kernels) },
    ExerciseKind { name: "config", letter: 'c', asks: "To answer: ", read: |it| config::read(it).map(ExerciseWork::Configs) },
    ExerciseKind { name: "detective", letter: 'd', asks: "To answer: ", read: |it| detective::read(it).map(ExerciseWork::Detective) },
];

/// Whether a text is the label of an exercise, such as `k03`: the letter of a kind and two digits.
pub fn is_label(text: &str) -> bool {
    let digits = text.strip_prefix(|letter: char| KINDS.iter().any(|row| row.letter == letter));
    digits.and_then(two_digits).is_some()
}

/// Whether a text begins with a label: `k03-copy`, `k03`.
pub fn names_exercise(text: &str) -> bool {
    text.split('-').next().is_some_and(is_label)
}

/// The number that two digits are.
pub(in crate::course) fn two_digits(text: &str) -> Option<u32> {
    (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

#[derive(Deserialize)]
struct KindToml {
    kind: String,
}

/// Reads the folder `exercises/kNN-name`, `cNN-name` or `dNN-name`.
///
/// # Errors
/// With the first fault.
pub fn read(loader: &Loader<'_>, folder: &str) -> Result<Exercise, FileError> {
    let path = format!("exercises/{folder}");
    toml_file::open(loader, &format!("{path}/exercise.toml"), |file| {
        let KindToml { kind: named } = file.value(&["kind"], true)?;
        let kind = KINDS.iter().find(|kind| kind.name == named);
        let known = KINDS.iter().map(|kind| kind.name);
        let kind = kind.ok_or_else(|| file.unknown("kind", "kind", &named, known))?;
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
