//! The texts of `stage.toml`, `exercise.toml` and their translations as prose, with the line each begins at, so that
//! their numbers are traced like those of a lesson. What a question gives is given: its prompt sets the numbers, and its
//! wrong choices may say what they like.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::numbers::{Prose, Sources, numbers};
use crate::course::config_file::line_of;
use crate::course::lesson::{LessonReference, LessonReferenceKind};
use crate::course::source::{CourseFiles, Loader};

/// Keys whose values are read by a learner. `size`, `label` and the words of a criterion say what is asked, `fix` names
/// values of the configurations, and a claim has its own source.
const KEYS: &[&str] = &[
    "title", "symptom", "fault", "cpu-note", "task", "debrief", "ask", "text", "say", "hints",
    "estimate", "evidence", "beats", "prompt",
];

/// The prose of a lesson.
pub fn of_lesson(marks: &[LessonReference]) -> Vec<Prose> {
    let prose = marks
        .iter()
        .filter(|mark| mark.kind == LessonReferenceKind::Prose);
    prose
        .map(|mark| Prose {
            line: mark.line,
            text: mark.text.clone(),
            given: Vec::new(),
        })
        .collect()
}

/// Reports numbers in the course's `.toml` texts that come from nowhere.
pub fn check(loader: &Loader<'_>, sources: &mut Sources) {
    for path in files(loader.source) {
        // A file that cannot be read was reported when it was loaded.
        if let Ok(raw) = loader.source.read(&path) {
            sources.check(loader, &path, &read(&raw));
        }
    }
}

/// The stages, the exercises and the translations.
fn files(source: &CourseFiles) -> Vec<String> {
    let mut found = Vec::new();
    let folders = |under: &str| source.entries(under).into_iter().filter(|it| it.folder);
    for folder in folders("exercises") {
        let files = ["stage.toml", "exercise.toml"].into_iter();
        let paths = files.map(|file| format!("exercises/{}/{file}", folder.name));
        found.extend(paths.filter(|path| source.exists(path)));
    }
    for language in folders("lessons") {
        let folder = format!("lessons/{}", language.name);
        let entries = source.entries(&folder).into_iter();
        let texts = entries.filter(|entry| entry.name.ends_with(".toml"));
        found.extend(texts.map(|entry| format!("{folder}/{}", entry.name)));
    }
    found
}

/// The texts of one file, in their order.
fn read(raw: &str) -> Vec<Prose> {
    let mut found: Vec<Prose> = Vec::new();
    if let Ok(root) = DeTable::parse(raw) {
        table(raw, root.get_ref(), &mut found);
    }
    found.sort_by_key(|prose| prose.line);
    found
}

fn table(raw: &str, of: &DeTable<'_>, found: &mut Vec<Prose>) {
    if let (Some(prompt), Some(choices)) = (of.get("prompt"), of.get("choices")) {
        return question(raw, prompt, choices.get_ref(), of, found);
    }
    for (key, value) in of {
        let key = key.get_ref().as_ref();
        match value.get_ref() {
            // Quoted, with its source beside it.
            DeValue::Table(_) | DeValue::Array(_) if key == "claim" => {}
            DeValue::Table(one) => table(raw, one, found),
            DeValue::Array(list) if list.iter().any(|one| one.get_ref().is_table()) => {
                let tables = list.iter().filter_map(|one| one.get_ref().as_table());
                tables.for_each(|one| table(raw, one, found));
            }
            _ if KEYS.contains(&key) => words(raw, value, &[], found),
            _ => {}
        }
    }
}

/// A question's right choice and its explanation; both may use what the prompt gives.
fn question(
    raw: &str,
    prompt: &Spanned<DeValue<'_>>,
    choices: &DeValue<'_>,
    of: &DeTable<'_>,
    found: &mut Vec<Prose>,
) {
    let mut given = Vec::new();
    words(raw, prompt, &[], &mut given);
    let given: Vec<String> = given
        .iter()
        .flat_map(|prose| numbers(&prose.text))
        .map(|(_, number)| number.to_owned())
        .collect();
    let letter = of
        .get("answer")
        .and_then(|answer| answer.get_ref().as_str());
    let right = letter.and_then(|it| Some(usize::from(it.bytes().next()?.wrapping_sub(b'a'))));
    if let Some(choice) = right.and_then(|at| choices.as_array()?.get(at)) {
        words(raw, choice, &given, found);
    }
    if let Some(why) = of.get("explanation") {
        words(raw, why, &given, found);
    }
}

fn words(raw: &str, value: &Spanned<DeValue<'_>>, given: &[String], found: &mut Vec<Prose>) {
    match value.get_ref() {
        DeValue::Array(list) => list.iter().for_each(|one| words(raw, one, given, found)),
        DeValue::String(_) => found.push(Prose {
            line: line_of(raw, value.span().start),
            text: plain(&raw[value.span()]),
            given: given.to_vec(),
        }),
        _ => {}
    }
}

/// A quoted text as it stands in the file, with its line breaks: a `\` at a line's end and the blanks around it are one
/// break, as the learner sees one blank.
fn plain(quoted: &str) -> String {
    let mut out = String::with_capacity(quoted.len());
    let mut rest = quoted.trim_matches(['"', '\'']);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' if rest.starts_with(['\n', '\r']) => {
                out.truncate(out.trim_end_matches(' ').len());
                let after = rest.trim_start();
                let breaks = rest[..rest.len() - after.len()].matches('\n').count();
                out.push_str(&"\n".repeat(breaks));
                rest = after;
            }
            '\\' => {
                let Some(escaped) = rest.chars().next() else {
                    break;
                };
                let (said, digits) = match escaped {
                    'n' | 't' | 'r' => (' ', 0),
                    'x' => ('\u{fffc}', 2),
                    'u' => ('\u{fffc}', 4),
                    'U' => ('\u{fffc}', 8),
                    c => (c, 0),
                };
                out.push(said);
                rest = rest.get(escaped.len_utf8() + digits..).unwrap_or_default();
            }
            '{' if rest.starts_with('{') && rest.contains("}}") => {
                out.push('\u{fffc}');
                rest = rest.split_once("}}").map_or("", |(_, after)| after);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_with_their_lines_and_what_a_question_gives() {
        let raw = "id = \"3\"\nhints = [\"one 1\", \"\"\"\\\ntwo \\\n  2 {{run.step_ms}}\"\"\"]\n\
                   [[claim]]\ntext = \"5\"\n[[quiz]]\nprompt = \"Of 4 take 2.\"\nchoices = [\"9\", \"8\"]\n\
                   answer = \"b\"\nexplanation = \"4 - 2 = 2\"\n";
        let found = read(raw);
        let texts: Vec<(usize, &str)> = found
            .iter()
            .map(|prose| (prose.line, prose.text.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (2, "one 1"),
                (2, "\ntwo\n2 \u{fffc}"),
                (9, "8"),
                (11, "4 - 2 = 2")
            ]
        );
        assert_eq!(found[3].given, ["4", "2"]);
    }
}
