//! Reads and writes whole files. Only a plain file, or a link to one, is read or replaced: never a folder, a pipe, a device or a socket.
//! Nothing here waits for another program.

#![allow(
    clippy::disallowed_methods,
    reason = "files are opened here and nowhere else"
)]

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The result of writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum WriteOutcome {
    #[strum(serialize = "wrote")]
    New,
    /// A whole file took the place of an older one.
    Replaced,
}

/// Reads a plain file of at most `limit` bytes. The kind of the error is `InvalidInput` for anything but a plain file, and `FileTooLarge`
/// for a longer file. The text of these errors continues a message after the file's name.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, length) = stream(path)?;
    let too_large = |why| Err(io::Error::new(ErrorKind::FileTooLarge, why));
    if length > limit {
        return too_large(format!("has {length} bytes; the limit is {limit}"));
    }
    // A file of the system reports no length, and another one may grow.
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return too_large(format!("is longer than the limit of {limit} bytes"));
    }
    Ok(bytes)
}

/// Opens a plain file to read it piece by piece, and returns it with its length in bytes. The kind of the error is `InvalidInput` for
/// anything but a plain file.
pub fn stream(path: &Path) -> io::Result<(File, u64)> {
    // The file is checked before, because opening a device may have an effect, and afterwards, because another file may have replaced it.
    ensure_plain(&fs::metadata(path)?)?;
    let file = without_waiting(File::options().read(true), true).open(path)?;
    let meta = file.metadata()?;
    ensure_plain(&meta)?;
    Ok((file, meta.len()))
}

/// Returns true if something has this name, even a link to a missing file.
pub fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Writes a file whole or not at all: first under a temporary name in its folder, then under its own.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<WriteOutcome> {
    let target = target(path)?;
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has permissions"))]
    let mut part = tempfile::Builder::new();
    #[cfg(unix)]
    part.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = part.tempfile_in(folder(&target))?;
    file.write_all(bytes)?;
    if let Ok(meta) = fs::metadata(&target) {
        file.as_file().set_permissions(meta.permissions())?;
    }
    file.as_file().sync_all()?;
    rename(&file.into_temp_path(), &target)
}

/// Gives a complete file the name `path`.
pub fn rename(part: &Path, path: &Path) -> io::Result<WriteOutcome> {
    let target = target(path)?;
    let written = if is_taken(&target) {
        WriteOutcome::Replaced
    } else {
        WriteOutcome::New
    };
    fs::rename(part, target)?;
    Ok(written)
}

/// Returns the file that writing to `path` changes: `path` itself, or the file that a link leads to.
///
/// # Errors
/// Fails if something other than a plain file is there.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
        Ok(meta) if meta.is_symlink() => match path.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(not_plain("is a link to a file that is missing"))
            }
            Err(error) => Err(error),
            Ok(real) => {
                ensure_plain(&fs::metadata(&real)?)?;
                Ok(real)
            }
        },
        Ok(meta) => ensure_plain(&meta).map(|()| path.to_owned()),
    }
}

/// Returns true if both names lead to one existing file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Returns the folder of a file.
pub fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Opens a file of our own, to lock it or to write it piece by piece. It is made if there is none, and it is not emptied. Links are not
/// followed.
pub fn own(path: &Path) -> io::Result<File> {
    match path.symlink_metadata() {
        Ok(meta) => ensure_plain(&meta)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    let file = without_waiting(&mut options, false).open(path)?;
    ensure_plain(&file.metadata()?)?;
    Ok(file)
}

/// Renames `path` to `path.<word>1`, or to the next free number, and returns the new name.
pub fn set_aside(path: &Path, word: &str) -> io::Result<PathBuf> {
    for number in 1..10_000 {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{word}{number}"));
        let aside = PathBuf::from(name);
        if !is_taken(&aside) {
            fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other("too many files are beside it"))
}

/// Changes the options so that opening a pipe does not wait for its other end, and so that a link is an error unless `follow` is true.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions, follow: bool) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    let link = if follow {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | link;
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed())
}

