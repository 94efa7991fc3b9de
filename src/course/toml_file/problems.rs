//! What is wrong with a TOML file: each problem with its line, and each key reported once.

use std::cell::{Cell, RefCell};

use crate::config::file::FileError;
use crate::course::text;

/// The problems of a file that were found so far.
#[derive(Default)]
pub struct Problems {
    /// The file's name, for messages.
    pub shown: String,
    list: RefCell<Vec<FileError>>,
    /// Whether any problem is more than a removed control character.
    failed: Cell<bool>,
    /// Paths of keys that were reported already, or that a misspelt key probably stands for: one message is enough.
    settled: RefCell<Vec<String>>,
}

impl Problems {
    pub fn of(shown: String) -> Self {
        Self {
            shown,
            ..Self::default()
        }
    }

    /// All of them, by line.
    pub fn into_list(self) -> Vec<FileError> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|problem| problem.line);
        list
    }

    /// Whether a problem was reported that makes the file unusable.
    pub fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Whether the key at `path` or a table around it was reported.
    pub fn is_settled(&self, path: &str) -> bool {
        let within = |settled: &String| {
            let rest = path.strip_prefix(settled.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.settled.borrow().iter().any(within)
    }

    /// Nothing is reported of the key at `path` any more.
    pub fn settle(&self, path: String) {
        self.settled.borrow_mut().push(path);
    }

    pub fn add(&self, line: usize, what: String) {
        self.failed.set(true);
        let problem = FileError::new(&self.shown, line, what);
        self.list.borrow_mut().push(problem);
    }

    /// Adds a problem of the key at `path`, and settles that key.
    pub fn report(&self, line: usize, path: &str, what: String) {
        self.add(line, what);
        self.settle(path.to_owned());
    }

    /// Tells that control characters were taken out of a text, which leaves the file usable.
    pub fn removed_escapes(&self, line: usize) {
        let problem = text::escape_removed(&self.shown, line);
        self.list.borrow_mut().push(problem);
    }
}
