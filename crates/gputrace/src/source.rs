//! The bytes of a file, plain or gzip, with progress, and the head of the file.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use super::file;

/// Bytes from which a format is recognised.
const HEAD: u64 = 64 * 1024;
/// The first bytes of gzip.
pub(crate) const GZIP: &[u8] = &[0x1f, 0x8b];
/// The byte order mark that some programs write before UTF-8 text.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Most bytes that are unpacked into a temporary file.
const UNPACKED: u64 = 4 << 30;
/// Bytes between two reports of progress.
const STRIDE: u64 = 1 << 20;

/// An error for a file that cannot be opened as a trace. Its text names the file, what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The file, as it was named to `open` or `read`.
    pub path: String,
    /// What was found, and where: the rest of a sentence that begins with the file.
    pub what: String,
    /// What to do, in a sentence.
    pub next: String,
}

impl OpenError {
    /// An error whose file is filled in by `open`.
    pub(crate) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            what: what.into(),
            next: next.into(),
        }
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
    /// Bytes of the file read so far.
    pub read: u64,
    /// Bytes of the file.
    pub total: u64,
}

/// The head of a file.
pub(crate) struct FileHead {
    /// The first bytes, unpacked.
    pub bytes: Vec<u8>,
    /// Tables and views of a database.
    pub tables: Option<Vec<String>>,
}

/// A file that is being read, from its beginning on.
pub struct TraceSource<'a> {
    name: String,
    path: Option<PathBuf>,
    gzip: bool,
    head: Cursor<Vec<u8>>,
    rest: Box<dyn Read>,
    packed: Rc<Cell<u64>>,
    total: u64,
    told: u64,
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
        let unreadable = |error: io::Error| {
            OpenError::new(
                format!("cannot be read: {error}."),
                "Check the path and its permissions.",
            )
        };
        let (file, total) = file::stream(path).map_err(unreadable)?;
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy();
        let mut source = Self::of(&name, file, total, progress)?;
        source.path = Some(path.to_owned());
        Ok(source)
    }

    /// Any reader as a source.
    pub fn of(
        name: &str,
        data: impl Read + 'static,
        total: u64,
        progress: &'a mut dyn FnMut(ReadProgress),
    ) -> Result<Self, OpenError> {
        let packed = Rc::new(Cell::new(0));
        let mut data = io::BufReader::with_capacity(
            256 * 1024,
            Counted {
                inner: data,
                count: packed.clone(),
            },
        );
        let gzip = io::BufRead::fill_buf(&mut data)
            .map_err(|error| {
                OpenError::new(
                    format!("cannot be read: {error}."),
                    "Copy it to this machine and try again.",
                )
            })?
            .starts_with(GZIP);
        let rest: Box<dyn Read> = if gzip {
            Box::new(MultiGzDecoder::new(data))
        } else {
            Box::new(data)
        };
        let mut source = Self {
            name: name.to_owned(),
            path: None,
            gzip,
            head: Cursor::default(),
            rest,
            packed,
            total,
            told: 0,
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

    /// Name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes of the file.
    pub fn head(&self) -> Result<Vec<u8>, OpenError> {
        let bytes = self.head.get_ref().clone();
        let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        // Without the mark: every second byte of ASCII is 0.
        let every = |first: usize, is: fn(&u8) -> bool| bytes[first..8].iter().step_by(2).all(is);
        let ascii = |it: &u8| it.is_ascii() && *it != 0;
        let unmarked = |zero| every(zero, |it| *it == 0) && every(1 - zero, ascii);
        if wide || (bytes.len() > 8 && (unmarked(0) || unmarked(1))) {
            return Err(OpenError::new(
                "is UTF-16 text, perhaps written by PowerShell.",
                "Convert it with `iconv -f UTF-16 -t UTF-8`, or let the profiler write the file itself.",
            ));
        }
        Ok(bytes)
    }

    /// Where the data are damaged or end too early, as far as they were read.
    pub fn damage(&self) -> Option<String> {
        self.damage.clone()
    }

    /// A path to the unpacked file, for formats that cannot be read from a stream. A compressed file becomes a temporary file.
    pub(crate) fn file(&mut self) -> Result<PathBuf, OpenError> {
        if let Some((_, path)) = &self.copied {
            return Ok(path.clone());
        }
        if let (Some(path), false) = (&self.path, self.gzip) {
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

    /// Makes `file` a copy, together with the files of the same name and these endings.
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

    /// The whole file as text, if it has at most `limit` bytes.
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

impl Read for TraceSource<'_> {
    /// Damaged data end here; `damage` says why.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.head.read(buffer)?;
        if n > 0 || buffer.is_empty() {
            return Ok(n);
        }
        let n = match self.rest.read(buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                let at = self.packed.get();
                self.damage.get_or_insert(match self.gzip {
                    true => {
                        format!("The gzip data end early or are damaged near byte {at}: {error}.")
                    }
                    false => format!("Reading failed near byte {at}: {error}."),
                });
                0
            }
        };
        let read = self.packed.get();
        if read >= self.told + STRIDE {
            self.told = read;
            (self.progress)(ReadProgress {
                read,
                total: self.total.max(read),
            });
        }
        Ok(n)
    }
}
