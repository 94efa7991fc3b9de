//! Errors about a learner's file, with their place in it.

use std::ops::Range;

use crate::kernel::KernelError;

/// The most characters of the offending text that an error quotes.
const MAX_QUOTED: usize = 60;
/// The longest message, in characters.
const MAX_MESSAGE: usize = 400;

/// Returns an error about the bytes `range` of the learner's file `original`. `instead` says what to write there.
pub fn error(
    original: &str,
    range: &Range<usize>,
    message: impl Into<String>,
    instead: impl Into<String>,
) -> KernelError {
    let start = original.floor_char_boundary(range.start);
    let end = original.floor_char_boundary(range.end).max(start);
    let before = &original[..start];
    let line_start = before.rfind('\n').map_or(0, |line_break| line_break + 1);
    let line = 1 + before.matches('\n').count();
    let first_line = original[start..end].lines().next().unwrap_or("");
    // A control character has no width and no meaning here; the message names it.
    let text: String = first_line
        .replace(char::is_control, " ")
        .chars()
        .take(MAX_QUOTED)
        .collect();
    KernelError {
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(1 + original[line_start..start].chars().count()).unwrap_or(u32::MAX),
        text: text.trim_end().to_owned(),
        // naga quotes an unclosed comment in full, so its message may be as long as the file.
        message: message.into().chars().take(MAX_MESSAGE).collect(),
        instead: instead.into(),
        launch: false,
    }
}

/// Returns an error about the text as a whole.
pub fn whole(message: impl Into<String>, instead: impl Into<String>) -> KernelError {
    KernelError {
        message: message.into(),
        instead: instead.into(),
        ..KernelError::default()
    }
}
