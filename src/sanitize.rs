//! Makes text from outside safe for a terminal, JSON, Markdown, CSV or HTML. Control characters, invisible characters and characters that
//! reorder text are removed or replaced. Everything that is printed, drawn or exported passes through here.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns true for a character that is not safe to show: a control character, an invisible one, or one that reorders text.
pub use gputrace::names::is_hidden as harmful;

/// The longest line of a text from outside that is shown, in characters.
pub const MAX_LINE_CHARS: usize = 400;

/// Returns `·` for a harmful character, and any other character unchanged.
pub fn shown(c: char) -> char {
    if harmful(c) { '·' } else { c }
}

/// Replaces the harmful characters in a text of any number of lines by `·`. Line breaks and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| !harmful(c) || matches!(c, '\n' | '\t');
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let clean = |c: char| if stays(c) { c } else { shown(c) };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(clean).collect())
}

/// Replaces the harmful characters in a line of text by `·`, also line breaks.
pub fn plain(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// Cleans a line of text like `plain`. A line with more than [`MAX_LINE_CHARS`] characters is cut and ends with `…`.
pub fn line(text: &str) -> String {
    bounded(text, MAX_LINE_CHARS)
}

/// Cleans a line of text like `plain`. A line with more than `limit` characters is cut and ends with `…`.
pub fn bounded(text: &str, limit: usize) -> String {
    let mut clean: String = text.chars().take(limit).map(shown).collect();
    if text.chars().nth(limit).is_some() {
        clean.push('…');
    }
    clean
}

/// Removes harmful characters and whole escape sequences from a text. Line breaks stay; a tab becomes four spaces. Returns the text, and the
/// numbers, from 1, of the lines where something was removed.
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

/// Removes harmful characters and escape sequences from a text, and joins its words with single blanks.
pub fn one_line(text: &str) -> String {
    let (clean, _) = without_escapes(text);
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes a text for a line of Markdown, so that no character is taken for markup.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text
        .chars()
        .map(|c| if harmful(c) { ' ' } else { c })
        .peekable();
    while let Some(c) = rest.next() {
        // Only a bracket that would make a link is escaped; the brackets of an interval stay readable.
        let makes_link = c == ']' && rest.peek().is_some_and(|next| "([:".contains(*next));
        if makes_link || "|*_`<>\\#&".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns a text as a cell of CSV. A text is quoted if it would break the table, or if a spreadsheet would take it for a formula.
pub fn csv(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| if harmful(c) { ' ' } else { c })
        .collect();
    let is_formula = clean
        .trim_start()
        .starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    if is_formula || clean.contains(['"', ',']) {
        let guard = if is_formula { "'" } else { "" };
        format!("\"{guard}{}\"", clean.replace('"', "\"\""))
    } else {
        clean
    }
}

/// Escapes a text for a page in HTML, so that no character is taken for markup.
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

/// Escapes the harmful characters in JSON, which keeps its meaning: in valid JSON such characters are only in strings.
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

/// Escapes JSON for the script of an HTML page, in which `</script>` would end the script.
pub fn script(json: &str) -> String {
    self::json(json).replace('<', "\\u003c")
}

/// Skips the rest of an escape sequence after ESC: the parameters of `ESC [ … letter`, or the text of `ESC ] … BEL`.
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
    fn escapes_and_direction_marks_become_dots() {
        assert_eq!(line("a\u{1b}[2Jb\u{202e}c\r\n"), "a·[2Jb·c··");
        assert_eq!(bounded("abcdef", 3), "abc…");
        assert_eq!(line("a\u{200b}b\u{9b}31m"), "a·b·31m");
        assert_eq!(lines("a\r\nb\tc\u{7}"), "a\nb\tc·");
    }

    #[test]
    fn escape_sequences_are_removed_with_all_their_parts() {
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
    fn markdown_and_csv_contain_names_as_text() {
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
