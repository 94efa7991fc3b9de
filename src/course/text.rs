//! Removes what could control a terminal from the texts of course files, and computes short hashes of texts.

use crate::course::config_file::FileError;
use crate::sanitize;

/// Removes escapes and control characters from a text, and adds a problem for every line in which something was removed. `shown` is the
/// name of the file in messages.
pub fn cleaned(raw: &str, shown: &str, problems: &mut Vec<FileError>) -> String {
    let (text, removed) = sanitize::without_escapes(raw);
    problems.extend(removed.into_iter().map(|line| escape_removed(shown, line)));
    text
}

/// Returns the problem of a line in which something was removed.
pub fn escape_removed(shown: &str, line: usize) -> FileError {
    let message = "holds a control character, a terminal escape or an invisible character, which was \
                   removed; write plain text";
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
    fn texts_that_differ_only_in_line_endings_have_one_hash() {
        assert_eq!(hash("a\r\nb"), hash("a\nb"));
        assert_ne!(hash("a"), hash("b"));
    }
}
