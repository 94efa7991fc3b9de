//! The log of a class: one file, to which only the board appends. Each line is one fact with its time, in JSON:
//!
//! ```text
//! {"n":7,"t":1768470000000,"ballot":{"who":"3f…","round":6,"choice":1}}
//! ```
//!
//! `state::RoomState` computes from these lines everything that the board and the reports show. A fact counts once its line is on the
//! disk, and only then is it answered. So a line that a crash or a full disk has cut short can be dropped when the log is opened again:
//! nobody has been promised that it counts.

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
pub struct LogLine {
    /// The number of the line, from 1.
    #[serde(rename = "n")]
    pub number: u64,
    /// Milliseconds since 1970 by the board's clock; never less than in the line before.
    #[serde(rename = "t")]
    pub time_ms: u64,
    /// The name of the file in the folder with the order that led to this line. An order whose file is in the log is not carried out
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    #[serde(flatten)]
    pub fact: Fact,
}

/// Something that happened in the class. `who` is always the id of a participant.
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
        /// The code with which a phone joins as this participant.
        seat: String,
        #[serde(default)]
        origin: Origin,
    },
    Renamed {
        who: String,
        name: String,
    },
    /// A participant is here again after being away or having left.
    Here {
        who: String,
    },
    /// A participant has sent nothing for a minute.
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
    /// The work of a participant has changed.
    Work(WorkChange),
    /// A participant has a result in a race, which replaces an earlier one.
    Result {
        who: String,
        task: String,
        result: RaceResult,
    },
    /// A participant has voted for the first time in a round that was open.
    Ballot {
        who: String,
        round: u64,
        /// The first answer, a, is 0.
        choice: usize,
    },
    /// The phone with the id `phone` has joined as a participant who sits at a computer. From now on the two count as one person.
    Seated {
        phone: String,
        who: String,
    },
    /// A round of a vote was opened, and any other vote closed. If the last round of this vote has this number, it is open again.
    VoteOpened {
        /// The id of the stage or of the question.
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
    /// The room was closed together with its open vote; with `false` it was opened again.
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
    /// The order in the line with this number was taken back. The log now means what it would mean without that line.
    Undone {
        line: u64,
    },
}

/// The part of a participant's work that differs from what the log already says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkChange {
    pub who: String,
    /// The device; `None` if it has not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The stage or exercise that was opened, and when, in milliseconds since 1970; `None` if it has not changed.
    #[serde(rename = "here", skip_serializing_if = "Option::is_none")]
    pub opened: Option<(String, u64)>,
    /// The stages whose work has changed; `None` for a stage that the learner has begun anew.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stages: BTreeMap<String, Option<SharedWork>>,
}

/// The place that a participant joined from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The IP address; empty for a participant in a folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The description of a phone's browser, which is the same for two phones of one model; empty for a computer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub browser: String,
}

