//! `perflings config`: shows and sets the defaults of flags, which are kept in the user's config file.

use anyhow::Result;
use clap::{Arg, Command};

use super::args::machine::ConfigArgs;
use super::list::print_table;
use super::values;
use crate::app::{Markers, ThemeName};
use crate::out::{Exit, notice, result, usage};
use crate::settings::{self, KEYS, RETIRED_KEY, Settings};
use protocol::config::nearest;
use protocol::handle::split_words;

/// The settings that become the default of the flag with the same name.
const FLAGS: [&str; 3] = ["theme", "device", "threads"];

/// The message about the retired key. It continues a sentence that begins with the key.
const RETIRED: &str = "has no effect any more, because all lessons are in English; \
    `perflings config language --unset` removes it";

pub(super) fn config(args: &ConfigArgs) -> Result<Exit> {
    let Some(key) = args.key.as_deref() else {
        return show();
    };
    let known_keys = KEYS.iter().map(|(known, _)| *known);
    if key == RETIRED_KEY && !args.unset {
        return Err(usage(format!("{key} {RETIRED}")));
    }
    if key != RETIRED_KEY && !known_keys.clone().any(|known| known == key) {
        let near = nearest(key, known_keys);
        let shown = crate::sanitize::line(key);
        return Err(usage(format!(
            "there is no setting `{shown}`; did you mean `{near}`? `perflings config` lists them"
        )));
    }
    if let Some(value) = &args.value {
        check(key, value).map_err(|why| usage(format!("{key}: {why}")))?;
        let path = settings::save(key, Some(value))?;
        notice(&format!("{key} is set in {}", path.display()));
    } else if args.unset {
        let path = settings::save(key, None)?;
        notice(&format!("{key} is no longer set in {}", path.display()));
    } else {
        let value = settings::load()?.get(key);
        result(value.as_deref().unwrap_or("not set"))?;
    }
    Ok(Exit::Ok)
}

/// Prints the path of the file, and each setting with its value.
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

/// Returns the settings whose values can be used. A notice names each of the others.
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
            && let Err(why) = check(key, &value)
        {
            notice(&format!(
                "the setting {key} is not used: {why}; `perflings config {key} --unset` removes it"
            ));
            settings.remove(key);
        }
    }
    settings
}

/// Checks that a key takes a value.
///
/// # Errors
/// If it does not; the error says what to write instead.
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

/// Makes the settings the defaults of the flags in the grammar of a command and its subcommands.
pub(super) fn with_settings(mut command: Command, settings: &Settings) -> Command {
    for flag in FLAGS {
        let has_flag = command.get_arguments().any(|arg| arg.get_id() == flag);
        if has_flag && let Some(value) = settings.get(flag) {
            // clap needs a text that lives as long as the process.
            let default: &'static str = value.leak();
            command = command.mut_arg(flag, |arg: Arg| arg.default_value(default));
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
