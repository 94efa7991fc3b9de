//! Reads the bytes of a file, plain or gzip, with progress, and the head of the file.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use super::file;

/// The number of first bytes from which a format is recognised.
const HEAD: u64 = 64 * 1024;
/// The first bytes of gzip.
pub(crate) const GZIP: &[u8] = &[0x1f, 0x8b];
/// The byte order mark that some programs write before UTF-8 text.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// The largest number of bytes that are unpacked into a temporary file.
const UNPACKED: u64 = 4 << 30;
/// The number of bytes between two reports of progress.
const STRIDE: u64 = 1 << 20;

/// The error for a file that cannot be opened as a trace. Its text names the file, what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The name of the file, as it was given to `open` or `read`.
    pub path: String,
    /// The fault and its place: the rest of a sentence that begins with the file.
    pub what: String,
    /// A sentence about what to do.
    pub next: String,
}

impl OpenError {
    /// Returns an error without a file, which `open` fills in.
    pub(crate) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            what: what.into(),
            next: next.into(),
        }
    }

    /// Returns the error for a file or a folder that the system does not open.
    pub(crate) fn unreadable(error: io::Error) -> Self {
        let what = format!("cannot be read: {error}.");
        Self::new(what, "Check the path and its permissions.")
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.path, self.what, self.next)
    }
}

impl std::error::Error for OpenError {}

/// The progress of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadProgress {
    /// The number of bytes of the file read so far.
    pub read: u64,
    /// The number of bytes of the file.
    pub total: u64,
}

/// The first bytes of a file, or the tables of a database.
pub(crate) struct FileHead {
    /// The first bytes, unpacked.
    pub bytes: Vec<u8>,
    /// The names of the tables and views of a database; `None` for other files.
    pub tables: Option<Vec<String>>,
}

/// A file that is being read from its beginning.
pub struct TraceSource<'a> {
    name: String,
    path: Option<PathBuf>,
    gzip: bool,
    /// The first bytes, unpacked, which are read once more.
    head: Cursor<Vec<u8>>,
    /// The bytes after the head, unpacked.
    rest: Box<dyn Read>,
    /// The number of bytes read from the file, before unpacking.
    read_bytes: Rc<Cell<u64>>,
    total: u64,
    /// The number of bytes at the last report of progress.
    reported_bytes: u64,
    damage: Option<String>,
    progress: &'a mut dyn FnMut(ReadProgress),
    unpacked: Option<tempfile::TempPath>,
    copied: Option<(tempfile::TempDir, PathBuf)>,
}

/// Counts the bytes that are read.
struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.set(self.count.get() + n as u64);
        Ok(n)
    }
}

impl<'a> TraceSource<'a> {
    /// Opens a file and reads its first bytes.
    pub fn open(path: &Path, progress: &'a mut dyn FnMut(ReadProgress)) -> Result<Self, OpenError> {
        let (file, total) = file::stream(path).map_err(OpenError::unreadable)?;
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy();
        let mut source = Self::from_reader(&name, file, total, progress)?;
        source.path = Some(path.to_owned());
        Ok(source)
    }

    /// Starts reading data that are not a file, and reads their first bytes.
    pub fn from_reader(
        name: &str,
        data: impl Read + 'static,
        total: u64,
        progress: &'a mut dyn FnMut(ReadProgress),
    ) -> Result<Self, OpenError> {
        let read_bytes = Rc::new(Cell::new(0));
        let counted = Counted {
            inner: data,
            count: read_bytes.clone(),
        };
        let mut buffered = io::BufReader::with_capacity(256 * 1024, counted);
        let first = io::BufRead::fill_buf(&mut buffered).map_err(|error| {
            OpenError::new(
                format!("cannot be read: {error}."),
                "Copy it to this machine and try again.",
            )
        })?;
        let gzip = first.starts_with(GZIP);
        let rest: Box<dyn Read> = if gzip {
            Box::new(MultiGzDecoder::new(buffered))
        } else {
            Box::new(buffered)
        };
        let mut source = Self {
            name: name.to_owned(),
            path: None,
            gzip,
            head: Cursor::default(),
            rest,
            read_bytes,
            total,
            reported_bytes: 0,
            damage: None,
            progress,
            unpacked: None,
            copied: None,
        };
        let mut head = Vec::new();
        let _ = (&mut source).take(HEAD).read_to_end(&mut head);
        if head.starts_with(MARK) {
            head.drain(..MARK.len());
        }
        source.head = Cursor::new(head);
        if source.head.get_ref().is_empty() {
            let what = source
                .damage
                .take()
                .unwrap_or_else(|| "is empty.".to_owned());
            return Err(OpenError::new(
                what,
                "Was the profiler stopped before it wrote? Record again.",
            ));
        }
        Ok(source)
    }

