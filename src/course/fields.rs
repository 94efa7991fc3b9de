//! Reads the keys of a course file one by one, so that every complaint has its line and every unknown key its nearest
//! known one. It knows TOML and nothing of stages.

use toml_edit::{Document, Item, TableLike, Value};

use super::text;
use crate::config::file::{FileError, line_of};
use crate::config::nearest;

/// A file being read, and what is wrong with it so far.
pub struct Fields<'a> {
    path: String,
    source: &'a str,
    /// In the order found.
    pub problems: Vec<FileError>,
    /// Whether any problem is more than a removed character.
    pub failed: bool,
    /// Keys that an unknown key was taken for: not missing as well.
    meant: Vec<(usize, String)>,
}

/// One table of the file.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    inner: &'a dyn TableLike,
    pub line: usize,
}

impl<'a> Fields<'a> {
    pub fn new(source: &'a str, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            source,
            problems: Vec::new(),
            failed: false,
            meant: Vec::new(),
        }
    }

    /// Parses the whole file; a syntax error is a problem of its own.
    pub fn document(&mut self) -> Option<Document<&'a str>> {
        match Document::parse(self.source) {
            Ok(document) => Some(document),
            Err(error) => {
                let line = error
                    .span()
                    .map_or(0, |span| line_of(self.source, span.start));
                self.fail(
                    line,
                    format!("is not valid TOML: {}", text::one_line(error.message())),
                );
                None
            }
        }
    }

    pub fn fail(&mut self, line: usize, what: String) {
        self.failed = true;
        self.problems.push(FileError {
            path: self.path.clone(),
            line,
            what,
        });
    }

    /// Complains about every key that is not in `known`.
    pub fn known(&mut self, table: Table<'_>, known: &[&str]) {
        for (key, item) in table.inner.iter() {
            if !known.contains(&key) {
                let near = nearest(key, known.iter().copied());
                let line = self.line(table, key, item);
                self.meant.push((table.line, near.to_owned()));
                let key = text::one_line(&key.escape_debug().to_string());
                self.fail(
                    line,
                    format!("unknown key `{key}`; the nearest known key is `{near}`"),
                );
            }
        }
    }

    /// A text that must be there and must not be empty.
    pub fn text(&mut self, table: Table<'_>, key: &str) -> String {
        match self.optional_text(table, key) {
            Some(found) if found.trim().is_empty() => {
                let line = self.line_of(table, key);
                self.fail(line, format!("`{key}` is empty; write a text"));
                found
            }
            Some(found) => found,
            None => {
                if table.inner.get(key).is_none() {
                    self.missing(table, key, "= \"…\"");
                }
                String::new()
            }
        }
    }

    pub fn optional_text(&mut self, table: Table<'_>, key: &str) -> Option<String> {
        let item = table.inner.get(key)?;
        let line = self.line(table, key, item);
        let Some(found) = item.as_str() else {
            self.fail(
                line,
                format!("`{key}` is {}; it takes a quoted text", kind(item)),
            );
            return None;
        };
        Some(self.clean(found, line))
    }

    /// A list of texts; empty where the key is missing.
    pub fn texts(&mut self, table: Table<'_>, key: &str) -> Vec<String> {
        let Some(item) = table.inner.get(key) else {
            return Vec::new();
        };
        let line = self.line(table, key, item);
        let Some(array) = item.as_array() else {
            self.fail(
                line,
                format!("`{key}` is {}; it takes a list of quoted texts", kind(item)),
            );
            return Vec::new();
        };
        let mut found = Vec::new();
        for value in array {
            let at = value
                .span()
                .map_or(line, |span| line_of(self.source, span.start));
            match value.as_str() {
                Some(text) => found.push(self.clean(text, at)),
                None => self.fail(
                    at,
                    format!("`{key}` holds something that is no text; put it in quotes"),
                ),
            }
        }
        found
    }

    /// A list of numbers or words, each as it is written in a command line.
    pub fn words(&mut self, table: Table<'_>, key: &str) -> Vec<String> {
        let Some(item) = table.inner.get(key) else {
            return Vec::new();
        };
        let line = self.line(table, key, item);
        let values = item.as_array().map(|array| {
            array.iter().map(|value| match value {
                Value::String(text) => Some(text::one_line(text.value())),
                Value::Integer(n) => Some(n.value().to_string()),
                Value::Float(x) => Some(x.value().to_string()),
                _ => None,
            })
        });
        match values.map(Iterator::collect::<Option<Vec<_>>>) {
            Some(Some(found)) => found,
            _ => {
                self.fail(
                    line,
                    format!("`{key}` takes a list of numbers or quoted words"),
                );
                Vec::new()
            }
        }
    }

    pub fn number(&mut self, table: Table<'_>, key: &str) -> Option<f64> {
        let item = table.inner.get(key)?;
        let found = item
            .as_float()
            .or_else(|| item.as_integer().map(|n| n as f64))
            .filter(|x| x.is_finite());
        if found.is_none() {
            let line = self.line(table, key, item);
            self.fail(
                line,
                format!("`{key}` is {}; it takes a number", kind(item)),
            );
        }
        found
    }

    /// A whole number of 0 or more.
    pub fn whole(&mut self, table: Table<'_>, key: &str) -> Option<u64> {
        let item = table.inner.get(key)?;
        let found = item.as_integer().and_then(|n| u64::try_from(n).ok());
        if found.is_none() {
            let line = self.line(table, key, item);
            self.fail(
                line,
                format!(
                    "`{key}` is {}; it takes a whole number of 0 or more",
                    kind(item)
                ),
            );
        }
        found
    }

    pub fn flag(&mut self, table: Table<'_>, key: &str) -> Option<bool> {
        let item = table.inner.get(key)?;
        let found = item.as_bool();
        if found.is_none() {
            let line = self.line(table, key, item);
            self.fail(
                line,
                format!("`{key}` is {}; it takes true or false", kind(item)),
            );
        }
        found
    }

    /// One of a few words; complains with the nearest.
    pub fn word(&mut self, table: Table<'_>, key: &str, words: &[&str]) -> Option<String> {
        let found = self.optional_text(table, key)?;
        if words.contains(&found.as_str()) {
            return Some(found);
        }
        let line = self.line_of(table, key);
        let near = nearest(&found, words.iter().copied());
        let all = words
            .iter()
            .map(|word| format!("\"{word}\""))
            .collect::<Vec<_>>()
            .join(", ");
        let found = text::one_line(&found);
        self.fail(
            line,
            format!("`{key}` cannot be \"{found}\"; did you mean \"{near}\"? It takes {all}"),
        );
        None
    }

    pub fn table<'t>(&mut self, table: Table<'t>, key: &str) -> Option<Table<'t>> {
        let item = table.inner.get(key)?;
        let line = self.line(table, key, item);
        let found = item.as_table_like();
        if found.is_none() {
            self.fail(
                line,
                format!("`{key}` is {}; write a table `[{key}]`", kind(item)),
            );
        }
        found.map(|inner| Table { inner, line })
    }

    /// The tables of `[[key]]`; empty where there is none.
    pub fn tables<'t>(&mut self, table: Table<'t>, key: &str) -> Vec<Table<'t>> {
        let Some(item) = table.inner.get(key) else {
            return Vec::new();
        };
        let at = |span: Option<std::ops::Range<usize>>| {
            span.map_or(0, |span| line_of(self.source, span.start))
        };
        match item {
            Item::ArrayOfTables(list) => list
                .iter()
                .map(|inner| Table {
                    inner,
                    line: at(inner.span()),
                })
                .collect(),
            Item::Value(Value::Array(list)) if list.iter().all(Value::is_inline_table) => list
                .iter()
                .filter_map(|value| {
                    Some(Table {
                        inner: value.as_inline_table()?,
                        line: at(value.span()),
                    })
                })
                .collect(),
            _ => {
                let line = self.line(table, key, item);
                self.fail(
                    line,
                    format!(
                        "`{key}` is {}; write each as its own `[[{key}]]`",
                        kind(item)
                    ),
                );
                Vec::new()
            }
        }
    }

    pub fn is_text(table: Table<'_>, key: &str) -> bool {
        table.inner.get(key).is_some_and(Item::is_str)
    }

    /// The keys of the table, in order.
    pub fn keys(&self, table: Table<'_>) -> Vec<String> {
        table
            .inner
            .iter()
            .map(|(key, _)| text::one_line(key))
            .collect()
    }

    pub fn has(table: Table<'_>, key: &str) -> bool {
        table.inner.contains_key(key)
    }

    pub fn missing(&mut self, table: Table<'_>, key: &str, example: &str) {
        if self.was_meant(table, key) {
            return;
        }
        self.fail(
            table.line,
            format!("`{key}` is missing; write `{key} {example}`"),
        );
    }

    /// Whether an unknown key of the table was probably this one.
    pub fn was_meant(&self, table: Table<'_>, key: &str) -> bool {
        self.meant
            .iter()
            .any(|(line, meant)| *line == table.line && meant == key)
    }

    /// The line of a key, or of its table.
    pub fn line_of(&self, table: Table<'_>, key: &str) -> usize {
        table
            .inner
            .get(key)
            .map_or(table.line, |item| self.line(table, key, item))
    }

    fn line(&self, table: Table<'_>, key: &str, item: &Item) -> usize {
        let span = table
            .inner
            .key(key)
            .and_then(toml_edit::Key::span)
            .or_else(|| item.span());
        span.map_or(table.line, |span| line_of(self.source, span.start))
    }

    /// Removes what a terminal would obey, and says so.
    fn clean(&mut self, found: &str, line: usize) -> String {
        let (text, removed) = text::clean(found);
        if !removed.is_empty() {
            self.problems.push(escape_removed(&self.path, line));
        }
        text.trim_end().to_owned()
    }
}

/// The root table of a parsed file.
pub fn root<'a>(document: &'a Document<&str>) -> Table<'a> {
    Table {
        inner: document.as_table(),
        line: 1,
    }
}

/// The complaint about a terminal escape.
pub fn escape_removed(path: &str, line: usize) -> FileError {
    let what = "holds a control character or terminal escape, which was removed; write plain text"
        .to_owned();
    FileError {
        path: path.to_owned(),
        line,
        what,
    }
}

fn kind(item: &Item) -> &'static str {
    match item {
        Item::ArrayOfTables(_) => "a list of tables",
        Item::Table(_) | Item::None | Item::Value(Value::InlineTable(_)) => "a table",
        Item::Value(Value::String(_)) => "a text",
        Item::Value(Value::Integer(_) | Value::Float(_)) => "a number",
        Item::Value(Value::Boolean(_)) => "true or false",
        Item::Value(Value::Array(_)) => "a list",
        Item::Value(Value::Datetime(_)) => "a date",
    }
}
