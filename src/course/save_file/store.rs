//! Reads and writes the file of the progress. A change locks the file, reads it, and replaces it as a whole; the file before the change is
//! kept. A damaged file is set aside, and that previous copy takes its place. A file that the system does not let us read is not replaced.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::document::Document;
use super::{Progress, ProgressChange, Times};
use crate::course::config_file::{FileError, decode, not_toml};
use crate::files;
use crate::sanitize;

const FILE: &str = "progress.toml";
/// The file as it was before the last change.
const PREVIOUS: &str = "progress.toml.previous";
const LOCK: &str = "progress.lock";
/// The size of the largest file that is read, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
const HEADER: &str =
    "# What this learner has done, by stage. Written by perflings; unknown keys are kept.\n";

/// Returns the folder `$XDG_STATE_HOME/perflings/<course>`, or the platform's folder for a program's state; `None` if there is none.
pub fn directory(course: &str) -> Option<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let base = named.map(|path| path.join("perflings")).or_else(|| {
        let dirs = directories::ProjectDirs::from("", "", "perflings")?;
        let local = dirs.data_local_dir();
        Some(dirs.state_dir().unwrap_or(local).to_owned())
    })?;
    Some(base.join(course))
}

/// Reads the progress. The second value is the fault of a file that was damaged or could not be read.
pub fn load(dir: &Path) -> (Progress, Option<FileError>) {
    let found = match read(dir, FILE) {
        Err(ReadError::Refused(error)) => Err(error),
        Err(ReadError::Damaged(_)) => {
            // Another program may be replacing it.
            let _lock = lock(dir, Busy::GoOn);
            read_or_previous(dir)
        }
        Ok(found) => Ok((found.unwrap_or_default(), None)),
    };
    match found {
        Ok((document, damage)) => (document.progress(), damage),
        Err(error) => (Progress::default(), Some(error)),
    }
}

/// Returns the times of the answers in a stage that the file has.
pub fn times(dir: &Path, id: &str) -> Times {
    let document = read(dir, FILE).ok().flatten().unwrap_or_default();
    document.times(id)
}

/// The reaction to a lock that another program has held for a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Nothing is saved, and the caller tries again.
    Refuse,
    /// The progress is saved without the lock, because there is no later time to save it. Each write is whole.
    GoOn,
}

/// The progress in the file after a change, and the fault of a file that was damaged.
pub(super) type SaveResult = Result<(Progress, Option<FileError>), FileError>;

/// Merges changes into the file. What other programs recorded stays.
pub fn save(dir: &Path, changes: &[ProgressChange]) -> SaveResult {
    save_or_restore(dir, &Progress::default(), changes, Busy::GoOn)
}

/// Merges changes into the file. If the file is lost or damaged, the `known` progress is written again.
pub fn save_or_restore(
    dir: &Path,
    known: &Progress,
    changes: &[ProgressChange],
    busy: Busy,
) -> SaveResult {
    let failed = |error: io::Error| FileError::new(shown(dir), 0, explain_write_error(&error));
    fs::create_dir_all(dir).map_err(failed)?;
    let _lock = lock(dir, busy).map_err(failed)?;
    let is_missing = !files::is_taken(&dir.join(FILE));
    let (mut document, damage) = read_or_previous(dir).map_err(|error| {
        let message = format!("{FILE} {}", error.message);
        FileError { message, ..error }
    })?;
    if is_missing || damage.is_some() {
        for change in known.as_changes() {
            document.apply(&change);
        }
    }
    for change in changes {
        document.apply(change);
    }
    write(dir, &document).map_err(failed)?;
    Ok((document.progress(), damage))
}

