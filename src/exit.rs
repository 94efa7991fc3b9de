//! The exit codes of the program, and errors that carry one.

use std::fmt;

use protocol::{Failed, FailedKind};

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

impl Exit {
    /// Returns the exit code of a check.
    pub const fn passed_if(passed: bool) -> Self {
        if passed { Self::Ok } else { Self::Failed }
    }
}

/// An error with its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitError {
    pub exit: Exit,
    pub text: String,
}

impl ExitError {
    pub fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self {
            exit,
            text: text.into(),
        }
    }
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
        Self::new(exit, failed.reason.clone())
    }
}

/// Returns an error in the user's input: arguments, a configuration or a course.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    ExitError::new(Exit::Usage, text).into()
}
