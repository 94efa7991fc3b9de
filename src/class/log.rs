//! The log of a class: one file, to which only the board appends. A line is one fact with its time, in JSON. Board, page, tallies and
//! reports are folds of it (`state::RoomState`), at any moment of it.
//!
//! A fact counts once its line is on the disk. A line that was cut short by the end of a program or by a full disk is dropped when
//! the log is opened, and nobody was told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::locked;
use super::record::{Question, RaceResult, SharedWork};
use crate::files;

/// The name of the log in the folder of a room.
pub const LOG: &str = "log.jsonl";
/// The longest log that is read, in bytes: a class of a thousand for some days.
const MOST_BYTES: u64 = 512 * 1024 * 1024;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the line, from 1.
    pub n: u64,
    /// Milliseconds since 1970 by the board's clock; never less than in the line before.
    pub t: u64,
    /// The name of the request in the folder that this line carries out, so that it is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    #[serde(flatten)]
    pub fact: Fact,
}

/// Something that happened in the class. `who` is the id of a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// The room was opened for the first time, on this day.
    Opened {
        version: u32,
        day: String,
    },
    Joined {
        who: String,
        name: String,
        /// The code with which a phone takes this seat.
        seat: String,
        #[serde(default)]
        origin: Origin,
    },
    Renamed {
        who: String,
        name: String,
    },
    /// A participant is heard again after being away or having left.
    Here {
        who: String,
    },
    /// Nothing was heard for a minute.
    Away {
        who: String,
    },
    Left {
        who: String,
    },
    Hand {
        who: String,
        up: bool,
    },
    /// The work of a participant changed.
    Work(Work),
    /// The result in a race that counts for a participant.
    Result {
        who: String,
        task: String,
        result: RaceResult,
    },
    /// A participant voted in an open round, a = 0. The first ballot counts.
    Ballot {
        who: String,
        round: u64,
        choice: usize,
    },
    /// A phone took the seat of a participant at a computer. Both are one person from now on.
    Seated {
        phone: String,
        who: String,
    },
    /// A round of a vote was opened, which closed any other vote. A known round is open again.
    VoteOpened {
        /// The stage, or the id of the question.
        vote: String,
        round: u64,
        choices: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    },
    VoteClosed {
        round: u64,
    },
    AnswerShown {
        vote: String,
        reason: String,
    },
    Offered {
        stage: Option<String>,
    },
    Race {
        task: Option<String>,
        /// The time at which the race ends by itself, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u64>,
    },
    /// The room was closed, which also closed its vote, or opened again.
    Closed {
        closed: bool,
    },
    Locked {
        locked: bool,
    },
    NamesRequired {
        required: bool,
    },
    Removed {
        who: BTreeSet<String>,
    },
    LetIn {},
    /// The order in this line was taken back. The log means what it would mean without that line.
    Undone {
        line: u64,
    },
}

/// A change of what a participant works on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    pub who: String,
    /// The new device; `None` if it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The stage or exercise that was opened, and the time of that in milliseconds since 1970; `None` if it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<(String, u64)>,
    /// The stages with something new; `None` for a stage that the learner has begun anew.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stages: BTreeMap<String, Option<SharedWork>>,
}

/// The place that a participant joined from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The address in the network; empty for a file in the folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The description of a phone's browser, which two phones may share; empty for a computer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub browser: String,
}

impl Fact {
    /// Returns true if this is an order of the instructor that can be taken back.
    pub fn is_order(&self) -> bool {
        matches!(
            self,
            Self::VoteOpened { .. }
                | Self::VoteClosed { .. }
                | Self::AnswerShown { .. }
                | Self::Offered { .. }
                | Self::Race { .. }
                | Self::Closed { .. }
                | Self::Locked { .. }
                | Self::NamesRequired { .. }
                | Self::Removed { .. }
                | Self::LetIn {}
        )
    }
}

/// The contents of a log.
#[derive(Debug, Default)]
pub struct ReadLog {
    pub entries: Vec<Entry>,
    /// The number of bytes of all whole lines. What follows them was cut short.
    pub whole: u64,
    /// The number of the first damaged line, from 1; `None` if every whole line could be read.
    pub damaged: Option<usize>,
}

