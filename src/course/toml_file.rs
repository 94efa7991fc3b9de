//! Reads a TOML file of a course with serde. Serde stops at the first fault; an author wants to see all of them. Therefore an unknown key is
//! reported and removed, and the file is read again. Each fault has its line and column, its key, and what to write instead:
//! `stage.toml:6:1: unknown key `fixx`; the nearest known key is `fix``.
//!
//! [`read`] passes the value to a check for what serde cannot know, such as a range or a name that must exist. A check names a key by its
//! path: `quiz.0.choices`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, Error};

use super::source::Loader;
use super::text;
use crate::course::config_file::{FileError, line_of, not_toml};
use crate::sanitize;
use protocol::config::{nearest, unknown};

/// A file that is being read.
pub struct TomlFile<'a> {
    /// The file's name, for messages.
    shown: String,
    source: &'a str,
    root: Spanned<DeTable<'a>>,
    /// The faults that were found so far and did not end the reading.
    faults: RefCell<Vec<FileError>>,
}

/// Reads the file at `path` of the course. `check` turns its value into what the program uses.
///
/// # Errors
/// The last fault, of the file or from `check`; the faults before it are reported to the loader.
pub(super) fn read<T: DeserializeOwned, R>(
    loader: &Loader<'_>,
    path: &str,
    check: impl FnOnce(&TomlFile<'_>, T) -> Result<R, FileError>,
) -> Result<R, FileError> {
    open(loader, path, |file| check(file, file.all_but(&[])?))
}

/// Opens the file at `path` of the course. `check` asks for its keys, and turns them into what the program uses.
///
/// # Errors
/// The last fault, of the file or from `check`; the faults before it are reported to the loader.
pub(super) fn open<R>(
    loader: &Loader<'_>,
    path: &str,
    check: impl FnOnce(&TomlFile<'_>) -> Result<R, FileError>,
) -> Result<R, FileError> {
    let source = loader.text(path)?;
    let shown = loader.source.shown(path);
    let root = DeTable::parse(&source).map_err(|error| {
        let message = not_toml("", &source, error.message(), error.span()).message;
        fault(&shown, &source, error.span(), &message)
    })?;
    let mut file = TomlFile {
        shown,
        source: &source,
        root,
        faults: RefCell::default(),
    };
    for (key, value) in file.root.get_mut() {
        clean(loader, &file.shown, &source, key.get_ref(), value)?;
    }
    let value = file.ok_or_report(check(&file));
    let mut faults = file.faults.take();
    faults.sort_by_key(|fault| (fault.line, fault.column));
    let last = faults.pop();
    faults.into_iter().for_each(|fault| loader.report(fault));
    match (value, last) {
        (Some(value), None) => Ok(value),
        (_, fault) => Err(fault.unwrap_or_else(|| file.fault("", "cannot be read"))),
    }
}

impl TomlFile<'_> {
    /// Reads the value of these keys at the top of the file.
    ///
    /// # Errors
    /// The last fault; the faults before it are reported.
    pub fn only<T: DeserializeOwned>(&self, keys: &[&str]) -> Result<T, FileError> {
        self.value(keys, true)
    }

    /// Reads the value of all keys at the top of the file but these.
    ///
    /// # Errors
    /// The last fault; the faults before it are reported.
    pub fn all_but<T: DeserializeOwned>(&self, keys: &[&str]) -> Result<T, FileError> {
        self.value(keys, false)
    }

    /// Reads the value of `keys`, or of all other keys if `included` is false.
    fn value<T: DeserializeOwned>(&self, keys: &[&str], included: bool) -> Result<T, FileError> {
        let mut table: DeTable<'_> = self
            .root
            .get_ref()
            .iter()
            .filter(|(key, _)| keys.contains(&&**key.get_ref()) == included)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut faults: Vec<FileError> = Vec::new();
        loop {
            let copy = Spanned::new(self.root.span(), table.clone());
            let error = match T::deserialize(Deserializer::from(copy)) {
                Ok(value) if faults.is_empty() => return Ok(value),
                Ok(_) => break,
                Err(error) => error,
            };
            // A misspelt key is unknown, and its right name is missing. This is one fault, whose message ends with the right name.
            let field = error.message().strip_prefix("missing field ");
            let is_misspelt = |field| faults.iter().any(|fault| fault.message.ends_with(field));
            if !field.is_some_and(is_misspelt) {
                faults.push(self.explain(&error, keys));
            }
            let is_unknown = error.message().starts_with("unknown field");
            let removed = error
                .span()
                .is_some_and(|key| is_unknown && remove(&mut table, key.start));
            if !removed {
                break;
            }
        }
        let last = faults.pop();
        self.faults.borrow_mut().extend(faults);
        Err(last.unwrap_or_else(|| self.fault("", "cannot be read")))
    }

    /// Reports a fault. The reading goes on and finds further faults.
    pub fn report(&self, fault: FileError) {
        self.faults.borrow_mut().push(fault);
    }

    /// Returns what was read or checked; an error is reported, and becomes `None`.
    pub fn ok_or_report<T>(&self, checked: Result<T, FileError>) -> Option<T> {
        checked.map_err(|fault| self.report(fault)).ok()
    }

    /// Returns the error for a fault of the key at `path`, or of the nearest table around it.
    pub fn fault(&self, path: &str, message: impl AsRef<str>) -> FileError {
        let start = self.place(path);
        fault(
            &self.shown,
            self.source,
            Some(start..start),
            message.as_ref(),
        )
    }

    /// Returns the error for a missing key at `path`; `example` is a value that could be written.
    pub fn missing(&self, path: &str, example: &str) -> FileError {
        let key = path.rsplit('.').next().unwrap_or(path);
        self.fault(
            path,
            format!("`{key}` is missing; write `{key} = {example}`"),
        )
    }

    /// Returns the value of a key that the table at `path` must have.
    ///
    /// # Errors
    /// If the value is missing; `example` is a value that could be written.
    pub fn required<T>(
        &self,
        path: &str,
        key: &str,
        value: Option<T>,
        example: &str,
    ) -> Result<T, FileError> {
        value.ok_or_else(|| self.missing(&format!("{path}.{key}"), example))
    }

    /// Returns the error for an unknown word at `path`: "unknown metric `los`; …".
    pub fn unknown<'w>(
        &self,
        path: &str,
        kind: &str,
        word: &str,
        known: impl Iterator<Item = &'w str>,
    ) -> FileError {
        self.fault(path, unknown(kind, word, known))
    }

    /// Returns the line of the key at `path`, or of the nearest table around it, from 1.
    pub fn line(&self, path: &str) -> usize {
        line_of(self.source, self.place(path))
    }

    /// Returns the offset of the key at `path`, or of the nearest table around it, in bytes.
    fn place(&self, path: &str) -> usize {
        let mut table = Some(self.root.get_ref());
        let mut list: Option<&DeArray<'_>> = None;
        let mut offset = 0;
        for step in path.split('.') {
            let key = table.and_then(|table| table.get_key_value(step));
            let entry = list.and_then(|list| list.get(step.parse::<usize>().ok()?));
            let value: &Spanned<DeValue<'_>> = match (key, entry) {
                (Some((key, value)), _) => {
                    offset = key.span().start;
                    value
                }
                (None, Some(entry)) => {
                    offset = entry.span().start;
                    entry
                }
                (None, None) => break,
            };
            table = value.get_ref().as_table();
            list = value.get_ref().as_array();
        }
        offset
    }

    /// Explains an error of serde in this program's words. `others` are further keys that the top of the file may have.
    fn explain(&self, error: &Error, others: &[&str]) -> FileError {
        // The error's text ends with a line such as "in `quiz.0.answer`", unless the fault is at the top of the file.
        let full = error.to_string();
        let path = full
            .rsplit_once("\nin `")
            .map_or("", |(_, path)| path.trim_end().trim_end_matches('`'));
        let key = path.rsplit('.').next().unwrap_or_default();
        let original = error.message();
        // The message is "unknown field `fixx`, expected one of `fix`, `title`".
        let word_and_known = |start| {
            let (word, list) = original.strip_prefix(start)?.split_once("`, expected ")?;
            let known: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
            Some((word, known))
        };
        let message = if let Some((word, mut known)) = word_and_known("unknown field `") {
            if path.is_empty() {
                known.extend(others);
            }
            unknown("key", word, known.into_iter())
        } else if let Some((word, known)) = word_and_known("unknown variant `") {
            let near = nearest(word, known.iter().copied());
            let all = known.join("\", \"");
            format!("`{key}` cannot be \"{word}\"; did you mean \"{near}\"? It takes \"{all}\"")
        } else if let Some(field) = original.strip_prefix("missing field ") {
            format!("{field} is missing; write it here")
        } else {
            format!("`{key}`: {original}")
        };
        fault(&self.shown, self.source, error.span(), &message)
    }
}

