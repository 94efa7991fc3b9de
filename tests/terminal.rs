//! The program in a real terminal: a pseudo-terminal it runs in, a parser that reads what it drew, keys typed into it.
//! Linux only: the engine is found through `/proc`.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Far above anything a healthy program needs: only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at something that will change.
const POLL: Duration = Duration::from_millis(10);

/// What the terminal received, and what it shows.
struct Shown {
    raw: Vec<u8>,
    parser: vt100::Parser,
}

/// The program in a terminal of its own, with an empty home.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    /// None once the terminal is closed.
    master: Option<Box<dyn MasterPty + Send>>,
    /// Taken when the first key is typed: the library types a line end into the program when it is dropped.
    input: Option<Box<dyn Write + Send>>,
    shown: Arc<Mutex<Shown>>,
    /// Asks the reader to stop; it notices at the program's next output.
    close: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    _home: TempDir,
}

const fn size(cols: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

impl Terminal {
    fn start(more: &[(&str, &str)]) -> Self {
        let pair = native_pty_system()
            .openpty(size(80, 24))
            .expect("a terminal opens");
        let home = tempfile::tempdir().expect("a folder");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_perflings"));
        command.args(["--device", "cpu"]);
        command.cwd(home.path());
        for name in ["STATE", "DATA", "CACHE", "CONFIG"] {
            command.env(format!("XDG_{name}_HOME"), home.path().join(name));
        }
        for name in ["NO_COLOR", "COLORTERM", "COLORFGBG", "PERFLINGS_ASCII"] {
            command.env_remove(name);
        }
        for (name, value) in [("TERM", "xterm-256color"), ("LC_ALL", "C.UTF-8")] {
            command.env(name, value);
        }
        for (name, value) in more {
            command.env(name, value);
        }
        let shown = Arc::new(Mutex::new(Shown {
            raw: Vec::new(),
            parser: vt100::Parser::new(24, 80, 0),
        }));
        let close = Arc::new(AtomicBool::new(false));
        let mut output = pair.master.try_clone_reader().expect("readable");
        let child = pair.slave.spawn_command(command).expect("perflings starts");
        let reader = std::thread::spawn({
            let (shown, close) = (Arc::clone(&shown), Arc::clone(&close));
            move || {
                let mut buffer = [0; 16 * 1024];
                // An error is the end: nobody holds the other side any more.
                while let Ok(n @ 1..) = output.read(&mut buffer) {
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
            master: Some(pair.master),
            input: None,
            shown,
            close,
            reader: Some(reader),
            _home: home,
        }
    }

    fn master(&self) -> &dyn MasterPty {
        self.master.as_deref().expect("open")
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().expect("not poisoned")
    }

    fn text(&self) -> String {
        self.shown().parser.screen().contents()
    }

    fn press(&mut self, keys: &str) {
        let master = self.master.as_deref().expect("open");
        let input = self
            .input
            .get_or_insert_with(|| master.take_writer().expect("not taken before"));
        input
            .write_all(keys.as_bytes())
            .and_then(|()| input.flush())
            .expect("the terminal takes keys");
    }

    fn resize(&self, cols: u16, rows: u16) {
        self.shown().parser.screen_mut().set_size(rows, cols);
        self.master().resize(size(cols, rows)).expect("resizes");
    }

    /// Waits until the screen shows all of these.
    fn see(&mut self, texts: &[&str]) {
        self.see_that(&format!("{texts:?}"), |screen| {
            texts.iter().all(|text| screen.contains(text))
        });
    }

    /// Waits until the screen, as text, is so.
    fn see_that(&mut self, what: &str, so: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let text = self.text();
            if so(&text) {
                return;
            }
            let ended = self.child.try_wait().expect("our child");
            assert!(
                begun.elapsed() < PATIENCE && ended.is_none(),
                "no {what}; ended: {ended:?}; the screen:\n{text}"
            );
            std::thread::sleep(POLL);
        }
    }

    /// Stage 1 trains: its first loss and its last are in the legend.
    fn see_training(&mut self) {
        self.see_that("losses of A", |text| {
            let legend = text.lines().find(|line| line.contains("A broken 1"));
            text.contains("running A broken") && legend.is_some_and(|line| line.contains('→'))
        });
    }

    /// The engine, once the program has started one.
    fn engine(&self) -> u32 {
        let ours = self.child.process_id().expect("it runs");
        let mut found = None;
        wait("an engine", || {
            found = engine_of(ours);
            found.is_some()
        });
        found.expect("waited for")
    }

    /// Waits for the program's own end; the result is its exit code.
    fn ended(&mut self) -> u32 {
        let mut status = None;
        wait("end of the program", || {
            status = self.child.try_wait().expect("our child");
            status.is_some()
        });
        let status = status.expect("waited for");
        assert_eq!(status.signal(), None, "it ended by itself");
        status.exit_code()
    }

    /// Everything that was ever sent to the terminal. The program has ended.
    fn all_output(&mut self) -> Vec<u8> {
        let reader = self.reader.take().expect("joined once");
        wait("end of the output", || reader.is_finished());
        reader.join().expect("the reader is well");
        self.shown().raw.clone()
    }

    /// Hangs up, as a closed terminal window does: nobody holds the other side any more.
    fn hang_up(&mut self) {
        self.close.store(true, Ordering::SeqCst);
        let reader = self.reader.take().expect("open");
        wait("output of a run", || reader.is_finished());
        (self.input, self.master) = (None, None);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The engine ends when its input does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(POLL);
    }
}

/// State and parent of a process, if there is one.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether this is a living engine; a zombie that somebody else has to reap is dead.
fn is_engine(pid: u32) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let alive = stat(pid).is_some_and(|(state, _)| state != 'Z');
    alive && command.split(|byte| *byte == 0).any(|arg| arg == b"engine")
}

fn engine_of(parent: u32) -> Option<u32> {
    std::fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|pid| stat(*pid).is_some_and(|(_, of)| of == parent) && is_engine(*pid))
}

fn last(bytes: &[u8], wanted: &str) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .rposition(|window| window == wanted.as_bytes())
}

