//! The course inside the program: the files of `exercises/` and `lessons/` as they were when it was built. In a checkout, a
//! program or a test that cargo started reads those files themselves.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use include_dir::Dir;

use crate::course::config_file::{MAX_BYTES, read_text};

/// The largest number of entries of one folder that are read.
const MAX_ENTRIES: usize = 500;

/// The folders `exercises/` and `lessons/`.
pub type EmbeddedFolders = [&'static Dir<'static>; 2];

static TREES: OnceLock<EmbeddedFolders> = OnceLock::new();

/// Sets the folders inside the program. Only the first call has an effect.
pub fn set(trees: EmbeddedFolders) {
    let _ = TREES.set(trees);
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FolderEntry {
    pub name: String,
    pub is_folder: bool,
}

/// Returns the checkout that cargo started this process from. A process other than the program, such as a test, always runs in one.
fn checkout() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let is_ours = std::env::var_os("CARGO_PKG_NAME").is_some_and(|name| name == "perflings");
        if is_ours && let Some(folder) = std::env::var_os("CARGO_MANIFEST_DIR") {
            return Some(PathBuf::from(folder));
        }
        TREES.get().is_none().then(|| ".".into())
    };
    FOUND.get_or_init(find).as_deref()
}

/// Returns the folder inside the program that a path begins with, and the rest of the path. `None` for a path outside the course.
fn tree_and_rest(path: &str) -> Option<(&'static Dir<'static>, &str)> {
    let (head, rest) = path.split_once('/').unwrap_or((path, ""));
    let [exercises, lessons] = *TREES.get()?;
    match head {
        "exercises" => Some((exercises, rest)),
        "lessons" => Some((lessons, rest)),
        _ => None,
    }
}

/// Returns the text of a file of the course inside the program; `None` if there is no such file.
pub fn text(path: &str) -> Option<String> {
    if let Some(root) = checkout() {
        return read_text(&root.join(path), MAX_BYTES).ok();
    }
    let (tree, rest) = tree_and_rest(path)?;
    tree.get_file(rest)?.contents_utf8().map(str::to_owned)
}

/// Returns the entries of a folder of the course inside the program; empty if there is no such folder.
pub fn entries(under: &str) -> Vec<FolderEntry> {
    if let Some(root) = checkout() {
        return on_disk(&root.join(under));
    }
    let folder = match tree_and_rest(under) {
        Some((tree, "")) => Some(tree),
        Some((tree, rest)) => tree.get_dir(rest),
        None => None,
    };
    folder
        .map_or(&[][..], Dir::entries)
        .iter()
        .map(|entry| FolderEntry {
            name: name(entry.path().file_name().unwrap_or_default()),
            is_folder: entry.as_dir().is_some(),
        })
        .collect()
}

/// Returns the entries of a folder on the disk, at most 500; empty if it cannot be read.
pub fn on_disk(folder: &Path) -> Vec<FolderEntry> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_ENTRIES)
        .map(|entry| FolderEntry {
            name: name(&entry.file_name()),
            is_folder: entry.path().is_dir(),
        })
        .collect()
}

fn name(file_name: &OsStr) -> String {
    file_name.to_string_lossy().into_owned()
}
