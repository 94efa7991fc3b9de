//! Reads a TOML file of a course with serde. All faults of a file that can be found beside each other are reported at once, each with its
//! line and column, its key, and what to write instead.
//!
//! [`read`] passes the value to a check for what serde cannot know, such as a range or a name that must exist. A check names a key by its
//! path: `quiz.0.choices`.

use std::borrow::Cow;
use std::cell::RefCell;

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
    /// Faults that do not keep the others from being found.
    found: RefCell<Vec<FileError>>,
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
    open(loader, path, |file| check(file, file.value(&[], false)?))
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
        fault(
            &shown,
            &source,
            error.span().map(|span| span.start),
            &message,
        )
    })?;
    let mut file = TomlFile {
        shown,
        source: &source,
        root,
        found: RefCell::default(),
    };
    file.clean(loader)?;
    let read = check(&file);
    let mut found = file.found.take();
    let read = read.map_err(|fault| found.push(fault));
    found.sort_by_key(|fault| (fault.line, fault.column));
    let last = found.pop();
    found.into_iter().for_each(|fault| loader.report(fault));
    match (read, last) {
        (Ok(read), None) => Ok(read),
        (_, fault) => Err(fault.unwrap_or_else(|| file.fault("", "cannot be read"))),
    }
}

impl TomlFile<'_> {
    /// Reads the value of these keys, or of all other keys if `these` is false.
    pub fn value<T: DeserializeOwned>(&self, keys: &[&str], these: bool) -> Result<T, FileError> {
        let all = self.root.get_ref().iter();
        let wanted = all.filter(|(key, _)| keys.contains(&&**key.get_ref()) == these);
        let copies = wanted.map(|(key, value)| (key.clone(), value.clone()));
        let mut root: DeTable<'_> = copies.collect();
        let mut faults: Vec<FileError> = Vec::new();
        loop {
            let all = Spanned::new(self.root.span(), root.clone());
            let error = match T::deserialize(Deserializer::from(all)) {
                Ok(value) if faults.is_empty() => return Ok(value),
                Ok(_) => break,
                Err(error) => error,
            };
            // A key that is missing because it is misspelt is told once.
            let field = error.message().strip_prefix("missing field ");
            let misspelt = |field| faults.iter().any(|fault| fault.message.ends_with(field));
            if !field.is_some_and(misspelt) {
                faults.push(self.explain(&error, keys));
            }
            // Without an unknown key the other faults are found, too.
            let is_unknown = error.message().starts_with("unknown field");
            let removed = error
                .span()
                .is_some_and(|key| is_unknown && remove(&mut root, key.start));
            if !removed {
                break;
            }
        }
        let last = faults.pop();
        self.found.borrow_mut().extend(faults);
        Err(last.unwrap_or_else(|| self.fault("", "cannot be read")))
    }

    /// Notes a fault that does not keep the others from being found.
    pub fn keep(&self, checked: Result<(), FileError>) {
        self.found.borrow_mut().extend(checked.err());
    }

    /// Returns the error for a fault of the key at `path`, or of the nearest table around it.
    pub fn fault(&self, path: &str, message: impl AsRef<str>) -> FileError {
        fault(
            &self.shown,
            self.source,
            Some(self.place(path)),
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
        let mut at = 0;
        for step in path.split('.') {
            let key = table.and_then(|table| table.get_key_value(step));
            let entry = list.and_then(|list| list.get(step.parse::<usize>().ok()?));
            let value: &Spanned<DeValue<'_>> = match (key, entry) {
                (Some((key, value)), _) => {
                    at = key.span().start;
                    value
                }
                (None, Some(entry)) => {
                    at = entry.span().start;
                    entry
                }
                (None, None) => break,
            };
            table = value.get_ref().as_table();
            list = value.get_ref().as_array();
        }
        at
    }

    /// Removes from every text what could control a terminal, and reports it. The file stays usable.
    ///
    /// # Errors
    /// The first value without a meaning: an empty text, or a number that is not finite.
    fn clean(&mut self, loader: &Loader<'_>) -> Result<(), FileError> {
        let shown = &self.shown;
        let source = self.source;
        let mut open: Vec<_> = self
            .root
            .get_mut()
            .iter_mut()
            .map(|(key, value)| (key.get_ref().as_ref(), value))
            .collect();
        open.reverse();
        while let Some((key, value)) = open.pop() {
            let at = value.span().start;
            let fail = |message: &str| {
                Err(fault(
                    shown,
                    source,
                    Some(at),
                    &format!("`{key}` {message}"),
                ))
            };
            match value.get_mut() {
                DeValue::String(words) => {
                    let (plain, removed) = sanitize::without_escapes(words);
                    if !removed.is_empty() {
                        loader.report(text::escape_removed(shown, line_of(source, at)));
                    }
                    *words = Cow::Owned(plain.trim_end().to_owned());
                    if words.is_empty() && !key.is_empty() {
                        return fail("is empty; write a text");
                    }
                }
                DeValue::Float(x) if !x.as_str().parse().is_ok_and(f64::is_finite) => {
                    return fail("is not finite; write a number");
                }
                // An entry of a list may be empty.
                DeValue::Array(list) => open.extend(list.iter_mut().rev().map(|one| ("", one))),
                DeValue::Table(table) => {
                    let values = table.iter_mut().rev();
                    open.extend(values.map(|(key, value)| (key.get_ref().as_ref(), value)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Explains an error of serde in this program's words. `others` are further keys that the file may have.
    fn explain(&self, error: &Error, others: &[&str]) -> FileError {
        let full = error.to_string();
        let path = full
            .rsplit_once("\nin `")
            .map_or("", |(_, path)| path.trim_end());
        let key = path
            .trim_end_matches('`')
            .rsplit('.')
            .next()
            .unwrap_or_default();
        let original = error.message();
        let word = |start| {
            let (word, known) = original.strip_prefix(start)?.split_once("`, expected ")?;
            let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            Some((word, nearest(word, known.iter().copied()), known))
        };
        let message = if let Some((word, _, mut known)) = word("unknown field `") {
            // The other keys are those of the whole file, not of a table in it.
            if path.is_empty() {
                known.extend(others);
            }
            unknown("key", word, known.into_iter())
        } else if let Some((word, near, known)) = word("unknown variant `") {
            let all = known.join("\", \"");
            format!("`{key}` cannot be \"{word}\"; did you mean \"{near}\"? It takes \"{all}\"")
        } else if let Some(field) = original.strip_prefix("missing field ") {
            format!("{field} is missing; write it here")
        } else {
            format!("`{key}`: {original}")
        };
        fault(
            &self.shown,
            self.source,
            error.span().map(|span| span.start),
            &message,
        )
    }
}

/// Removes the key that begins at this byte offset. Returns true if there was one.
fn remove(table: &mut DeTable<'_>, start: usize) -> bool {
    let before = table.len();
    let kept = std::mem::take(table).into_iter();
    *table = kept.filter(|(key, _)| key.span().start != start).collect();
    let mut inside = table.iter_mut();
    before > inside.len() || inside.any(|(_, value)| remove_inside(value.get_mut(), start))
}

fn remove_inside(value: &mut DeValue<'_>, start: usize) -> bool {
    match value {
        DeValue::Table(table) => remove(table, start),
        DeValue::Array(list) => list
            .iter_mut()
            .any(|one| remove_inside(one.get_mut(), start)),
        _ => false,
    }
}

/// Returns an error with the line and the column of a byte offset.
fn fault(shown: &str, source: &str, at: Option<usize>, message: &str) -> FileError {
    let before = source.get(..at.unwrap_or(0)).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    FileError {
        column: line.chars().count() + 1,
        ..FileError::new(
            shown,
            line_of(source, before.len()),
            sanitize::one_line(message),
        )
    }
}
