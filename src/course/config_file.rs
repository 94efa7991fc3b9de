//! Reads a `config.toml` into a `RunConfig`, and writes changed keys back into its text. Every error has the file, the line and what to write
//! instead: `config.toml:2: unknown key `model.nrom`; the nearest known key is `model.norm``.

use std::fmt;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use toml_edit::{Document, DocumentMut, Item, Key, Table, TableLike};

use crate::files;
use crate::sanitize;
use protocol::config::{Knob, KnobValue, Preset, RunConfig, unknown};

/// The size of the largest configuration file that is read, in bytes.
pub const MAX_BYTES: u64 = 256 * 1024;

/// The largest number of levels of nesting that the TOML parser reads.
const MAX_NESTING: usize = 80;

/// The largest number of characters of an error that are shown. An error may quote a file of any length.
const MAX_SHOWN: usize = 3000;

/// A fault of a file, shown as `path:line: what`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file, as messages name it.
    pub path: String,
    /// The line, from 1; 0 if no line is at fault.
    pub line: usize,
    /// The column in characters, from 1; 0 if the line says enough.
    pub column: usize,
    /// The fault, and what to write instead.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = sanitize::bounded(&self.message, MAX_SHOWN);
        match (self.line, self.column) {
            (0, _) => write!(f, "{}: {message}", self.path),
            (line, 0) => write!(f, "{}:{line}: {message}", self.path),
            (line, column) => write!(f, "{}:{line}:{column}: {message}", self.path),
        }
    }
}

impl std::error::Error for FileError {}

impl FileError {
    pub fn new(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            column: 0,
            message: message.into(),
        }
    }
}

/// Reads a text file that a person wrote: a plain file of at most `limit` bytes in UTF-8. A byte order mark is left out.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    let shown = path.display().to_string();
    let bytes = files::read(path, limit).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => {
            FileError::new(&shown, 0, error.to_string())
        }
        _ => FileError::new(&shown, 0, format!("cannot be read: {error}")),
    })?;
    decode(bytes, &shown)
}

/// Decodes the bytes of a file as UTF-8 text, without a byte order mark. `path` is only for messages.
pub fn decode(bytes: Vec<u8>, path: &str) -> Result<String, FileError> {
    const MARK: char = '\u{feff}';
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        FileError::new(path, line, "is not UTF-8 text; save it as UTF-8")
    })?;
    if text.starts_with(MARK) {
        text.drain(..MARK.len_utf8());
    }
    Ok(text)
}

/// Returns the line of a byte offset, from 1.
pub fn line_of(text: impl AsRef<[u8]>, offset: usize) -> usize {
    let before = text.as_ref().iter().take(offset);
    before.filter(|b| **b == b'\n').count() + 1
}

/// Explains why a text is not TOML, from the message and the place of the parser's error.
pub fn not_toml(
    path: &str,
    text: &str,
    parser_message: &str,
    span: Option<Range<usize>>,
) -> FileError {
    let parsed_line = span.map(|span| line_of(text, span.start));
    if parser_message.contains("recurs") {
        // The parser does not say where a key has too many parts.
        let has_many_parts = |line: &str| line.matches('.').count() >= MAX_NESTING;
        let long_line = || Some(text.lines().position(has_many_parts)? + 1);
        let line = parsed_line.or_else(long_line).unwrap_or(0);
        let message = format!("is nested too deeply; write at most {MAX_NESTING} levels");
        return FileError::new(path, line, message);
    }
    let message = format!("is not valid TOML: {}", parser_message.trim());
    FileError::new(path, parsed_line.unwrap_or(0), message)
}

/// Reads the configuration at `path`. Keys that it does not set have the values of its preset.
pub fn load(path: &Path) -> Result<RunConfig, FileError> {
    parse(&read_text(path, MAX_BYTES)?, &path.display().to_string())
}

