//! The log of a class: one file, to which only the board appends. A line is one fact with its time, in JSON. Board, page, tallies and
//! reports are folds of it (`state::RoomState`), at any moment of it.
//!
//! A fact counts once its line is on the disk. A line that was cut short by the end of a program or by a full disk is dropped when
//! the log is opened, and nobody was told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::record::{Question, RaceResult, SharedWork};
use crate::files;

/// The log's name in the folder of a room.
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
    /// The request in the folder that this carries out: it is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    #[serde(flatten)]
    pub fact: Fact,
}

/// Something that happened in the class. `who` is the id of a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// The room was opened for the first time, on that day.
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
    /// Somebody is heard again after they were away or had left.
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
    /// What a participant works on has changed.
    Work(Work),
    /// The result in a race that counts for a participant.
    Result {
        who: String,
        task: String,
        result: RaceResult,
    },
    /// A ballot in an open round, a = 0. The first of a participant counts.
    Ballot {
        who: String,
        round: u64,
        choice: usize,
    },
    /// A phone takes the seat of a participant at a computer: both are one person.
    Seated {
        phone: String,
        who: String,
    },
    /// Opens a round of a vote; any other vote is closed by it. A known round is open again.
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
        /// When the race ends by itself, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u64>,
    },
    /// The room is closed, which also closes its vote, or open again.
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
    /// The order in line `line` was taken back: the log means what it would mean without that line.
    Undone {
        line: u64,
    },
}

/// What has changed in a participant's work; `None` where nothing has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    pub who: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The stage or exercise that is open, and since when, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<(String, u64)>,
    /// Stages with something new, and those that the learner has begun anew.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stages: BTreeMap<String, Option<SharedWork>>,
}

/// Where a participant joined from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The address in the network.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// What a phone's browser looks like. Two phones may look the same.
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

/// Reads a log; the number of bytes that whole lines take, and the first damaged line that is not the last one.
pub fn read(path: &Path) -> io::Result<(Vec<Entry>, u64, Option<usize>)> {
    let bytes = match files::read(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let (mut entries, mut whole, mut damaged) = (Vec::new(), 0, None);
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !line.ends_with(b"\n") {
            break;
        }
        whole += line.len() as u64;
        match serde_json::from_slice(line) {
            Ok(entry) => entries.push(entry),
            Err(_) => damaged = damaged.or(Some(at + 1)),
        }
    }
    Ok((entries, whole, damaged))
}

/// The log of a board, open for appending.
pub struct LogFile {
    file: File,
    ends: Mutex<Ends>,
    /// Held while the file is flushed, so that one flush serves all who wait.
    flushing: Mutex<()>,
}

/// How far the log is written and kept, as bytes and lines.
#[derive(Clone, Copy)]
struct Ends {
    written: (u64, usize),
    kept: (u64, usize),
    /// Number of times that lines were taken back, because they could not be kept.
    lost: u64,
}

/// The end of lines that were written.
#[derive(Clone, Copy)]
pub struct Mark {
    end: u64,
    lost: u64,
}

impl LogFile {
    /// Opens the log after `whole` bytes in `lines` lines; what follows them is cut off.
    pub fn open(path: &Path, whole: u64, lines: usize) -> io::Result<Self> {
        let file = files::own(path)?;
        file.set_len(whole)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let end = (whole, lines);
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

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends lines. They count after `keep`.
    pub fn write(&self, entries: &[Entry]) -> io::Result<Mark> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        let mut ends = self.ends();
        write_at(&self.file, &lines, ends.written.0)?;
        ends.written.0 += lines.len() as u64;
        ends.written.1 += entries.len();
        Ok(Mark {
            end: ends.written.0,
            lost: ends.lost,
        })
    }

    /// Waits until the lines up to a mark are on the disk.
    pub fn keep(&self, mark: Mark) -> io::Result<()> {
        let _one = self.flushing.lock();
        let ends = *self.ends();
        if ends.lost != mark.lost {
            return Err(io::Error::other("an earlier line could not be kept"));
        }
        if ends.kept.0 < mark.end {
            self.file.sync_data()?;
            self.ends().kept = ends.written;
        }
        Ok(())
    }

    /// Takes back every line that is not kept; the number of lines that are left.
    pub fn roll_back(&self) -> usize {
        let mut ends = self.ends();
        // Where even this fails, the next write goes over the same place.
        let _ = self.file.set_len(ends.kept.0);
        ends.written = ends.kept;
        ends.lost += 1;
        ends.kept.1
    }
}

/// Writes at a place of the file.
fn write_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
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
            let (entries, whole, damaged) = read(&path).expect("read");
            let lines = all[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(
                (entries.len(), damaged),
                (lines, None),
                "cut after {cut} bytes"
            );
            let log = LogFile::open(&path, whole, lines).expect("opened");
            let next = log.write(&[hand(9)]).expect("written");
            log.keep(next).expect("kept");
            let (entries, ..) = read(&path).expect("read");
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
        let (entries, ..) = read(&path).expect("read");
        assert_eq!(entries, [hand(1), hand(3)]);
    }
}
