//! Reads one `exercise.toml` with the other files of its folder, and reports the first fault. Each kind reads its own keys.

use super::folder::{ExerciseFolder, HEAD};
use super::{Exercise, ExerciseKind, ExerciseWork, ReadWork, config, detective, kernel};
use crate::course::config_file::FileError;
use crate::course::source::Loader;
use crate::course::stage::check_head;
use crate::course::toml_file;

/// All kinds of exercises.
pub static KINDS: [ExerciseKind; 3] = [
    kind("kernel", 'k', |folder| {
        kernel::read(folder).map(ExerciseWork::Kernels)
    }),
    kind("config", 'c', |folder| {
        config::read(folder).map(ExerciseWork::Configs)
    }),
    kind("detective", 'd', |folder| {
        detective::read(folder).map(ExerciseWork::Detective)
    }),
];

const fn kind(name: &'static str, letter: char, read: ReadWork) -> ExerciseKind {
    ExerciseKind { name, letter, read }
}

/// Returns true for the first letter of a kind's folders.
pub(in crate::course) fn is_kind_letter(letter: char) -> bool {
    KINDS.iter().any(|kind| kind.letter == letter)
}

/// Returns true for the label of an exercise, such as `k03`: the letter of a kind and two digits.
pub fn is_label(text: &str) -> bool {
    let digits = text.strip_prefix(is_kind_letter);
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

/// Reads a folder of `exercises/`, such as `k01-swiglu`.
///
/// # Errors
/// The first fault.
pub fn read(loader: &Loader<'_>, folder: &str) -> Result<Exercise, FileError> {
    let path = format!("exercises/{folder}");
    toml_file::open(loader, &format!("{path}/exercise.toml"), |file| {
        let head: Exercise = file.only(HEAD)?;
        check_head(file, (&head.id, "swiglu"), &head.hints, &head.quiz);
        let Some(kind) = KINDS.iter().find(|kind| kind.name == head.kind) else {
            let known = KINDS.iter().map(|kind| kind.name);
            return Err(file.unknown("kind", "kind", &head.kind, known));
        };
        let work = (kind.read)(&ExerciseFolder {
            loader,
            path: &path,
            file,
        })?;
        Ok(Exercise {
            work,
            path: path.clone(),
            ..head
        })
    })
}
