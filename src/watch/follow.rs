//! Reads what is appended to a file. A file that is replaced, cut, or missing for a while is followed on.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::files;

/// The longest line that is read; of a longer one only its number is told.
const LONGEST: usize = 1 << 20;
/// Bytes read at a time, so that a file that grows fast neither keeps the screen from drawing nor fills its memory.
const AT_ONCE: u64 = 1 << 17;

/// Something that a followed file showed.
#[derive(Debug, PartialEq)]
pub(super) enum Followed {
    /// A whole line, without its end, and its number from 1.
    Line(u64, String),
    /// The line with this number is longer than what is read.
    TooLong(u64),
    /// The file was replaced or cut: what follows is read from its beginning.
    BegunAgain,
}

/// A file that is followed.
#[derive(Debug, Default)]
pub(super) struct FollowedFile {
    path: PathBuf,
    open: Option<(File, FileId)>,
    /// Bytes read so far.
    at: u64,
    /// The last read found as much as is read at a time: there may be more.
    is_behind: bool,
    /// The line that is not complete yet.
    part: Vec<u8>,
    /// The rest of the present line is left out.
    skips: bool,
    lines: u64,
    /// Progress bars end their lines with a carriage return.
    bars: bool,
}

/// Tells one file from another of the same name.
type FileId = (u64, u64);

#[cfg(unix)]
fn id_of(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn id_of(metadata: &Metadata) -> FileId {
    let created = metadata.created().ok();
    let since = created.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    (0, since.map_or(0, |since| since.as_nanos() as u64))
}

impl FollowedFile {
    /// Follows a file of JSON lines.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// Follows the output of a program, where a carriage return ends a line too.
    pub(super) fn output(path: PathBuf) -> Self {
        Self {
            bars: true,
            ..Self::new(path)
        }
    }

    /// Returns what was appended since the last call; nothing while the file is not there.
    pub(super) fn poll(&mut self) -> Vec<Followed> {
        let mut out = Vec::new();
        self.is_behind = false;
        let Ok(metadata) = std::fs::metadata(&self.path) else {
            return out;
        };
        if !metadata.is_file() {
            return out;
        }
        let id = id_of(&metadata);
        let is_same = self.open.as_ref().is_some_and(|(_, known)| *known == id);
        if !is_same || metadata.len() < self.at {
            let Ok((file, _)) = files::stream(&self.path) else {
                return out;
            };
            if self.open.is_some() {
                out.push(Followed::BegunAgain);
            }
            self.open = Some((file, id));
            self.at = 0;
            self.lines = 0;
            self.skips = false;
            self.part.clear();
        }
        self.read(&mut out);
        out
    }

    /// Returns true if the next call reads more at once, without waiting for the program to write.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    fn read(&mut self, out: &mut Vec<Followed>) {
        let Some((file, _)) = &mut self.open else {
            return;
        };
        let mut bytes = Vec::new();
        // A file on a network may fail for a moment; the next call reads from the same place.
        let read = file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| file.take(AT_ONCE).read_to_end(&mut bytes));
        if read.is_err() {
            return;
        }
        self.at += bytes.len() as u64;
        self.is_behind = bytes.len() as u64 == AT_ONCE;
        for byte in bytes {
            if byte == b'\n' || self.bars && byte == b'\r' {
                self.end_line(out);
            } else if self.part.len() < LONGEST {
                self.part.push(byte);
            } else {
                self.skips = true;
            }
        }
    }

    fn end_line(&mut self, out: &mut Vec<Followed>) {
        self.lines += 1;
        let line = std::mem::take(&mut self.part);
        if std::mem::take(&mut self.skips) {
            out.push(Followed::TooLong(self.lines));
        } else if !line.iter().all(u8::is_ascii_whitespace) {
            let text = String::from_utf8_lossy(&line).into_owned();
            out.push(Followed::Line(self.lines, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    fn append(path: &std::path::Path, text: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .expect("opened");
        file.write_all(text.as_bytes()).expect("written");
    }

    fn line(number: u64, text: &str) -> Followed {
        Followed::Line(number, text.to_owned())
    }

    #[test]
    fn a_line_comes_once_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rank-0.jsonl");
        let mut file = FollowedFile::new(path.clone());
        assert_eq!(file.poll(), [], "the file is not there yet");
        append(&path, "one\ntw");
        assert_eq!(file.poll(), [line(1, "one")]);
        append(&path, "o\n\nfour\n");
        assert_eq!(file.poll(), [line(2, "two"), line(4, "four")]);
        assert_eq!(file.poll(), []);
    }

    #[test]
    fn a_file_that_is_cut_or_replaced_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rank-0.jsonl");
        let mut file = FollowedFile::new(path.clone());
        append(&path, "one\ntwo\npart");
        assert_eq!(file.poll().len(), 2);
        fs::write(&path, "cut\n").expect("written");
        assert_eq!(file.poll(), [Followed::BegunAgain, line(1, "cut")]);
        let other = folder.path().join("other");
        fs::write(&other, "replaced, and longer than before\n").expect("written");
        fs::rename(&other, &path).expect("renamed");
        let replaced = line(1, "replaced, and longer than before");
        assert_eq!(file.poll(), [Followed::BegunAgain, replaced]);
    }

    #[test]
    fn long_lines_are_left_out_and_bars_are_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output.log");
        let mut file = FollowedFile::output(path.clone());
        append(&path, "10 %\r20 %\rdone\n");
        let bars = [line(1, "10 %"), line(2, "20 %"), line(3, "done")];
        assert_eq!(file.poll(), bars);
        append(&path, &"x".repeat(3 * LONGEST));
        append(&path, "\nnext\n");
        let mut seen = file.poll();
        while file.is_behind() {
            seen.extend(file.poll());
        }
        assert_eq!(seen, [Followed::TooLong(4), line(5, "next")]);
    }
}
