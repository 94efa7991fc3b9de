//! Prints the results of commands on stdout and their notices on stderr, and turns errors into exit codes.
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

/// Prints an error and returns its exit code. A closed pipe is no error.
pub fn report(error: &anyhow::Error) -> Exit {
    let exit = exit_of(error);
    let is_pipe_closed = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe);
    if is_pipe_closed {
        return Exit::Ok;
    }
    let mut text = format!("perflings: {error:#}");
    if let Some(lack) = lack(&text)
        && !text.contains(lack)
    {
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

/// True if notices are left out, because of `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);
/// True if the progress line is left out, because of `--quiet` or `--no-progress`.
static NO_PROGRESS: AtomicBool = AtomicBool::new(false);

/// Turns off notices and progress (`quiet`), or only progress (`no_progress`), for the rest of the process.
pub fn set_quiet(quiet: bool, no_progress: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    NO_PROGRESS.store(quiet || no_progress, Ordering::Relaxed);
}

/// The progress line at the foot of the terminal; empty if there is none. Every print goes above it.
static FOOT: Mutex<String> = Mutex::new(String::new());

/// Returns true if a progress line is shown: stderr is a terminal, and progress is not left out.
pub fn has_foot() -> bool {
    !NO_PROGRESS.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// Replaces the progress line with the line that `next` returns; an empty line removes it. If `next` returns `None`, the old line stays.
pub fn set_foot(next: impl FnOnce() -> Option<String>) {
    let mut foot = FOOT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(next) = next() {
        show(&foot, "");
        *foot = next;
        show(&foot, &foot);
    }
}

/// Removes the progress line, writes something in its place and shows the progress line again below.
fn above_foot<T>(write: impl FnOnce() -> T) -> T {
    let foot = FOOT.lock().unwrap_or_else(PoisonError::into_inner);
    show(&foot, "");
    let written = write();
    show(&foot, &foot);
    written
}

/// Overwrites the progress line `foot` on the terminal with a text. Writes nothing if `foot` is empty.
fn show(foot: &str, text: &str) {
    if !foot.is_empty() {
        let mut stderr = io::stderr().lock();
        // The terminal's wrapping is off meanwhile, so that it cuts a long line.
        let _ = write!(
            stderr,
            "\r\u{1b}[K\u{1b}[?7l{}\u{1b}[?7h",
            sanitize::lines(text)
        );
        let _ = stderr.flush();
    }
}

/// Prints a line that begins with the program's name on stderr, unless notices are left out. A closed stderr is ignored.
pub fn notice(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        error(&format!("perflings: {text}"));
    }
}

/// Prints a line on stderr, even where notices are left out. A closed stderr is ignored.
pub fn error(text: &str) {
    above_foot(|| {
        let _ = writeln!(io::stderr().lock(), "{}", sanitize::lines(text));
    });
}

/// Prints a line of the result on stdout and flushes it, so that a reader of a pipe sees it at once.
pub fn result(text: &str) -> io::Result<()> {
    bytes(format!("{}\n", sanitize::lines(text)).as_bytes())
}

/// Prints a line of JSON on stdout.
pub fn json_line(text: &str) -> io::Result<()> {
    bytes(format!("{}\n", sanitize::json(text)).as_bytes())
}

/// Returns true if stdout is a terminal, so that a person reads the results.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes a result that is no text to stdout.
pub fn bytes(bytes: &[u8]) -> io::Result<()> {
    above_foot(|| {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    })
}

/// Prints a line of an engine's log. Prints nothing for other events and for lines of level `info`.
pub fn log(event: &Event) {
    if let Event::Log(log) = event
        && log.level != "info"
    {
        let words: Vec<&str> = log.text.split_whitespace().collect();
        let text = sanitize::bounded(&words.join(" "), 2000);
        error(&format!("{}: {text}", log.level));
    }
}

/// Makes panics be printed with [`error`], because the standard library would print their text without cleaning it.
pub fn print_panics() {
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

/// Prints the result as one JSON object on a line of its own.
pub fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(json_line(&serde_json::to_string(value)?)?)
}

/// Prints the result as one JSON object on a line of its own if `as_json` is set, or else as text.
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

/// Writes a result into a file, whole or not at all, and prints a notice. The path `-` means stdout.
pub fn file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(self::bytes(bytes)?);
    }
    let written =
        files::write(path, bytes).with_context(|| format!("Failed to write {}", path.display()))?;
    notice(&format!("{} {}", written.into_str(), path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_exit_code_under_further_context() {
        let wrong_usage = Err::<(), _>(usage("no"))
            .context("while trying")
            .expect_err("an error");
        assert_eq!(exit_of(&wrong_usage), Exit::Usage);
        let wrong_file = FileError::new("a.toml", 3, "is wrong");
        assert_eq!(exit_of(&anyhow::Error::new(wrong_file)), Exit::Usage);
        assert_eq!(exit_of(&anyhow::anyhow!("broke")), Exit::Failed);
    }
}
