//! The lock of a room: a small file with host and process, in which the board counts on every second. File locks are stale or absent
//! on shared file systems. Whoever finds the file watches it by their own clock: if it does not change for `SILENCE`, they take the
//! room over.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::secrets::drawn;
use crate::files;
use crate::sanitize;

/// The file of the lock.
const LOCK: &str = "board.lock";
/// The longest lock that is read, in bytes.
const MOST_BYTES: u64 = 1024;
/// The silence after which a board counts as ended.
pub const SILENCE: Duration = Duration::from_secs(15);
/// The silence after which a board of this machine counts as ended if its process is gone.
const ENDED: Duration = Duration::from_secs(2);
/// The time between two looks at the lock of another board, and for which a new lock waits for one that came at the same time.
const LOOK: Duration = Duration::from_millis(200);

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    host: String,
    process: u32,
    /// A word that each board draws, which no other has.
    by: String,
    /// A number that grows every second.
    beat: u64,
}

/// The lock, held by this program. Dropping it opens the room for another board.
pub struct RoomLock {
    path: PathBuf,
    held: Held,
}

impl RoomLock {
    /// Takes the lock of a folder. The inner error is the board that has it, in words: `lectern (process 812)`.
    pub fn take(dir: &Path, host: &str, silence: Duration) -> io::Result<Result<Self, String>> {
        let path = dir.join(LOCK);
        if let Some(owner) = alive(&path, host, silence) {
            return Ok(Err(owner));
        }
        let mine = Self {
            path,
            held: Held {
                host: host.to_owned(),
                process: std::process::id(),
                by: drawn(16),
                beat: 0,
            },
        };
        files::write(&mine.path, &serde_json::to_vec(&mine.held)?)?;
        // Of two that come at the same moment, the later one has it.
        std::thread::sleep(LOOK);
        match read(&mine.path) {
            Some(held) if held.by != mine.held.by => Ok(Err(held.owner())),
            _ => Ok(Ok(mine)),
        }
    }

    /// Counts on.
    ///
    /// # Errors
    /// If another board has taken the room over, or the file cannot be written.
    pub fn beat(&mut self) -> io::Result<()> {
        self.check()?;
        self.held.beat += 1;
        files::write(&self.path, &serde_json::to_vec(&self.held)?).map(drop)
    }

    /// Checks that this board still has the room.
    ///
    /// # Errors
    /// If another board has taken it over.
    pub fn check(&self) -> io::Result<()> {
        match read(&self.path) {
            Some(held) if held.by != self.held.by => Err(io::Error::other(format!(
                "{} has taken the room over; this board only looks",
                held.owner()
            ))),
            _ => Ok(()),
        }
    }
}

impl Drop for RoomLock {
    fn drop(&mut self) {
        if read(&self.path).is_some_and(|held| held.by == self.held.by) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Held {
    /// Returns the board that has the lock, in words.
    fn owner(&self) -> String {
        let host = sanitize::bounded(&self.host, 60);
        format!("{host} (process {})", self.process)
    }
}

/// Reads the lock; `None` if there is none.
fn read(path: &Path) -> Option<Held> {
    let bytes = files::read(path, MOST_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Looks at the lock of another board, by this program's clock.
pub struct LockWatch {
    path: PathBuf,
    last: Option<Held>,
    /// The time at which the lock was first seen as it is.
    since: Instant,
}

impl LockWatch {
    pub fn new(dir: &Path) -> Self {
        Self {
            path: dir.join(LOCK),
            last: None,
            since: Instant::now(),
        }
    }

    /// Returns true if the board has ended, or was silent for long enough to be replaced.
    pub fn is_over(&mut self) -> bool {
        let now = read(&self.path);
        if now != self.last {
            (self.last, self.since) = (now, Instant::now());
        }
        self.last.is_none() || self.since.elapsed() > SILENCE
    }
}

/// Returns the board whose lock counts on; `None` if there is none. Waits for a beat, for `silence` at most.
fn alive(path: &Path, host: &str, silence: Duration) -> Option<String> {
    let first = read(path)?;
    // Another machine may have the same name, so even an ended process is given time for a beat.
    let patience = if first.host == host && has_ended(first.process) {
        silence.min(ENDED)
    } else {
        silence
    };
    let began = Instant::now();
    while began.elapsed() < patience {
        std::thread::sleep(LOOK);
        // A lock that was given back may be taken.
        let now = read(path)?;
        if now != first {
            return Some(now.owner());
        }
    }
    None
}

/// Returns true if a process of this machine is gone.
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
        let beating = std::thread::scope(|scope| {
            let second = scope.spawn(|| take("two").err());
            std::thread::sleep(Duration::from_millis(300));
            first.beat().expect("mine");
            second.join().expect("asked")
        });
        let owner = beating.expect("taken");
        assert_eq!(owner, format!("one (process {})", std::process::id()));
        // A board that is silent, as a laptop that sleeps, loses the room and hears so when it wakes.
        let third = take("three").expect("taken over");
        let said = first.beat().expect_err("lost").to_string();
        assert!(said.contains("three"), "{said}");
        drop(first);
        third.check().expect("another's end does not end it");
        drop(third);
        assert!(!dir.path().join(LOCK).exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_board_of_this_machine_that_was_killed_is_replaced_soon() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let process = child.id();
        child.wait().expect("ended");
        let host = "one".to_owned();
        let by = "x".to_owned();
        let held = Held {
            host,
            process,
            by,
            beat: 7,
        };
        let text = serde_json::to_vec(&held).expect("plain data");
        std::fs::write(dir.path().join(LOCK), text).expect("written");
        let began = Instant::now();
        let taken = RoomLock::take(dir.path(), "one", SILENCE).expect("a folder");
        assert!(taken.is_ok() && began.elapsed() < SILENCE / 3);
    }
}
