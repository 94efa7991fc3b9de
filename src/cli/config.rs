//! `perflings config`: shows and sets the defaults of flags.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, Command};

use super::args::ConfigArgs;
use super::list::print_table;
use super::values;
use crate::app::{Markers, ThemeName};
use crate::out::{Exit, notice, result, usage};
use crate::settings::{self, KEYS, RETIRED_KEY, Settings};
use protocol::config::nearest;
use protocol::handle::split_words;

/// The settings that stand for a flag of the same name.
const FLAGS: [&str; 3] = ["theme", "device", "threads"];

/// What is said about a key that has no effect any more.
const RETIRED: &str = "has no effect any more, because all lessons are in English; `perflings config language --unset` removes it";

pub(super) fn config(args: &ConfigArgs) -> Result<Exit> {
    let Some(key) = args.key.as_deref() else {
        return show();
    };
    let known = || KEYS.iter().map(|(known, _)| *known);
    if key == RETIRED_KEY && !args.unset {
        return Err(usage(format!("{key} {RETIRED}")));
    }
    if key != RETIRED_KEY && !known().any(|it| it == key) {
        let near = nearest(key, known());
        let shown = crate::sanitize::line(key);
        return Err(usage(format!(
            "there is no setting `{shown}`; did you mean `{near}`? `perflings config` lists them"
        )));
    }
    match (args.value.as_deref(), args.unset) {
        (None, false) => {
            let value = settings::load()?.get(key);
            result(value.as_deref().unwrap_or("not set"))?;
        }
        (None, true) => said(key, "is no longer set", settings::keep(key, None)?),
        (Some(value), _) => {
            check(key, value).map_err(|what| usage(format!("{key}: {what}")))?;
            said(key, "is set", settings::keep(key, Some(value))?);
        }
    }
    Ok(Exit::Ok)
}

fn said(key: &str, what: &str, path: PathBuf) {
    notice(&format!("{key} {what} in {}", path.display()));
}

fn show() -> Result<Exit> {
    let settings = settings::load()?;
    if let Some(path) = settings::path() {
        result(&path.display().to_string())?;
    }
    let rows = KEYS.iter().map(|(key, about)| {
        let value = settings.get(key);
        let value = value.unwrap_or_else(|| "not set".to_owned());
        vec![format!("  {key}"), value, (*about).to_owned()]
    });
    print_table(&rows.collect::<Vec<_>>())?;
    result("`perflings config KEY VALUE` sets one, `perflings config KEY --unset` removes it")?;
    Ok(Exit::Ok)
}

/// The settings. One that cannot be used is reported and left out.
pub(super) fn usable() -> Settings {
    let mut settings = settings::load().unwrap_or_else(|error| {
        notice(&format!("no setting is used: {error}"));
        Settings::default()
    });
    if settings.get(RETIRED_KEY).is_some() {
        notice(&format!("the setting {RETIRED_KEY} {RETIRED}"));
    }
    for (key, _) in KEYS {
        if let Some(value) = settings.get(key)
            && let Err(what) = check(key, &value)
        {
            notice(&format!(
                "the setting {key} is not used: {what}; `perflings config {key} --unset` removes it"
            ));
            settings.forget(key);
        }
    }
    settings
}

/// Checks a value for a key.
///
/// # Errors
/// What to write instead, where the key does not take it.
fn check(key: &str, value: &str) -> Result<(), String> {
    match key {
        "theme" => values::named::<ThemeName>(key, value).map(drop),
        "markers" => values::named::<Markers>(key, value).map(drop),
        "device" => values::device(value).map(drop),
        "editor" => match split_words(value)? {
            words if words.is_empty() => Err("is empty; write a command such as `vim`".to_owned()),
            _ => Ok(()),
        },
        "threads" => match value.parse::<u32>() {
            Ok(1..=1024) => Ok(()),
            _ => Err("write a whole number from 1 to 1024".to_owned()),
        },
        _ => Ok(()),
    }
}

/// The grammar with what is set as the flags' defaults.
pub(super) fn with_settings(mut command: Command, settings: &Settings) -> Command {
    for flag in FLAGS {
        let has = command.get_arguments().any(|arg| arg.get_id() == flag);
        if let Some(value) = settings.get(flag).filter(|_| has) {
            // Leaked once in the life of the process.
            let value: &'static str = value.leak();
            command = command.mut_arg(flag, |arg: Arg| arg.default_value(value));
        }
    }
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(name, |it| with_settings(it, settings));
    }
    command
}
