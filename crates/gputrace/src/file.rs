//! Opens plain files without waiting, and makes temporary copies.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use tempfile::{TempDir, TempPath};

/// Opens a plain file, and returns it with its length in bytes. The kind of the error is `InvalidInput` for a folder, a pipe, a socket
/// or a device.
pub(crate) fn stream(path: &Path) -> io::Result<(File, u64)> {
    // Opening a device may have an effect, so the file is checked before; another file may have taken its place, so also afterwards.
    require_plain(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        // Opening does not wait for the other end of a pipe.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let bits = flags.bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, bits);
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    require_plain(&meta)?;
    Ok((file, meta.len()))
}

/// Saves data in a temporary file, which is deleted when the returned path is dropped.
pub fn scratch(mut data: impl Read) -> io::Result<TempPath> {
    let mut file = tempfile::NamedTempFile::new()?;
    io::copy(&mut data, file.as_file_mut())?;
    Ok(file.into_temp_path())
}

/// Returns a path with an ending appended to the file's name.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Copies a file, and the files whose names have these endings appended, into a folder. Returns the folder, which is deleted when it is
/// dropped, and the path of the copy.
pub(crate) fn copy_with(path: &Path, endings: &[&str]) -> io::Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("copy");
    for ending in [""].iter().chain(endings) {
        match stream(&with_ending(path, ending)) {
            Err(error) if error.kind() == ErrorKind::NotFound && !ending.is_empty() => {}
            opened => {
                let (mut data, _) = opened?;
                io::copy(&mut data, &mut File::create(with_ending(&copy, ending))?)?;
            }
        }
    }
    Ok((folder, copy))
}

/// Fails for anything but a plain file.
fn require_plain(meta: &Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "is a folder",
        #[cfg(unix)]
        _ if std::os::unix::fs::FileTypeExt::is_fifo(&kind) => "is a pipe",
        #[cfg(unix)]
        _ if std::os::unix::fs::FileTypeExt::is_socket(&kind) => "is a socket",
        #[cfg(unix)]
        _ if std::os::unix::fs::FileTypeExt::is_char_device(&kind)
            || std::os::unix::fs::FileTypeExt::is_block_device(&kind) =>
        {
            "is a device"
        }
        _ => "is not a plain file",
    };
    let what = format!("{what}; name a file");
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}
