//! Reads the lines that are appended to a file. A file that is replaced, cut, or missing for a while is followed on.
//!
//! ```text
//! the program appends       poll() returns
//! one⏎tw                    Line(1, "one")
//! o⏎                        Line(2, "two")
//! (a new file: new⏎)        BegunAgain, Line(1, "new")
//! ```

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::files;

/// The most bytes of a line that is read.
const MAX_LINE: usize = 1 << 20;
/// The most bytes of one poll, so that a file that grows fast neither keeps the screen from drawing nor fills its memory.
const MAX_POLL: u64 = 1 << 17;

/// What one poll of a file found.
#[derive(Debug, PartialEq)]
pub(super) enum Followed {
    /// A whole line, without its end, and its number from 1.
    Line(u64, String),
    /// The line with this number has more than `MAX_LINE` bytes, so it is left out.
    TooLong(u64),
    /// The file was replaced or cut. The next lines come from its beginning.
    BegunAgain,
}

/// A file that is followed.
#[derive(Debug, Default)]
pub(super) struct FollowedFile {
    path: PathBuf,
    open: Option<(File, FileId)>,
    /// The number of bytes read so far.
    offset: u64,
    /// True if the last poll read as much as a poll may, so that the file may have more.
    is_behind: bool,
    /// The bytes of the line that is not complete yet.
    partial: Vec<u8>,
    /// True if the line that is not complete yet is already too long.
    is_too_long: bool,
    /// The number of lines that ended so far.
    lines: u64,
    /// True if a carriage return ends a line, too, as in the output of a program with progress bars.
    ends_at_return: bool,
}

/// The identity of a file, which differs between two files that had one name: device and inode, or the time of creation.
type FileId = (u64, u64);

#[cfg(unix)]
fn id_of(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn id_of(metadata: &Metadata) -> FileId {
    let created = metadata.created().ok();
    let age = created.and_then(|created| created.duration_since(std::time::UNIX_EPOCH).ok());
    (0, age.map_or(0, |age| age.as_nanos() as u64))
}

impl FollowedFile {
    /// Follows a file of JSON lines.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// Follows the output of a program, in which a carriage return ends a line, too.
    pub(super) fn output(path: PathBuf) -> Self {
        Self {
            ends_at_return: true,
            ..Self::new(path)
        }
    }

    /// Returns the lines that were appended since the last call. Empty while the file does not exist.
    pub(super) fn poll(&mut self) -> Vec<Followed> {
        let mut found = Vec::new();
        self.is_behind = false;
        let Ok(metadata) = std::fs::metadata(&self.path) else {
            return found;
        };
        if !metadata.is_file() {
            return found;
        }
        let id = id_of(&metadata);
        let is_same = self.open.as_ref().is_some_and(|(_, known)| *known == id);
        if !is_same || metadata.len() < self.offset {
            let Ok((file, _)) = files::stream(&self.path) else {
                return found;
            };
            if self.open.is_some() {
                found.push(Followed::BegunAgain);
            }
            self.open = Some((file, id));
            self.offset = 0;
            self.lines = 0;
            self.is_too_long = false;
            self.partial.clear();
        }
        self.read(&mut found);
        found
    }

    /// Returns true if the next poll reads more at once, without waiting for the program to write.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Reads from the offset on and adds the lines that end there.
    fn read(&mut self, found: &mut Vec<Followed>) {
        let Some((file, _)) = &mut self.open else {
            return;
        };
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.take(MAX_POLL).read_to_end(&mut bytes));
        if read.is_err() {
            // A file on a network may fail for a moment. The next poll reads from the same offset.
            return;
        }
        self.offset += bytes.len() as u64;
        self.is_behind = bytes.len() as u64 == MAX_POLL;
        for byte in bytes {
            if byte == b'\n' || self.ends_at_return && byte == b'\r' {
                self.end_line(found);
            } else if self.partial.len() < MAX_LINE {
                self.partial.push(byte);
            } else {
                self.is_too_long = true;
            }
        }
    }

    /// Adds the line that is complete now. A blank line counts, but is left out.
    fn end_line(&mut self, found: &mut Vec<Followed>) {
        self.lines += 1;
        let line = std::mem::take(&mut self.partial);
        if std::mem::take(&mut self.is_too_long) {
            found.push(Followed::TooLong(self.lines));
        } else if !line.iter().all(u8::is_ascii_whitespace) {
            let text = String::from_utf8_lossy(&line).into_owned();
            found.push(Followed::Line(self.lines, text));
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

        append(&path, &"x".repeat(3 * MAX_LINE));
        append(&path, "\nnext\n");
        let mut found = file.poll();
        while file.is_behind() {
            found.extend(file.poll());
        }
        assert_eq!(found, [Followed::TooLong(4), line(5, "next")]);
    }
}
