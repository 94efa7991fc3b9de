//! Texts of course files: what was cleaned in them is reported, and their content has a short name.

use crate::course::config_file::FileError;
use crate::sanitize;

/// `raw` cleaned, with a problem for every line in which something was removed; `shown` is the name of its file.
pub fn cleaned(raw: &str, shown: &str, problems: &mut Vec<FileError>) -> String {
    let (text, removed) = sanitize::without_escapes(raw);
    problems.extend(removed.into_iter().map(|line| escape_removed(shown, line)));
    text
}

/// The problem of a line in which something was removed.
pub fn escape_removed(shown: &str, line: usize) -> FileError {
    let what = "holds a control character, a terminal escape or an invisible character, which was removed; write plain text";
    FileError::new(shown, line, what)
}

/// A short name for a text's content: FNV-1a, 64 bit, line endings as `\n`.
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
