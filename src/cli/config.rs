//! `perflings config` shows and sets the defaults of flags.

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

/// The settings that are the default of the flag with their name.
const FLAGS: [&str; 3] = ["theme", "device", "threads"];

/// The message about a key that has no effect any more.
const RETIRED: &str = "has no effect any more, because all lessons are in English; `perflings config language --unset` removes it";

pub(super) fn config(args: &ConfigArgs) -> Result<Exit> {
    let Some(key) = args.key.as_deref() else {
        return show();
    };
    let known = KEYS.iter().map(|(known, _)| *known);
    if key == RETIRED_KEY && !args.unset {
        return Err(usage(format!("{key} {RETIRED}")));
    }
    if key != RETIRED_KEY && !known.clone().any(|known| known == key) {
        let near = nearest(key, known);
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
        (None, true) => say_change(key, "is no longer set", settings::keep(key, None)?),
        (Some(value), _) => {
            check(key, value).map_err(|what| usage(format!("{key}: {what}")))?;
            say_change(key, "is set", settings::keep(key, Some(value))?);
        }
    }
    Ok(Exit::Ok)
}

fn say_change(key: &str, change: &str, path: PathBuf) {
    notice(&format!("{key} {change} in {}", path.display()));
}

fn show() -> Result<Exit> {
    let settings = settings::load()?;
    if let Some(path) = settings::path() {
        result(&path.display().to_string())?;
    }
    let mut rows = Vec::new();
    for (key, about) in KEYS {
        let value = settings.get(key).unwrap_or_else(|| "not set".to_owned());
        rows.push(vec![format!("  {key}"), value, (*about).to_owned()]);
    }
    print_table(&rows)?;
    result("`perflings config KEY VALUE` sets one, `perflings config KEY --unset` removes it")?;
    Ok(Exit::Ok)
}

/// Returns the settings. A setting that cannot be used is reported and left out.
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
/// Fails with what to write instead, if the key does not take the value.
fn check(key: &str, value: &str) -> Result<(), String> {
    match key {
        "theme" => values::named::<ThemeName>(key, value).map(drop),
        "markers" => values::named::<Markers>(key, value).map(drop),
        "device" => values::device(value).map(drop),
        "editor" if split_words(value)?.is_empty() => {
            Err("is empty; write a command such as `vim`".to_owned())
        }
        "threads" => match value.parse::<u32>() {
            Ok(1..=1024) => Ok(()),
            _ => Err("write a whole number from 1 to 1024".to_owned()),
        },
        _ => Ok(()),
    }
}

/// Returns the grammar with the settings as the flags' defaults.
pub(super) fn with_settings(mut command: Command, settings: &Settings) -> Command {
    for flag in FLAGS {
        let has_flag = command.get_arguments().any(|arg| arg.get_id() == flag);
        if has_flag && let Some(value) = settings.get(flag) {
            // clap needs a static text. It is leaked once in the life of the process.
            let value: &'static str = value.leak();
            command = command.mut_arg(flag, |arg: Arg| arg.default_value(value));
        }
    }
    let names: Vec<String> = command
        .get_subcommands()
        .map(|subcommand| subcommand.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(name, |subcommand| with_settings(subcommand, settings));
    }
    command
}
