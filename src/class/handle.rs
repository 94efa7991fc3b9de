//! The board of a room: the one program that writes its log. Everything that changes the class goes through `commit`, which appends
//! the lines, waits until they are on the disk, and only then lets anybody be answered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::board::Board;
use super::folder::{RecordFile, RoomFolder};
use super::link::{InstructorLink, RoomError};
use super::lock::{LockWatch, Owner, RoomLock, SILENCE};
use super::log::{LOG, LogFile, Origin, read};
use super::phone::{PhoneRequest, PhoneView};
use super::record::{ClassState, InstructorRequest, Participant, VERSION};
use super::state::{JoinError, RoomState};
use crate::course::Course;
use crate::course::save_file::in_words;
use protocol::machine;

/// Interval at which the lock is counted on, the folder is read and silence is noticed.
const LOOK: Duration = Duration::from_secs(1);

/// A handle to the room; clones share its state. The room is free for another board once all are dropped.
#[derive(Clone)]
pub struct RoomHandle(Arc<OpenRoom>);

struct OpenRoom {
    state: Mutex<RoomState>,
    log: LogFile,
    lock: Mutex<RoomLock>,
    clock: RoomClock,
    course: Course,
    /// Addresses, as `HOST:PORT`, under which a phone has reached the room.
    reached: Mutex<BTreeSet<String>>,
}

/// Milliseconds since 1970 that never go back behind the log, whatever the clock of this machine is set to meanwhile.
struct RoomClock {
    since: Instant,
    since_ms: u64,
}

impl RoomClock {
    fn after(last_ms: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self::at(now.map_or(0, |it| it.as_millis() as u64).max(last_ms))
    }

    fn at(since_ms: u64) -> Self {
        let since = Instant::now();
        Self { since, since_ms }
    }

    fn now_ms(&self) -> u64 {
        self.since_ms + self.since.elapsed().as_millis() as u64
    }
}

/// Why a room could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Another board has it.
    Taken(Owner),
    Failed(String),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken(Owner(owner)) => write!(f, "{owner} has this room open"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// Why somebody got no answer from the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HearError {
    Refused(JoinError),
    /// What was asked for is not on the disk, so it does not count.
    NotKept(String),
}

impl RoomHandle {
    /// Opens a room in a folder. `shared` means that participants have access to the folder.
    pub fn open(dir: PathBuf, shared: bool, course: Course) -> Result<Self, OpenError> {
        Self::open_after(SILENCE, dir, shared, course)
    }