impl Fact {
    /// Returns true if this fact follows from an order of the instructor that can be taken back.
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
pub struct LogContents {
    pub lines: Vec<LogLine>,
    /// The length of all whole lines, in bytes. The bytes after them belong to a line that was cut short.
    pub whole_bytes: u64,
    /// The number in the file, from 1, of the first line that is whole but cannot be read; `None` if there is none.
    pub damaged: Option<usize>,
}

/// Reads a log. A missing file counts as an empty log.
///
/// # Errors
/// If the file exists and cannot be read, or is longer than 512 MiB.
pub fn read(path: &Path) -> io::Result<LogContents> {
    let bytes = match files::read(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut log = LogContents::default();
    for (line, number) in bytes.split_inclusive(|byte| *byte == b'\n').zip(1..) {
        if !line.ends_with(b"\n") {
            break;
        }
        log.whole_bytes += line.len() as u64;
        match serde_json::from_slice(line) {
            Ok(read_line) => log.lines.push(read_line),
            Err(_) => log.damaged = log.damaged.or(Some(number)),
        }
    }
    Ok(log)
}

/// The log of a board, open for appending. Lines are written in two steps, so that many threads can wait for one flush of the file:
/// `write` hands lines to the operating system, and `sync` waits until the disk has them.
pub struct LogFile {
    file: File,
    progress: Mutex<LogLengths>,
    /// Held while the file is flushed. The threads that wait for it find their lines flushed, too.
    flushing: Mutex<()>,
}

/// The length of the first lines of a log.
#[derive(Clone, Copy)]
struct Length {
    bytes: u64,
    lines: usize,
}

/// The length of a log, and the length that is safely on the disk.
#[derive(Clone, Copy)]
struct LogLengths {
    written: Length,
    synced: Length,
    /// The number of calls of `roll_back`.
    rollbacks: u64,
}

/// A receipt for written lines, with which `LogFile::sync` waits for them.
#[derive(Clone, Copy)]
pub struct Mark {
    /// The length of the log up to and with these lines, in bytes.
    end_bytes: u64,
    /// `LogLengths::rollbacks` when the lines were written. A larger number later means that they were taken back.
    rollbacks: u64,
}

impl LogFile {
    /// Opens a log, and cuts off everything after its first `lines` lines, which are `bytes` long.
    pub fn open(path: &Path, bytes: u64, lines: usize) -> io::Result<Self> {
        let file = files::own(path)?;
        file.set_len(bytes)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let length = Length { bytes, lines };
        Ok(Self {
            file,
            progress: Mutex::new(LogLengths {
                written: length,
                synced: length,
                rollbacks: 0,
            }),
            flushing: Mutex::new(()),
        })
    }

    /// Appends lines. They count only after `sync` has returned for the mark.
    pub fn write(&self, lines: &[LogLine]) -> io::Result<Mark> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        let mut progress = locked(&self.progress);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(progress.written.bytes))?;
        file.write_all(&text)?;
        progress.written.bytes += text.len() as u64;
        progress.written.lines += lines.len();
        Ok(Mark {
            end_bytes: progress.written.bytes,
            rollbacks: progress.rollbacks,
        })
    }

    /// Waits until the lines of a mark are on the disk.
    ///
    /// # Errors
    /// If the disk does not take them, or if they have been taken back since.
    pub fn sync(&self, mark: Mark) -> io::Result<()> {
        let _only_one = self.flushing.lock();
        let progress = *locked(&self.progress);
        if progress.rollbacks != mark.rollbacks {
            return Err(io::Error::other("an earlier line could not be kept"));
        }
        if progress.synced.bytes < mark.end_bytes {
            self.file.sync_data()?;
            locked(&self.progress).synced = progress.written;
        }
        Ok(())
    }

    /// Takes back every line that is not on the disk. Returns the number of lines that remain.
    pub fn roll_back(&self) -> usize {
        let mut progress = locked(&self.progress);
        // If the file cannot be cut, the next write overwrites the lines that were taken back.
        let _ = self.file.set_len(progress.synced.bytes);
        progress.written = progress.synced;
        progress.rollbacks += 1;
        progress.synced.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64) -> LogLine {
        LogLine {
            number,
            time_ms: 10 * number,
            request: None,
            fact: Fact::Hand {
                who: "a".to_owned(),
                up: number % 2 == 1,
            },
        }
    }

    #[test]
    fn a_log_cut_anywhere_opens_with_its_whole_lines() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(LOG);
        let log = LogFile::open(&path, 0, 0).expect("opened");
        let mark = log.write(&[line(1), line(2)]).expect("written");
        log.sync(mark).expect("synced");
        let all = std::fs::read(&path).expect("there");
        for cut in 0..=all.len() {
            std::fs::write(&path, &all[..cut]).expect("cut");
            let found = read(&path).expect("read");
            let whole_lines = all[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(
                (found.lines.len(), found.damaged),
                (whole_lines, None),
                "cut after {cut} bytes"
            );
            let log = LogFile::open(&path, found.whole_bytes, whole_lines).expect("opened");
            let next = log.write(&[line(9)]).expect("written");
            log.sync(next).expect("synced");
            let lines = read(&path).expect("read").lines;
            assert_eq!(lines.len(), whole_lines + 1);
            assert_eq!(lines[whole_lines], line(9));
        }
    }

    #[test]
    fn lines_that_are_not_on_the_disk_are_taken_back() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(LOG);
        let log = LogFile::open(&path, 0, 0).expect("opened");
        let synced = log.write(&[line(1)]).expect("written");
        log.sync(synced).expect("synced");
        let lost = log.write(&[line(2)]).expect("written");
        assert_eq!(log.roll_back(), 1);
        assert!(log.sync(lost).is_err(), "a lost line is never confirmed");
        let next = log.write(&[line(3)]).expect("written");
        log.sync(next).expect("synced");
        assert_eq!(read(&path).expect("read").lines, [line(1), line(3)]);
    }
}
