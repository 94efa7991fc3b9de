//! The command that starts an engine: this program itself, or any command that speaks the protocol. Its line is split into words here, and
//! no shell reads it.

use std::ffi::OsString;
use std::fmt;
use std::process::{Child, Command as Process};
use std::sync::OnceLock;

use anyhow::{Context, Result};

/// The number of threads that engines may compute on, if the command line of this program limits it.
static THREADS: OnceLock<u32> = OnceLock::new();

/// The program that is the engine, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCommand {
    program: OsString,
    args: Vec<OsString>,
    /// True if the engine is this program on this machine.
    own: bool,
}

impl EngineCommand {
    /// Returns the command `perflings engine` with this program's own file.
    pub fn own() -> Result<Self> {
        let program = std::env::current_exe().context("Failed to find this program's own file")?;
        Ok(Self {
            own: true,
            ..Self::new(program, ["engine"])
        })
    }

    /// Reads a command line such as `ssh host perflings engine`.
    ///
    /// # Errors
    /// Fails if the line cannot be split into words, or is empty.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut words = split_words(line)?.into_iter();
        let program = words
            .next()
            .ok_or("the engine command is empty; write for example `ssh host perflings engine`")?;
        Ok(Self::new(program, words))
    }

    /// Returns the command of a program with these arguments.
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

    /// Makes all engines that this process starts from now on compute on this number of threads. Only the first call counts.
    pub fn limit_threads(threads: u32) {
        let _ = THREADS.set(threads);
    }

    /// Returns the number of threads that engines may compute on; `None` if the engine's machine decides.
    pub(super) fn threads() -> Option<u32> {
        THREADS.get().copied()
    }

    /// Returns true if the engine is this program on this machine, so that this machine's memory counts.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Returns the process to start. It has a process group of its own, for two reasons: ctrl-c in a terminal must reach only the reader,
    /// which stops the run and keeps its summary, and killing the group also ends processes that a wrapper started.
    pub(super) fn prepare(&self) -> Process {
        let mut process = Process::new(&self.program);
        process.args(&self.args);
        if !self.own && std::env::var_os("SSH_ASKPASS").is_none() {
            // Without these, ssh would ask for a password on the terminal that shows the screen, and wait for ever.
            process.env("SSH_ASKPASS", "false");
            process.env("SSH_ASKPASS_REQUIRE", "force");
        }
        if let Some(threads) = Self::threads() {
            // The first variable limits the engine's own threads, the second those of lavapipe. An engine on another machine does not get
            // the variables; the greeting sends it the number.
            for name in ["RAYON_NUM_THREADS", "LP_NUM_THREADS"] {
                process.env(name, threads.to_string());
            }
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        // 0x200 is CREATE_NEW_PROCESS_GROUP: ctrl-c does not reach the new group.
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

/// Splits a command line into words as a POSIX shell does. Variables, globs and pipes have no meaning.
///
/// # Errors
/// Fails if a quotation is not closed, or if a backslash ends the line.
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
        let plain = split_words("ssh -p 22 host  perflings engine").expect("splits");
        let quoted = split_words(r#"sh -c 'exec "$0" engine' ./a\ b """#).expect("splits");
        assert_eq!(plain, ["ssh", "-p", "22", "host", "perflings", "engine"]);
        assert_eq!(quoted, ["sh", "-c", r#"exec "$0" engine"#, "./a b", ""]);
    }

    #[test]
    fn an_open_quotation_is_an_error() {
        for line in ["sh 'x", "sh \"x", "sh x\\"] {
            let error = split_words(line).expect_err("open");
            assert!(error.contains("not closed"), "{error}");
        }
    }

    #[test]
    fn an_empty_line_is_no_command() {
        let error = EngineCommand::parse("  ").expect_err("empty");
        assert!(error.contains("is empty"), "{error}");
    }
}
