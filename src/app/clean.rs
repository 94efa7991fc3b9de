//! Makes text from outside safe to draw and to keep: no control characters, no direction tricks, bounded length.

/// Longest text taken over from an event or a file, in characters, where one line is meant.
pub const LINE: usize = 400;

/// One line of text: control characters and invisible direction marks become `·`, what is too long ends in `…`.
pub fn line(text: &str) -> String {
    bounded(text, LINE)
}

/// As `line`, with a limit of its own.
pub fn bounded(text: &str, limit: usize) -> String {
    let mut clean: String = text
        .chars()
        .take(limit)
        .map(|c| if harmful(c) { '·' } else { c })
        .collect();
    if text.chars().nth(limit).is_some() {
        clean.push('…');
    }
    clean
}

/// Whether a character could move the cursor, change modes or reorder what stands beside it.
pub fn harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || ('\u{e0000}'..='\u{e007f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_direction_marks_are_defused() {
        assert_eq!(line("a\u{1b}[2Jb\u{202e}c\r\n"), "a·[2Jb·c··");
        assert_eq!(bounded("abcdef", 3), "abc…");
        assert_eq!(line("naïve 表 √σ²"), "naïve 表 √σ²");
    }
}