/// Attributes in the output that ask for a colour. 39 and 49 are the terminal's own.
fn colours(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let attributes = text.split("\u{1b}[").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
        rest[end..].starts_with('m').then(|| rest[..end].to_owned())
    });
    attributes
        .filter(|list| {
            list.split([';', ':'])
                .filter_map(|code| code.parse().ok())
                .any(|code: u32| matches!(code, 30..=38 | 40..=48 | 58 | 90..=97 | 100..=107))
        })
        .collect()
}

#[test]
fn a_session_from_first_light_to_a_restored_terminal() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let raw_mode = terminal.master().get_termios().expect("a terminal");

    // The prediction.
    terminal.press("\r");
    terminal.see(&["Say what will change: a to d"]);
    terminal.press("b");
    terminal.see(&["You said b"]);
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("You said b"));

    // The fix, with the broken run as a ghost.
    terminal.press("t");
    terminal.see(&["running B fixed", "○ A broken 1", "● B fixed 6."]);

    // Any size, at any time.
    for (cols, rows) in [(200, 50), (20, 5), (120, 36)] {
        terminal.resize(cols, rows);
        terminal.see_that(&format!("frame of {cols}x{rows}"), |text| {
            let lines: Vec<&str> = text.lines().collect();
            let widest = lines.iter().map(|line| line.chars().count()).max();
            // The smallest has a text of its own; the others end with the keys and reach the right border.
            text.contains("B fixed")
                && text.contains("running")
                && lines.len() <= usize::from(rows)
                && widest <= Some(cols.into())
                && (rows == 5
                    || lines.len() == usize::from(rows)
                        && widest == Some(cols.into())
                        && lines.last().is_some_and(|line| line.contains("q quit")))
        });
    }

    // The engine is killed: the screen stays and says so.
    let first = terminal.engine();
    let pid = Pid::from_raw(first as i32).expect("not 0");
    kill_process(pid, Signal::KILL).expect("it is ours");
    terminal.see(&["the engine is gone", "r starts a new one", "○ B fixed 6."]);
    assert!(terminal.shown().parser.screen().alternate_screen());
    assert!(!is_engine(first));
    terminal.press("r");
    terminal.see_that("run that goes on", |text| {
        text.contains("running B fixed") && !text.contains("the engine is gone")
    });
    let second = terminal.engine();
    assert_ne!(first, second);

    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let output = terminal.all_output();
    let (on, off) = (
        last(&output, "\u{1b}[?1049h"),
        last(&output, "\u{1b}[?1049l"),
    );
    assert!(on.is_some() && off > on, "the screen before came back");
    let (hidden, seen) = (last(&output, "\u{1b}[?25l"), last(&output, "\u{1b}[?25h"));
    assert!(hidden.is_some() && seen > hidden, "the cursor is shown");
    let (unwrapped, wrapped) = (last(&output, "\u{1b}[?7l"), last(&output, "\u{1b}[?7h"));
    assert!(wrapped > unwrapped, "long lines wrap again");
    {
        let shown = terminal.shown();
        let screen = shown.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    }
    let cooked = terminal.master().get_termios().expect("a terminal");
    let names = |flags: &dyn std::fmt::Debug| format!("{flags:?}");
    assert!(!names(&raw_mode.local_flags).contains("ICANON"));
    for flag in ["ICANON", "ECHO", "ISIG"] {
        assert!(names(&cooked.local_flags).contains(flag), "{flag} is back");
    }
    assert!(names(&cooked.output_flags).contains("OPOST"));
    assert!(
        !colours(&output).is_empty(),
        "the test below looks at the right thing"
    );
    wait("end of the engine", || !is_engine(second));
}

#[test]
fn a_terminal_that_hangs_up_ends_the_program_and_its_engine() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let engine = terminal.engine();
    terminal.hang_up();
    terminal.ended();
    wait("end of the engine", || !is_engine(engine));
}

#[test]
fn no_color_means_no_colour() {
    let mut terminal = Terminal::start(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]);
    terminal.see_training();
    terminal.press("\r");
    terminal.see(&["Say what will change: a to d"]);
    // Escape and a letter read at once would be that letter with Alt.
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("Say what will change"));
    // Without a prediction it asks first.
    terminal.press("t");
    terminal.see(&["Toggle?"]);
    terminal.press("y");
    terminal.see(&["running B fixed", "● B fixed 6."]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let output = terminal.all_output();
    assert_eq!(colours(&output), Vec::<String>::new());
}
