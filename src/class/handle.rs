//! The board of a room: the one program that writes its log. Everything that changes the class goes through `commit`, which appends
//! the lines, waits until they are on the disk, and only then lets anybody be answered.

mod keeper;
mod looker;

pub use looker::RoomLooker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::board::Board;
use super::folder::{self, RoomFolder};
use super::link::{InstructorLink, RoomError};
use super::lock::{RoomLock, SILENCE};
use super::locked;
use super::log::{LOG, LogFile, Origin, read};
use super::phone::{PhoneRequest, PhoneView};
use super::record::{ClassState, InstructorRequest, Participant, VERSION};
use super::state::{JoinError, RoomState};
use crate::course::Course;
use crate::course::save_file::explain_write_error;
use keeper::{Keeper, hear, hear_file};
use protocol::machine;

/// A handle to the room; clones share its state. The room is free for another board once all are dropped.
#[derive(Clone)]
pub struct RoomHandle(Arc<OpenRoom>);

struct OpenRoom {
    state: Mutex<RoomState>,
    log: LogFile,
    lock: Mutex<RoomLock>,
    clock: RoomClock,
    course: Course,
    /// The addresses, as `HOST:PORT`, under which a phone has reached the room.
    reached: Mutex<BTreeSet<String>>,
}

/// A clock in milliseconds since 1970 that never goes back behind the log, whatever the clock of this machine is set to meanwhile.
struct RoomClock {
    since: Instant,
    since_ms: u64,
}

impl RoomClock {
    /// Returns a clock that shows the time of this machine, or the time of the last line if that is later.
    fn after(last_ms: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |since_1970| since_1970.as_millis() as u64);
        Self::at(now_ms.max(last_ms))
    }

    /// Returns a clock that shows this time now.
    fn at(since_ms: u64) -> Self {
        let since = Instant::now();
        Self { since, since_ms }
    }

    fn now_ms(&self) -> u64 {
        self.since_ms + self.since.elapsed().as_millis() as u64
    }
}

/// The reason why a room could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, strum::Display)]
pub enum OpenError {
    /// Another board has it, which is named here in words.
    #[strum(to_string = "{0} has this room open")]
    Taken(String),
    #[strum(to_string = "{0}")]
    Failed(String),
}

/// The reason why somebody got no answer from the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HearError {
    Refused(JoinError),
    /// The request is not on the disk, so it does not count.
    NotKept(String),
}

impl From<String> for HearError {
    fn from(why: String) -> Self {
        Self::NotKept(why)
    }
}

impl RoomHandle {
    /// Opens a room in a folder. `shared` means that participants have access to the folder.
    ///
    /// # Errors
    /// If another board has the room, or the folder cannot be used.
    pub fn open(dir: PathBuf, shared: bool, course: Course) -> Result<Self, OpenError> {
        Self::open_after(SILENCE, dir, shared, course)
    }

    /// Opens a room. Another board has it if its lock counts on within `silence`.
    fn open_after(
        silence: Duration,
        dir: PathBuf,
        shared: bool,
        course: Course,
    ) -> Result<Self, OpenError> {
        let folder = RoomFolder::new(dir.clone());
        folder.create(!shared).map_err(OpenError::Failed)?;
        if shared {
            folder.check_version().map_err(OpenError::Failed)?;
        }
        let failed = |error: std::io::Error| OpenError::Failed(folder.failed(&error));
        let lock = RoomLock::take(&dir, &host_name(), silence)
            .map_err(failed)?
            .map_err(OpenError::Taken)?;
        let path = dir.join(LOG);
        let found = read(&path).map_err(failed)?;
        let log = LogFile::open(&path, found.whole, found.entries.len()).map_err(failed)?;
        let mut room = RoomState::from_log(found.entries);
        let damaged = found
            .damaged
            .map(|line| format!("{LOG}: line {line} is damaged and left out"));
        room.note(LOG.to_owned(), damaged);
        let handle = Self(Arc::new(OpenRoom {
            clock: RoomClock::after(room.last_ms()),
            state: Mutex::new(room),
            log,
            lock: Mutex::new(lock),
            course,
            reached: Mutex::default(),
        }));
        handle.begin().map_err(OpenError::Failed)?;
        Keeper::start(&handle.0, shared.then_some(folder)).map_err(OpenError::Failed)?;
        Ok(handle)
    }

    /// Writes the first line of a new room; opens a closed one again.
    fn begin(&self) -> Result<(), String> {
        self.0.commit(|room, now_ms| {
            if room.history().is_empty() {
                let day = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
                room.open(VERSION, day, now_ms);
            }
            if room.class.closed {
                room.obey(&InstructorRequest::Close(false), &self.0.course, now_ms)?;
            }
            Ok(())
        })
    }

