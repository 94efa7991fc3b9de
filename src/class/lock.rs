//! The lock of a room in a shared folder, so that only one board writes the log. Locks of the operating system are unreliable on shared
//! file systems, so the lock is a small file, `board.lock`, in which the board increases a counter every second. Another board that finds
//! the file watches it: if the counter stands still for `SILENCE`, the first board has ended, and the other one takes the room over.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::secrets::random_word;
use crate::files;
use crate::sanitize;

const LOCK_FILE: &str = "board.lock";
/// The longest lock that is read, in bytes.
const MOST_BYTES: u64 = 1024;
/// A board whose counter stands still for this time counts as ended.
pub const SILENCE: Duration = Duration::from_secs(15);
/// A board whose process on this machine no longer exists counts as ended after this shorter time.
const SILENCE_OF_DEAD_PROCESS: Duration = Duration::from_secs(2);
/// The interval at which the lock of another board is read. A new lock is also read again after this time, in case two boards have
/// written one at the same moment.
const READ_INTERVAL: Duration = Duration::from_millis(200);

/// The contents of the lock's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LockContents {
    host: String,
    process: u32,
    /// A random word that tells this board from every other.
    #[serde(rename = "by")]
    board: String,
    /// The counter that the board increases every second.
    #[serde(rename = "beat")]
    counter: u64,
}

/// The lock of a room, held by this program. Dropping the lock gives the room to the next board.
pub struct RoomLock {
    path: PathBuf,
    contents: LockContents,
}

impl RoomLock {
    /// Takes the lock of a folder. The inner error names the board that has the lock: `lectern (process 812)`.
    pub fn take(dir: &Path, host: &str, silence: Duration) -> io::Result<Result<Self, String>> {
        let path = dir.join(LOCK_FILE);
        if let Some(owner) = running_board(&path, host, silence) {
            return Ok(Err(owner));
        }
        let lock = Self {
            path,
            contents: LockContents {
                host: host.to_owned(),
                process: std::process::id(),
                board: random_word(16),
                counter: 0,
            },
        };
        lock.write()?;
        // If two boards write the file at the same moment, the later one has the lock.
        std::thread::sleep(READ_INTERVAL);
        match lock.other_owner() {
            Some(owner) => Ok(Err(owner)),
            None => Ok(Ok(lock)),
        }
    }

    /// Increases the counter in the file.
    ///
    /// # Errors
    /// If another board has taken the room over, or the file cannot be written.
    pub fn beat(&mut self) -> io::Result<()> {
        self.check()?;
        self.contents.counter += 1;
        self.write()
    }

    /// Checks that this board still has the room.
    ///
    /// # Errors
    /// If another board has taken it over.
    pub fn check(&self) -> io::Result<()> {
        match self.other_owner() {
            Some(owner) => Err(io::Error::other(format!(
                "{owner} has taken the room over; this board can no longer change it"
            ))),
            None => Ok(()),
        }
    }

    fn write(&self) -> io::Result<()> {
        files::write(&self.path, &serde_json::to_vec(&self.contents)?).map(drop)
    }

    /// Returns the board that the file names; `None` if it names this one, or if there is no file.
    fn other_owner(&self) -> Option<String> {
        let contents = read(&self.path)?;
        (contents.board != self.contents.board).then(|| contents.owner())
    }
}

impl Drop for RoomLock {
    fn drop(&mut self) {
        if self.other_owner().is_none() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl LockContents {
    /// Returns the board that has the lock, in words: `lectern (process 812)`.
    fn owner(&self) -> String {
        let host = sanitize::bounded(&self.host, 60);
        format!("{host} (process {})", self.process)
    }
}

/// Reads a lock; `None` if there is no readable file.
fn read(path: &Path) -> Option<LockContents> {
    let bytes = files::read(path, MOST_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Watches the lock of another board, to take the room over when that board has ended.
pub struct LockWatch {
    path: PathBuf,
    last: Option<LockContents>,
    /// The time since which the lock has stayed as `last`.
    since: Instant,
}

impl LockWatch {
    pub fn new(dir: &Path) -> Self {
        Self {
            path: dir.join(LOCK_FILE),
            last: None,
            since: Instant::now(),
        }
    }

    /// Reads the lock, and returns true if there is none or if its counter has stood still for `SILENCE`.
    pub fn is_over(&mut self) -> bool {
        let contents = read(&self.path);
        if contents != self.last {
            self.last = contents;
            self.since = Instant::now();
        }
        self.last.is_none() || self.since.elapsed() > SILENCE
    }
}

/// Waits until the lock changes, and returns its board. Returns `None` if there is no lock, or if it stays unchanged for `silence`.
fn running_board(path: &Path, host: &str, silence: Duration) -> Option<String> {
    let first = read(path)?;
    // Another machine may have the name of this one, so even a board whose process seems to be gone gets some time.
    let patience = if first.host == host && has_ended(first.process) {
        silence.min(SILENCE_OF_DEAD_PROCESS)
    } else {
        silence
    };
    let began = Instant::now();
    while began.elapsed() < patience {
        std::thread::sleep(READ_INTERVAL);
        let contents = read(path)?;
        if contents != first {
            return Some(contents.owner());
        }
    }
    None
}

/// Returns true if this machine has no process with this number. Where that cannot be found out, the answer is false.
fn has_ended(process: u32) -> bool {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, test_kill_process};
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        process.is_some_and(|process| test_kill_process(process) == Err(rustix::io::Errno::SRCH))
    }
    #[cfg(not(unix))]
    {
        let _ = process;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(600);

    #[test]
    fn a_room_has_one_board_and_a_silent_one_is_replaced() {
        let dir = tempfile::tempdir().expect("a folder");
        let take = |host: &str| RoomLock::take(dir.path(), host, SHORT).expect("a folder");
        let mut first = take("one").expect("free");
        let refused = std::thread::scope(|scope| {
            let second = scope.spawn(|| take("two").err());
            std::thread::sleep(Duration::from_millis(300));
            first.beat().expect("still held");
            second.join().expect("no panic")
        });
        let owner = refused.expect("taken");
        assert_eq!(owner, format!("one (process {})", std::process::id()));
        // A silent board, such as one on a sleeping laptop, loses the room. Its next beat says so.
        let third = take("three").expect("taken over");
        let why = first.beat().expect_err("lost").to_string();
        assert!(why.contains("three"), "{why}");
        drop(first);
        third
            .check()
            .expect("the end of a lost lock removes no file");
        drop(third);
        assert!(!dir.path().join(LOCK_FILE).exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_board_of_this_machine_that_was_killed_is_replaced_soon() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let process = child.id();
        child.wait().expect("ended");
        let contents = LockContents {
            host: "one".to_owned(),
            process,
            board: "x".to_owned(),
            counter: 7,
        };
        let text = serde_json::to_vec(&contents).expect("plain data");
        std::fs::write(dir.path().join(LOCK_FILE), text).expect("written");
        let began = Instant::now();
        let taken = RoomLock::take(dir.path(), "one", SILENCE).expect("a folder");
        assert!(taken.is_ok() && began.elapsed() < SILENCE / 3);
    }
}
