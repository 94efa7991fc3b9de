//! Runs the program from the command line with an empty home folder.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;
use std::process::{Command as Process, Stdio};

/// The result of a run of the program.
pub(crate) struct Output {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// The text on stdout.
    pub out: String,
    /// The text on stderr.
    pub err: String,
}

impl Output {
    /// Asserts the exit code, and that stderr contains each of these texts.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, texts: &[&str]) {
        self.assert_code(code);
        assert_contains(&self.err, texts);
    }

    /// Asserts success, and that stdout contains each of these texts.
    #[track_caller]
    pub(crate) fn succeeds(&self, texts: &[&str]) {
        self.assert_code(0);
        assert_contains(&self.out, texts);
    }

    #[track_caller]
    fn assert_code(&self, code: i32) {
        let Self { out, err, .. } = self;
        assert_eq!(self.code, Some(code), "stdout: {out}\nstderr: {err}");
    }
}

#[track_caller]
fn assert_contains(whole: &str, texts: &[&str]) {
    for text in texts {
        assert!(whole.contains(text), "`{text}` is missing in: {whole}");
    }
}

/// A learner with an empty home folder, in which the program runs.
pub(crate) struct Learner {
    pub home: tempfile::TempDir,
}

impl Learner {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a file into the home folder and returns its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).expect("written");
        self.path(name).display().to_string()
    }

    /// Returns the program with these arguments, not started yet.
    pub(crate) fn process(&self, args: &[&str]) -> Process {
        let mut process = Process::new(env!("CARGO_BIN_EXE_perflings"));
        process
            .args(args)
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        for key in [
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "HOME",
        ] {
            process.env(key, self.home.path());
        }
        process
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let output = self.process(args).output().expect("starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Output {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}
