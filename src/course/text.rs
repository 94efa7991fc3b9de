//! Text from a course file made safe to show: no terminal escapes, no control characters, no hidden direction changes.

use crate::clean::harmful;
use crate::config::file::FileError;

/// `text` without control characters and escape sequences, and the lines (from 1) where something was removed.
/// Line breaks stay; a tab becomes four spaces.
pub fn clean(text: &str) -> (String, Vec<usize>) {
    let mut out = String::with_capacity(text.len());
    let mut removed = Vec::new();
    let mut line = 1;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => {
                line += 1;
                out.push(c);
            }
            '\t' => out.push_str("    "),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\u{1b}' => {
                skip_sequence(&mut rest);
                removed.push(line);
            }
            c if harmful(c) => removed.push(line),
            c => out.push(c),
        }
    }
    removed.dedup();
    (out, removed)
}

/// `raw` cleaned, with a problem for every line in which something was removed; `shown` is the name of its file.
pub fn cleaned(raw: &str, shown: &str, problems: &mut Vec<FileError>) -> String {
    let (text, removed) = clean(raw);
    problems.extend(removed.into_iter().map(|line| escape_removed(shown, line)));
    text
}

/// The problem of a line in which something was removed.
pub fn escape_removed(shown: &str, line: usize) -> FileError {
    let what = "holds a control character, a terminal escape or an invisible character, which was removed; write plain text";
    FileError::new(shown, line, what)
}

/// One line of text for a message: cleaned, line breaks as spaces.
pub fn one_line(text: &str) -> String {
    clean(text)
        .0
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// A short name for a text's content: FNV-1a, 64 bit, line endings as `\n`.
pub fn hash(text: &str) -> String {
    let hash = crate::random::hash(text.bytes().filter(|b| *b != b'\r'));
    format!("{hash:016x}")
}

/// The parameters of `ESC [ … letter` and the text of `ESC ] … BEL`, so that no half of a sequence stays behind.
fn skip_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            while rest.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')).is_some() {}
            rest.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = rest.next_if(|c| *c != '\n') {
                if c == '\u{7}' || c == '\u{1b}' {
                    rest.next_if_eq(&'\\');
                    break;
                }
            }
        }
        Some('\u{20}'..='\u{7e}') => {
            rest.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_leave_with_all_their_parts() {
        assert_eq!(
            clean("a\u{1b}[31;1mred\u{1b}[0m\nb"),
            ("ared\nb".to_owned(), vec![1])
        );
        assert_eq!(clean("x\u{1b}]0;title\u{7}y"), ("xy".to_owned(), vec![1]));
        assert_eq!(clean("x\u{1b}]8;;http://a\u{1b}\\link").0, "xlink");
        assert_eq!(
            clean("one\ntwo\u{9b}31m\u{8}\nthree\r\n"),
            ("one\ntwo31m\nthree\n".to_owned(), vec![2])
        );
        assert_eq!(clean("a\u{202e}b").0, "ab");
        assert_eq!(clean("grün … ≤ │"), ("grün … ≤ │".to_owned(), Vec::new()));
    }

    #[test]
    fn the_hash_does_not_see_line_endings() {
        assert_eq!(hash("a\r\nb"), hash("a\nb"));
        assert_ne!(hash("a"), hash("b"));
    }
}
