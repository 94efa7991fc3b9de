//! Which program is the engine: this one's own child, or any command that speaks the protocol.
//! The command line is split here, never given to a shell.

use std::ffi::OsString;
use std::fmt;
use std::process::{Child, Command as Process};
use std::sync::OnceLock;

use anyhow::{Context, Result};

/// Threads that an engine may compute on, where somebody decided that.
static THREADS: OnceLock<u32> = OnceLock::new();

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCommand {
    program: OsString,
    args: Vec<OsString>,
    /// True if the engine is this program on this machine.
    own: bool,
}

impl EngineCommand {
    /// This same binary, as `engine`.
    pub fn own() -> Result<Self> {
        let program = std::env::current_exe().context("Failed to find this program's own file")?;
        Ok(Self {
            own: true,
            ..Self::new(program, ["engine"])
        })
    }

    /// A command line such as `ssh host perflings engine`.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut words = split_words(line)?.into_iter();
        let program = words
            .next()
            .ok_or("the engine command is empty; write for example `ssh host perflings engine`")?;
        Ok(Self::new(program, words))
    }

    /// A program with these arguments.
    pub fn new(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            own: false,
        }
    }

    /// Returns the command for an engine that also sends the texts of the kernels that it compiles.
    #[must_use]
    pub fn with_kernel_texts(mut self) -> Self {
        self.args.push("--kernel-texts".into());
        self
    }

    /// Engines that this process starts from now on compute on this number of threads.
    pub fn limit_threads(threads: u32) {
        // The command line is read once.
        let _ = THREADS.set(threads);
    }

    pub(super) fn threads() -> Option<u32> {
        THREADS.get().copied()
    }

    /// Returns true if the engine is this program on this machine, so that this machine's memory counts.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// The process to start. It gets a process group of its own: ctrl-c in a terminal must reach the reader, which
    /// stops the run and keeps its summary, and killing the group also ends what a wrapper started.
    pub(super) fn prepare(&self) -> Process {
        let mut process = Process::new(&self.program);
        process.args(&self.args);
        if !self.own && std::env::var_os("SSH_ASKPASS").is_none() {
            // ssh would ask for a password on the terminal that shows the screen and wait for ever: it has to fail instead.
            process.env("SSH_ASKPASS", "false");
            process.env("SSH_ASKPASS_REQUIRE", "force");
        }
        if let Some(threads) = Self::threads() {
            // The pool that computes, and lavapipe's. An engine on another machine hears of the pool's in its greeting.
            for name in ["RAYON_NUM_THREADS", "LP_NUM_THREADS"] {
                process.env(name, threads.to_string());
            }
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        // CREATE_NEW_PROCESS_GROUP, which ctrl-c does not reach.
        #[cfg(windows)]
        std::os::windows::process::CommandExt::creation_flags(&mut process, 0x200);
        process
    }
}

impl fmt::Display for EngineCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.own {
            return f.write_str("perflings engine");
        }
        write!(f, "{}", self.program.to_string_lossy())?;
        self.args
            .iter()
            .try_for_each(|arg| write!(f, " {}", arg.to_string_lossy()))
    }
}

/// Kills the child and everything in its process group.
pub(super) fn kill_group(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(raw) = i32::try_from(child.id())
        && let Some(pid) = rustix::process::Pid::from_raw(raw)
    {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
}

/// Splits a command line into words as a POSIX shell does; variables, globs and pipes mean nothing here.
///
/// # Errors
/// If a quotation is not closed, or a backslash ends the line.
pub fn split_words(line: &str) -> Result<Vec<String>, String> {
    shlex::split(line).ok_or_else(|| {
        format!("`{line}` has a quotation mark that is not closed, or ends with a backslash")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_would() {
        let split = |line| split_words(line).expect("splits");
        assert_eq!(
            split("ssh -p 22 host  perflings engine"),
            ["ssh", "-p", "22", "host", "perflings", "engine"]
        );
        assert_eq!(
            split(r#"sh -c 'exec "$0" engine' ./a\ b """#),
            ["sh", "-c", r#"exec "$0" engine"#, "./a b", ""]
        );
        for open in ["sh 'x", "sh \"x", "sh x\\"] {
            let why = split_words(open).expect_err("open");
            assert!(why.contains("not closed"), "{why}");
        }
        assert!(
            EngineCommand::parse("  ")
                .expect_err("empty")
                .contains("is empty")
        );
    }
}
