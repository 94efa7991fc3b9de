//! The exit codes of the program, and errors that carry one.

use std::fmt;

use protocol::{Failed, FailedKind};

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command has done its work, or a check has passed.
    Ok = 0,
    /// A check has failed, a run has broken off, or the engine has ended unexpectedly.
    Failed = 1,
    /// The arguments are wrong, or a configuration, a course or a recording has a fault.
    Usage = 2,
    /// The device that was asked for is not available.
    NoDevice = 3,
    /// The user has pressed ctrl-c, or the system has asked the program to end.
    Interrupted = 130,
}

impl Exit {
    /// Returns the exit code of a check: `Ok` if it has passed.
    pub const fn passed_if(passed: bool) -> Self {
        if passed { Self::Ok } else { Self::Failed }
    }
}

/// An error that decides the exit code of the program.
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

/// Returns an error about the user's input, which ends the program with `Exit::Usage`: arguments, a configuration or a course.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    ExitError::new(Exit::Usage, text).into()
}
