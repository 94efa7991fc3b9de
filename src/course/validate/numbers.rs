//! Where the numbers in the course's texts come from. A numeral in its prose is a figure of a run (a placeholder), or
//! stands in words that `lessons/sources.toml` traces: to a formula, which is computed here, to a run with its device
//! and date, to somebody's publication, or to a definition.

use serde::Deserialize;

use super::arithmetic;
use crate::course::Course;
use crate::course::config_file::FileError;
use crate::course::source::Loader;
use crate::course::toml_file::{TomlFile, read};

/// The file with the sources.
pub const FILE: &str = "lessons/sources.toml";

/// A text whose numbers are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prose {
    pub line: usize,
    /// Line breaks kept, placeholders as `\u{fffc}`.
    pub text: String,
    /// Numbers that need no source here.
    pub given: Vec<String>,
}

/// Words of a lesson whose numbers are traced.
struct Traced {
    lesson: String,
    says: String,
    line: usize,
    found: bool,
}

/// The traced words of a course.
pub struct Sources {
    traced: Vec<Traced>,
    stages: Vec<u32>,
}

impl Sources {
    /// Reads the file; without one nothing is traced.
    pub fn read(loader: &Loader<'_>, course: &Course) -> Self {
        let stages = course.stages.iter().map(|stage| stage.number).collect();
        let mut traced = Vec::new();
        if loader.source.exists(FILE) {
            let entries = read(loader, FILE, |file, found: SourcesToml| {
                let entries = found.number.into_iter().enumerate();
                let entries = entries.map(|(at, number)| loader.usable(entry(file, at, number)));
                Ok(entries.flatten().flatten().collect())
            });
            traced = loader.usable(entries).unwrap_or_default();
        }
        Self { traced, stages }
    }

    /// Reports every number in the texts of the file at `path` that nothing traces. Lessons are named from `lessons/` on.
    pub fn check(&mut self, loader: &Loader<'_>, path: &str, texts: &[Prose]) {
        let lesson = path.strip_prefix("lessons/").unwrap_or(path);
        for mark in texts {
            // One character for another: places in the two texts are the same.
            let text = mark.text.replace('\n', " ");
            let mut covered = vec![false; text.len()];
            for one in self.traced.iter_mut().filter(|one| one.lesson == lesson) {
                for (at, words) in text.match_indices(&one.says) {
                    one.found = true;
                    covered[at..at + words.len()].fill(true);
                }
            }
            let mut reported_to = 0;
            for (at, number) in numbers(&text) {
                let given = mark.given.iter().any(|given| given == number);
                let known = covered[at] || given || names_stage(&text[..at], number, &self.stages);
                if known || at < reported_to {
                    continue;
                }
                let line = mark.line + mark.text[..at].matches('\n').count();
                let what = "comes from nowhere; write a figure such as {{run.step_ms}}, or say in";
                let place = around(&text, at);
                let what = format!("`{number}` in “{place}” {what} {FILE} where it is from");
                loader.fail(path, line, what);
                // One report for each sentence is enough.
                reported_to = text[at..].find(". ").map_or(text.len(), |end| at + end);
            }
        }
    }

    /// Reports traced words that no text says any more.
    pub fn unused(&self, loader: &Loader<'_>) {
        for one in self.traced.iter().filter(|one| !one.found) {
            let what = "bring `says` up to date, or take it out";
            let what = format!(
                "{} does not say “{}”; {what}",
                path_of(&one.lesson),
                one.says
            );
            loader.fail(FILE, one.line, what);
        }
    }
}

/// Exercises are named from the course's folder on, lessons from theirs.
fn path_of(name: &str) -> String {
    if name.starts_with("exercises/") {
        name.to_owned()
    } else {
        format!("lessons/{name}")
    }
}

/// `sources.toml` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourcesToml {
    #[serde(default)]
    number: Vec<NumberToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberToml {
    r#in: OneOrMany,
    says: OneOrMany,
    formula: Option<String>,
    run: Option<String>,
    source: Option<String>,
    definition: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "it takes a quoted text or a list of them")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

fn entry(file: &TomlFile<'_>, at: usize, number: NumberToml) -> Result<Vec<Traced>, FileError> {
    let path = format!("number.{at}");
    let (lessons, says) = (number.r#in.list(), number.says.list());
    let origins = [
        &number.formula,
        &number.run,
        &number.source,
        &number.definition,
    ];
    if origins.into_iter().flatten().count() != 1 {
        let what = "needs one of `formula`, `run`, `source`, `definition`";
        return Err(file.fault(&path, format!("{what}; write where the number is from")));
    }
    for sum in number.formula.iter().flat_map(|formula| formula.split(';')) {
        arithmetic::check(sum, &says)
            .map_err(|what| file.fault(&format!("{path}.formula"), what))?;
    }
    let line = file.line(&format!("{path}.says"));
    let of = |lesson: &String| {
        let traced = says.iter().map(|words| Traced {
            lesson: lesson.clone(),
            says: words.split_whitespace().collect::<Vec<_>>().join(" "),
            line,
            found: false,
        });
        traced.collect::<Vec<_>>()
    };
    Ok(lessons.iter().flat_map(of).collect())
}

/// Numerals with their byte offsets, without the digits inside names such as `f32`, `H100` or `normal-0.02`.
pub fn numbers(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(|c: char| c.is_ascii_digit()) {
        let start = rest + start;
        let mut end = start;
        for (at, c) in text[start..].char_indices() {
            let inside = c.is_ascii_digit()
                || (matches!(c, '.' | ',')
                    && text[start + at + 1..].starts_with(|c: char| c.is_ascii_digit()));
            if !inside {
                break;
            }
            end = start + at + c.len_utf8();
        }
        let mut before = text[..start].chars().rev();
        let in_name = match before.next() {
            Some('-') => before.next().is_some_and(char::is_alphabetic),
            c => c.is_some_and(|c| c.is_alphabetic() || c == '_'),
        };
        if !in_name {
            found.push((start, &text[start..end]));
        }
        rest = end;
    }
    found
}

/// Whether the number names a stage that the course has: `stage 3`, `Stufe 3`.
fn names_stage(before: &str, number: &str, stages: &[u32]) -> bool {
    let word = before
        .trim_end()
        .rsplit(|c: char| !c.is_alphabetic())
        .next();
    let word = word.unwrap_or_default().to_lowercase();
    let stage = ["stage", "stages", "stufe", "stufen"].contains(&word.as_str());
    stage && number.parse().is_ok_and(|n: u32| stages.contains(&n))
}

/// A few words around a place.
fn around(text: &str, at: usize) -> String {
    let from = text[..at]
        .char_indices()
        .rev()
        .nth(24)
        .map_or(0, |(at, _)| at);
    let to = text[at..]
        .char_indices()
        .nth(32)
        .map_or(text.len(), |(end, _)| at + end);
    text[from..to].replace('\u{fffc}', "…").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerals_are_found_and_names_are_not() {
        let found: Vec<&str> =
            numbers("f32 has 4 B, normal-0.02, an H100 1,024.5 and p95; 3x, N(0, 1).")
                .into_iter()
                .map(|(_, number)| number)
                .collect();
        assert_eq!(found, ["4", "1,024.5", "3", "0", "1"]);
        assert!(names_stage("as in stage ", "2", &[1, 2]));
        assert!(!names_stage("as in stage ", "3", &[1, 2]));
        assert!(!names_stage("after ", "2", &[1, 2]));
    }
}
