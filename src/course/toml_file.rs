//! Reads a TOML file of a course with serde, so that all problems of the file are reported at once, each with its line
//! and what to write instead.
//!
//! [`TomlFile::read`] runs serde over toml's tree of spanned values with a deserializer that does not stop at a mistake:
//! it reports the problem and continues with a stand-in (an empty text, 0, the first word of a choice). What serde cannot
//! know (a range, a name that must exist) is checked afterwards and reported with [`TomlFile::fail`], which takes the
//! path of the key: `quiz.0.choices`. A list that is left out is empty, a flag that is left out is false.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Loader;
use super::text;
use crate::config::file::{FileError, line_of, not_toml};
use crate::config::nearest;

/// A file that was read, and what is wrong with it so far.
pub struct TomlFile<'a> {
    shown: String,
    source: &'a str,
    root: DeValue<'a>,
    found: RefCell<Found>,
}

#[derive(Default)]
struct Found {
    problems: Vec<FileError>,
    /// Whether any problem is more than a removed control character.
    failed: bool,
    /// Paths of keys that were reported already, or that a misspelt key probably stands for: one message is enough.
    settled: Vec<String>,
    /// Paths of keys that serde asked for and did not find.
    required: Vec<String>,
    /// Path and line of the value that serde read last: errors that it raises itself are about this one.
    last: (String, usize),
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
            shown: loader.source.shown(path),
            source: &source,
            root,
            found: RefCell::default(),
        };
        // What `check` reports of other files comes after this one's problems.
        let at = loader.problems.borrow().len();
        let checked = file.value().map(|value| check(&file, value));
        let mut found = file.found.into_inner();
        found.problems.sort_by_key(|problem| problem.line);
        loader.problems.borrow_mut().splice(at..at, found.problems);
        checked.filter(|_| !found.failed)
    }

    /// Deserializes the file. Each round learns of one more required key that is missing; the next one puts a stand-in
    /// there.
    fn value<T: DeserializeOwned>(&self) -> Option<T> {
        loop {
            let root = Node {
                file: self,
                value: Some(&self.root),
                path: String::new(),
                line: 1,
                place: Place::Required,
                silent: false,
            };
            let fault = match T::deserialize(root) {
                Ok(value) => return Some(value),
                Err(fault) => fault,
            };
            let missing = fault.missing.map(|(path, field)| join(&path, field));
            let mut found = self.found.take();
            match missing {
                Some(path) if !found.required.contains(&path) => {
                    found.required.push(path);
                    self.found.borrow_mut().required = found.required;
                }
                _ => {
                    let (path, line) = std::mem::take(&mut found.last);
                    self.found.replace(found);
                    let what = format!("`{}`: {}", key_of(&path), text::one_line(&fault.what));
                    self.report(line, &path, what);
                    return None;
                }
            }
        }
    }

    /// Reports a problem of the key at `path`, unless serde reported that key already.
    pub fn fail(&self, path: &str, what: impl Into<String>) {
        if !self.is_settled(path) {
            self.push(self.line(path), what.into());
        }
    }

    /// Reports that the key at `path` is missing; `example` is how its value could be written.
    pub fn missing(&self, path: &str, example: &str) {
        let key = key_of(path);
        if !self.is_settled(path) {
            let what = format!("`{key}` is missing; write `{key} = {example}`");
            self.report(self.line(path), path, what);
        }
    }

    /// Whether the key at `path` or a table around it was reported.
    pub fn is_settled(&self, path: &str) -> bool {
        let within = |settled: &String| {
            let rest = path.strip_prefix(settled.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.found.borrow().settled.iter().any(within)
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
        self.found.borrow().failed
    }

    fn push(&self, line: usize, what: String) {
        let mut found = self.found.borrow_mut();
        found.failed = true;
        let problem = FileError::new(&self.shown, line, what);
        found.problems.push(problem);
    }

    fn report(&self, line: usize, path: &str, what: String) {
        self.push(line, what);
        self.found.borrow_mut().settled.push(path.to_owned());
    }
}

/// Where a value stands, which decides how a problem with it is worded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The value of a key that must hold something.
    Required,
    /// The value of a key that may be left out.
    Optional,
    /// An entry of a list.
    Entry,
    /// A single value where a list is expected.
    NoList,
}

/// One value of the file, as serde sees it.
#[derive(Clone)]
struct Node<'t> {
    file: &'t TomlFile<'t>,
    /// `None`: the key is required and missing.
    value: Option<&'t DeValue<'t>>,
    path: String,
    line: usize,
    place: Place,
    /// A table around it was reported: nothing in it is reported again.
    silent: bool,
}