/// Removes what could control a terminal from a value and all values inside it, and reports it to the loader. The file stays usable. An
/// entry of a list has an empty `key`, and may be empty.
///
/// # Errors
/// The first value without a meaning: an empty text, or a number that is not finite.
fn clean(
    loader: &Loader<'_>,
    shown: &str,
    source: &str,
    key: &str,
    value: &mut Spanned<DeValue<'_>>,
) -> Result<(), FileError> {
    let span = value.span();
    let message = match value.get_mut() {
        DeValue::String(text) => {
            let (plain, removed) = sanitize::without_escapes(text);
            if !removed.is_empty() {
                loader.report(text::escape_removed(shown, line_of(source, span.start)));
            }
            *text = Cow::Owned(plain.trim_end().to_owned());
            if !text.is_empty() || key.is_empty() {
                return Ok(());
            }
            "is empty; write a text"
        }
        DeValue::Float(x) if !x.as_str().parse().is_ok_and(f64::is_finite) => {
            "is not finite; write a number"
        }
        DeValue::Array(list) => {
            for entry in list.iter_mut() {
                clean(loader, shown, source, "", entry)?;
            }
            return Ok(());
        }
        DeValue::Table(table) => {
            for (key, value) in table {
                clean(loader, shown, source, key.get_ref(), value)?;
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    let sentence = format!("`{key}` {message}");
    Err(fault(shown, source, Some(span), &sentence))
}

/// Removes the key that begins at this byte offset, in the table or in one inside it. Returns true if there was one.
fn remove(table: &mut DeTable<'_>, start: usize) -> bool {
    let before = table.len();
    let keys = std::mem::take(table).into_iter();
    *table = keys.filter(|(key, _)| key.span().start != start).collect();
    table.len() < before
        || table
            .iter_mut()
            .any(|(_, value)| remove_inside(value.get_mut(), start))
}

fn remove_inside(value: &mut DeValue<'_>, start: usize) -> bool {
    match value {
        DeValue::Table(table) => remove(table, start),
        DeValue::Array(list) => list
            .iter_mut()
            .any(|entry| remove_inside(entry.get_mut(), start)),
        _ => false,
    }
}

/// Returns an error with the line and the column of the first byte of `span`; without a span, those of the first byte of the file.
fn fault(shown: &str, source: &str, span: Option<Range<usize>>, message: &str) -> FileError {
    let start = span.map_or(0, |span| span.start);
    let before = source.get(..start).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let line_number = line_of(source, before.len());
    FileError {
        column: line.chars().count() + 1,
        ..FileError::new(shown, line_number, sanitize::one_line(message))
    }
}
