//! Runs the program in a pseudo-terminal with a home folder of its own. A parser turns the output into the screen that a learner would see.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use perflings::course::Course;
use perflings::course::save_file::{self, ProgressChange};
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use tempfile::TempDir;

/// A healthy program meets each condition long before this time is over.
const HANG_TIMEOUT: Duration = Duration::from_secs(120);
/// The time between two looks at a condition.
const POLL: Duration = Duration::from_millis(10);

/// The output of the program.
pub(crate) struct Shown {
    /// All bytes that the terminal received.
    pub raw: Vec<u8>,
    /// The screen that these bytes draw.
    pub parser: vt100::Parser,
}

/// The program in a terminal of its own. Dropping this value kills the program.
pub(crate) struct Terminal {
    child: Child,
    /// `None` once the terminal is closed.
    pty: Option<Arc<Pty>>,
    shown: Arc<Mutex<Shown>>,
    /// True once the reader has to stop. The reader checks it at the program's next output.
    close: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    pub home: TempDir,
}

/// Returns the folder of the learner's progress.
pub(crate) fn state(home: &TempDir) -> PathBuf {
    let course = Course::builtin().id;
    home.path().join("STATE/perflings").join(course)
}

/// Starts the program in a terminal of this size, with `home` for all its files and with further environment variables.
pub(crate) fn launch(
    home: &TempDir,
    size: Size,
    args: &[&str],
    variables: &[(&str, &str)],
) -> (Child, Arc<Pty>) {
    let (pty, slave) = open().expect("a terminal opens");
    pty.resize(size).expect("resizes");
    let mut command = Command::new(env!("CARGO_BIN_EXE_perflings"))
        .args(args)
        .args(["--device", "cpu"])
        .current_dir(home.path());
    for name in ["STATE", "DATA", "CACHE", "CONFIG"] {
        command = command.env(format!("XDG_{name}_HOME"), home.path().join(name));
    }
    for name in ["NO_COLOR", "COLORTERM", "COLORFGBG", "PERFLINGS_ASCII"] {
        command = command.env_remove(name);
    }
    for (name, value) in [("TERM", "xterm-256color"), ("LC_ALL", "C.UTF-8")] {
        command = command.env(name, value);
    }
    for (name, value) in variables {
        command = command.env(name, value);
    }
    let child = command.spawn(slave).expect("perflings starts");
    (child, Arc::new(pty))
}

