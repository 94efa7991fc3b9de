//! The files beside `stage.toml`: the two configurations and the kernels, each with its solution.

use crate::config::RunConfig;
use crate::config::file::{self, FileError};
use crate::course::fields::escape_removed;
use crate::course::load::cleaned;
use crate::course::source::Source;
use crate::course::{Stage, StageFile, text};

/// A configuration of the stage and its text.
pub fn config(
    source: &Source,
    path: &str,
    problems: &mut Vec<FileError>,
) -> Option<(String, RunConfig)> {
    let raw = source
        .read(path)
        .map_err(|error| problems.push(error))
        .ok()?;
    let shown = source.shown(path);
    let parsed = file::parse(&raw, &shown);
    let (text, removed) = text::clean(&raw);
    problems.extend(removed.into_iter().map(|line| escape_removed(&shown, line)));
    match parsed {
        Ok(config) => Some((text, config)),
        Err(error) => {
            problems.push(FileError {
                what: text::one_line(&error.what),
                ..error
            });
            None
        }
    }
}

/// The kernels named in `files`, each with its solution.
pub fn kernels(
    source: &Source,
    path: &str,
    named: &[StageFile],
    problems: &mut Vec<FileError>,
) -> Option<Vec<StageFile>> {
    let mut found = Vec::new();
    let mut missing = false;
    for name in named
        .iter()
        .map(|file| &file.name)
        .filter(|name| *name != "config.toml")
    {
        let mut text = |path: String| match source.read(&path) {
            Ok(raw) => cleaned(&raw, &source.shown(&path), problems),
            Err(error) => {
                problems.push(error);
                missing = true;
                String::new()
            }
        };
        let (starter, solution) = (
            text(format!("{path}/{name}")),
            text(format!("{path}/solution/{name}")),
        );
        found.push(StageFile {
            name: name.clone(),
            starter,
            solution,
        });
    }
    (!missing).then_some(found)
}

/// A stage whose two sides differ in anything else than it says teaches something else than it says.
pub fn scope_problems(stage: &Stage) -> Vec<String> {
    let differs = stage.broken.differences(&stage.fixed);
    let mut found: Vec<String> = differs
        .iter()
        .filter(|path| !stage.varies.iter().any(|v| v == *path))
        .map(|path| format!("config.toml and solution/config.toml differ in `{path}`; add it to `varies` or make it equal"))
        .collect();
    if differs.is_empty() && stage.files.len() < 2 {
        found.push(
            "config.toml and solution/config.toml say the same; the starter must hold the fault"
                .to_owned(),
        );
    }
    found
}
