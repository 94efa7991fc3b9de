//! The file of the progress: read, set aside, locked, written whole.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use toml_edit::DocumentMut;

use super::{Progress, table};
use crate::config::file::{FileError, read_text};
use crate::course::text;

pub const FILE: &str = "progress.toml";
const MAX_BYTES: u64 = 4 * 1024 * 1024;
const HEADER: &str =
    "# What this learner has done, by stage. Written by perflings; unknown keys are kept.\n";

pub fn edit(
    dir: &Path,
    change: impl FnOnce(&mut DocumentMut),
) -> Result<(Progress, Option<FileError>), FileError> {
    let failed = |what: &str, error: &std::io::Error| FileError {
        path: text::one_line(&dir.display().to_string()),
        line: 0,
        what: format!("{what}: {error}; progress is not saved"),
    };
    fs::create_dir_all(dir).map_err(|error| failed("cannot be made", &error))?;
    let _lock = lock(dir).map_err(|error| failed("cannot be locked", &error))?;
    let (mut document, notice) = read(dir)?;
    change(&mut document);
    write(dir, &document).map_err(|error| failed("cannot be written", &error))?;
    Ok((table::progress(&document), notice))
}

/// Waits up to a second for another instance; then goes on without, since each write is whole anyway.
pub fn lock(dir: &Path) -> std::io::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.join("progress.lock"))?;
    for _ in 0..50 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            // Locked; or a file system that knows no locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Ok(file)
}

/// The document as it is; an unreadable one is moved aside first, and named.
pub fn read(dir: &Path) -> Result<(DocumentMut, Option<FileError>), FileError> {
    let path = dir.join(FILE);
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((DocumentMut::new(), None)),
        _ => {}
    }
    let damage = match read_text(&path, MAX_BYTES) {
        Err(error) if error.what.starts_with("cannot be read") => return Err(error),
        Err(error) => error,
        Ok(text) => match parse(&text) {
            Ok(document) => return Ok((document, None)),
            Err((line, what)) => FileError {
                path: path.display().to_string(),
                line,
                what,
            },
        },
    };
    let aside = (1..1000)
        .map(|n| dir.join(format!("{FILE}.damaged-{n}")))
        .find(|aside| aside.symlink_metadata().is_err())
        .ok_or_else(|| damage.clone())?;
    let what = match fs::rename(&path, &aside) {
        Ok(()) => format!(
            "{}; it was set aside as {}, and progress begins anew",
            damage.what,
            aside.display()
        ),
        Err(error) => {
            let what = format!("{}; it could not be set aside: {error}", damage.what);
            return Err(FileError { what, ..damage });
        }
    };
    Ok((DocumentMut::new(), Some(FileError { what, ..damage })))
}

pub fn parse(text: &str) -> Result<DocumentMut, (usize, String)> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let line = error
            .span()
            .map_or(0, |span| crate::config::file::line_of(text, span.start));
        (
            line,
            format!("is not valid TOML: {}", text::one_line(error.message())),
        )
    })?;
    let stages = document.get("stage");
    let right = stages.is_none_or(|item| {
        item.as_table_like()
            .is_some_and(|table| table.iter().all(|(_, stage)| stage.is_table_like()))
    });
    if right {
        Ok(document)
    } else {
        Err((0, "has a `stage` that is no table".to_owned()))
    }
}

pub fn write(dir: &Path, document: &DocumentMut) -> std::io::Result<()> {
    // A link, as from a folder of dot files, stays a link.
    let path = dir
        .join(FILE)
        .canonicalize()
        .unwrap_or_else(|_| dir.join(FILE));
    let mut text = document.to_string();
    if !text.starts_with('#') {
        text.insert_str(0, HEADER);
    }
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(dir))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