/// Explains in a few words why a file of the learner cannot be written.
pub fn explain_write_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        ErrorKind::QuotaExceeded => "your share of the disk is full".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        // EPERM, and not EACCES: the folder may be written to.
        ErrorKind::PermissionDenied if error.raw_os_error() == Some(1) => {
            format!(
                "{FILE} may not be replaced: it or its folder is protected (`lsattr`, `chattr -i`)"
            )
        }
        ErrorKind::FileTooLarge => "files may not grow any more here (`ulimit -f`)".to_owned(),
        ErrorKind::PermissionDenied => "its folder may not be written to".to_owned(),
        ErrorKind::WouldBlock => format!("another program holds {LOCK}"),
        ErrorKind::InvalidInput => "something else is in the place of its file".to_owned(),
        _ => sanitize::one_line(&error.to_string()),
    }
}

fn shown(path: &Path) -> String {
    sanitize::one_line(&path.display().to_string())
}

/// Locks the folder. Waits up to a second for another program.
fn lock(dir: &Path, busy: Busy) -> io::Result<File> {
    let file = files::own(&dir.join(LOCK))?;
    for _ in 0..50 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            // The file is locked, or the file system knows no locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    match busy {
        Busy::Refuse => Err(ErrorKind::WouldBlock.into()),
        Busy::GoOn => Ok(file),
    }
}

/// The reason why a file could not be read.
enum ReadError {
    /// It is not a plain file, or the system does not let us read it. We must not replace it.
    Refused(FileError),
    /// Its content is not a progress.
    Damaged(FileError),
}

/// Reads one of the two files; `None` if it does not exist.
fn read(dir: &Path, name: &str) -> Result<Option<Document>, ReadError> {
    let path = dir.join(name);
    if !files::is_taken(&path) {
        return Ok(None);
    }
    let fault =
        |line, message: &str| FileError::new(shown(&path), line, sanitize::one_line(message));
    let bytes = files::read(&path, MAX_BYTES).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => ReadError::Damaged(fault(0, &error.to_string())),
        ErrorKind::InvalidInput => ReadError::Refused(fault(0, &error.to_string())),
        _ => ReadError::Refused(fault(0, &format!("cannot be read: {error}"))),
    })?;
    let text = decode(bytes, &shown(&path)).map_err(ReadError::Damaged)?;
    let document = Document::parse(&text).map_err(|error| {
        let error = not_toml("", &text, error.message(), error.span());
        ReadError::Damaged(fault(error.line, &error.message))
    })?;
    Ok(Some(document))
}

/// Reads the file. A damaged file is set aside, and the previous copy takes its place; the second value is then the fault.
fn read_or_previous(dir: &Path) -> Result<(Document, Option<FileError>), FileError> {
    let mut damage = match read(dir, FILE) {
        Ok(document) => return Ok((document.unwrap_or_default(), None)),
        Err(ReadError::Refused(error)) => return Err(error),
        Err(ReadError::Damaged(damage)) => damage,
    };
    let previous = read(dir, PREVIOUS).ok().flatten();
    let aside = match files::set_aside(&dir.join(FILE), "damaged-") {
        Ok(aside) => aside,
        Err(error) => {
            damage.message += &format!(
                "; it could not be set aside: {}",
                explain_write_error(&error)
            );
            return Ok((previous.unwrap_or_default(), Some(damage)));
        }
    };
    damage.message += &format!("; it was set aside as {}", shown(&aside));
    damage.message += match &previous {
        Some(_) => ", and progress is as it was before the last change",
        None => ", and progress starts from zero",
    };
    if let Some(document) = &previous
        && let Err(error) = write(dir, document)
    {
        damage.message += &format!("; it is not written yet: {}", explain_write_error(&error));
    }
    Ok((previous.unwrap_or_default(), Some(damage)))
}

/// Keeps the file as the previous copy and writes the new one whole.
fn write(dir: &Path, document: &Document) -> io::Result<()> {
    let text = document.to_toml().map_err(io::Error::other)?;
    let path = dir.join(FILE);
    if files::is_taken(&path) {
        files::write(&dir.join(PREVIOUS), &files::read(&path, MAX_BYTES)?)?;
    }
    files::write(&path, format!("{HEADER}{text}").as_bytes()).map(drop)
}

#[cfg(test)]
mod tests;
