//! A kernel's text with the sizes put in, `{{N}}` by its number. It remembers where each piece came from, so that a
//! message about the filled text names a place in the learner's file.

use std::collections::BTreeMap;
use std::ops::Range;

use super::message;
use crate::config::nearest;
use crate::protocol::KernelError;

/// A text ready to compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    pub text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    filled: Range<usize>,
    original: Range<usize>,
    /// A size: the whole of it came from the whole of its place.
    size: bool,
}

impl Filled {
    /// Where the bytes `range` of the filled text stand in the original.
    pub fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.at(range.start, false);
        start..self.at(range.end, true).max(start)
    }

    /// The original place of the byte offset `at`; of a size its start or, for the end of a range, its end.
    fn at(&self, at: usize, end: bool) -> usize {
        // The end of a range belongs to the piece before it.
        let inside = |piece: &&Piece| {
            if end {
                piece.filled.start < at && at <= piece.filled.end
            } else {
                piece.filled.contains(&at)
            }
        };
        match self.pieces.iter().find(inside) {
            Some(piece) if !piece.size => piece.original.start + (at - piece.filled.start),
            Some(piece) if end => piece.original.end,
            Some(piece) => piece.original.start,
            None if at == 0 => 0,
            None => self.pieces.last().map_or(0, |piece| piece.original.end),
        }
    }
}

/// Puts the sizes into their places.
///
/// # Errors
/// When a place names no size of the exercise.
pub fn fill(original: &str, sizes: &BTreeMap<String, u64>) -> Result<Filled, KernelError> {
    let mut filled = Filled::default();
    let mut done = 0;
    while let Some((place, name)) = next_place(original, done) {
        filled.push(done..place.start, &original[done..place.start], false);
        let Some(size) = sizes.get(name) else {
            let names = sizes.keys().map(String::as_str);
            return Err(message::error(
                original,
                &place,
                format!("`{name}` is no size of this exercise"),
                format!(
                    "one of {}; the nearest is {{{{{}}}}}",
                    list(names.clone()),
                    nearest(name, names)
                ),
            ));
        };
        filled.push(place.clone(), &size.to_string(), true);
        done = place.end;
    }
    filled.push(done..original.len(), &original[done..], false);
    Ok(filled)
}

impl Filled {
    fn push(&mut self, original: Range<usize>, text: &str, size: bool) {
        let start = self.text.len();
        self.text.push_str(text);
        self.pieces.push(Piece {
            filled: start..self.text.len(),
            original,
            size,
        });
    }
}

/// The next `{{NAME}}` from `from` on. Braces around anything but one word are code.
fn next_place(text: &str, mut from: usize) -> Option<(Range<usize>, &str)> {
    loop {
        let start = from + text[from..].find("{{")?;
        let length = text[start + 2..].find("}}")?;
        let name = text[start + 2..start + 2 + length].trim();
        let word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if word {
            return Some((start..start + length + 4, name));
        }
        from = start + 1;
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("{{{{{name}}}}}"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> BTreeMap<String, u64> {
        BTreeMap::from([("N".to_owned(), 1000), ("COLS".to_owned(), 7)])
    }

    #[test]
    fn places_lead_back_to_the_file() {
        let original = "let a = {{N}}u + {{ COLS }}u;\nlet b = a;";
        let filled = fill(original, &sizes()).expect("fills");
        assert_eq!(filled.text, "let a = 1000u + 7u;\nlet b = a;");
        let origin = |piece: &str| {
            let start = filled.text.find(piece).expect("is there");
            &original[filled.origin(&(start..start + piece.len()))]
        };
        assert_eq!(origin("let a"), "let a");
        assert_eq!(origin("1000"), "{{N}}");
        assert_eq!(origin("1000u + 7u"), "{{N}}u + {{ COLS }}u");
        assert_eq!(origin("let b = a;"), "let b = a;");
        assert_eq!(filled.origin(&(0..0)), 0..0);
        let end = filled.text.len();
        assert_eq!(filled.origin(&(end..end)), original.len()..original.len());
    }

    #[test]
    fn unknown_sizes_are_named() {
        let error = fill("x\n  {{n}}", &sizes()).expect_err("no such size");
        assert_eq!(
            (error.line, error.column, error.text.as_str()),
            (2, 3, "{{n}}")
        );
        assert_eq!(error.message, "`n` is no size of this exercise");
        assert_eq!(
            error.instead,
            "one of {{COLS}}, {{N}}; the nearest is {{N}}"
        );
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
