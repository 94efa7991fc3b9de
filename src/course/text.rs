//! Cleans the texts of course files, reports what was removed, and gives a text a short name.

use crate::course::config_file::FileError;
use crate::sanitize;

/// Removes escapes and control characters from a text, and adds a problem for every line in which something was removed. `shown` is the
/// name of the file in messages.
pub fn cleaned(raw: &str, shown: &str, problems: &mut Vec<FileError>) -> String {
    let (text, removed) = sanitize::without_escapes(raw);
    problems.extend(removed.into_iter().map(|line| escape_removed(shown, line)));
    text
}

/// Returns the problem for a line in which something was removed.
pub fn escape_removed(shown: &str, line: usize) -> FileError {
    let message = "holds a control character, a terminal escape or an invisible character, which was removed; write plain text";
    FileError::new(shown, line, message)
}

/// Returns a short name for the content of a text: its FNV-1a hash of 64 bits, with `\n` as line endings.
pub fn hash(text: &str) -> String {
    let hash = protocol::random::hash(text.bytes().filter(|b| *b != b'\r'));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_does_not_see_line_endings() {
        assert_eq!(hash("a\r\nb"), hash("a\nb"));
        assert_ne!(hash("a"), hash("b"));
    }
}
