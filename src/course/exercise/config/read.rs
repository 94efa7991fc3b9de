//! Reads a config exercise: the values and questions of its `exercise.toml`, its configuration, and the starter of the answers.

use serde::Deserialize;

use super::check::{ConfigCheckToml, config_check};
use super::{ANSWERS, Configs, RankedChange, Sweep, apply, check_starter};
use crate::course::config_file::FileError;
use crate::course::exercise::folder::ExerciseFolder;
use crate::course::{StageFile, metric};

/// The keys of `exercise.toml` that only config exercises have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigsToml {
    steps: Option<u64>,
    sweep: Option<Sweep>,
    #[serde(default)]
    rank: Vec<RankedChange>,
    #[serde(default)]
    check: Vec<ConfigCheckToml>,
}

/// Reads a config exercise.
///
/// # Errors
/// The first fault of its files.
pub(crate) fn read(folder: &ExerciseFolder<'_>) -> Result<Configs, FileError> {
    let found: ConfigsToml = folder.own()?;
    let file = folder.file;
    let text = folder.text("config.toml")?;
    let answers = folder.text(ANSWERS)?;
    let path = folder.path_of("config.toml");
    let config = folder.loader.config(&path, &text)?;
    let try_set = |path: &str, assignment: &str| {
        apply(&config, assignment).map_err(|message| file.fault(path, message))
    };
    let sweep = found.sweep;
    let rank = found.rank;
    if let Some(sweep) = &sweep {
        if sweep.values.len() < 2 {
            let message = "`values` needs at least two values; write values = [1, 2]";
            return Err(file.fault("sweep.values", message));
        }
        for value in &sweep.values {
            try_set("sweep.values", &format!("{}={value}", sweep.key))?;
        }
        for set in &sweep.with {
            try_set("sweep.with", set)?;
        }
        let is_unknown = |name: &&String| !metric::is_known(name);
        if let Some(name) = sweep.metrics.iter().find(is_unknown) {
            return Err(file.unknown("sweep.metrics", "metric", name, metric::names()));
        }
    } else if rank.is_empty() {
        let message = "varies nothing; write a `[sweep]` or several `[[rank]]`";
        return Err(file.fault("sweep", message));
    }
    for (index, change) in rank.iter().enumerate() {
        let path = format!("rank.{index}.set");
        if change.set.is_empty() {
            let message = "`set` changes nothing; write set = [\"model.norm=fused\"]";
            return Err(file.fault(&path, message));
        }
        for set in &change.set {
            try_set(&path, set)?;
        }
    }
    let mut checks = Vec::new();
    for (index, raw) in found.check.into_iter().enumerate() {
        let path = format!("check.{index}");
        let check = config_check(file, &path, raw, sweep.as_ref(), rank.len())?;
        checks.push(check);
    }
    if checks.iter().all(|check| check.answer.is_none()) {
        let message =
            "no check asks for an answer; give one `answer = \"batch\"` and `ask = \"…\"`";
        return Err(file.fault("check", message));
    }
    let path = folder.path_of(ANSWERS);
    check_starter(&answers, &folder.loader.source.shown(&path), &checks)?;
    Ok(Configs {
        text,
        config,
        file: StageFile {
            name: ANSWERS.to_owned(),
            starter: answers,
            solution: String::new(),
        },
        checks,
        steps: found.steps.unwrap_or(12).max(1),
        sweep,
        rank,
    })
}
