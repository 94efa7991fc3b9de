//! Reads a TOML file of a course with serde, so that all problems of the file are reported at once, each with its line
//! and what to write instead.
//!
//! [`TomlFile::read`] runs serde over toml's tree of spanned values with a deserializer that does not stop at a mistake:
//! it reports the problem and continues with a stand-in (an empty text, 0, the first word of a choice). What serde cannot
//! know (a range, a name that must exist) is checked afterwards and reported with [`TomlFile::fail`], which takes the
//! path of the key: `quiz.0.choices`. A list that is left out is empty, a flag that is left out is false.

mod node;
mod problems;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::source::Loader;
use super::text;
use crate::config::file::{line_of, not_toml};
use crate::config::nearest;
use node::key_of;
use problems::Problems;

/// A file that was read, and what is wrong with it so far.
pub struct TomlFile<'a> {
    source: &'a str,
    root: DeValue<'a>,
    problems: Problems,
}

impl TomlFile<'_> {
    /// Reads the file at `path` of the course and hands it with its value to `check`, which may report more. The value has
    /// stand-ins wherever a problem was reported. `None`: the file cannot be used.
    pub fn read<T: DeserializeOwned, R>(
        loader: &Loader<'_>,
        path: &str,
        check: impl FnOnce(&TomlFile<'_>, T) -> R,
    ) -> Option<R> {
        let source = loader.text(path)?;
        let root = match DeTable::parse(&source) {
            Ok(root) => DeValue::Table(root.into_inner()),
            Err(error) => {
                let (line, what) = not_toml(&source, error.message(), error.span());
                loader.fail(path, line, text::one_line(&what));
                return None;
            }
        };
        let file = TomlFile {
            source: &source,
            root,
            problems: Problems::of(loader.source.shown(path)),
        };
        // What `check` reports of other files comes after this one's problems.
        let at = loader.problems.borrow().len();
        let value = node::value(&source, &file.root, &file.problems);
        let checked = value.map(|value| check(&file, value));
        let usable = !file.failed();
        let problems = file.problems.into_list();
        loader.problems.borrow_mut().splice(at..at, problems);
        checked.filter(|_| usable)
    }

    /// Reports a problem of the key at `path`, unless serde reported that key already.
    pub fn fail(&self, path: &str, what: impl Into<String>) {
        if !self.is_settled(path) {
            self.problems.add(self.line(path), what.into());
        }
    }

    /// Reports that the key at `path` is missing; `example` is how its value could be written.
    pub fn missing(&self, path: &str, example: &str) {
        let key = key_of(path);
        if !self.is_settled(path) {
            let what = format!("`{key}` is missing; write `{key} = {example}`");
            self.problems.report(self.line(path), path, what);
        }
    }

    /// Whether the key at `path` or a table around it was reported.
    pub fn is_settled(&self, path: &str) -> bool {
        self.problems.is_settled(path)
    }

    /// Reports an unknown word at `path`, with the nearest of the known ones: "unknown metric `los`; …".
    pub fn unknown<'w>(
        &self,
        path: &str,
        kind: &str,
        word: &str,
        known: impl Iterator<Item = &'w str>,
    ) {
        let near = nearest(word, known);
        let what = format!("unknown {kind} `{word}`; the nearest known one is `{near}`");
        self.fail(path, what);
    }

    /// The line of the key at `path`, or of the nearest table around it.
    pub fn line(&self, path: &str) -> usize {
        let (mut value, mut line) = (&self.root, 1);
        for step in path.split('.') {
            let found = match value {
                DeValue::Table(table) => table
                    .get_key_value(step)
                    .map(|(key, inner)| (key.span(), inner)),
                DeValue::Array(list) => {
                    let inner = step.parse().ok().and_then(|at: usize| list.get(at));
                    inner.map(|inner| (inner.span(), inner))
                }
                _ => None,
            };
            let Some((span, inner)) = found else {
                break;
            };
            line = line_of(self.source, span.start);
            value = inner.get_ref();
        }
        line
    }

    /// Whether a problem was reported that makes the file unusable.
    pub fn failed(&self) -> bool {
        self.problems.failed()
    }
}