impl<'t> Node<'t> {
    fn report(&self, what: String) {
        if !self.silent {
            self.file.report(self.line, &self.path, what);
        }
    }

    /// Reports that the value is missing or of another type than `wanted`; `example` is how such a value is written.
    fn mismatch(&self, wanted: &str, example: &str) {
        let key = key_of(&self.path);
        let found = self.value.map_or("", kind);
        self.report(match self.place {
            _ if self.value.is_none() => format!("`{key}` is missing; write `{key} = {example}`"),
            Place::Required | Place::Optional => format!("`{key}` is {found}; it takes {wanted}"),
            Place::Entry => format!("`{key}` holds {found}; each entry is {wanted}"),
            Place::NoList => {
                format!("`{key}` is {found}; it takes a list such as `{key} = [{example}]`")
            }
        });
        if let (Place::Entry, Some((list, _))) = (self.place, self.path.rsplit_once('.')) {
            // The list as a whole is not checked any further.
            self.file.found.borrow_mut().settled.push(list.to_owned());
        }
    }

    /// The value, unless it stands where a list must be.
    fn single(&self) -> Option<&'t DeValue<'t>> {
        self.value.filter(|_| self.place != Place::NoList)
    }

    fn text(&self) -> Option<String> {
        let Some(DeValue::String(found)) = self.single() else {
            return None;
        };
        let (text, removed) = text::clean(found);
        if !removed.is_empty() && !self.silent {
            let problem = text::escape_removed(&self.file.shown, self.line);
            self.file.found.borrow_mut().problems.push(problem);
        }
        Some(text.trim_end().to_owned())
    }

    /// The text, which must not be empty if the key is required.
    fn filled(&self) -> Option<String> {
        let text = self.text()?;
        if text.trim().is_empty() && self.place == Place::Required {
            let key = key_of(&self.path);
            self.report(format!("`{key}` is empty; write a text"));
        }
        Some(text)
    }

    fn flag(&self) -> Option<bool> {
        match self.value {
            None => Some(false),
            Some(_) => self.single()?.as_bool(),
        }
    }

    fn number(&self) -> Option<f64> {
        let found = match self.single()? {
            DeValue::Integer(_) => self.integer()? as f64,
            DeValue::Float(x) => x.as_str().parse().ok()?,
            _ => return None,
        };
        found.is_finite().then_some(found)
    }

    fn integer(&self) -> Option<i64> {
        let n = self.single()?.as_integer()?;
        i64::from_str_radix(n.as_str(), n.radix()).ok()
    }

    fn whole(&self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }

    fn child(&self, step: &str, value: &'t Spanned<DeValue<'t>>, place: Place) -> Node<'t> {
        Node {
            file: self.file,
            value: Some(value.get_ref()),
            path: join(&self.path, step),
            line: line_of(self.file.source, value.span().start),
            place,
            silent: self.silent,
        }
    }

    /// The values of the table; empty, with a report, if the value is not a table.
    fn entries(&mut self) -> Vec<(String, Node<'t>)> {
        if let Some(DeValue::Table(table)) = self.single() {
            let entries = table.iter().map(|(key, value)| {
                let mut node = self.child(key.get_ref(), value, Place::Required);
                node.line = line_of(self.file.source, key.span().start);
                (key.get_ref().to_string(), node)
            });
            return entries.collect();
        }
        let key = key_of(&self.path);
        let write = match self.place {
            Place::Required | Place::Optional => format!("write a table `[{key}]`"),
            Place::Entry | Place::NoList => format!("write each as its own `[[{key}]]`"),
        };
        let found = self.value.map_or("missing", kind);
        self.report(format!("`{key}` is {found}; {write}"));
        self.silent = true;
        Vec::new()
    }

    /// The values of the table for the fields of a struct; every other key is reported with the nearest field.
    fn fields(&mut self, fields: &'static [&'static str]) -> Vec<(String, Node<'t>)> {
        let mut entries = self.entries();
        let mut meant = Vec::new();
        entries.retain(|(key, node)| {
            let known = fields.contains(&key.as_str());
            if !known {
                let near = nearest(key, fields.iter().copied());
                let key = text::one_line(&key.escape_debug().to_string());
                let what = format!("unknown key `{key}`; the nearest known key is `{near}`");
                node.report(what);
                meant.push(near);
            }
            known
        });
        for field in fields {
            let path = join(&self.path, field);
            let mut found = self.file.found.borrow_mut();
            if found.required.contains(&path) {
                let node = Node {
                    value: None,
                    path: path.clone(),
                    place: Place::Required,
                    silent: self.silent || meant.contains(field),
                    ..self.clone()
                };
                entries.push(((*field).to_owned(), node));
            }
            if meant.contains(field) {
                found.settled.push(path);
            }
        }
        entries
    }

    fn list(&self) -> Vec<Node<'t>> {
        match self.value {
            Some(DeValue::Array(list)) => list
                .iter()
                .enumerate()
                .map(|(at, value)| self.child(&at.to_string(), value, Place::Entry))
                .collect(),
            Some(_) => vec![Node {
                place: Place::NoList,
                ..self.clone()
            }],
            None => Vec::new(),
        }
    }
}

