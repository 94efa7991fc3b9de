//! An open room: the one program that writes the log of a class, which is called its board. Every change of the class goes through
//! `OpenRoom::commit`, which appends lines to the log and returns once they are on the disk. Only then is anybody answered.

mod keeper;
mod second_board;

pub use second_board::SecondBoard;

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
use keeper::{receive_file, receive_plausible, start_keeper};
use protocol::machine;

/// A handle to an open room. Clones are handles to the same room; once all are dropped, another board can open the room.
#[derive(Clone)]
pub struct RoomHandle(Arc<OpenRoom>);

struct OpenRoom {
    state: Mutex<RoomState>,
    log: LogFile,
    lock: Mutex<RoomLock>,
    clock: RoomClock,
    course: Course,
    /// The addresses, `HOST:PORT`, under which a phone has reached the room.
    reached: Mutex<BTreeSet<String>>,
}

/// A clock in milliseconds since 1970 that never goes back, whatever the clock of this machine is set to while the room is open.
struct RoomClock {
    start: Instant,
    start_ms: u64,
}

impl RoomClock {
    /// Returns a clock that shows the time of this machine, or the time of the log's last line if that is later.
    fn after(last_ms: u64) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = since_1970.map_or(0, |duration| duration.as_millis() as u64);
        Self::starting_at(now_ms.max(last_ms))
    }

    /// Returns a clock that shows `start_ms` at this moment.
    fn starting_at(start_ms: u64) -> Self {
        let start = Instant::now();
        Self { start, start_ms }
    }

    fn now_ms(&self) -> u64 {
        self.start_ms + self.start.elapsed().as_millis() as u64
    }
}

/// The reason why a room could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, strum::Display)]
pub enum OpenError {
    /// Another board has the room open. The text names it: `lectern (process 812)`.
    #[strum(to_string = "{0} has this room open")]
    Taken(String),
    #[strum(to_string = "{0}")]
    Failed(String),
}

/// The reason why the room has not accepted a record or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Join(JoinError),
    /// The log could not be written, so the request does not count.
    NotLogged(String),
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::NotLogged(why)
    }
}

impl RoomHandle {
    /// Opens the room in a folder, and creates the room if there is none. If the room is `shared`, participants write into the folder;
    /// otherwise only this user can open it.
    ///
    /// # Errors
    /// If another board has the room open, or the folder cannot be used.
    pub fn open(dir: PathBuf, shared: bool, course: Course) -> Result<Self, OpenError> {
        Self::open_after(SILENCE, dir, shared, course)
    }