    /// Returns the name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the first bytes of the file, unpacked. UTF-16 text is an error.
    pub fn head(&self) -> Result<Vec<u8>, OpenError> {
        let bytes = self.head.get_ref().clone();
        if is_utf16(&bytes) {
            return Err(OpenError::new(
                "is UTF-16 text, perhaps written by PowerShell.",
                "Convert it with `iconv -f UTF-16 -t UTF-8`, or let the profiler write the file \
                 itself.",
            ));
        }
        Ok(bytes)
    }

    /// Returns a sentence about damage in the data read so far; `None` if there is none.
    pub fn damage(&self) -> Option<String> {
        self.damage.clone()
    }

    /// Returns a path to the unpacked file, for formats that cannot be read from a stream. Compressed data become a temporary file.
    pub(crate) fn file(&mut self) -> Result<PathBuf, OpenError> {
        if let Some((_, path)) = &self.copied {
            return Ok(path.clone());
        }
        if let Some(path) = &self.path
            && !self.gzip
        {
            return Ok(path.clone());
        }
        if let Some(path) = &self.unpacked {
            return Ok(path.to_path_buf());
        }
        let failed = |error: io::Error| {
            let next = "Unpack it with gunzip and open the result.";
            OpenError::new(format!("cannot be unpacked: {error}."), next)
        };
        let unpacked = file::scratch((&mut *self).take(UNPACKED)).map_err(failed)?;
        if self.read(&mut [0]).unwrap_or(0) > 0 {
            let what = format!("unpacks to more than {} GiB.", UNPACKED >> 30);
            let next = "Is it a profile? Unpack it with gunzip and open the result.";
            return Err(OpenError::new(what, next));
        }
        Ok(self.unpacked.insert(unpacked).to_path_buf())
    }

    /// Copies the file, and the files whose names have these endings appended. `file` then returns the path of the copy.
    pub(crate) fn copy_with(&mut self, endings: &[&str]) -> Result<(), OpenError> {
        let copied = file::copy_with(&self.file()?, endings).map_err(|error| {
            let what = format!("has a journal file, and cannot be copied: {error}.");
            OpenError::new(
                what,
                "Close the program that writes it, or make room in the folder for temporary files.",
            )
        })?;
        self.copied = Some(copied);
        Ok(())
    }

    /// Reads the whole file as text. A file with more than `limit` bytes, or one that is not UTF-8, is an error.
    pub fn text(&mut self, limit: u64) -> Result<String, OpenError> {
        let mut bytes = Vec::new();
        let read = (&mut *self).take(limit + 1).read_to_end(&mut bytes);
        if read.is_err() || bytes.len() as u64 > limit {
            return Err(OpenError::new(
                format!("is longer than {limit} bytes."),
                "Record fewer steps.",
            ));
        }
        String::from_utf8(bytes)
            .map_err(|_| OpenError::new("is not UTF-8.", "Copy the file again."))
    }

    /// Reports that everything was read.
    pub(crate) fn done(&mut self) {
        (self.progress)(ReadProgress {
            read: self.total,
            total: self.total,
        });
    }
}

/// Returns true for the beginning of a UTF-16 text, with or without a byte order mark.
fn is_utf16(bytes: &[u8]) -> bool {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    // Without a mark, every second byte of an ASCII text is 0.
    let is_wide = |zero: usize| {
        (0..8).all(|at| match bytes[at] {
            0 => at % 2 == zero,
            byte => at % 2 != zero && byte.is_ascii(),
        })
    };
    bytes.len() > 8 && (is_wide(0) || is_wide(1))
}

impl Read for TraceSource<'_> {
    /// Reads unpacked bytes. Damaged data end without an error; `damage` then returns the reason.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let from_head = self.head.read(buffer)?;
        if from_head > 0 || buffer.is_empty() {
            return Ok(from_head);
        }
        let n = match self.rest.read(buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                let at = self.read_bytes.get();
                let damage = if self.gzip {
                    format!("The gzip data end early or are damaged near byte {at}: {error}.")
                } else {
                    format!("Reading failed near byte {at}: {error}.")
                };
                self.damage.get_or_insert(damage);
                0
            }
        };
        let read = self.read_bytes.get();
        if read >= self.reported_bytes + STRIDE {
            self.reported_bytes = read;
            (self.progress)(ReadProgress {
                read,
                total: self.total.max(read),
            });
        }
        Ok(n)
    }
}
