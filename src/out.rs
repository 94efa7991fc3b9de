//! What a command says and with which code the process ends: results on stdout, notices on stderr.
//! A reader that closed the pipe (`| head`) is not an error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;

use crate::course::config_file::FileError;
pub use crate::exit::{Exit, ExitError, usage};
use crate::files;
use crate::sanitize;
use protocol::Event;
use protocol::handle::lack;

/// Prints what went wrong, once, and gives the exit code.
pub fn report(error: &anyhow::Error) -> Exit {
    let exit = exit_of(error);
    let gone = error
        .chain()
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe);
    if gone {
        return Exit::Ok;
    }
    let mut text = format!("perflings: {error:#}");
    if let Some(lack) = lack(&text).filter(|lack| !text.contains(lack)) {
        text.push_str(&format!("; {lack}"));
    }
    self::error(&text);
    exit
}

fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(stop) = cause.downcast_ref::<ExitError>() {
            return stop.exit;
        }
        if cause.is::<FileError>() {
            return Exit::Usage;
        }
    }
    Exit::Failed
}

/// What is left out: `--quiet` leaves out notices and progress, `--no-progress` progress alone.
static QUIET: AtomicBool = AtomicBool::new(false);
static NO_PROGRESS: AtomicBool = AtomicBool::new(false);

/// Leaves out notices and progress (`quiet`), or progress alone, from now on.
pub fn set_quiet(quiet: bool, no_progress: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    NO_PROGRESS.store(quiet || no_progress, Ordering::Relaxed);
}

/// The line at the foot of the terminal, while there is one.
static FOOT: Mutex<String> = Mutex::new(String::new());

/// Whether somebody looks who wants to see progress.
pub fn has_foot() -> bool {
    !NO_PROGRESS.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// Puts another line at the foot of the terminal, if there is one to put; an empty one takes it away.
pub fn foot(next: impl FnOnce() -> Option<String>) {
    let mut now = FOOT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(next) = next() {
        show(&now, "");
        *now = next;
        show(&now, &now);
    }
}

/// Writes something where that line is, which comes back below.
fn over<T>(write: impl FnOnce() -> T) -> T {
    let foot = FOOT.lock().unwrap_or_else(PoisonError::into_inner);
    show(&foot, "");
    let written = write();
    show(&foot, &foot);
    written
}

fn show(foot: &str, text: &str) {
    if !foot.is_empty() {
        let mut stderr = io::stderr().lock();
        // Without wrapping: what is too long for the terminal is cut there.
        let _ = write!(
            stderr,
            "\r\u{1b}[K\u{1b}[?7l{}\u{1b}[?7h",
            sanitize::lines(text)
        );
        let _ = stderr.flush();
    }
}

/// A line on stderr, with the program's name. A closed stderr is ignored.
pub fn notice(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        error(&format!("perflings: {text}"));
    }
}

/// A line on stderr that is always said.
pub fn error(text: &str) {
    over(|| {
        let _ = writeln!(io::stderr().lock(), "{}", sanitize::lines(text));
    });
}

/// A line of the result on stdout, flushed, so that a reader of a pipe sees it at once.
pub fn result(text: &str) -> io::Result<()> {
    bytes(format!("{}\n", sanitize::lines(text)).as_bytes())
}

/// A line of JSON, as it came.
pub fn json_line(text: &str) -> io::Result<()> {
    bytes(format!("{}\n", sanitize::json(text)).as_bytes())
}

/// Whether results are read as they come, and not by a program.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// A result that is no text.
pub fn bytes(bytes: &[u8]) -> io::Result<()> {
    over(|| {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    })
}

/// Says in one line what an engine wrote to its log; nothing for other events, and for mere information.
pub fn log(event: &Event) {
    if let Event::Log(log) = event
        && log.level != "info"
    {
        let words: Vec<&str> = log.text.split_whitespace().collect();
        let text = sanitize::bounded(&words.join(" "), 2000);
        error(&format!("{}: {text}", log.level));
    }
}

/// From now on a panic is told by `error`, and not by the standard library, which would print its text as it is.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        let text = info.to_string();
        match lack(&text) {
            Some(lack) => error(&format!("perflings: {lack}")),
            None => error(&format!("thread {name} panicked: {text}")),
        }
    }));
}

/// The result as one JSON object on a line of its own.
pub fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(json_line(&serde_json::to_string(value)?)?)
}

/// The result as one JSON object on a line of its own, or as text.
pub fn json_or_text(
    as_json: bool,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if as_json {
        return json(value);
    }
    Ok(result(text().trim_end())?)
}

/// Writes a result into a file, whole or not at all, and says so; `-` is stdout.
pub fn file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(self::bytes(bytes)?);
    }
    let written = files::write(path, bytes);
    let written = written.with_context(|| format!("Failed to write {}", path.display()))?;
    notice(&format!("{} {}", written.into_str(), path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_code_under_context() {
        let error = Err::<(), _>(usage("no"))
            .context("while trying")
            .expect_err("is one");
        assert_eq!(exit_of(&error), Exit::Usage);
        let file = FileError::new("a.toml", 3, "is wrong");
        assert_eq!(exit_of(&anyhow::Error::new(file)), Exit::Usage);
        assert_eq!(exit_of(&anyhow::anyhow!("broke")), Exit::Failed);
    }
}
