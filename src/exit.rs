//! The exit codes of the program, and errors that know theirs.

use std::fmt;

use crate::protocol::{Failed, FailedKind};

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, or passed.
    Ok = 0,
    /// A check failed, a run broke off, or the engine broke.
    Failed = 1,
    /// Wrong usage, or a fault in a configuration, a course or a recording.
    Usage = 2,
    /// The device that was asked for is not available.
    NoDevice = 3,
    /// Ctrl-c, or a request to terminate.
    Interrupted = 130,
}

/// An error that knows its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitError {
    pub exit: Exit,
    pub text: String,
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ExitError {}

impl From<&Failed> for ExitError {
    fn from(failed: &Failed) -> Self {
        let exit = match failed.kind {
            FailedKind::Usage | FailedKind::Refused => Exit::Usage,
            FailedKind::Device => Exit::NoDevice,
            FailedKind::Internal => Exit::Failed,
        };
        Self {
            exit,
            text: failed.reason.clone(),
        }
    }
}

/// What the system lacks, and what to do, where its own words in `text` say so.
pub fn lack(text: &str) -> Option<&'static str> {
    const MEMORY: &str = "memory is used up, or limited with `ulimit -v`";
    const THREADS: &str = "no more threads may be started: see `ulimit -u`, and `ulimit -v` for the memory of their stacks";
    const LACKS: [(&str, &str); 9] = [
        (
            "Too many open files",
            "too few files may be open: raise the limit with `ulimit -n 1024`",
        ),
        ("memory allocation of", MEMORY),
        ("Cannot allocate memory", MEMORY),
        ("failed to spawn thread", THREADS),
        ("ThreadPoolBuildError", THREADS),
        ("Failed to start a thread", THREADS),
        ("Resource temporarily unavailable", THREADS),
        ("No space left on device", "the disk is full"),
        (
            "File too large (os error",
            "files may not grow any more: see `ulimit -f`",
        ),
    ];
    let known = LACKS.iter().find(|(words, _)| text.contains(words));
    known.map(|(_, meaning)| *meaning)
}

/// An error in what was typed: arguments, a configuration or a course.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    ExitError {
        exit: Exit::Usage,
        text: text.into(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_lacks_is_said_in_plain_words() {
        let full = lack("Failed to write run.jsonl: No space left on device (os error 28)");
        assert_eq!(full, Some("the disk is full"));
        assert_eq!(lack("no such stage"), None);
    }
}
