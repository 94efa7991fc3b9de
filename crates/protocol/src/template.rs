//! Puts the sizes of a shape into a learner's kernel: the number of N replaces `{{N}}`. The filled text keeps the origin of each piece, so that a
//! message about it names a place in the learner's file.

use std::collections::BTreeMap;
use std::ops::Range;

/// A text ready to compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledTemplate {
    pub text: String,
    /// The bytes of each size in the filled text, and those of its placeholder in the original.
    sizes: Vec<(Range<usize>, Range<usize>)>,
}

impl FilledTemplate {
    /// Returns the bytes of the original from which the bytes `range` of the filled text came.
    pub fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.offset_in_original(range.start, false);
        start..self.offset_in_original(range.end, true).max(start)
    }

    /// Returns the byte of the original that a byte of the filled text came from. A byte of a size came from the start of its placeholder. If
    /// `is_end` is true, the byte ends a range, and the end of a range inside a size is the end of the placeholder.
    fn offset_in_original(&self, offset: usize, is_end: bool) -> usize {
        // The end of a range belongs to the piece before it.
        let is_before =
            |(filled, _): &&(Range<usize>, _)| filled.start + usize::from(is_end) <= offset;
        match self.sizes.iter().rfind(is_before) {
            None => offset,
            Some((filled, original)) if is_end && offset <= filled.end => original.end,
            Some((filled, original)) if offset < filled.end => original.start,
            Some((filled, original)) => original.end + (offset - filled.end),
        }
    }
}

/// A placeholder `{{name}}` that names no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSize {
    pub name: String,
    /// The bytes of the placeholder in the original.
    pub place: Range<usize>,
}

/// Replaces each placeholder by its size.
///
/// # Errors
/// Returns the first placeholder that names no size.
pub fn fill(original: &str, sizes: &BTreeMap<String, u64>) -> Result<FilledTemplate, UnknownSize> {
    let mut filled = FilledTemplate::default();
    let mut done = 0;
    while let Some((place, name)) = next_placeholder(original, done) {
        let Some(size) = sizes.get(name) else {
            return Err(UnknownSize {
                name: name.to_owned(),
                place,
            });
        };
        filled.text += &original[done..place.start];
        let start = filled.text.len();
        filled.text += &size.to_string();
        done = place.end;
        filled.sizes.push((start..filled.text.len(), place));
    }
    filled.text += &original[done..];
    Ok(filled)
}

/// Returns the first `{{NAME}}` from byte `from` on, its bytes and its name. Braces around anything but one word are code.
fn next_placeholder(text: &str, mut from: usize) -> Option<(Range<usize>, &str)> {
    loop {
        let start = from + text[from..].find("{{")?;
        let length = text[start + 2..].find("}}")?;
        let name = text[start + 2..start + 2 + length].trim();
        let is_word =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_word {
            return Some((start..start + length + 4, name));
        }
        from = start + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> BTreeMap<String, u64> {
        BTreeMap::from([("N".to_owned(), 1000), ("COLS".to_owned(), 7)])
    }

    #[test]
    fn a_piece_of_the_filled_text_leads_back_to_the_file() {
        let original = "let a = {{N}}u + {{ COLS }}u;\nlet b = a;";

        let filled = fill(original, &sizes()).expect("both sizes are known");
        let origin = |piece: &str| {
            let start = filled
                .text
                .find(piece)
                .expect("the filled text has the piece");
            &original[filled.origin(&(start..start + piece.len()))]
        };

        assert_eq!(filled.text, "let a = 1000u + 7u;\nlet b = a;");
        assert_eq!(origin("let a"), "let a");
        assert_eq!(origin("1000"), "{{N}}");
        assert_eq!(origin("1000u + 7u"), "{{N}}u + {{ COLS }}u");
        assert_eq!(origin("let b = a;"), "let b = a;");
        assert_eq!(filled.origin(&(0..0)), 0..0);
        let end = filled.text.len();
        assert_eq!(filled.origin(&(end..end)), original.len()..original.len());
    }

    #[test]
    fn braces_of_code_stay() {
        let code = "fn f() {{ return; }} // {{}} {{ a b }} {{";
        assert_eq!(
            fill(code, &sizes()).map(|filled| filled.text),
            Ok(code.to_owned())
        );
    }
}