#[cfg(not(unix))]
fn without_waiting(options: &mut OpenOptions, _: bool) -> &mut OpenOptions {
    options
}

/// Fails for anything but a plain file.
fn ensure_plain(meta: &Metadata) -> io::Result<()> {
    match unusual_kind(meta) {
        None => Ok(()),
        Some(kind) => Err(not_plain(kind)),
    }
}

/// Returns the error for something that is no plain file: `is a pipe; name a file`.
fn not_plain(kind: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{kind}; name a file"))
}

/// Returns the words for anything but a plain file, such as `is a pipe`; `None` for a plain file.
fn unusual_kind(meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("is a pipe");
        }
        if kind.is_socket() {
            return Some("is a socket");
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Some("is a device");
        }
    }
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("is a folder")
    } else if kind.is_symlink() {
        Some("is a link")
    } else {
        Some("is not a plain file")
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;
    use rustix::fs::{CWD, Mode};

    /// Makes a folder with a pipe, a socket, a folder and links to each of them, to a device and to nothing. Returns their paths and those
    /// of some devices.
    fn special_files() -> (tempfile::TempDir, Vec<PathBuf>) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        rustix::fs::mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).expect("a pipe");
        UnixListener::bind(path("socket")).expect("a socket");
        fs::create_dir(path("folder")).expect("a folder");
        for name in ["pipe", "socket", "folder", "nothing"] {
            symlink(name, path(&format!("to-{name}"))).expect("a link");
        }
        symlink("/dev/zero", path("to-device")).expect("a link");
        let names = [
            "pipe",
            "socket",
            "folder",
            "to-pipe",
            "to-socket",
            "to-folder",
            "to-nothing",
            "to-device",
        ];
        let mut paths: Vec<PathBuf> = names.map(path).into();
        paths.extend(["/dev/null", "/dev/zero", "/dev/tty"].map(PathBuf::from));
        (dir, paths)
    }

    #[test]
    fn only_a_plain_file_is_read_or_replaced() {
        let (dir, paths) = special_files();
        let part = dir.path().join("part");
        for path in paths {
            fs::write(&part, "new").expect("written");
            let kind_of = |path: &Path| path.symlink_metadata().expect("there").file_type();
            let kind_before = kind_of(&path);

            let error = write(&path, b"new").expect_err("refused");

            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path:?}");
            assert!(error.to_string().starts_with("is a "), "{error}");
            assert!(read(&path, 10).is_err(), "{path:?}");
            assert!(stream(&path).is_err(), "{path:?}");
            assert!(own(&path).is_err(), "{path:?}");
            assert!(rename(&part, &path).is_err(), "{path:?}");
            assert_eq!(kind_of(&path), kind_before, "{path:?}");
        }
    }

    #[test]
    fn a_refused_file_leaves_nothing_behind() {
        let (dir, paths) = special_files();
        let count = || fs::read_dir(dir.path()).expect("a folder").count();
        let count_before = count();

        for path in paths {
            write(&path, b"new").expect_err("refused");
        }

        assert_eq!(count(), count_before);
    }

    #[test]
    fn a_link_keeps_leading_to_its_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        let link = dir.path().join("link");
        assert_eq!(write(&file, b"old").expect("written"), WriteOutcome::New);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("set");
        symlink("file", &link).expect("a link");

        let outcome = write(&link, b"new").expect("written");

        assert_eq!(outcome, WriteOutcome::Replaced);
        assert!(link.symlink_metadata().expect("there").is_symlink());
        assert_eq!(read(&file, 3).expect("read"), b"new");
        let permissions = fs::metadata(&file).expect("there").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_above_the_limit_is_too_large() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        write(&file, b"new").expect("written");

        let error = read(&file, 2).expect_err("3 bytes");

        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_file_that_is_set_aside_gets_a_free_number() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        write(&file, b"new").expect("written");

        let aside = set_aside(&file, "damaged-").expect("renamed");

        assert!(aside.ends_with("file.damaged-1") && !file.exists());
    }
}
