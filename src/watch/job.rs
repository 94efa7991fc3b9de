//! The command that is watched. Its output goes to a file of the folder, so that it goes on when the screen is closed or dies.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

/// Names the folder to the program that is watched.
pub const FOLDER_VARIABLE: &str = "PERFLINGS_WATCH";
/// The file in the folder that the command writes its output to.
pub const OUTPUT: &str = "output.log";

/// The time between two questions whether the command has ended.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A command that was started.
#[derive(Debug)]
pub struct Job {
    child: Child,
    /// The command as it was typed.
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

    /// Returns how the command ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits until the command ends, and passes signals on meanwhile.
    pub fn wait(&mut self, signals: &mut Signals) -> ExitStatus {
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            if let Some(signal) = signals.to_pass_on() {
                self.pass_on(signal);
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the command, and what it started, to end.
    pub fn terminate(&mut self) {
        self.pass_on(TERMINATE);
    }

    /// Passes a signal on to the command and to what it started.
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

/// The number of signals that the command may ignore; the next one kills it.
const ASKED: usize = 2;

/// Signals that came to us and are meant for the command.
#[derive(Debug, Default)]
pub struct Signals {
    latest: Arc<AtomicUsize>,
    seen: usize,
}

impl Signals {
    /// Begins to take signals; until then they end us alone.
    ///
    /// # Errors
    /// When the system does not let us take them.
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

    /// Returns the signal that came since the last call; `SIGKILL` in its place once the command has ignored several.
    pub fn to_pass_on(&mut self) -> Option<i32> {
        let latest = self.latest.swap(0, Ordering::SeqCst);
        let signal = i32::try_from(latest).ok().filter(|signal| *signal > 0)?;
        self.seen += 1;
        Some(if self.seen > ASKED { KILL } else { signal })
    }
}

/// Returns the exit code that `perflings` ends with: that of the command, or 128 and the number of the signal that ended it, as in a shell.
pub fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}