    /// Opens a room after waiting for `silence` that the lock of another board stands still.
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
        let log = LogFile::open(&path, found.whole_bytes, found.lines.len()).map_err(failed)?;
        let mut room = RoomState::from_log(found.lines);
        let damaged = found
            .damaged
            .map(|line| format!("{LOG}: line {line} is damaged and left out"));
        room.set_fault(LOG.to_owned(), damaged);
        let handle = Self(Arc::new(OpenRoom {
            clock: RoomClock::after(room.last_ms()),
            state: Mutex::new(room),
            log,
            lock: Mutex::new(lock),
            course,
            reached: Mutex::default(),
        }));
        handle.begin().map_err(OpenError::Failed)?;
        start_keeper(&handle.0, shared.then_some(folder)).map_err(OpenError::Failed)?;
        Ok(handle)
    }

    /// Writes the first line of a new room, and opens a closed room again.
    fn begin(&self) -> Result<(), String> {
        self.0.commit(|room, now_ms| {
            if room.history().is_empty() {
                let day = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
                room.open(VERSION, day, now_ms);
            }
            if room.class.closed {
                room.carry_out(&InstructorRequest::Close(false), &self.0.course, now_ms)?;
            }
            Ok(())
        })
    }

    /// Reads a room without opening it: its log, and the participants' files that are newer than the log. Of these files' ballots none
    /// counts, because only the board can tell whether a round was open.
    ///
    /// # Errors
    /// If there is no room in the folder, or it cannot be read.
    pub fn read(dir: PathBuf, course: &Course) -> Result<RoomState, String> {
        let mut folder = RoomFolder::new(dir.clone());
        if !folder::is_room(&dir) {
            return Err(folder.no_room());
        }
        let found = read(&dir.join(LOG)).map_err(|error| folder.failed(&error))?;
        let mut room = RoomState::from_log(found.lines);
        let now_ms = room.last_ms();
        for (file, mut record) in folder.read_changed()? {
            if let Ok(record) = &mut record {
                record.ballots = BTreeMap::new();
            }
            receive_file(&mut room, file, record, course, now_ms);
        }
        Ok(room)
    }

    /// Returns the state of the room. This does not wait for the disk: the state is not locked while lines are flushed.
    pub fn state(&self) -> MutexGuard<'_, RoomState> {
        locked(&self.0.state)
    }

    /// Returns the present board.
    pub fn board(&self) -> Board {
        Board::from_room(&self.state(), &self.0.course, self.0.clock.now_ms())
    }

    /// Receives a participant's record, and returns the state of the class for this participant. Implausible results are left out, and
    /// the board lists them.
    ///
    /// # Errors
    /// If the participant is refused, or the log cannot be written.
    pub fn receive(&self, record: Participant, origin: &Origin) -> Result<ClassState, Refusal> {
        let id = record.id.clone();
        self.0.commit(|room, now_ms| {
            receive_plausible(room, record, origin, &self.0.course, now_ms).map_err(Refusal::Join)
        })?;
        Ok(self.state().class_for(&id))
    }

    /// Receives a request of a phone, and returns what the phone shows next.
    ///
    /// # Errors
    /// If the phone is refused, or the log cannot be written.
    pub fn receive_phone(
        &self,
        request: &PhoneRequest,
        origin: &Origin,
    ) -> Result<PhoneView, Refusal> {
        self.0.commit(|room, now_ms| {
            room.receive_phone(request, origin, now_ms)
                .map_err(Refusal::Join)
        })?;
        Ok(PhoneView::for_phone(
            &request.id,
            &self.state(),
            &self.0.course,
        ))
    }

    /// Remembers an address, `HOST:PORT`, under which a phone has reached the room.
    pub fn add_reached(&self, host: &str) {
        let mut reached = locked(&self.0.reached);
        if reached.len() < 64 && !reached.contains(host) {
            reached.insert(host.to_owned());
        }
    }

    /// Returns the addresses under which a phone has reached the room.
    pub fn reached(&self) -> BTreeSet<String> {
        locked(&self.0.reached).clone()
    }

    /// Carries out an order of the instructor.
    ///
    /// # Errors
    /// If the order is not possible, or the log cannot be written.
    pub fn order(&self, order: &InstructorRequest) -> Result<(), String> {
        self.0
            .commit(|room, now_ms| room.carry_out(order, &self.0.course, now_ms))
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
    /// Lets `change` append lines to the log, and returns once they are on the disk. `change` also receives the present time in
    /// milliseconds. If the lines cannot be written, the state is as it was before.
    ///
    /// # Errors
    /// The error of `change`, or one that says why the log cannot be written.
    fn commit<E: From<String>>(
        &self,
        change: impl FnOnce(&mut RoomState, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut room = locked(&self.state);
        let before = room.history().len();
        let changed = change(&mut room, self.clock.now_ms());
        let new = room.history()[before..].to_vec();
        if new.is_empty() {
            return changed;
        }
        // A board that slept while another took the room over must not write.
        if let Err(lost) = locked(&self.lock).check() {
            room.roll_back(before);
            return Err(explain_write_error(&lost).into());
        }
        let written = match self.log.write(&new) {
            Ok(mark) => {
                // Other threads may read and change the state while this one waits for the disk.
                drop(room);
                let synced = self.log.sync(mark);
                room = locked(&self.state);
                synced
            }
            Err(error) => Err(error),
        };
        let fault = written.err().map(|error| {
            room.roll_back(self.log.roll_back());
            format!(
                "the room's log could not be written: {}",
                explain_write_error(&error)
            )
        });
        room.set_fault(LOG.to_owned(), fault.clone());
        match fault {
            Some(fault) => Err(fault.into()),
            None => changed,
        }
    }
}

/// Returns the name of this machine, under which others on the network may reach it; `THIS-MACHINE` if it has none.
pub fn host_name() -> String {
    let name = machine::system("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("COMPUTERNAME"))
        .unwrap_or_default();
    match name.trim() {
        "" => "THIS-MACHINE".to_owned(),
        name => name.to_owned(),
    }
}
