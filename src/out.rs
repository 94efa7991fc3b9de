//! What a command says and with which code the process ends: results on stdout, notices on stderr.
//! A reader that closed the pipe (`| head`) is not an error.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

use crate::config::file::FileError;
pub use crate::exit::{Exit, Stop, usage};

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
    notice(&format!("{error:#}"));
    exit
}

fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(stop) = cause.downcast_ref::<Stop>() {
            return stop.exit;
        }
        if cause.is::<FileError>() {
            return Exit::Usage;
        }
    }
    Exit::Failed
}

/// A line on stderr, with the program's name. A closed stderr is ignored.
pub fn notice(text: &str) {
    let _ = writeln!(io::stderr().lock(), "perflings: {text}");
}

/// A line on stderr without a name, for progress.
pub fn progress(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A line of the result on stdout, flushed, so that a reader of a pipe sees it at once.
pub fn result(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The result as one JSON object on a line of its own.
pub fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(result(&serde_json::to_string(value)?)?)
}

/// Writes a result into a file, whole or not at all, and says so. A device or a pipe is written directly.
pub fn file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // A link keeps pointing to its file.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let written = if target.exists() && !target.is_file() {
        std::fs::write(&target, bytes)
    } else {
        let mut part = target.clone().into_os_string();
        part.push(".part");
        std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, &target))
    };
    written.with_context(|| format!("Failed to write {}", path.display()))?;
    notice(&format!("wrote {}", path.display()));
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
        let file = FileError {
            path: "a.toml".to_owned(),
            line: 3,
            what: "is wrong".to_owned(),
        };
        assert_eq!(exit_of(&anyhow::Error::new(file)), Exit::Usage);
        assert_eq!(exit_of(&anyhow::anyhow!("broke")), Exit::Failed);
    }
}
