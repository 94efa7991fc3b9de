//! Reads a config exercise: the values and questions of its `exercise.toml`, its configuration, and the starter of the answers.

use serde::Deserialize;

use super::check::{ConfigCheckToml, config_check};
use super::{ANSWERS, Configs, RankedChange, Sweep, apply, check_starter};
use crate::course::config_file::FileError;
use crate::course::exercise::folder::ExerciseFolder;
use crate::course::toml_file::TomlFile;
use crate::course::{StageFile, metric};
use protocol::config::RunConfig;

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
    let sweep = found.sweep;
    let rank = found.rank;
    match &sweep {
        Some(sweep) => check_sweep(file, &config, sweep)?,
        None if rank.is_empty() => {
            let message = "varies nothing; write a `[sweep]` or several `[[rank]]`";
            return Err(file.fault("sweep", message));
        }
        None => {}
    }
    for (index, change) in rank.iter().enumerate() {
        let path = format!("rank.{index}.set");
        if change.set.is_empty() {
            let message = "`set` changes nothing; write set = [\"model.norm=fused\"]";
            return Err(file.fault(&path, message));
        }
        for assignment in &change.set {
            check_assignment(file, &path, &config, assignment)?;
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

/// Refuses a sweep with fewer than two values, with a value that the configuration does not take, or with an unknown metric.
fn check_sweep(file: &TomlFile<'_>, config: &RunConfig, sweep: &Sweep) -> Result<(), FileError> {
    if sweep.values.len() < 2 {
        let message = "`values` needs at least two values; write values = [1, 2]";
        return Err(file.fault("sweep.values", message));
    }
    for value in &sweep.values {
        let assignment = format!("{}={value}", sweep.key);
        check_assignment(file, "sweep.values", config, &assignment)?;
    }
    for assignment in &sweep.with {
        check_assignment(file, "sweep.with", config, assignment)?;
    }
    let is_unknown = |name: &&String| !metric::is_known(name);
    match sweep.metrics.iter().find(is_unknown) {
        Some(name) => Err(file.unknown("sweep.metrics", "metric", name, metric::names())),
        None => Ok(()),
    }
}

/// Refuses an assignment such as `model.norm=fused` that the configuration does not take. `path` is its key in the file.
fn check_assignment(
    file: &TomlFile<'_>,
    path: &str,
    config: &RunConfig,
    assignment: &str,
) -> Result<(), FileError> {
    let changed = apply(config, assignment).map_err(|message| file.fault(path, message));
    changed.map(drop)
}
