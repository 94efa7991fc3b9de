//! `perflings config`: shows and sets the defaults of flags.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, Command};

use super::args::ConfigArgs;
use super::values;
use crate::app::{Markers, ThemeName};
use crate::config::nearest;
use crate::out::{Exit, notice, result, usage};
use crate::protocol::handle::split_words;
use crate::settings::{self, KEYS, Settings};
use crate::table;

/// The flags that a setting stands for.
const FLAGS: &[(&str, &str)] = &[
    ("theme", "theme"),
    ("device", "device"),
    ("language", "lang"),
    ("threads", "threads"),
];

pub fn config(args: &ConfigArgs) -> Result<Exit> {
    let Some(key) = args.key.as_deref() else {
        return show();
    };
    let known = || KEYS.iter().map(|(known, _)| *known);
    if !known().any(|it| it == key) {
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
    for line in table::lines(&rows.collect::<Vec<_>>(), false) {
        result(&line)?;
    }
    result("`perflings config KEY VALUE` sets one, `perflings config KEY --unset` removes it")?;
    Ok(Exit::Ok)
}

/// The settings. One that cannot be used is reported and left out.
pub fn usable() -> Settings {
    let mut settings = settings::load().unwrap_or_else(|error| {
        notice(&format!("no setting is used: {error}"));
        Settings::default()
    });
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
    let named = |found: bool, all: &mut dyn Iterator<Item = &'static str>| match found {
        true => Ok(()),
        false => Err(values::unknown(key, value, all)),
    };
    match key {
        "theme" => named(ThemeName::parse(value).is_some(), &mut values::themes()),
        "markers" => {
            let mut all = Markers::ALL.iter().map(|it| it.name());
            named(Markers::parse(value).is_some(), &mut all)
        }
        "device" => values::device(value).map(drop),
        "language" => {
            let all = values::languages();
            let mut all = all.iter().map(String::as_str);
            match all.clone().any(|it| it == value) {
                true => Ok(()),
                false => Err(values::unknown(key, value, &mut all)),
            }
        }
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
pub fn with_settings(mut command: Command, settings: &Settings) -> Command {
    for (key, flag) in FLAGS {
        let has = command.get_arguments().any(|it| it.get_id() == flag);
        if let Some(value) = settings.get(key).filter(|_| has) {
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

/// Flags before the words of a command, or between them, stand after it: the same line as if they had been typed there.
pub fn flags_last(grammar: &Command, mut args: Vec<OsString>) -> Vec<OsString> {
    let mut found = command_words(grammar, grammar, &args, &[]).unwrap_or_default();
    if found.is_empty() {
        // A word that names no command is refused as one, whatever stands before it.
        let word = |at: usize| args.get(at).and_then(|arg| arg.to_str());
        let mut at = 1;
        while let Some(words) = word(at).and_then(|it| words(it, [grammar, grammar])) {
            at += words;
        }
        if word(at) == Some("help") {
            // `help COMMAND` takes no flags; `COMMAND --help` does.
            args.remove(at);
            args.push("--help".into());
            return flags_last(grammar, args);
        }
        found.extend(word(at).filter(|it| !it.starts_with('-')).map(|_| at));
    }
    let mut sorted: Vec<_> = args.iter().take(1).collect();
    sorted.extend(found.iter().map(|at| &args[*at]));
    let rest = (1..args.len()).filter(|at| !found.contains(at));
    sorted.extend(rest.map(|at| &args[at]));
    sorted.into_iter().cloned().collect()
}

/// Where the words of a command are that begins with those at `path`, the longest first: all else up to its last word is
/// flags that it takes.
fn command_words(
    grammar: &Command,
    command: &Command,
    args: &[OsString],
    path: &[usize],
) -> Option<Vec<usize>> {
    let word = |at: usize| args.get(at).and_then(|arg| arg.to_str());
    let first = path.last().map_or(1, |at| at + 1);
    let deeper = (first..args.len()).find_map(|at| {
        let inner = command.find_subcommand(word(at)?)?;
        command_words(grammar, inner, args, &[path, &[at]].concat())
    });
    if deeper.is_some() {
        return deeper;
    }
    let mut at = 1;
    for &next in path {
        while at < next {
            at += words(word(at)?, [command, grammar])?;
        }
        if at > next {
            return None;
        }
        at += 1;
    }
    Some(path.to_vec())
}

/// How many words a flag is, with its value; none where no command has it.
fn words(flag: &str, commands: [&Command; 2]) -> Option<usize> {
    let (name, joined) = match flag.split_once('=') {
        Some((name, _)) => (name, true),
        None => (flag, false),
    };
    let named = |arg: &&Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|it| name == format!("-{it}")),
    };
    let mut found = commands.iter().map(|it| it.get_arguments().find(named));
    let arg = found.find_map(|arg| arg)?;
    Some(1 + usize::from(arg.get_action().takes_values() && !joined))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Cli;

    /// Each command with its words: `list`, `course check`.
    fn commands<'a>(above: &'a Command, words: &[&'a str]) -> Vec<(Vec<&'a str>, &'a Command)> {
        let below = above.get_subcommands().flat_map(|inner| {
            let words = [words, &[inner.get_name()]].concat();
            [vec![(words.clone(), inner)], commands(inner, &words)].concat()
        });
        below.collect()
    }

    #[test]
    fn every_flag_may_stand_before_its_command_or_between_its_words() {
        let grammar = Cli::command();
        let line = |words: &[&str]| {
            let own = std::iter::once(&"perflings");
            own.chain(words).map(OsString::from).collect::<Vec<_>>()
        };
        let mut tried = 0;
        for (command, inner) in commands(&grammar, &[]) {
            let global = grammar.get_arguments().filter(|it| it.is_global_set());
            for arg in inner.get_arguments().chain(global) {
                let long = arg.get_long().map(|it| format!("--{it}"));
                let short = arg.get_short().map(|it| format!("-{it}"));
                for flag in [long, short].iter().flatten() {
                    // A value that is the name of a command is a value.
                    let takes = arg.get_action().takes_values();
                    let flag = match takes {
                        true => vec![flag.as_str(), "list"],
                        false => vec![flag.as_str()],
                    };
                    let before = line(&[&flag[..], &command, &["word"]].concat());
                    let after = line(&[&command[..], &flag, &["word"]].concat());
                    assert_eq!(flags_last(&grammar, before), after);
                    for at in 1..command.len() {
                        let between =
                            [&command[..at], &flag[..], &command[at..], &["word"]].concat();
                        assert_eq!(flags_last(&grammar, line(&between)), after);
                    }
                    assert_eq!(flags_last(&grammar, after.clone()), after);
                    tried += 1;
                }
            }
        }
        assert!(tried > 100, "{tried} flags");
    }
}
