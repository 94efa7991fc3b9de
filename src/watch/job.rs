//! The command that is watched. Its output goes to a file of the folder, so that it goes on when the screen is closed or dies.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// Names the folder to the program that is watched.
pub const FOLDER_VARIABLE: &str = "PERFLINGS_WATCH";
/// The file in the folder that the command writes its output to.
pub const OUTPUT: &str = "output.log";

/// A command that was started.
#[derive(Debug)]
pub struct Job {
    child: Child,
    /// As it was typed.
    pub command: String,
    status: Option<ExitStatus>,
}

impl Job {
    /// Starts the command with its output in `output`. It is a process group of its own, so that the terminal's signals do not reach it
    /// past us.
    ///
    /// # Errors
    /// When the command cannot be started; the error names it.
    pub fn start(command: &[String], folder: &Path, output: File) -> Result<Self> {
        let shown = command.join(" ");
        let (program, arguments) = command
            .split_first()
            .context("there is no command after --")?;
        let both = output
            .try_clone()
            .context("the output file cannot be shared")?;
        let mut started = Command::new(program);
        started
            .args(arguments)
            .env(FOLDER_VARIABLE, folder)
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(both);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut started, 0);
        let child = started
            .spawn()
            .with_context(|| format!("`{program}` cannot be started"))?;
        Ok(Self {
            child,
            command: shown,
            status: None,
        })
    }

    /// Its end, once it has come; it does not wait.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the system does not tell its end.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let status = self
            .child
            .wait()
            .context("the command's end is not known")?;
        self.status = Some(status);
        Ok(status)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the command, and what it started, to end.
    pub fn terminate(&mut self) {
        if self.ended().is_some() {
            return;
        }
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::TERM);
            }
        }
        #[cfg(not(unix))]
        {
            let _ = self.child.kill();
        }
    }
}

/// The exit code that we end with for the command's end: its own, or 128 and the signal, as a shell has it.
pub fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}
