//! Where a course is read from: the binary itself, or a folder; no path and no link may lead out of that folder.

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
    /// A folder with `exercises/` and `lessons/` in it: as it was named, and where it really is.
    Folder { shown: PathBuf, root: PathBuf },
}

impl CourseFiles {
    /// A course folder; an error when it holds no course.
    pub fn folder(path: &Path) -> Result<Self, FileError> {
        let shown = sanitize::one_line(&path.display().to_string());
        let root = path.canonicalize().map_err(|error| {
            let what = "name a folder with exercises/ and lessons/ in it";
            FileError::new(&shown, 0, format!("cannot be read: {error}; {what}"))
        })?;
        if !root.join("exercises").is_dir() {
            let what =
                "has no folder exercises/; name the folder that holds exercises/ and lessons/";
            return Err(FileError::new(shown, 0, what));
        }
        Ok(Self::Folder {
            shown: path.to_owned(),
            root,
        })
    }

    /// How messages name a file of the course.
    pub fn shown(&self, path: &str) -> String {
        match self {
            Self::Embedded => sanitize::one_line(path),
            Self::Folder { shown, .. } => {
                sanitize::one_line(&shown.join(path).display().to_string())
            }
        }
    }

    /// Names of the entries of a folder of the course, sorted, without hidden entries; empty if there is no such folder.
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

    /// Every file of the course, with its path.
    pub fn files(&self) -> Result<Vec<(String, String)>, FileError> {
        let mut found = Vec::new();
        let mut open = vec!["exercises".to_owned(), "lessons".to_owned()];
        while let Some(folder) = open.pop() {
            for entry in self.entries(&folder) {
                let path = format!("{folder}/{}", entry.name);
                match entry.folder {
                    true => open.push(path),
                    false => found.push((path.clone(), self.read(&path)?)),
                }
            }
        }
        Ok(found)
    }

    /// Whether there is such a file, or something in its place.
    pub fn exists(&self, path: &str) -> bool {
        inside(path)
            && match self {
                Self::Embedded => embedded::text(path).is_some(),
                Self::Folder { root, .. } => files::is_taken(&root.join(path)),
            }
    }

    /// The text of a file of the course.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        let fail = |what: &str| Err(FileError::new(self.shown(path), 0, what));
        if !inside(path) {
            return fail("leads out of the course folder; name a file inside it");
        }
        let Self::Folder { root, .. } = self else {
            return embedded::text(path).map_or_else(|| fail("is missing"), Ok);
        };
        match within(root, Path::new(path)) {
            Err(what) => fail(&what),
            Ok(real) => read_text(&real, MAX_BYTES).map_err(|error| FileError {
                path: self.shown(path),
                ..error
            }),
        }
    }
}

/// Where the file or folder at `path` below `root` really is; why not, if it is missing or a link leads out of `root`.
pub fn within(root: &Path, path: &Path) -> Result<PathBuf, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    let real = root.join(path).canonicalize().map_err(cannot)?;
    match real.starts_with(root.canonicalize().map_err(cannot)?) {
        true => Ok(real),
        false => {
            Err("is a link that leads out of the course folder; copy the file into it".to_owned())
        }
    }
}

/// Reads the files of a course and collects what is wrong with them.
pub struct Loader<'a> {
    pub source: &'a CourseFiles,
    /// Texts that are read in place of some files.
    pub instead: BTreeMap<String, String>,
    pub problems: RefCell<Vec<FileError>>,
}

impl<'a> Loader<'a> {
    pub fn new(source: &'a CourseFiles) -> Self {
        Self {
            source,
            instead: BTreeMap::new(),
            problems: RefCell::default(),
        }
    }

    /// Reports a problem of the file at `path` of the course; 0 where no line is at fault.
    pub fn fail(&self, path: &str, line: usize, what: impl Into<String>) {
        self.report(FileError::new(self.source.shown(path), line, what));
    }

    pub fn report(&self, problem: FileError) {
        self.problems.borrow_mut().push(problem);
    }

    /// What was read; nothing where that failed, which is reported.
    pub fn usable<T>(&self, read: Result<T, FileError>) -> Option<T> {
        read.map_err(|error| self.report(error)).ok()
    }

    /// The text of a file of the course.
    pub fn text(&self, path: &str) -> Result<String, FileError> {
        match self.instead.get(path) {
            Some(text) => Ok(text.clone()),
            None => self.source.read(path),
        }
    }

    /// The same without control characters, which are reported.
    pub fn clean(&self, path: &str) -> Result<String, FileError> {
        let raw = self.text(path)?;
        let shown = self.source.shown(path);
        Ok(text::cleaned(&raw, &shown, &mut self.problems.borrow_mut()))
    }

    /// A configuration whose text was read from the file at `path`.
    pub fn config(&self, path: &str, text: &str) -> Result<RunConfig, FileError> {
        parse(text, &self.source.shown(path)).map_err(|error| FileError {
            what: sanitize::one_line(&error.what),
            ..error
        })
    }
}

/// Whether a path is relative and has no `..`.
fn inside(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)))
}