/// Reads a configuration from a text. `path` is only for messages.
pub fn parse(text: &str, path: &str) -> Result<RunConfig, FileError> {
    let fail = |line, message: String| FileError::new(path, line, message);
    let document = Document::parse(text)
        .map_err(|error| not_toml(path, text, error.message(), error.span()))?;

    let sections = ["model", "train", "measure"];
    let line_of_key = |table: &dyn TableLike, key: &str, item: &Item| {
        let span = table.key(key).and_then(Key::span).or_else(|| item.span());
        span.map_or(0, |span| line_of(text, span.start))
    };
    let mut found: Vec<(String, KnobValue, usize)> = Vec::new();
    for (key, item) in document.as_table() {
        let line = line_of_key(document.as_table(), key, item);
        match item.as_table_like() {
            None => found.push((key.to_owned(), knob_value(item), line)),
            Some(table) if sections.contains(&key) => {
                for (inner, item) in table.iter() {
                    let line = line_of_key(table, inner, item);
                    found.push((format!("{key}.{inner}"), knob_value(item), line));
                }
            }
            Some(_) => {
                let key = crate::sanitize::line(key);
                return Err(fail(line, unknown("section", &key, sections.into_iter())));
            }
        }
    }

    let mut config = RunConfig::preset(Preset::default());
    // The preset comes first, wherever it stands in the file: it sets sizes that other keys may change.
    found.sort_by_key(|(key, ..)| key != "preset");
    for (key, value, line) in &found {
        let knob = Knob::find(key).map_err(|message| fail(*line, message))?;
        knob.set(&mut config, value)
            .map_err(|message| fail(*line, message))?;
    }
    if let Some(problem) = config.problems().first() {
        let line = found
            .iter()
            .find(|(key, ..)| key == problem.key)
            .map_or(0, |(.., line)| *line);
        return Err(FileError::new(path, line, &problem.message));
    }
    Ok(config)
}

/// Applies an assignment such as `model.norm=fused`.
///
/// # Errors
/// If the key or the value is unknown.
pub fn set(config: &mut RunConfig, assignment: &str) -> Result<(), String> {
    let (path, word) = assignment.split_once('=').ok_or_else(|| {
        format!("`{assignment}` has no `=`; write KEY=VALUE, such as model.norm=fused")
    })?;
    Knob::find(path.trim())?.set(config, &KnobValue::from_word(word.trim()))
}

