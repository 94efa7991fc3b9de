//! Prose in another language, beside the original: `lessons/de/01-name.md` and, for what stands in `stage.toml`,
//! `lessons/de/01-name.toml`. Each records the hash of the original it was made from, so that `course check` can say
//! when the original was changed since. Texts without a translation stay English.

use serde::Deserialize;

use super::source::{CourseFiles, Loader};
use super::toml_file::{self, TomlFile};
use super::{Question, Stage};
use crate::course::config_file::FileError;

/// The languages that there is prose in.
pub fn languages(source: &CourseFiles) -> Vec<String> {
    let folders = source.entries("lessons").into_iter().filter(|it| it.folder);
    let translated = folders.map(|folder| folder.name);
    std::iter::once("en".to_owned()).chain(translated).collect()
}

/// The file of a lesson in `language`, else in English, and the language found.
pub fn find(source: &CourseFiles, lesson: &str, language: &str) -> Option<(String, String)> {
    let translated = format!("lessons/{language}/{lesson}");
    if language != "en" && source.exists(&translated) {
        return Some((translated, language.to_owned()));
    }
    let original = format!("lessons/{lesson}");
    source
        .exists(&original)
        .then(|| (original, "en".to_owned()))
}

/// `lessons/de/01-name.toml` as it is written: what is left out stays as it is.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[derive(Default)]
struct TranslationToml {
    #[serde(rename = "translates")]
    _translates: Option<String>,
    title: Option<String>,
    symptom: Option<String>,
    fault: Option<String>,
    fix: Option<String>,
    cpu_note: Option<String>,
    estimate: Option<String>,
    prediction: Option<QuestionToml>,
    hints: Vec<String>,
    evidence: Vec<String>,
    claims: Vec<String>,
    checks: Vec<String>,
    beats: Vec<String>,
    quiz: Vec<QuestionToml>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct QuestionToml {
    prompt: Option<String>,
    choices: Vec<String>,
    explanation: Option<String>,
}

/// Puts the translated texts over the stage's; where one does not fit, that is reported and the stage left English.
pub fn apply(loader: &Loader<'_>, folder: &str, language: &str, stage: &mut Stage) {
    let path = format!("lessons/{language}/{folder}.toml");
    if loader.source.exists(&path) {
        let mut translated = stage.clone();
        let read = toml_file::read(loader, &path, |file, found| {
            overlay(file, found, &mut translated)
        });
        if loader.usable(read).is_some() {
            *stage = translated;
        }
    }
}

fn overlay(
    file: &TomlFile<'_>,
    found: TranslationToml,
    stage: &mut Stage,
) -> Result<(), FileError> {
    let put = |place: &mut String, text: Option<String>| *place = text.unwrap_or(place.clone());
    put(&mut stage.title, found.title);
    put(&mut stage.symptom, found.symptom);
    put(&mut stage.fault, found.fault);
    put(&mut stage.fix, found.fix);
    if let Some(note) = &mut stage.cpu_note {
        put(note, found.cpu_note);
    }
    if let Some(estimate) = &mut stage.estimate {
        put(&mut estimate.prompt, found.estimate);
    }
    let evidence = stage.evidence.iter_mut().map(|pointer| &mut pointer.text);
    let claims = stage.claims.iter_mut().map(|claim| &mut claim.text);
    let checks = stage.checks.iter_mut().map(|check| &mut check.name);
    let cues = stage.cues.iter_mut().map(|cue| &mut cue.say);
    replace(file, "hints", found.hints, stage.hints.iter_mut())?;
    replace(file, "evidence", found.evidence, evidence)?;
    replace(file, "claims", found.claims, claims)?;
    replace(file, "checks", found.checks, checks)?;
    replace(file, "beats", found.beats, cues)?;
    let question = |path: &str, found: QuestionToml, original: &mut Question| {
        put(&mut original.prompt, found.prompt);
        put(&mut original.explanation, found.explanation);
        let path = format!("{path}.choices");
        replace(file, &path, found.choices, original.choices.iter_mut())
    };
    if let Some(found) = found.prediction {
        question("prediction", found, &mut stage.prediction)?;
    }
    let (own, original) = (found.quiz.len(), stage.quiz.len());
    if own > 0 && own != original {
        let what = format!("has {own} quiz questions, the original has {original}");
        return Err(file.fault("quiz", what));
    }
    for (at, (found, original)) in found.quiz.into_iter().zip(&mut stage.quiz).enumerate() {
        question(&format!("quiz.{at}"), found, original)?;
    }
    Ok(())
}

/// Puts the texts of the list at `path` in the places of the original's, if there are as many.
fn replace<'s>(
    file: &TomlFile<'_>,
    path: &str,
    texts: Vec<String>,
    places: impl ExactSizeIterator<Item = &'s mut String>,
) -> Result<(), FileError> {
    if !texts.is_empty() && texts.len() != places.len() {
        let key = path.rsplit('.').next().unwrap_or(path);
        let (own, original) = (texts.len(), places.len());
        let what = format!("`{key}` has {own} texts, the original has {original}");
        return Err(file.fault(path, what));
    }
    for (text, place) in texts.into_iter().zip(places) {
        *place = text;
    }
    Ok(())
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
