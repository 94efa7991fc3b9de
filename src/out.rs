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
    let gone = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe);
    if gone {
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

/// True if notices are left out (`--quiet`).
static QUIET: AtomicBool = AtomicBool::new(false);
/// True if progress is left out (`--quiet` or `--no-progress`).
static NO_PROGRESS: AtomicBool = AtomicBool::new(false);

/// Turns off notices and progress (`quiet`), or only progress (`no_progress`), for the rest of the process.
pub fn set_quiet(quiet: bool, no_progress: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    NO_PROGRESS.store(quiet || no_progress, Ordering::Relaxed);
}

/// The line at the foot of the terminal; empty if there is none.
static FOOT: Mutex<String> = Mutex::new(String::new());

/// Returns true if progress is shown: stderr is a terminal, and progress is not left out.
pub fn has_foot() -> bool {
    !NO_PROGRESS.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// Replaces the line at the foot of the terminal with the line that `next` returns; an empty line removes it. The old line stays where
/// `next` returns `None`.
pub fn set_foot(next: impl FnOnce() -> Option<String>) {
    let mut foot = FOOT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(next) = next() {
        show(&foot, "");
        *foot = next;
        show(&foot, &foot);
    }
}

/// Removes the line at the foot, writes something in its place and shows the line again below.
fn above_foot<T>(write: impl FnOnce() -> T) -> T {
    let foot = FOOT.lock().unwrap_or_else(PoisonError::into_inner);
    show(&foot, "");
    let written = write();
    show(&foot, &foot);
    written
}

/// Shows a text in the place of the line at the foot, if there is one.
fn show(foot: &str, text: &str) {
    if !foot.is_empty() {
        let mut stderr = io::stderr().lock();
        // Wrapping is off meanwhile, so that the terminal cuts a long line.
        let _ = write!(
            stderr,
            "\r\u{1b}[K\u{1b}[?7l{}\u{1b}[?7h",
            sanitize::lines(text)
        );
        let _ = stderr.flush();
    }
}

/// Prints a line with the program's name on stderr, unless notices are left out. A closed stderr is ignored.
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

/// Prints the result as one JSON object on a line of its own, or as text.
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

/// Writes a result into a file, whole or not at all, and prints a notice. `-` stands for stdout.
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
