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
    let (file, bytes) = stream(path)?;
    let too_large = |what| Err(io::Error::new(ErrorKind::FileTooLarge, what));
    if bytes > limit {
        return too_large(format!("has {bytes} bytes; the limit is {limit}"));
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
    // Opening a device may have an effect, so the file is checked before; another file may have taken its place, so also afterwards.
    plain(&fs::metadata(path)?)?;
    let file = without_waiting(File::options().read(true), true).open(path)?;
    let meta = file.metadata()?;
    plain(&meta)?;
    Ok((file, meta.len()))
}

/// Returns true if something has this name, even a link to a missing file.
pub fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Writes a file whole or not at all: first under a temporary name in its folder, then under its own.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<WriteOutcome> {
    let target = target(path)?;
    #[cfg_attr(not(unix), expect(unused_mut, reason = "permissions are Unix's only"))]
    let mut part = tempfile::Builder::new();
    #[cfg(unix)]
    let part = part.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut part = part.tempfile_in(folder(&target))?;
    part.write_all(bytes)?;
    if let Ok(meta) = fs::metadata(&target) {
        part.as_file().set_permissions(meta.permissions())?;
    }
    part.as_file().sync_all()?;
    let part = part.into_temp_path();
    rename(&part, &target)
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
/// If something other than a plain file is there.
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
                plain(&fs::metadata(&real)?)?;
                Ok(real)
            }
        },
        Ok(meta) => plain(&meta).map(|()| path.to_owned()),
    }
}

/// Returns true if both names lead to one existing file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let both = one.canonicalize().ok().zip(other.canonicalize().ok());
    both.is_some_and(|(one, other)| one == other)
}

/// Returns the folder of a file.
pub fn folder(path: &Path) -> &Path {
    let parent = path.parent();
    let named = parent.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// Opens a file of our own, to lock it or to write it piece by piece. It is made if there is none, and it is not emptied. Links are not
/// followed.
pub fn own(path: &Path) -> io::Result<File> {
    match path.symlink_metadata() {
        Ok(meta) => plain(&meta)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    let file = without_waiting(&mut options, false).open(path)?;
    plain(&file.metadata()?)?;
    Ok(file)
}

/// Renames `path` to `path.<word>1`, or to the next free number, and returns the new name.
pub fn set_aside(path: &Path, word: &str) -> io::Result<PathBuf> {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{word}{n}"));
        PathBuf::from(name)
    };
    let mut names = (1..10_000).map(numbered);
    let aside = names.find(|aside| !is_taken(aside));
    let aside = aside.ok_or_else(|| io::Error::other("too many files are beside it"))?;
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// Opening does not wait for the other end of a pipe.
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

fn plain(meta: &Metadata) -> io::Result<()> {
    match kind(meta) {
        None => Ok(()),
        Some(what) => Err(not_plain(what)),
    }
}

fn not_plain(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{what}; name a file"))
}

/// Returns the words for anything but a plain file; `None` for a plain file.
fn kind(meta: &Metadata) -> Option<&'static str> {
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
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("is a folder"),
        kind if kind.is_symlink() => Some("is a link"),
        _ => Some("is not a plain file"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode};

    /// A folder with one of each kind that is no plain file.
    fn odd() -> (tempfile::TempDir, Vec<PathBuf>) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        rustix::fs::mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).expect("a pipe");
        std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
        fs::create_dir(path("folder")).expect("a folder");
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, path(name));
        for name in ["pipe", "socket", "folder", "nothing"] {
            link(name, &format!("to-{name}")).expect("a link");
        }
        link("/dev/zero", "to-device").expect("a link");
        let names = ["pipe", "socket", "folder"].map(path).into_iter();
        let links = ["to-pipe", "to-socket", "to-folder", "to-nothing"].map(path);
        let devices = [
            path("to-device"),
            "/dev/null".into(),
            "/dev/zero".into(),
            "/dev/tty".into(),
        ];
        let all = names.chain(links).chain(devices).collect();
        (dir, all)
    }

    #[test]
    fn what_is_no_plain_file_is_neither_read_nor_replaced() {
        let (dir, all) = odd();
        let names = || fs::read_dir(dir.path()).expect("a folder").count();
        let before = names();
        for path in all {
            let kind = |path: &Path| path.symlink_metadata().expect("there").file_type();
            let was = kind(&path);
            assert!(
                read(&path, 10).is_err() && stream(&path).is_err(),
                "{path:?}"
            );
            let error = write(&path, b"new").expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path:?}");
            assert!(error.to_string().starts_with("is a "), "{error}");
            assert!(own(&path).is_err(), "{path:?}");
            let part = dir.path().join("part");
            fs::write(&part, "new").expect("written");
            assert!(rename(&part, &path).is_err(), "{path:?}");
            fs::remove_file(&part).expect("still there");
            assert_eq!(kind(&path), was, "{path:?}");
        }
        assert_eq!(names(), before, "nothing was left behind");
    }

    #[test]
    fn a_link_keeps_leading_to_its_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        assert_eq!(write(&file, b"old").expect("written"), WriteOutcome::New);
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o640))
            .expect("set");
        std::os::unix::fs::symlink("file", &link).expect("a link");
        assert_eq!(
            write(&link, b"new").expect("written"),
            WriteOutcome::Replaced
        );
        assert!(link.symlink_metadata().expect("there").is_symlink());
        assert_eq!(read(&file, 3).expect("read"), b"new");
        let mode = fs::metadata(&file).expect("there").permissions();
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode);
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(
            read(&file, 2).expect_err("long").kind(),
            ErrorKind::FileTooLarge
        );
        let aside = set_aside(&file, "damaged-").expect("renamed");
        assert!(aside.ends_with("file.damaged-1") && !file.exists());
    }
}