/// Calls the visitor with the value, or reports a mismatch and calls it with a stand-in.
macro_rules! scalars {
    ($($method:ident $visit:ident $read:expr, $otherwise:expr, $wanted:literal, $example:literal;)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let read: fn(&Node<'_>) -> Option<_> = $read;
            let value = read(&self).unwrap_or_else(|| {
                self.mismatch($wanted, $example);
                $otherwise
            });
            visitor.$visit(value)
        }
    )+};
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Fault;

    scalars! {
        deserialize_bool visit_bool |node| node.flag(), false, "true or false", "true";
        deserialize_f64 visit_f64 |node| node.number(), 0.0, "a number", "1.0";
        deserialize_i64 visit_i64 |node| node.integer(), 0, "a whole number", "1";
        deserialize_u64 visit_u64 |node| node.whole(), 0, "a whole number of 0 or more", "1";
        deserialize_u32 visit_u64 |node| node.whole(), 0, "a whole number of 0 or more", "1";
        deserialize_str visit_string |node| node.filled(), "…".to_owned(), "a quoted text", "\"…\"";
        deserialize_string visit_string |node| node.filled(), "…".to_owned(), "a quoted text", "\"…\"";
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        if self.value.is_none() {
            return visitor.visit_none();
        }
        self.place = Place::Optional;
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let first = words.first().copied().unwrap_or_default();
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let all = quoted.join(", ");
        let word = match self.text() {
            Some(word) => match words.iter().find(|known| **known == word) {
                Some(known) => *known,
                None => {
                    let near = nearest(&word, words.iter().copied());
                    let (key, word) = (key_of(&self.path), text::one_line(&word));
                    let what = format!("`{key}` cannot be \"{word}\"; did you mean \"{near}\"?");
                    self.report(format!("{what} It takes {all}"));
                    first
                }
            },
            None => {
                self.mismatch(&format!("one of {all}"), &format!("\"{first}\""));
                first
            }
        };
        let word: StrDeserializer<'_, Fault> = word.into_deserializer();
        visitor.visit_enum(word)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(SeqDeserializer::new(self.list().into_iter()))
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(MapDeserializer::new(self.entries().into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let entries = self.fields(fields).into_iter();
        let found = visitor.visit_map(MapDeserializer::new(entries));
        found.map_err(|mut fault| {
            if let Some((path, _)) = &mut fault.missing
                && path.is_empty()
            {
                path.clone_from(&self.path);
            }
            fault
        })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            None => visitor.visit_unit(),
            Some(DeValue::Boolean(flag)) => visitor.visit_bool(*flag),
            Some(DeValue::Integer(_)) => self.deserialize_i64(visitor),
            Some(DeValue::Float(_)) => self.deserialize_f64(visitor),
            Some(DeValue::Array(_)) => self.deserialize_seq(visitor),
            Some(DeValue::Table(_)) => self.deserialize_map(visitor),
            Some(DeValue::String(_)) => self.deserialize_string(visitor),
            Some(DeValue::Datetime(date)) => visitor.visit_string(date.to_string()),
        }
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 u8 u16 f32 char bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct
        identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Fault> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self.file.found.borrow_mut().last = (self.path.clone(), self.line);
        self
    }
}

/// An error that serde raises itself.
#[derive(Debug)]
struct Fault {
    what: String,
    /// The field that is missing, and the path of its table.
    missing: Option<(String, &'static str)>,
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self {
            what: what.to_string(),
            missing: None,
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            what: format!("`{field}` is missing"),
            missing: Some((String::new(), field)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Fault {}

fn join(path: &str, step: &str) -> String {
    if path.is_empty() {
        step.to_owned()
    } else {
        format!("{path}.{step}")
    }
}

/// The last key of a path; an entry of a list goes by the name of the list.
fn key_of(path: &str) -> &str {
    let mut steps = path.rsplit('.');
    steps
        .find(|step| step.parse::<usize>().is_err())
        .unwrap_or_default()
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
        DeValue::Datetime(_) => "a date",
    }
}