    /// Opens a room; another board has it where its lock counts on within `silence`.
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
        let lock = RoomLock::take(&dir, &host_name(), silence);
        let lock = lock.map_err(failed)?.map_err(OpenError::Taken)?;
        let path = dir.join(LOG);
        let (entries, whole, damaged) = read(&path).map_err(failed)?;
        let lines = entries.len();
        let log = LogFile::open(&path, whole, lines).map_err(failed)?;
        let mut room = RoomState::of(entries);
        let damaged = damaged.map(|line| format!("{LOG}: line {line} is damaged and left out"));
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
        let mut keeper = Keeper {
            room: Arc::downgrade(&handle.0),
            folder: shared.then_some(folder),
            told: None,
        };
        keeper.keep_up().map_err(OpenError::Failed)?;
        let keep = move || {
            loop {
                std::thread::sleep(LOOK);
                // The room is told what could not be read or written; a dropped room ends the thread.
                if keeper.keep_up().is_ok_and(|open| !open) {
                    return;
                }
            }
        };
        let thread = Builder::new().name("room".to_owned()).spawn(keep);
        thread.map_err(|error| OpenError::Failed(error.to_string()))?;
        Ok(handle)
    }

    /// Writes the first line of a new room; opens a closed one again.
    fn begin(&self) -> Result<(), String> {
        self.0.commit(|room, now_ms| {
            if room.history().is_empty() {
                let day = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
                room.open(VERSION, day, now_ms);
            }
            match room.class.closed {
                true => room.obey(&InstructorRequest::Close(false), &self.0.course, now_ms),
                false => Ok(()),
            }
        })
    }

    /// Reads a room without opening it: its log, and what participants have left in the folder since. Ballots count only by the log.
    pub fn read(dir: PathBuf, course: &Course) -> Result<RoomState, String> {
        let mut folder = RoomFolder::new(dir.clone());
        if !super::folder::is_room(&dir) {
            return Err(folder.no_room());
        }
        let (entries, ..) = read(&dir.join(LOG)).map_err(|error| folder.failed(&error))?;
        let mut room = RoomState::of(entries);
        let now_ms = room.last_ms();
        for (file, record) in folder.read_changed()? {
            let record = record.map(|it| Participant {
                ballots: BTreeMap::new(),
                ..it
            });
            hear_file(&mut room, file, record, course, now_ms);
        }
        Ok(room)
    }

    /// The room's state. Its lock is not held while lines are brought to the disk.
    pub fn state(&self) -> MutexGuard<'_, RoomState> {
        self.0.state()
    }

    pub fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }

    /// The present board.
    pub fn board(&self) -> Board {
        Board::of(&self.state(), &self.0.course, self.now_ms())
    }

    /// Receives a participant's record. Implausible results are left out, and the board lists them.
    pub fn hear(&self, record: Participant, origin: &Origin) -> Result<ClassState, HearError> {
        let id = record.id.clone();
        self.0
            .commit(|room, now_ms| hear(room, record, origin, &self.0.course, now_ms))?;
        Ok(self.state().class_of(&id))
    }

    /// Receives what a phone asks for; what it sees then.
    pub fn hear_phone(
        &self,
        asked: &PhoneRequest,
        origin: &Origin,
    ) -> Result<PhoneView, HearError> {
        self.0.commit(|room, now_ms| {
            room.hear_phone(asked, origin, now_ms)
                .map_err(HearError::Refused)
        })?;
        Ok(PhoneView::of(&asked.id, &self.state(), &self.0.course))
    }

    /// Notes that a phone has reached the room under an address, `HOST:PORT`.
    pub fn note_reached(&self, host: &str) {
        let mut reached = self
            .0
            .reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if reached.len() < 64 && !reached.contains(host) {
            reached.insert(host.to_owned());
        }
    }

    /// The addresses under which a phone has reached the room.
    pub fn reached(&self) -> BTreeSet<String> {
        let reached = self.0.reached.lock();
        reached.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies a request of the instructor.
    pub fn order(&self, order: &InstructorRequest) -> Result<(), String> {
        self.0
            .commit(|room, now_ms| room.obey(order, &self.0.course, now_ms))
    }
}

