//! Reads the files of a course, such as `exercises/02-strides/stage.toml`, from the binary itself or from a folder. No path and no link may
//! lead out of that folder.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::embedded::{self, FolderEntry};
use super::text;
use crate::course::config_file::{FileError, MAX_BYTES, parse, read_text};
use crate::files;
use crate::sanitize;
use protocol::config::RunConfig;

/// The files of one course. Paths inside use `/` and are relative to the course.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CourseFiles {
    /// The course inside this binary.
    #[default]
    Embedded,
    /// A folder with `exercises/` and `lessons/` in it: the path that was given, and its real place without links.
    Folder { shown: PathBuf, root: PathBuf },
}

impl CourseFiles {
    /// Opens a course folder.
    ///
    /// # Errors
    /// If the folder cannot be read, or has no `exercises/`.
    pub fn folder(path: &Path) -> Result<Self, FileError> {
        let shown = sanitize::one_line(&path.display().to_string());
        let root = path.canonicalize().map_err(|error| {
            let message = format!(
                "cannot be read: {error}; name a folder with exercises/ and lessons/ in it"
            );
            FileError::new(&shown, 0, message)
        })?;
        if !root.join("exercises").is_dir() {
            let message =
                "has no folder exercises/; name the folder that holds exercises/ and lessons/";
            return Err(FileError::new(shown, 0, message));
        }
        Ok(Self::Folder {
            shown: path.to_owned(),
            root,
        })
    }

    /// Returns the name of a file of the course in messages.
    pub fn shown(&self, path: &str) -> String {
        match self {
            Self::Embedded => sanitize::one_line(path),
            Self::Folder { shown, .. } => {
                sanitize::one_line(&shown.join(path).display().to_string())
            }
        }
    }

    /// Returns the entries of a folder of the course, sorted, without hidden entries; empty if there is no such folder.
    pub fn entries(&self, under: &str) -> Vec<FolderEntry> {
        let mut found: Vec<FolderEntry> = match self {
            Self::Embedded => embedded::entries(under),
            Self::Folder { root, .. } => match within(root, Path::new(under)) {
                Ok(folder) => embedded::on_disk(&folder),
                Err(_) => Vec::new(),
            },
        };
        found.retain(|entry| !entry.name.starts_with('.'));
        found.sort();
        found
    }

    /// Returns the path and the text of every file of the course.
    pub fn files(&self) -> Result<Vec<(String, String)>, FileError> {
        let mut found = Vec::new();
        let mut folders = vec!["exercises".to_owned(), "lessons".to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in self.entries(&folder) {
                let path = format!("{folder}/{}", entry.name);
                if entry.is_folder {
                    folders.push(path);
                } else {
                    let text = self.read(&path)?;
                    found.push((path, text));
                }
            }
        }
        Ok(found)
    }

    /// Returns true if a file of the course, or something else, has this path.
    pub fn exists(&self, path: &str) -> bool {
        inside(path)
            && match self {
                Self::Embedded => embedded::text(path).is_some(),
                Self::Folder { root, .. } => files::is_taken(&root.join(path)),
            }
    }

    /// Reads a file of the course.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        let fail = |message: &str| Err(FileError::new(self.shown(path), 0, message));
        if !inside(path) {
            return fail("leads out of the course folder; name a file inside it");
        }
        let Self::Folder { root, .. } = self else {
            return embedded::text(path).map_or_else(|| fail("is missing"), Ok);
        };
        match within(root, Path::new(path)) {
            Err(message) => fail(&message),
            Ok(real) => read_text(&real, MAX_BYTES).map_err(|error| FileError {
                path: self.shown(path),
                ..error
            }),
        }
    }
}

/// Returns the real place of the file or folder at `path` below `root`.
///
/// # Errors
/// If it is missing, or if a link leads out of `root`.
pub fn within(root: &Path, path: &Path) -> Result<PathBuf, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    let real = root.join(path).canonicalize().map_err(cannot)?;
    if !real.starts_with(root.canonicalize().map_err(cannot)?) {
        return Err(
            "is a link that leads out of the course folder; copy the file into it".to_owned(),
        );
    }
    Ok(real)
}

/// Reads the files of a course and collects their faults.
pub struct Loader<'a> {
    pub source: &'a CourseFiles,
    /// Texts that are read in place of files, by the paths of these files.
    pub replacements: BTreeMap<String, String>,
    pub problems: RefCell<Vec<FileError>>,
}

impl<'a> Loader<'a> {
    pub fn new(source: &'a CourseFiles) -> Self {
        Self {
            source,
            replacements: BTreeMap::new(),
            problems: RefCell::default(),
        }
    }

    /// Reports a problem of the file at `path` of the course. `line` is 0 if no line is at fault.
    pub fn report_at(&self, path: &str, line: usize, message: impl Into<String>) {
        self.report(FileError::new(self.source.shown(path), line, message));
    }

    pub fn report(&self, problem: FileError) {
        self.problems.borrow_mut().push(problem);
    }

    /// Returns what was read; an error is reported, and becomes `None`.
    pub fn ok_or_report<T>(&self, read: Result<T, FileError>) -> Option<T> {
        read.map_err(|error| self.report(error)).ok()
    }

    /// Returns the text of a file of the course, or its replacement.
    pub fn text(&self, path: &str) -> Result<String, FileError> {
        match self.replacements.get(path) {
            Some(text) => Ok(text.clone()),
            None => self.source.read(path),
        }
    }

    /// Reads a file of the course without its control characters, which are reported.
    pub fn clean(&self, path: &str) -> Result<String, FileError> {
        let raw = self.text(path)?;
        let shown = self.source.shown(path);
        Ok(text::cleaned(&raw, &shown, &mut self.problems.borrow_mut()))
    }

    /// Reads a configuration from the text of the file at `path`.
    pub fn config(&self, path: &str, text: &str) -> Result<RunConfig, FileError> {
        parse(text, &self.source.shown(path)).map_err(|error| FileError {
            message: sanitize::one_line(&error.message),
            ..error
        })
    }
}

/// Returns true for a path that stays inside the course: a relative one without `..`.
fn inside(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)))
}
