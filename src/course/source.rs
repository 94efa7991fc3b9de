//! Where a course is read from: the binary itself, or a folder; no path and no link may lead out of that folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::embedded::{self, Entry};
use super::text;
use crate::config::file::{FileError, MAX_BYTES, read_text};

/// Most entries of one folder that are looked at.
const MAX_ENTRIES: usize = 500;

/// The files of one course. Paths inside use `/` and are relative to the course.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The course inside this binary.
    #[default]
    Embedded,
    /// A folder with `exercises/` and `lessons/` in it: as it was named, and where it really is.
    Folder { shown: PathBuf, root: PathBuf },
}

impl Source {
    /// A course folder; an error when it holds no course.
    pub fn folder(path: &Path) -> Result<Self, FileError> {
        let fail = |what: String| FileError {
            path: text::one_line(&path.display().to_string()),
            line: 0,
            what,
        };
        let root = path.canonicalize().map_err(|error| {
            fail(format!(
                "cannot be read: {error}; name a folder with exercises/ and lessons/ in it"
            ))
        })?;
        if !root.join("exercises").is_dir() {
            return Err(fail(
                "has no folder exercises/; name the folder that holds exercises/ and lessons/"
                    .to_owned(),
            ));
        }
        Ok(Self::Folder {
            shown: path.to_owned(),
            root,
        })
    }

    /// How messages name a file of the course.
    pub fn shown(&self, path: &str) -> String {
        match self {
            Self::Embedded => text::one_line(path),
            Self::Folder { shown, .. } => text::one_line(&shown.join(path).display().to_string()),
        }
    }

    /// Names of the entries of a folder of the course, sorted, without hidden entries; empty if there is no such folder.
    pub fn entries(&self, under: &str) -> Vec<Entry> {
        let mut found: Vec<Entry> = match self {
            Self::Embedded => embedded::entries(under),
            Self::Folder { root, .. } => fs::read_dir(root.join(under))
                .into_iter()
                .flatten()
                .flatten()
                .take(MAX_ENTRIES)
                .map(|entry| Entry {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    folder: entry.path().is_dir(),
                })
                .collect(),
        };
        found.retain(|entry| !entry.name.starts_with('.'));
        found.sort();
        found
    }

    /// Whether there is such a file, or something in its place.
    pub fn exists(&self, path: &str) -> bool {
        inside(path)
            && match self {
                Self::Embedded => embedded::text(path).is_some(),
                Self::Folder { root, .. } => root.join(path).symlink_metadata().is_ok(),
            }
    }

    /// The text of a file; what is wrong with it goes to `problems`.
    pub fn text(&self, path: &str, problems: &mut Vec<FileError>) -> Option<String> {
        self.read(path).map_err(|error| problems.push(error)).ok()
    }

    /// The same without control characters, which are reported too.
    pub fn clean(&self, path: &str, problems: &mut Vec<FileError>) -> Option<String> {
        let raw = self.text(path, problems)?;
        Some(text::cleaned(&raw, &self.shown(path), problems))
    }

    /// The text of a file of the course.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        let fail = |what: String| FileError {
            path: self.shown(path),
            line: 0,
            what,
        };
        if !inside(path) {
            return Err(fail(
                "leads out of the course folder; name a file inside it".to_owned(),
            ));
        }
        match self {
            Self::Embedded => embedded::text(path).ok_or_else(|| fail("is missing".to_owned())),
            Self::Folder { root, .. } => {
                let real = match root.join(path).canonicalize() {
                    Ok(real) => real,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        return Err(fail("is missing".to_owned()));
                    }
                    Err(error) => return Err(fail(format!("cannot be read: {error}"))),
                };
                if !real.starts_with(root) {
                    return Err(fail(
                        "is a link that leads out of the course folder; copy the file into it"
                            .to_owned(),
                    ));
                }
                if !real.is_file() && !real.is_dir() {
                    return Err(fail("is not a plain file".to_owned()));
                }
                read_text(&real, MAX_BYTES).map_err(|error| FileError {
                    path: self.shown(path),
                    ..error
                })
            }
        }
    }
}

/// Whether a path is relative and has no `..`.
fn inside(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)))
}
