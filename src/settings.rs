//! The user's defaults for command-line flags, which are kept in a file in TOML, `~/.config/perflings/config.toml` on Linux.

use std::path::PathBuf;

use anyhow::{Context, Result};
use toml_edit::{Document, DocumentMut, Item, Key, value};

use crate::course::config_file::{FileError, MAX_BYTES, line_of, not_toml, read_text};
use crate::course::workspace::write;
use crate::files;
use protocol::config::unknown;

/// The keys of the file, and a description of each for `perflings config`.
pub const KEYS: &[(&str, &str)] = &[
    ("theme", "the colours"),
    ("markers", "the characters that draw curves"),
    ("device", "the device that computes"),
    ("editor", "the command that opens a file"),
    ("threads", "the number of threads of the CPU device"),
];

/// A key of earlier versions, which a file may still have. It has no effect.
pub const RETIRED_KEY: &str = "language";

/// The contents of the file.
#[derive(Debug, Default)]
pub struct Settings(DocumentMut);

/// Returns the path of the file; `None` if the system names no folder for it.
pub fn path() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "perflings")?;
    Some(dirs.config_dir().join("config.toml"))
}

/// Reads the settings. If there is no file, nothing is set.
///
/// # Errors
/// If the file cannot be read, is not TOML, or has an unknown key; the error names the line.
pub fn load() -> Result<Settings, FileError> {
    let Some(path) = path().filter(|path| files::is_taken(path)) else {
        return Ok(Settings::default());
    };
    let shown = path.display().to_string();
    let text = read_text(&path, MAX_BYTES)?;
    let document = Document::parse(text.as_str())
        .map_err(|error| not_toml(&shown, &text, error.message(), error.span()))?;
    let is_unknown = |(key, _): &(&str, &Item)| {
        *key != RETIRED_KEY && !KEYS.iter().any(|(known, _)| known == key)
    };
    if let Some((key, _)) = document.iter().find(is_unknown) {
        let what = unknown("key", key, KEYS.iter().map(|(known, _)| *known));
        let span = document.key(key).and_then(Key::span);
        let line = span.map_or(0, |span| line_of(&text, span.start));
        return Err(FileError::new(shown, line, what));
    }
    Ok(Settings(document.into_mut()))
}

impl Settings {
    /// Returns the value of a key in the form in which a flag takes it; `None` if the key is not set.
    pub fn get(&self, key: &str) -> Option<String> {
        let item = self.0.get(key)?;
        let number = || item.as_integer().map(|number| number.to_string());
        item.as_str().map(str::to_owned).or_else(number)
    }

    /// Removes a value from these settings. The file does not change.
    pub fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }
}

/// Writes the value of a key to the file; `None` removes the key. The rest of the file stays. Returns the path of the file.
///
/// # Errors
/// If the file cannot be read or written.
pub fn save(key: &str, new_value: Option<&str>) -> Result<PathBuf> {
    let path = path().context("this system names no folder for settings; set XDG_CONFIG_HOME")?;
    let mut document = load()?.0;
    match new_value {
        None => drop(document.remove(key)),
        Some(text) => match text.parse::<i64>() {
            Ok(number) if key == "threads" => document[key] = value(number),
            _ => document[key] = value(text),
        },
    }
    write(&path, document.to_string())?;
    Ok(path)
}