/// Returns the text of a configuration file with these keys set as in `config`, each under a comment that says what it does and which values
/// it takes. Every other line stays as it is.
///
/// # Errors
/// If the text is not a configuration.
pub fn rewritten(
    text: &str,
    path: &str,
    config: &RunConfig,
    knobs: &[&'static Knob],
) -> Result<String, FileError> {
    let before = parse(text, path)?;
    let invalid = |error: toml_edit::TomlError| FileError::new(path, 0, error.message());
    let mut document: DocumentMut = text.parse().map_err(invalid)?;
    let plain = RunConfig::preset(before.preset);
    for knob in knobs {
        let (section, key) = knob.path.split_once('.').unwrap_or(("", knob.path));
        let table = match section {
            "" => Some(document.as_item()),
            section => document.get(section),
        };
        let is_set = table.is_some_and(|table| table.get(key).is_some());
        // Numbers follow from the preset until they are set.
        let is_of_preset = knob.plain().is_none() && (knob.get)(config) == (knob.get)(&plain);
        if !is_set && is_of_preset {
            continue;
        }
        let item = match section {
            "" => document.as_item_mut(),
            section => document.entry(section).or_insert(Item::Table(Table::new())),
        };
        // In a table on one line, a comment would end the line.
        let takes_comments = item.is_table();
        let Some(table) = item.as_table_like_mut() else {
            continue;
        };
        if !is_set || (knob.get)(&before) != (knob.get)(config) {
            set_value(table, key, knob.written(config).parse().map_err(invalid)?);
        }
        if takes_comments {
            add_comment(table, key, knob);
        }
    }
    Ok(document.to_string())
}

/// Sets a key of a table. The blanks and the comment around an earlier value stay.
fn set_value(table: &mut dyn TableLike, key: &str, mut value: toml_edit::Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(earlier) => {
            *value.decor_mut() = earlier.decor().clone();
            *earlier = value;
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

/// Writes a comment about the knob above its key, unless the key has a comment.
fn add_comment(table: &mut dyn TableLike, key: &str, knob: &Knob) {
    let Some(mut key) = table.key_mut(key) else {
        return;
    };
    let decor = key.leaf_decor_mut();
    let prefix = decor.prefix().and_then(|prefix| prefix.as_str());
    let above = prefix.unwrap_or_default();
    if !above.contains('#') {
        let comment = format!("{above}# {}: {}\n", knob.about, knob.allowed());
        decor.set_prefix(comment);
    }
}

fn knob_value(item: &Item) -> KnobValue {
    match item.as_value() {
        Some(toml_edit::Value::String(text)) => KnobValue::Text(text.value().clone()),
        Some(toml_edit::Value::Integer(n)) => KnobValue::Integer(*n.value()),
        Some(toml_edit::Value::Float(x)) => KnobValue::Number(*x.value()),
        Some(toml_edit::Value::Boolean(_)) => KnobValue::Other("true or false"),
        Some(toml_edit::Value::Array(_)) => KnobValue::Other("a list"),
        Some(toml_edit::Value::Datetime(_)) => KnobValue::Other("a date"),
        _ => KnobValue::Other("a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::Norm;

    fn message(text: &str) -> String {
        parse(text, "config.toml")
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn each_mistake_has_its_line_and_its_remedy() {
        assert_eq!(
            message("[model]\nnrom = \"fused\"\n"),
            "config.toml:2: unknown key `model.nrom`; the nearest known key is `model.norm`"
        );
        assert_eq!(
            message("[modle]\nnorm = \"fused\"\n"),
            "config.toml:1: unknown section `modle`; the nearest known section is `model`"
        );
        assert_eq!(
            message("[model]\n\nnorm = \"fussed\"\n"),
            "config.toml:3: `model.norm` cannot be \"fussed\"; did you mean \"fused\"? It takes \"composed\", \"fused\""
        );
        assert_eq!(
            message("[model]\nnorm = 3\n"),
            "config.toml:2: `model.norm` is 3; it takes a quoted word: \"composed\", \"fused\""
        );
        assert_eq!(
            message("[train]\nbatch = \"8\"\n"),
            "config.toml:2: `train.batch` is \"8\"; it takes a whole number"
        );
        assert_eq!(
            message("[train]\nbatch = -8\n"),
            "config.toml:2: train.batch is -8; write 1 or more"
        );
        assert_eq!(
            message("[train]\nbatch = 0\n"),
            "config.toml:2: train.batch is 0; write 1 or more"
        );
        assert_eq!(
            message("[model]\nheads = 3\n"),
            "config.toml:2: 3 heads do not divide hidden = 128; write heads = 2"
        );
        assert!(message("[model\n").starts_with("config.toml:1: is not valid TOML"));
    }

    #[test]
    fn a_value_that_is_nested_too_deeply_is_refused_with_its_line() {
        for line in [
            format!("x = {}{}", "[".repeat(90), "]".repeat(90)),
            format!("x = {}1{}", "{a=".repeat(90), "}".repeat(90)),
            format!("{}x = 1", "a.".repeat(90)),
        ] {
            assert_eq!(
                message(&format!("preset = \"tiny\"\n{line}\n")),
                "config.toml:2: is nested too deeply; write at most 80 levels"
            );
        }
    }

    #[test]
    fn a_change_keeps_the_other_lines_and_comments_on_the_values_of_a_key() {
        let text = "# mine\npreset = \"tiny\" # small enough\n\n[model]\nlayers = 2\n# why not\nnorm = \"fused\"   # !\n";
        let mut config = parse(text, "x").expect("valid");
        config.model.norm = Norm::Composed;
        config.train.learning_rate = 1e-3;
        let knobs = [
            "model.norm",
            "model.loss",
            "train.learning-rate",
            "train.batch",
        ]
        .map(|path| Knob::known(path).expect("known"));
        let written = rewritten(text, "x", &config, &knobs).expect("valid");
        assert_eq!(parse(&written, "x").expect("still valid"), config);
        let want = "# mine\npreset = \"tiny\" # small enough\n\n[model]\nlayers = 2\n# why not\nnorm = \"composed\"   # !\n\
            # softmax and cross-entropy from primitives, in one kernel, or with the head in parts: composed, fused, in-parts\nloss = \"composed\"\n\n\
            [train]\n# AdamW's learning rate: a number above 0, such as 1e-4, 3e-4 or 1e-3\nlearning-rate = 0.001\n";
        assert_eq!(written, want);
        assert_eq!(
            rewritten(&written, "x", &config, &knobs).expect("valid"),
            want
        );
        let inline = rewritten("train = { batch = 4 }\n", "x", &config, &knobs).expect("valid");
        assert_eq!(parse(&inline, "x").expect("still valid").train.batch, 8);
        let broken = rewritten("[model\n", "config.toml", &config, &knobs);
        assert!(
            broken
                .expect_err("refused")
                .to_string()
                .starts_with("config.toml:1:")
        );
    }

    #[test]
    fn the_preset_may_be_the_last_key() {
        let config = parse("train.batch = 2\npreset = \"small\"\n", "x").expect("valid");
        assert_eq!(
            (config.preset, config.train.batch, config.model.hidden),
            (Preset::Small, 2, 512)
        );
    }
}
