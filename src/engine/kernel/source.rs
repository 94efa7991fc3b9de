//! Reads a learner's file as text, or says why that is not possible. A file that is too large is not read.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use super::message::{self, whole};
use crate::files;
use crate::protocol::KernelError;

/// Largest file that is read, in bytes.
pub const MAX_BYTES: u64 = 256 * 1024;

/// Reads a learner's file. A file that is too large is refused before it is read.
///
/// # Errors
/// When it cannot be read, is over 256 KiB or is not text.
pub fn read(path: &Path) -> Result<String, KernelError> {
    let shown = path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
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

/// Bytes as text without a byte order mark.
///
/// # Errors
/// When they are not text.
pub fn text(bytes: Vec<u8>) -> Result<String, KernelError> {
    let wrong = |text: &str, place: Range<usize>, message: &str| {
        let instead = "WGSL text; another file may have been saved over it";
        let (message, instead) = (message.to_owned(), instead.to_owned());
        Err(message::error(text, &place, message, instead))
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            return wrong(&text, good..good, "the file is not UTF-8 text from here on");
        }
    };
    match text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        None => Ok(text),
        Some(at) => {
            let message = "a control character: this is not a text file";
            wrong(&text, at..at + 1, message)
        }
    }
}

/// Why a file of `length` bytes is refused.
pub fn too_large(length: u64) -> KernelError {
    whole(
        format!("the file has {length} bytes; the largest that is read has {MAX_BYTES}"),
        "a kernel of some dozen lines; another file may have been saved over it",
    )
}

/// The text with each byte of its comments replaced by a space.
pub fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let (mut at, mut depth) = (0, 0);
    let mut line = false;
    while at < bytes.len() {
        let pair = (bytes[at], bytes.get(at + 1).copied().unwrap_or(b' '));
        let wide = !line && (pair == (b'/', b'*') || depth > 0 && pair == (b'*', b'/'));
        match pair {
            (b'\n', _) => line = false,
            (b'/', b'*') if !line => depth += 1,
            (b'/', b'/') if depth == 0 => line = true,
            _ => {}
        }
        let end = (at + if wide { 2 } else { 1 }).min(bytes.len());
        if (line || depth > 0) && bytes[at] != b'\n' {
            bytes[at..end].fill(b' ');
        }
        if wide && pair == (b'*', b'/') {
            depth -= 1;
        }
        at = end;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The longest run of characters for which `is_one` holds, as a range of bytes.
pub fn longest(text: &str, is_one: impl Fn(char) -> bool) -> Range<usize> {
    let (mut longest, mut start) = (0..0, 0);
    for (at, c) in text.char_indices().chain([(text.len(), '\n')]) {
        if !is_one(c) {
            if at - start > longest.len() {
                longest = start..at;
            }
            start = at + c.len_utf8();
        }
    }
    longest
}

/// The bracket that has more than `most` others around it.
pub fn nested_deeper(code: &str, most: usize) -> Option<usize> {
    let (mut depth, mut types) = (0_usize, 0_usize);
    let mut before = ' ';
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            // The bracket of a type, or a comparison, which ends with its statement.
            '<' if before.is_ascii_alphabetic() => types += 1,
            ';' => types = 0,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '>' => types = types.saturating_sub(1),
            _ => {}
        }
        if depth + types > most {
            return Some(at);
        }
        before = c;
    }
    None
}
