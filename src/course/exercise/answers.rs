//! The learner's `answer.toml` as a text: where a key stands, and the same text with answers in it.

use toml_edit::{Document, DocumentMut, value};

use super::config::Answers;
use crate::config::file::line_of;

/// The line of a key, from 1; none where it is not there.
pub fn line_of_key(raw: &str, key: &str) -> Option<usize> {
    let document = Document::parse(raw).ok()?;
    let span = document.as_table().get(key)?.span()?;
    Some(line_of(raw, span.start))
}

/// The text with these answers; its comments stay. A text that does not read gives way to the starter's.
pub fn written(raw: &str, starter: &str, answers: &Answers) -> String {
    let mut document = [raw, starter]
        .iter()
        .find_map(|text| text.parse::<DocumentMut>().ok())
        .unwrap_or_default();
    for (key, words) in answers {
        document[key.as_str()] = value(words.join(","));
    }
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_written_where_the_question_marks_are() {
        let raw = "# first\nf16 = \"?\"\n# second\nbf16 = \"?\"\n";
        assert_eq!(line_of_key(raw, "bf16"), Some(4));
        assert_eq!(line_of_key(raw, "f8"), None);
        let answers = Answers::from([("bf16".to_owned(), vec!["same".to_owned()])]);
        let text = "# first\nf16 = \"?\"\n# second\nbf16 = \"same\"\n";
        assert_eq!(written(raw, "", &answers), text);
        assert_eq!(written("f16 = [", raw, &answers), text);
    }
}
