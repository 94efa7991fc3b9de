//! Reads a learner's kernel file as text. The error names the place of the first byte that is no text and what to do.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use crate::files;
use protocol::KernelError;
use protocol::validate::message::{self, whole};
use protocol::validate::scan::{MAX_BYTES, too_large};

/// Reads a learner's file. A file that is too large is refused before it is read.
///
/// # Errors
/// Fails if the file cannot be read, is over 256 KiB or is not text.
pub fn read(path: &Path) -> Result<String, KernelError> {
    let shown = name_of(path);
    let failed = |error: std::io::Error| {
        whole(
            format!("{shown} cannot be read: {error}"),
            "reset the exercise to get the starter back",
        )
    };
    match files::read(path, MAX_BYTES) {
        Ok(bytes) => text(bytes),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            let length = std::fs::metadata(path).map_err(failed)?.len();
            Err(too_large(length))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Returns the name of a file without its folder, for a screen that has one line for it.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Returns bytes as text without a byte order mark.
///
/// # Errors
/// Fails if the bytes are not UTF-8 or have control characters.
pub fn text(bytes: Vec<u8>) -> Result<String, KernelError> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            let message = "the file is not UTF-8 text from here on";
            return Err(no_text(&text, valid..valid, message));
        }
    };
    match text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        None => Ok(text),
        Some(index) => {
            let message = "a control character: this is not a text file";
            Err(no_text(&text, index..index + 1, message))
        }
    }
}

/// Makes the error of a file that is no text, at this range of bytes.
fn no_text(text: &str, place: Range<usize>, message: &str) -> KernelError {
    let instead = "WGSL text; another file may have been saved over it".to_owned();
    message::error(text, &place, message.to_owned(), instead)
}