/// Reads a log. A missing file is an empty log.
///
/// # Errors
/// If the file cannot be read.
pub fn read(path: &Path) -> io::Result<ReadLog> {
    let bytes = match files::read(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut log = ReadLog::default();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    for (line, number) in lines.zip(1..) {
        if !line.ends_with(b"\n") {
            break;
        }
        log.whole += line.len() as u64;
        match serde_json::from_slice(line) {
            Ok(entry) => log.entries.push(entry),
            Err(_) => log.damaged = log.damaged.or(Some(number)),
        }
    }
    Ok(log)
}

/// The log of a board, open for appending.
pub struct LogFile {
    file: File,
    ends: Mutex<Ends>,
    /// Held while the file is flushed, so that one flush serves all who wait.
    flushing: Mutex<()>,
}

/// A place in the log between two lines.
#[derive(Clone, Copy)]
struct LogEnd {
    bytes: u64,
    lines: usize,
}

/// The end of the lines that are written, and of those that are on the disk.
#[derive(Clone, Copy)]
struct Ends {
    written: LogEnd,
    kept: LogEnd,
    /// The number of times that lines were taken back, because they could not be kept.
    lost: u64,
}

/// The end of lines that were written but may not be on the disk yet.
#[derive(Clone, Copy)]
pub struct Mark {
    /// The bytes before it.
    end: u64,
    /// `Ends::lost` when they were written.
    lost: u64,
}

impl LogFile {
    /// Opens the log after its first `lines` lines, which have `bytes` bytes; what follows them is cut off.
    pub fn open(path: &Path, bytes: u64, lines: usize) -> io::Result<Self> {
        let file = files::own(path)?;
        file.set_len(bytes)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let end = LogEnd { bytes, lines };
        Ok(Self {
            file,
            ends: Mutex::new(Ends {
                written: end,
                kept: end,
                lost: 0,
            }),
            flushing: Mutex::new(()),
        })
    }

    /// Appends lines. They count once `keep` has returned for their mark.
    pub fn write(&self, entries: &[Entry]) -> io::Result<Mark> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        let mut ends = locked(&self.ends);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(ends.written.bytes))?;
        file.write_all(&lines)?;
        ends.written.bytes += lines.len() as u64;
        ends.written.lines += entries.len();
        Ok(Mark {
            end: ends.written.bytes,
            lost: ends.lost,
        })
    }

    /// Waits until the lines up to a mark are on the disk.
    ///
    /// # Errors
    /// If they cannot be written, or were taken back.
    pub fn keep(&self, mark: Mark) -> io::Result<()> {
        let _only_one = self.flushing.lock();
        let ends = *locked(&self.ends);
        if ends.lost != mark.lost {
            return Err(io::Error::other("an earlier line could not be kept"));
        }
        if ends.kept.bytes < mark.end {
            self.file.sync_data()?;
            locked(&self.ends).kept = ends.written;
        }
        Ok(())
    }

    /// Takes back every line that is not on the disk. Returns the number of lines that are left.
    pub fn roll_back(&self) -> usize {
        let mut ends = locked(&self.ends);
        // If even this fails, the next write goes over the same place.
        let _ = self.file.set_len(ends.kept.bytes);
        ends.written = ends.kept;
        ends.lost += 1;
        ends.kept.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hand(n: u64) -> Entry {
        Entry {
            n,
            t: 10 * n,
            request: None,
            fact: Fact::Hand {
                who: "a".to_owned(),
                up: n % 2 == 1,
            },
        }
    }

    #[test]
    fn a_log_cut_anywhere_opens_with_its_whole_lines() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(LOG);
        let log = LogFile::open(&path, 0, 0).expect("opened");
        let mark = log.write(&[hand(1), hand(2)]).expect("written");
        log.keep(mark).expect("kept");
        let all = std::fs::read(&path).expect("there");
        for cut in 0..=all.len() {
            std::fs::write(&path, &all[..cut]).expect("cut");
            let found = read(&path).expect("read");
            let lines = all[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(
                (found.entries.len(), found.damaged),
                (lines, None),
                "cut after {cut} bytes"
            );
            let log = LogFile::open(&path, found.whole, lines).expect("opened");
            let next = log.write(&[hand(9)]).expect("written");
            log.keep(next).expect("kept");
            let entries = read(&path).expect("read").entries;
            assert_eq!(entries.len(), lines + 1);
            assert_eq!(entries[lines], hand(9));
        }
    }

    #[test]
    fn lines_that_were_not_kept_are_taken_back() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(LOG);
        let log = LogFile::open(&path, 0, 0).expect("opened");
        let kept = log.write(&[hand(1)]).expect("written");
        log.keep(kept).expect("kept");
        let lost = log.write(&[hand(2)]).expect("written");
        assert_eq!(log.roll_back(), 1);
        assert!(log.keep(lost).is_err(), "nobody is told of a lost line");
        let next = log.write(&[hand(3)]).expect("written");
        log.keep(next).expect("kept");
        let entries = read(&path).expect("read").entries;
        assert_eq!(entries, [hand(1), hand(3)]);
    }
}
