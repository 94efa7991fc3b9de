//! The course inside the binary: the files of `exercises/` and `lessons/` as they were when it was built.

use include_dir::{Dir, DirEntry, include_dir};

static EXERCISES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/exercises");
static LESSONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/lessons");

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub name: String,
    pub folder: bool,
}

/// The tree a path belongs to, and the rest of the path.
fn split(path: &str) -> Option<(&'static Dir<'static>, &str)> {
    let (head, rest) = path.split_once('/').unwrap_or((path, ""));
    match head {
        "exercises" => Some((&EXERCISES, rest)),
        "lessons" => Some((&LESSONS, rest)),
        _ => None,
    }
}

/// The text of an embedded file.
pub fn text(path: &str) -> Option<String> {
    let (tree, rest) = split(path)?;
    tree.get_file(rest)?.contents_utf8().map(str::to_owned)
}

/// What an embedded folder holds.
pub fn entries(under: &str) -> Vec<Entry> {
    let Some((tree, rest)) = split(under) else {
        return Vec::new();
    };
    let folder = match rest {
        "" => Some(tree),
        rest => tree.get_dir(rest),
    };
    let entries = folder.map_or(&[][..], Dir::entries).iter();
    let entry = |entry: &DirEntry<'_>| Entry {
        name: entry
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        folder: entry.as_dir().is_some(),
    };
    entries.map(entry).collect()
}

/// Every embedded file with its path, to be written out by `perflings init`.
pub fn files() -> Vec<(String, &'static [u8])> {
    let mut found = Vec::new();
    for (head, tree) in [("exercises", &EXERCISES), ("lessons", &LESSONS)] {
        let mut open = vec![tree];
        while let Some(dir) = open.pop() {
            for file in dir.files() {
                found.push((format!("{head}/{}", file.path().display()), file.contents()));
            }
            open.extend(dir.dirs());
        }
    }
    found.sort();
    found
}
