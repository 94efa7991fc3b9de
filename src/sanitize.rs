//! Makes text from outside safe for a terminal, JSON, Markdown, CSV or HTML: it has no control characters, no invisible characters and none
//! that reorder text. Everything that is printed, drawn or exported passes through here, and nothing else does this.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns true for a character that is not safe to show.
pub use gputrace::names::is_hidden as harmful;

/// The longest line that is taken from an event or a file, in characters.
pub const LINE: usize = 400;

/// Returns the character that is shown for a character: itself, or `·` for a harmful one.
pub fn shown(c: char) -> char {
    if harmful(c) { '·' } else { c }
}

/// Cleans a text of any number of lines. Line breaks and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| !harmful(c) || matches!(c, '\n' | '\t');
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let clean = |c: char| if stays(c) { c } else { shown(c) };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(clean).collect())
}

/// Cleans one line of text.
pub fn plain(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// Cleans one line of text and cuts it after [`LINE`] characters with `…`.
pub fn line(text: &str) -> String {
    bounded(text, LINE)
}

/// Cleans one line of text and cuts it after `limit` characters with `…`.
pub fn bounded(text: &str, limit: usize) -> String {
    let mut clean: String = text.chars().take(limit).map(shown).collect();
    if text.chars().nth(limit).is_some() {
        clean.push('…');
    }
    clean
}

/// Removes control characters and escape sequences. Returns the text, and the numbers (from 1) of the lines where something was removed.
/// Line breaks stay; a tab becomes four spaces.
pub fn without_escapes(text: &str) -> (String, Vec<usize>) {
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

/// Removes control characters and escape sequences, and replaces line breaks and runs of blanks by one blank.
pub fn one_line(text: &str) -> String {
    without_escapes(text)
        .0
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Escapes a text for a line of Markdown, so that none of it is read as markup.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text
        .chars()
        .map(|c| if harmful(c) { ' ' } else { c })
        .peekable();
    while let Some(c) = rest.next() {
        // Brackets need no escape where they make no link, as in an interval.
        let makes_link = c == ']' && rest.peek().is_some_and(|next| "([:".contains(*next));
        if makes_link || "|*_`<>\\#&".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns a text as a cell of CSV. It is quoted where it would break the table or a spreadsheet would take it for a formula.
pub fn csv(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if harmful(c) { ' ' } else { c })
        .collect();
    let formula = text
        .trim_start()
        .starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    if formula || text.contains(['"', ',']) {
        let guard = if formula { "'" } else { "" };
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// Escapes a text for a page in HTML, so that none of it is read as markup.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().map(shown) {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// Returns JSON with equal meaning in which harmful characters are escaped. In valid JSON they can only stand in strings.
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !harmful(c) || matches!(c, '\n' | '\t') {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

/// Returns JSON that may stand in a script of a page. It has no `<`, which could end the script.
pub fn script(json: &str) -> String {
    self::json(json).replace('<', "\\u003c")
}

/// Skips the parameters of `ESC [ … letter` and the text of `ESC ] … BEL`, so that no part of a sequence stays.
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
    fn escapes_and_direction_marks_are_defused() {
        assert_eq!(line("a\u{1b}[2Jb\u{202e}c\r\n"), "a·[2Jb·c··");
        assert_eq!(bounded("abcdef", 3), "abc…");
        assert_eq!(line("a\u{200b}b\u{9b}31m"), "a·b·31m");
        assert_eq!(lines("a\r\nb\tc\u{7}"), "a\nb\tc·");
    }

    #[test]
    fn escapes_leave_with_all_their_parts() {
        assert_eq!(
            without_escapes("a\u{1b}[31;1mred\u{1b}[0m\nb"),
            ("ared\nb".to_owned(), vec![1])
        );
        assert_eq!(
            without_escapes("x\u{1b}]0;title\u{7}y"),
            ("xy".to_owned(), vec![1])
        );
        assert_eq!(
            without_escapes("x\u{1b}]8;;http://a\u{1b}\\link").0,
            "xlink"
        );
        assert_eq!(
            without_escapes("one\ntwo\u{9b}31m\u{8}\nthree\r\n"),
            ("one\ntwo31m\nthree\n".to_owned(), vec![2])
        );
        assert_eq!(without_escapes("a\u{202e}b").0, "ab");
        assert_eq!(
            without_escapes("grün … ≤ │"),
            ("grün … ≤ │".to_owned(), Vec::new())
        );
    }

    #[test]
    fn every_language_stays_readable() {
        for text in ["naïve Größe 表 √σ²", "कक्षा 日本語 한국어", "👍🏽 ❤️ 🇩🇪"]
        {
            assert_eq!(line(text), text);
            assert!(matches!(lines(text), Cow::Borrowed(_)));
        }
        assert_eq!(line("👨\u{200d}👩"), "👨·👩");
    }

    #[test]
    fn reports_take_names_for_names() {
        assert_eq!(markdown("<b>a|b</b>\n# x"), "\\<b\\>a\\|b\\</b\\> \\# x");
        assert_eq!(markdown("[x](http://a)"), "[x\\](http://a)");
        assert_eq!(csv("=cmd|' /C calc'!A0"), "\"'=cmd|' /C calc'!A0\"");
        assert_eq!(csv("\t@SUM(1)"), "\"' @SUM(1)\"");
        assert_eq!(csv("a,\"b\"\n\u{1b}"), "\"a,\"\"b\"\"  \"");
        assert_eq!(csv("matmul_64x64"), "matmul_64x64");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "\u{9b}31m \u{202e}\u{e0041} ü \u{1b}]52;c;eA==\u{7} \u{7f}";
        let plain = serde_json::to_string(text).expect("plain data");
        let escaped = json(&plain);
        assert!(!escaped.chars().any(harmful), "{escaped:?}");
        assert_eq!(
            serde_json::from_str::<String>(&escaped).expect("still JSON"),
            text
        );
    }
}
