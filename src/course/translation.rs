//! Prose in another language, beside the original: `lessons/de/01-name.md` and, for what stands in `stage.toml`,
//! `lessons/de/01-name.toml`. Each records the hash of the original it was made from, so that `course check` can say
//! when the original has moved on. What is not translated stays English.

use super::fields::{Fields, Table, root};
use super::source::Source;
use super::{Question, Stage};
use crate::config::file::FileError;

/// The file of a lesson in `language`, else in English, and the language found.
pub fn find(source: &Source, lesson: &str, language: &str) -> Option<(String, String)> {
    let translated = format!("lessons/{language}/{lesson}");
    if language != "en" && source.exists(&translated) {
        return Some((translated, language.to_owned()));
    }
    let original = format!("lessons/{lesson}");
    source
        .exists(&original)
        .then(|| (original, "en".to_owned()))
}

const KEYS: &[&str] = &[
    "translates",
    "title",
    "symptom",
    "fault",
    "fix",
    "cpu-note",
    "hints",
    "evidence",
    "claims",
    "checks",
    "estimate",
    "prediction",
    "quiz",
    "beats",
];

/// Puts the translated texts over the stage's; one that does not fit is reported and left English.
pub fn apply(
    source: &Source,
    folder: &str,
    language: &str,
    stage: &mut Stage,
    problems: &mut Vec<FileError>,
) {
    let path = format!("lessons/{language}/{folder}.toml");
    if !source.exists(&path) {
        return;
    }
    let raw = match source.read(&path) {
        Ok(raw) => raw,
        Err(error) => return problems.push(error),
    };
    let mut fields = Fields::new(&raw, &source.shown(&path));
    let document = fields.document();
    if let Some(document) = &document {
        overlay(&mut fields, root(document), stage);
    }
    problems.append(&mut fields.problems);
}

fn overlay(fields: &mut Fields<'_>, t: Table<'_>, stage: &mut Stage) {
    fields.known(t, KEYS);
    for (key, place) in [
        ("title", &mut stage.title),
        ("symptom", &mut stage.symptom),
        ("fault", &mut stage.fault),
        ("fix", &mut stage.fix),
    ] {
        one(fields, t, key, place);
    }
    if let Some(note) = &mut stage.cpu_note {
        one(fields, t, "cpu-note", note);
    }
    if let Some(estimate) = &mut stage.estimate {
        one(fields, t, "estimate", &mut estimate.prompt);
    }
    many(fields, t, "hints", stage.hints.iter_mut().collect());
    many(
        fields,
        t,
        "evidence",
        stage
            .evidence
            .iter_mut()
            .map(|pointer| &mut pointer.text)
            .collect(),
    );
    many(
        fields,
        t,
        "claims",
        stage
            .claims
            .iter_mut()
            .map(|claim| &mut claim.text)
            .collect(),
    );
    many(
        fields,
        t,
        "checks",
        stage
            .checks
            .iter_mut()
            .map(|check| &mut check.name)
            .collect(),
    );
    many(
        fields,
        t,
        "beats",
        stage.cues.iter_mut().map(|cue| &mut cue.say).collect(),
    );
    if let Some(table) = fields.table(t, "prediction") {
        question(fields, table, &mut stage.prediction);
    }
    let quiz = fields.tables(t, "quiz");
    if !quiz.is_empty() && quiz.len() != stage.quiz.len() {
        let line = quiz.first().map_or(0, |table| table.line);
        fields.fail(
            line,
            format!(
                "has {} quiz questions, the original has {}",
                quiz.len(),
                stage.quiz.len()
            ),
        );
        return;
    }
    for (table, original) in quiz.into_iter().zip(&mut stage.quiz) {
        question(fields, table, original);
    }
}

fn question(fields: &mut Fields<'_>, t: Table<'_>, original: &mut Question) {
    fields.known(t, &["prompt", "choices", "explanation"]);
    one(fields, t, "prompt", &mut original.prompt);
    one(fields, t, "explanation", &mut original.explanation);
    many(fields, t, "choices", original.choices.iter_mut().collect());
}

fn one(fields: &mut Fields<'_>, t: Table<'_>, key: &str, place: &mut String) {
    if let Some(text) = fields.optional_text(t, key) {
        *place = text;
    }
}

fn many(fields: &mut Fields<'_>, t: Table<'_>, key: &str, places: Vec<&mut String>) {
    let texts = fields.texts(t, key);
    if texts.is_empty() {
        return;
    }
    if texts.len() != places.len() {
        let line = fields.line_of(t, key);
        fields.fail(
            line,
            format!(
                "`{key}` has {} texts, the original has {}",
                texts.len(),
                places.len()
            ),
        );
        return;
    }
    for (text, place) in texts.into_iter().zip(places) {
        *place = text;
    }
}

/// The hash that a translation recorded: `translates = "…"`, or `<!-- translates: … -->` in a lesson.
pub fn recorded(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("translates")?;
    let rest = rest.trim_start_matches([' ', ':', '=', '"']);
    let hash = &rest[..rest
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(rest.len())];
    (hash.len() == 16).then_some(hash)
}