impl Terminal {
    /// Starts the program for a learner who was welcomed before, with further environment variables.
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        Self::start_with(&[], variables)
    }

    /// Starts the program as [`Self::start`] does, with these arguments.
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        save_file::save(&state(&home), &[ProgressChange::Welcomed]).expect("written");
        Self::start_in(home, args, variables)
    }

    /// Starts the program for a learner who uses it for the first time.
    pub(crate) fn start_first() -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), &[], &[])
    }

    /// Kills the program and starts it again in its home.
    pub(crate) fn again(mut self, args: &[&str]) -> Self {
        let empty = tempfile::tempdir().expect("a folder");
        let home = std::mem::replace(&mut self.home, empty);
        drop(self);
        Self::start_in(home, args, &[])
    }

    fn start_in(home: TempDir, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let (child, pty) = launch(&home, Size::new(24, 80), args, variables);
        let shown = Arc::new(Mutex::new(Shown {
            raw: Vec::new(),
            parser: vt100::Parser::new(24, 80, 0),
        }));
        let close = Arc::new(AtomicBool::new(false));
        let reader = std::thread::spawn({
            let shown = Arc::clone(&shown);
            let close = Arc::clone(&close);
            let pty = Arc::clone(&pty);
            move || {
                let mut buffer = [0; 16 * 1024];
                // Reading returns an error once no process has the terminal open.
                while let Ok(n @ 1..) = (&*pty).read(&mut buffer) {
                    let mut shown = shown.lock().expect("not poisoned");
                    shown.raw.extend_from_slice(&buffer[..n]);
                    shown.parser.process(&buffer[..n]);
                    if close.load(Ordering::SeqCst) {
                        return;
                    }
                }
            }
        });
        Self {
            child,
            pty: Some(pty),
            shown,
            close,
            reader: Some(reader),
            home,
        }
    }

    /// Returns the terminal. Panics after [`Self::hang_up`].
    pub(crate) fn pty(&self) -> &Pty {
        self.pty.as_deref().expect("open")
    }

    pub(crate) fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().expect("not poisoned")
    }

    /// Returns the text of the screen.
    pub(crate) fn text(&self) -> String {
        self.shown().parser.screen().contents()
    }

    /// Types keys as the bytes that a terminal sends for them, such as `\u{1b}[A` for the up arrow.
    pub(crate) fn press(&mut self, keys: &str) {
        let mut input = self.pty();
        input
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    pub(crate) fn resize(&self, cols: u16, rows: u16) {
        self.shown().parser.screen_mut().set_size(rows, cols);
        self.pty().resize(Size::new(rows, cols)).expect("resizes");
    }

    /// Waits until something more was written to the terminal.
    pub(crate) fn wait_for_output(&self) {
        let before = self.shown().raw.len();
        wait("output", || self.shown().raw.len() > before);
    }

    /// Waits until the screen shows all these texts.
    pub(crate) fn see(&mut self, texts: &[&str]) {
        self.see_that(&format!("{texts:?}"), |screen| {
            texts.iter().all(|text| screen.contains(text))
        });
    }

    /// Waits until the text of the screen meets a condition. If that does not happen, the panic says that there is no `expected`.
    pub(crate) fn see_that(&mut self, expected: &str, is_met: impl Fn(&str) -> bool) {
        let began = Instant::now();
        loop {
            let text = self.text();
            if is_met(&text) {
                return;
            }
            let ended = self.child.try_wait().expect("our child");
            assert!(
                began.elapsed() < HANG_TIMEOUT && ended.is_none(),
                "no {expected}; ended: {ended:?}; the screen:\n{text}"
            );
            std::thread::sleep(POLL);
        }
    }

    /// Waits until stage 1 trains: the legend then shows the first loss and the last one.
    pub(crate) fn see_training(&mut self) {
        self.see_that("losses of A", |text| {
            let legend = text.lines().find(|line| line.contains("A broken 1"));
            text.contains("running A broken") && legend.is_some_and(|line| line.contains('→'))
        });
    }

    /// Returns the process id of the program.
    pub(crate) fn program(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program has started an engine, and returns the engine's process id.
    pub(crate) fn engine(&self) -> u32 {
        let mut engine = None;
        wait("an engine", || {
            engine = engine_of(self.program());
            engine.is_some()
        });
        engine.expect("waited for")
    }

    /// Waits until the program ends by itself, and returns its exit code.
    pub(crate) fn ended(&mut self) -> i32 {
        let mut status = None;
        wait("end of the program", || {
            status = self.child.try_wait().expect("our child");
            status.is_some()
        });
        let status = status.expect("waited for");
        assert_eq!(status.signal(), None, "it ended by itself");
        status.code().expect("not by a signal")
    }

    /// Returns all output of the program. Call it after the program's end.
    pub(crate) fn all_output(&mut self) -> Vec<u8> {
        let reader = self.reader.take().expect("joined once");
        wait("end of the output", || reader.is_finished());
        reader.join().expect("the reader is well");
        self.shown().raw.clone()
    }

    /// Closes the terminal, as a closed window does.
    pub(crate) fn hang_up(&mut self) {
        self.close.store(true, Ordering::SeqCst);
        let reader = self.reader.take().expect("open");
        wait("output of a run", || reader.is_finished());
        self.pty = None;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The engine ends when its input does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition is met. If that does not happen in time, the panic says that there is no `expected`.
pub(crate) fn wait(expected: &str, mut is_met: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_met() {
        assert!(began.elapsed() < HANG_TIMEOUT, "no {expected}");
        std::thread::sleep(POLL);
    }
}

/// Returns the state and the parent of a process; `None` if there is no such process.
pub(crate) fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Returns true if a process is a living engine. A zombie, which another process must reap, is dead.
pub(crate) fn is_engine(pid: u32) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let alive = stat(pid).is_some_and(|(state, _)| state != 'Z');
    alive && command.split(|byte| *byte == 0).any(|arg| arg == b"engine")
}

/// Returns the process id of a program's engine; `None` if it has none.
pub(crate) fn engine_of(program: u32) -> Option<u32> {
    let is_child = |pid: u32| stat(pid).is_some_and(|(_, parent)| parent == program);
    std::fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|pid| is_child(*pid) && is_engine(*pid))
}
