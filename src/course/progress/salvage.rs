//! What can still be read of a damaged progress file: whole tables, else single lines. What is lost is named.

use std::collections::HashSet;

use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::document::{Lost, take_out_unreadable};
use crate::config::file::not_toml;
use crate::course::text;

/// What could be read, and the line and the words of what could not.
#[derive(Default)]
pub struct Kept {
    pub document: DocumentMut,
    pub damage: Option<(usize, String)>,
}

impl Kept {
    pub fn nothing(what: &str) -> Self {
        let damage = Some((0, what.to_owned()));
        Self {
            damage,
            ..Self::default()
        }
    }
}

/// Names in one message.
const NAMED: usize = 5;

/// Reads what can be read of the file's bytes.
pub fn kept_of(bytes: &[u8]) -> Kept {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let parsed = text.parse::<DocumentMut>();
    let parsed = parsed.map_err(|error| not_toml(text, error.message(), error.span()));
    let mut lost = Vec::new();
    let (mut document, error) = match parsed {
        Ok(document) if !text.contains(char::REPLACEMENT_CHARACTER) => (document, None),
        parsed => (pieces(text, &mut lost), parsed.err()),
    };
    let stages = stages(&document);
    lost.extend(take_out_unreadable(&mut document));
    if lost.is_empty() && error.is_none() {
        return Kept {
            document,
            damage: None,
        };
    }
    let damaged: HashSet<&String> = lost.iter().filter_map(|it| it.stage.as_ref()).collect();
    let whole = stages.iter().filter(|id| !damaged.contains(id));
    let (line, what) = error.unwrap_or((0, "is damaged".to_owned()));
    let mut what = text::one_line(&what);
    if !document.is_empty() {
        what += &format!(
            "; {} of {} stages are kept whole",
            whole.count(),
            stages.len()
        );
    }
    let more = lost.len().saturating_sub(NAMED);
    let names: Vec<String> = lost.iter().take(NAMED).map(Lost::name).collect();
    if !names.is_empty() {
        what += &format!("; lost: {}", names.join(", "));
    }
    if more > 0 {
        what += &format!(" and {more} more");
    }
    let damage = Some((line, what));
    Kept { document, damage }
}

fn stages(document: &DocumentMut) -> Vec<String> {
    let stages = document.get("stage").and_then(Item::as_table_like);
    let stages = stages.into_iter().flat_map(|stages| stages.iter());
    stages.map(|(id, _)| id.to_owned()).collect()
}

/// The document from its tables, each read by itself, and from the lines of a table that does not read.
fn pieces(text: &str, lost: &mut Vec<Lost>) -> DocumentMut {
    let mut document = DocumentMut::new();
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    while let Some((first, line)) = lines.next() {
        let head = if line.starts_with('[') { line } else { "" };
        let mut piece = vec![(first, line)];
        while let Some(next) = lines.next_if(|(_, next)| !next.starts_with('[')) {
            piece.push(next);
        }
        let all: String = piece.iter().map(|(_, line)| *line).collect();
        let of = stage_of(head);
        if add(&mut document, &all, &of, lost) {
            continue;
        }
        // Each line is read by itself, and their head once: either may be long.
        let mut keys = DocumentMut::new();
        let mut unread = Vec::new();
        for (at, line) in piece.into_iter().skip(usize::from(!head.is_empty())) {
            if !add(&mut keys, line, &of, &mut unread) {
                let key = line.split('=').next().unwrap_or("").trim();
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
                let named = line.contains('=') && !key.is_empty() && key.chars().all(plain);
                let what = match named {
                    true => key.to_owned(),
                    false => format!("line {}", at + 1),
                };
                let stage = of.clone();
                unread.push(Lost { stage, what });
            }
        }
        if let Some(table) = table(head, keys.into_table()) {
            lost.extend(unread);
            merge(document.as_table_mut(), &table, &of, lost);
        } else {
            let what = format!("line {} and the keys below it", first + 1);
            lost.push(Lost { stage: None, what });
        }
    }
    document
}

/// The document that has these keys under a head such as `[stage.strides]`, if that can be read.
fn table(head: &str, keys: Table) -> Option<Table> {
    if head.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let mut root = head.parse::<DocumentMut>().ok()?.into_table();
    let mut at: &mut dyn TableLike = &mut root;
    loop {
        let step = at.iter().next().map(|(step, _)| step.to_owned());
        let Some(step) = step else { break };
        at = at.get_mut(&step)?.as_table_like_mut()?;
    }
    for (key, item) in keys {
        at.insert(&key, item);
    }
    Some(root)
}

/// `strides` of `[stage.strides]`.
fn stage_of(head: &str) -> Option<String> {
    let of = head.trim().strip_prefix("[stage.")?;
    Some(of.strip_suffix(']')?.trim_matches('"').to_owned())
}

/// Adds what a piece of the file says; false where it does not read.
fn add(document: &mut DocumentMut, piece: &str, of: &Option<String>, lost: &mut Vec<Lost>) -> bool {
    if piece.contains(char::REPLACEMENT_CHARACTER) {
        return false;
    }
    let Ok(piece) = piece.parse::<DocumentMut>() else {
        return false;
    };
    merge(document.as_table_mut(), piece.as_table(), of, lost);
    true
}

/// What is there already stays.
fn merge(
    into: &mut dyn TableLike,
    from: &dyn TableLike,
    of: &Option<String>,
    lost: &mut Vec<Lost>,
) {
    for (key, item) in from.iter() {
        let Some(there) = into.get_mut(key) else {
            into.insert(key, item.clone());
            continue;
        };
        match (there.as_table_like_mut(), item.as_table_like()) {
            (Some(there), Some(item)) => merge(there, item, of, lost),
            _ => lost.push(Lost {
                stage: of.clone(),
                what: format!("{key}, which is there twice"),
            }),
        }
    }
}
