//! The command that `perflings watch -- …` starts, and the signals that are passed on to it. Its output goes to a file of the folder, so that
//! the command goes on when the screen is closed or dies.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

/// The environment variable that holds the folder to write lines to.
pub const FOLDER_VARIABLE: &str = "PERFLINGS_WATCH";
/// The file in the folder that the command writes its output to.
pub const OUTPUT: &str = "output.log";

/// The time between two checks if the command has ended.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// A command that was started.
#[derive(Debug)]
pub struct Job {
    child: Child,
    /// The command as it was typed.
    pub command: String,
    status: Option<ExitStatus>,
}

impl Job {
    /// Starts the command with its output in `output`. The command gets a process group of its own, so that the terminal's signals reach it
    /// only through this program.
    ///
    /// # Errors
    /// Returns an error with the name of the program if it cannot be started.
    pub fn start(command: &[String], folder: &Path, output: File) -> Result<Self> {
        let (program, arguments) = command
            .split_first()
            .context("there is no command after --")?;
        let errors = output
            .try_clone()
            .context("the output file cannot be shared")?;
        let mut process = Command::new(program);
        process
            .args(arguments)
            .env(FOLDER_VARIABLE, folder)
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        let child = process
            .spawn()
            .with_context(|| format!("`{program}` cannot be started"))?;
        Ok(Self {
            child,
            command: command.join(" "),
            status: None,
        })
    }

    /// Returns the exit status of the command. `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits until the command ends, and passes on the signals that come meanwhile.
    pub fn wait(&mut self, signals: &mut Signals) -> ExitStatus {
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            if let Some(signal) = signals.to_pass_on() {
                self.pass_on(signal);
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the command and the processes that it started to end.
    pub fn terminate(&mut self) {
        self.pass_on(TERMINATE);
    }

    /// Sends a signal to the command and the processes that it started.
    pub fn pass_on(&mut self, signal: i32) {
        if self.ended().is_some() {
            return;
        }
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            if let (Some(group), Some(signal)) = (group, Signal::from_named_raw(signal)) {
                let _ = kill_process_group(group, signal);
            }
        }
        #[cfg(not(unix))]
        {
            let _ = (signal, self.child.kill());
        }
    }
}

/// The numbers of `SIGTERM` and `SIGKILL`, which are the same on every Unix.
const TERMINATE: i32 = 15;
const KILL: i32 = 9;

/// The number of signals that the command may ignore. The next one kills it.
const MAX_IGNORED: usize = 2;

/// The signals that this program received for the command.
#[derive(Debug, Default)]
pub struct Signals {
    /// The number of the latest signal. 0 if none came since the last one was passed on.
    latest: Arc<AtomicUsize>,
    /// The number of signals that were passed on.
    passed_on: usize,
}

impl Signals {
    /// Begins to receive signals. Before this call a signal ends this program and not the command.
    ///
    /// # Errors
    /// Returns an error if the system allows no handler.
    pub fn take() -> std::io::Result<Self> {
        let signals = Self::default();
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
            for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
                let latest = Arc::clone(&signals.latest);
                signal_hook::flag::register_usize(signal, latest, signal as usize)?;
            }
        }
        Ok(signals)
    }

    /// Returns the signal that came since the last call, or `SIGKILL` in its place after the command has ignored several signals.
    pub fn to_pass_on(&mut self) -> Option<i32> {
        let latest = self.latest.swap(0, Ordering::SeqCst);
        let signal = i32::try_from(latest).ok().filter(|signal| *signal > 0)?;
        self.passed_on += 1;
        Some(if self.passed_on > MAX_IGNORED {
            KILL
        } else {
            signal
        })
    }
}

/// Returns the exit code of this program after the command: its exit code or, as in a shell, 128 plus the number of the signal that ended it.
pub fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}