impl From<String> for HearError {
    fn from(why: String) -> Self {
        Self::NotKept(why)
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
    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, RoomLock> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state by lines, and returns once they are on the disk. Where they cannot be kept, nothing has changed.
    fn commit<E: From<String>>(
        &self,
        change: impl FnOnce(&mut RoomState, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut room = self.state();
        let before = room.history().len();
        let done = change(&mut room, self.clock.now_ms());
        let new = room.history()[before..].to_vec();
        if new.is_empty() {
            return done;
        }
        // A board that slept while another took the room over must not write.
        if let Err(lost) = self.lock().check() {
            room.roll_back(before);
            return Err(in_words(&lost).into());
        }
        let kept = match self.log.write(&new) {
            Ok(mark) => {
                drop(room);
                let kept = self.log.keep(mark);
                room = self.state();
                kept
            }
            Err(error) => Err(error),
        };
        let why = kept.err().map(|error| {
            room.roll_back(self.log.roll_back());
            format!("the room's log could not be written: {}", in_words(&error))
        });
        room.note(LOG.to_owned(), why.clone());
        why.map_or(done, |why| Err(why.into()))
    }
}

/// Counts on in the lock, notices silence, and in a folder carries out what was left there and writes what everybody reads.
struct Keeper {
    room: Weak<OpenRoom>,
    /// Where participants write their files.
    folder: Option<RoomFolder>,
    /// The class as it was written last.
    told: Option<ClassState>,
}

impl Keeper {
    /// Returns whether the room is still open.
    fn keep_up(&mut self) -> Result<bool, String> {
        let Some(room) = self.room.upgrade() else {
            return Ok(false);
        };
        let beat = room.lock().beat();
        let lost = beat.err().map(|error| in_words(&error));
        room.state().note("lock".to_owned(), lost);
        room.commit(|state, now_ms| {
            state.fall_silent(now_ms);
            state.end_race(now_ms);
            Ok::<_, String>(())
        })?;
        let Some(folder) = &mut self.folder else {
            return Ok(true);
        };
        let (orders, found) = (folder.orders(), folder.read_changed());
        let unread = found.as_ref().err().cloned();
        let found = found.unwrap_or_default();
        room.commit(|state, now_ms| {
            for (name, order) in &orders {
                // An order that is no longer possible is dropped, as a key would be.
                let _ = state.obey_once(name, order, &room.course, now_ms);
            }
            for (file, record) in found {
                hear_file(state, file, record, &room.course, now_ms);
            }
            Ok::<_, String>(())
        })
        .inspect_err(|_| folder.forget())?;
        folder.done(&orders);
        let class = {
            let mut state = room.state();
            state.note(String::new(), unread);
            state.note("folder".to_owned(), folder.closed_to_others());
            let there = |file: &String| !file.ends_with(".json") || folder.has(file);
            let before = state.faults.len();
            state.faults.retain(|file, _| there(file));
            state.revision += (before - state.faults.len()) as u64;
            state.class_of_all()
        };
        if self.told.as_ref() != Some(&class) || folder.access_changed() {
            folder
                .write_class(&class)
                .map_err(|error| folder.failed(&error))?;
            self.told = Some(class);
        }
        Ok(true)
    }
}

/// Prefix of a participant's id in the list of faults, for implausible results.
const DOUBT: &str = "doubt ";

/// Receives a record without its implausible results, and notes that there were some, or clears this note.
fn hear(
    room: &mut RoomState,
    mut record: Participant,
    origin: &Origin,
    course: &Course,
    now_ms: u64,
) -> Result<(), HearError> {
    let doubt = record.leave_out_implausible(course);
    let id = record.id.clone();
    room.hear_from(record, origin, now_ms)
        .map_err(HearError::Refused)?;
    let name = room
        .person(&id)
        .map_or("", |it| room.name_of(&it.record))
        .to_owned();
    let doubt = doubt.map(|what| format!("{name} {what}"));
    room.note(format!("{DOUBT}{id}"), doubt);
    Ok(())
}

/// Receives a participant's file.
fn hear_file(room: &mut RoomState, file: String, record: RecordFile, course: &Course, now_ms: u64) {
    let why = match record {
        Ok(record) => {
            let id = record.id.clone();
            let refused = hear(room, record, &Origin::default(), course, now_ms).err();
            match refused {
                Some(HearError::Refused(why)) => drop(room.refused.insert(id, why.to_string())),
                _ => drop(room.refused.remove(&id)),
            }
            let full = refused == Some(HearError::Refused(JoinError::Full));
            full.then(|| "is left out: the room is full".to_owned())
        }
        Err(why) => Some(why),
    };
    room.note(file, why);
}

/// A board that only looks at a room in a folder, because another program has it. Its orders are left in the folder for that one. Once
/// that program has ended, this one takes the room over.
pub struct RoomLooker {
    own: Option<RoomHandle>,
    watch: LockWatch,
    dir: PathBuf,
    folder: RoomFolder,
    room: RoomState,
    /// Bytes of the log that were read, and the clock since.
    seen: u64,
    clock: RoomClock,
    course: Course,
}

impl RoomLooker {
    pub fn new(dir: PathBuf, course: Course) -> Self {
        Self {
            own: None,
            watch: LockWatch::new(&dir),
            folder: RoomFolder::new(dir.clone()),
            dir,
            room: RoomState::default(),
            seen: u64::MAX,
            clock: RoomClock::at(0),
            course,
        }
    }
}

impl InstructorLink for RoomLooker {
    fn board(&mut self) -> Result<Board, RoomError> {
        if self.own.is_none() && self.watch.is_over() {
            let (dir, course) = (self.dir.clone(), self.course.clone());
            self.own = RoomHandle::open_after(Duration::ZERO, dir, true, course).ok();
        }
        if let Some(handle) = &self.own {
            return Ok(RoomHandle::board(handle));
        }
        let path = self.dir.join(LOG);
        let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if bytes != self.seen {
            let read = read(&path).map_err(|error| RoomError::Later(self.folder.failed(&error)));
            self.room = RoomState::of(read?.0);
            (self.seen, self.clock) = (bytes, RoomClock::at(self.room.last_ms()));
        }
        Ok(Board::of(&self.room, &self.course, self.clock.now_ms()))
    }

    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError> {
        if let Some(handle) = &self.own {
            return RoomHandle::order(handle, order).map_err(RoomError::Later);
        }
        let left = self.folder.leave_order(order);
        left.map_err(|error| RoomError::Later(self.folder.failed(&error)))
    }
}

/// The name that others on the network may know this machine by.
pub fn host_name() -> String {
    let name = machine::system("/proc/sys/kernel/hostname");
    let name = name.ok().or_else(|| std::env::var("COMPUTERNAME").ok());
    match name.unwrap_or_default().trim() {
        "" => "THIS-MACHINE".to_owned(),
        name => name.to_owned(),
    }
}
