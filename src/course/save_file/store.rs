//! The file of the progress: locked, read, written whole, with one previous copy. A file that cannot be read is set aside,
//! and the previous copy takes its place.

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
const MAX_BYTES: u64 = 4 * 1024 * 1024;
const HEADER: &str =
    "# What this learner has done, by stage. Written by perflings; unknown keys are kept.\n";

/// `$XDG_STATE_HOME/perflings/<course>`, or the platform's place for such things.
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

/// Reads the progress; the second part says what was damaged, or why nothing could be read.
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

/// When things were said in a stage; nothing where the file does not say.
pub fn times(dir: &Path, id: &str) -> Times {
    let document = read(dir, FILE).ok().flatten().unwrap_or_default();
    document.times(id)
}

/// What to do about a lock that another program has held for a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Save nothing; the caller tries again.
    Refuse,
    /// Save all the same, since each write is whole: there is no later.
    GoOn,
}

/// What the file says after a change; the second part says what was damaged.
pub(super) type SaveResult = Result<(Progress, Option<FileError>), FileError>;

/// Merges changes into the file; what others recorded stays.
pub fn save(dir: &Path, changes: &[ProgressChange]) -> SaveResult {
    save_knowing(dir, &Progress::default(), changes, Busy::GoOn)
}

/// The same for a program that knows the progress: what a lost or damaged file no longer says is written again.
pub fn save_knowing(
    dir: &Path,
    known: &Progress,
    changes: &[ProgressChange],
    busy: Busy,
) -> SaveResult {
    let failed = |error: io::Error| FileError::new(shown(dir), 0, in_words(&error));
    fs::create_dir_all(dir).map_err(failed)?;
    let _lock = lock(dir, busy).map_err(failed)?;
    let missing = !files::is_taken(&dir.join(FILE));
    let (mut document, damage) = read_or_previous(dir).map_err(|error| {
        let what = format!("{FILE} {}", error.what);
        FileError { what, ..error }
    })?;
    if missing || damage.is_some() {
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

/// Why something cannot be written, in a few words.
pub fn in_words(error: &io::Error) -> String {
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

/// Waits up to a second for another program.
fn lock(dir: &Path, busy: Busy) -> io::Result<File> {
    let file = files::own(&dir.join(LOCK))?;
    for _ in 0..50 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            // Locked; or a file system that knows no locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    match busy {
        Busy::Refuse => Err(ErrorKind::WouldBlock.into()),
        Busy::GoOn => Ok(file),
    }
}

/// Why a file could not be read.
enum ReadError {
    /// It is no file, or the system does not let us read it: not ours to replace.
    Refused(FileError),
    /// Its content is not a progress.
    Damaged(FileError),
}

/// Reads one of the two files; nothing where it does not exist.
fn read(dir: &Path, name: &str) -> Result<Option<Document>, ReadError> {
    let path = dir.join(name);
    if !files::is_taken(&path) {
        return Ok(None);
    }
    let fault = |line, what: &str| FileError::new(shown(&path), line, sanitize::one_line(what));
    let bytes = files::read(&path, MAX_BYTES).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => ReadError::Damaged(fault(0, &error.to_string())),
        ErrorKind::InvalidInput => ReadError::Refused(fault(0, &error.to_string())),
        _ => ReadError::Refused(fault(0, &format!("cannot be read: {error}"))),
    })?;
    let text = decode(bytes, &shown(&path)).map_err(ReadError::Damaged)?;
    let document = Document::parse(&text).map_err(|error| {
        let error = not_toml("", &text, error.message(), error.span());
        ReadError::Damaged(fault(error.line, &error.what))
    })?;
    Ok(Some(document))
}

/// Reads the file. A damaged one is set aside, and the previous copy takes its place; the second part says so.
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
            damage.what += &format!("; it could not be set aside: {}", in_words(&error));
            return Ok((previous.unwrap_or_default(), Some(damage)));
        }
    };
    damage.what += &format!("; it was set aside as {}", shown(&aside));
    damage.what += match &previous {
        Some(_) => ", and progress is as it was before the last change",
        None => ", and progress starts from zero",
    };
    if let Some(document) = &previous
        && let Err(error) = write(dir, document)
    {
        damage.what += &format!("; it is not written yet: {}", in_words(&error));
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
