//! The values of a TOML file as serde sees them: a deserializer that does not stop at a mistake, but reports it and goes on
//! with a stand-in.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use toml::Spanned;
use toml::de::DeValue;

use super::problems::Problems;
use crate::config::file::line_of;
use crate::config::nearest;
use crate::course::text;

/// A file while serde reads it.
struct Reading<'t> {
    source: &'t str,
    problems: &'t Problems,
    /// Paths of keys that serde asked for and did not find.
    required: RefCell<Vec<String>>,
    /// Path and line of the value that serde read last: errors that it raises itself are about this one.
    last: RefCell<(String, usize)>,
}

/// Deserializes a file. Each round learns of one more required key that is missing; the next one puts a stand-in there.
pub fn value<T: DeserializeOwned>(
    source: &str,
    root: &DeValue<'_>,
    problems: &Problems,
) -> Option<T> {
    let reading = Reading {
        source,
        problems,
        required: RefCell::default(),
        last: RefCell::default(),
    };
    loop {
        let root = Node {
            file: &reading,
            value: Some(root),
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
        match missing {
            Some(path) if !reading.required.borrow().contains(&path) => {
                reading.required.borrow_mut().push(path);
            }
            _ => {
                let (path, line) = reading.last.take();
                let what = format!("`{}`: {}", key_of(&path), text::one_line(&fault.what));
                problems.report(line, &path, what);
                return None;
            }
        }
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
    file: &'t Reading<'t>,
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
            self.file.problems.report(self.line, &self.path, what);
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
            self.file.problems.settle(list.to_owned());
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
            self.file.problems.removed_escapes(self.line);
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
            if self.file.required.borrow().contains(&path) {
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
                self.file.problems.settle(path);
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
        self.file.last.replace((self.path.clone(), self.line));
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
pub fn key_of(path: &str) -> &str {
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