    /// Reads a room without opening it: its log, and what participants have left in the folder since. Ballots count only by the log.
    ///
    /// # Errors
    /// If there is no room, or it cannot be read.
    pub fn read(dir: PathBuf, course: &Course) -> Result<RoomState, String> {
        let mut folder = RoomFolder::new(dir.clone());
        if !folder::is_room(&dir) {
            return Err(folder.no_room());
        }
        let found = read(&dir.join(LOG)).map_err(|error| folder.failed(&error))?;
        let mut room = RoomState::from_log(found.entries);
        let now_ms = room.last_ms();
        for (file, mut record) in folder.read_changed()? {
            if let Ok(record) = &mut record {
                record.ballots = BTreeMap::new();
            }
            hear_file(&mut room, file, record, course, now_ms);
        }
        Ok(room)
    }

    /// Returns the state of the room. Its lock is not held while lines are brought to the disk.
    pub fn state(&self) -> MutexGuard<'_, RoomState> {
        locked(&self.0.state)
    }

    /// Returns the present board.
    pub fn board(&self) -> Board {
        Board::from_room(&self.state(), &self.0.course, self.0.clock.now_ms())
    }

    /// Receives a participant's record. Implausible results are left out, and the board lists them. Returns what the participant is
    /// told of the class.
    ///
    /// # Errors
    /// If the participant is refused, or the record could not be kept.
    pub fn hear(&self, record: Participant, origin: &Origin) -> Result<ClassState, HearError> {
        let id = record.id.clone();
        self.0.commit(|room, now_ms| {
            let heard = hear(room, record, origin, &self.0.course, now_ms);
            heard.map_err(HearError::Refused)
        })?;
        Ok(self.state().class_of(&id))
    }

    /// Receives a request of a phone. Returns what the phone sees then.
    ///
    /// # Errors
    /// If the phone is refused, or the request could not be kept.
    pub fn hear_phone(
        &self,
        asked: &PhoneRequest,
        origin: &Origin,
    ) -> Result<PhoneView, HearError> {
        self.0.commit(|room, now_ms| {
            let heard = room.hear_phone(asked, origin, now_ms);
            heard.map_err(HearError::Refused)
        })?;
        Ok(PhoneView::for_phone(
            &asked.id,
            &self.state(),
            &self.0.course,
        ))
    }

    /// Notes that a phone has reached the room under an address, `HOST:PORT`.
    pub fn note_reached(&self, host: &str) {
        let mut reached = locked(&self.0.reached);
        if reached.len() < 64 && !reached.contains(host) {
            reached.insert(host.to_owned());
        }
    }

    /// Returns the addresses under which a phone has reached the room.
    pub fn reached(&self) -> BTreeSet<String> {
        locked(&self.0.reached).clone()
    }

    /// Carries out a request of the instructor.
    ///
    /// # Errors
    /// If it is not possible, or could not be kept.
    pub fn order(&self, order: &InstructorRequest) -> Result<(), String> {
        self.0
            .commit(|room, now_ms| room.obey(order, &self.0.course, now_ms))
    }
}

impl InstructorLink for RoomHandle {
    fn board(&mut self) -> Result<Board, RoomError> {
        Ok(Self::board(self))
    }

    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError> {
        Self::order(self, order).map_err(RoomError::Later)
    }
}

impl OpenRoom {
    /// Changes the state by lines, and returns once they are on the disk. If they cannot be kept, nothing has changed.
    fn commit<E: From<String>>(
        &self,
        change: impl FnOnce(&mut RoomState, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut room = locked(&self.state);
        let before = room.history().len();
        let done = change(&mut room, self.clock.now_ms());
        let new = room.history()[before..].to_vec();
        if new.is_empty() {
            return done;
        }
        // A board that slept while another took the room over must not write.
        if let Err(lost) = locked(&self.lock).check() {
            room.roll_back(before);
            return Err(explain_write_error(&lost).into());
        }
        let kept = match self.log.write(&new) {
            Ok(mark) => {
                drop(room);
                let kept = self.log.keep(mark);
                room = locked(&self.state);
                kept
            }
            Err(error) => Err(error),
        };
        let fault = kept.err().map(|error| {
            room.roll_back(self.log.roll_back());
            format!(
                "the room's log could not be written: {}",
                explain_write_error(&error)
            )
        });
        room.note(LOG.to_owned(), fault.clone());
        match fault {
            Some(fault) => Err(fault.into()),
            None => done,
        }
    }
}

/// Returns the name that others on the network may know this machine by.
pub fn host_name() -> String {
    let name = machine::system("/proc/sys/kernel/hostname");
    let name = name.ok().or_else(|| std::env::var("COMPUTERNAME").ok());
    match name.unwrap_or_default().trim() {
        "" => "THIS-MACHINE".to_owned(),
        name => name.to_owned(),
    }
}
