//! The file of the progress: locked, read, written whole. A damaged one is set aside, and what can be read of it is kept.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::DocumentMut;

use super::salvage::{Kept, kept_of};
use super::{Progress, ProgressChange, Times, document};
use crate::config::file::FileError;
use crate::course::text;
use crate::files;

const FILE: &str = "progress.toml";
/// What is kept of a damaged file, before it takes its place.
const PART: &str = "progress.toml.kept";
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
    let found = match read(dir) {
        Ok(found) if found.damage.is_some() => {
            // Another program may be mending it.
            let _lock = lock(dir, Busy::GoOn);
            read(dir).map(|found| mended(dir, found))
        }
        found => found,
    };
    match found {
        Ok(found) => (document::progress(&found.document).0, found.damage),
        Err(error) => (Progress::default(), Some(error)),
    }
}

/// When things were said in a stage; nothing where the file does not say.
pub fn times(dir: &Path, id: &str) -> Times {
    read(dir).map_or_else(
        |_| Times::default(),
        |found| document::times(&found.document, id),
    )
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
pub type Saved = Result<(Progress, Option<FileError>), FileError>;

/// Merges changes into the file; what others recorded stays.
pub fn save(dir: &Path, changes: &[ProgressChange]) -> Saved {
    save_knowing(dir, &Progress::default(), changes, Busy::GoOn)
}

/// The same for a program that knows the progress: what a lost or damaged file no longer says is written again.
pub fn save_knowing(dir: &Path, known: &Progress, changes: &[ProgressChange], busy: Busy) -> Saved {
    let failed = |error: io::Error| FileError::new(shown(dir), 0, in_words(&error));
    fs::create_dir_all(dir).map_err(failed)?;
    let _lock = lock(dir, busy).map_err(failed)?;
    let found = read(dir).map_err(|error| {
        let what = format!("{FILE} {}", error.what);
        FileError { what, ..error }
    })?;
    let mut found = mended(dir, found);
    if found.missing || found.damage.is_some() {
        for change in known.as_changes() {
            document::apply(&mut found.document, &change);
        }
    }
    for change in changes {
        document::apply(&mut found.document, change);
    }
    write(&dir.join(FILE), &found.document).map_err(failed)?;
    Ok((document::progress(&found.document).0, found.damage))
}

/// Why something cannot be written, in a few words.
pub fn in_words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        ErrorKind::QuotaExceeded => "your share of the disk is full".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        ErrorKind::PermissionDenied => "its folder may not be written to".to_owned(),
        ErrorKind::WouldBlock => format!("another program holds {LOCK}"),
        ErrorKind::InvalidInput => "something else is in the place of its file".to_owned(),
        _ => text::one_line(&error.to_string()),
    }
}

fn shown(path: &Path) -> String {
    text::one_line(&path.display().to_string())
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

/// What is there.
struct Found {
    document: DocumentMut,
    /// There is no file.
    missing: bool,
    /// What could not be read of it.
    damage: Option<FileError>,
}

fn read(dir: &Path) -> Result<Found, FileError> {
    let path = dir.join(FILE);
    let missing = !files::is_taken(&path);
    let kept = match files::read(&path, MAX_BYTES) {
        _ if missing => Kept::default(),
        Ok(bytes) => kept_of(&bytes),
        Err(error) => match error.kind() {
            ErrorKind::FileTooLarge => Kept::nothing(&error.to_string()),
            // What is no file is not ours to set aside.
            ErrorKind::InvalidInput => {
                return Err(FileError::new(shown(&path), 0, error.to_string()));
            }
            _ => {
                let what = format!("cannot be read: {error}");
                return Err(FileError::new(shown(&path), 0, what));
            }
        },
    };
    let damage = kept
        .damage
        .map(|(line, what)| FileError::new(shown(&path), line, what));
    Ok(Found {
        document: kept.document,
        missing,
        damage,
    })
}

/// Sets a damaged file aside and writes what could be read of it. Where that fails, the file stays as it is.
fn mended(dir: &Path, mut found: Found) -> Found {
    let Some(damage) = &mut found.damage else {
        return found;
    };
    let empty = found.document.is_empty();
    match set_aside(dir, (!empty).then_some(&found.document)) {
        Ok(aside) => {
            damage.what += &format!("; it was set aside as {}", aside.display());
            if empty {
                damage.what += ", and progress starts from zero";
            }
        }
        Err(error) => damage.what += &format!("; it could not be set aside: {}", in_words(&error)),
    }
    found
}

fn set_aside(dir: &Path, kept: Option<&DocumentMut>) -> io::Result<PathBuf> {
    // Written before the damaged file is moved, so that a full disk leaves everything as it was.
    let part = dir.join(PART);
    if let Some(document) = kept {
        write(&part, document)?;
    }
    let path = dir.join(FILE);
    let aside = files::set_aside(&path, "damaged-")?;
    if kept.is_some() {
        files::rename(&part, &path)?;
    }
    Ok(aside)
}

fn write(path: &Path, document: &DocumentMut) -> io::Result<()> {
    let mut text = document.to_string();
    if !text.starts_with('#') {
        text.insert_str(0, HEADER);
    }
    files::write(path, text.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests;
