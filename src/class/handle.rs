//! The instructor's side of a room: one state, which is updated from the folder, or by the server and then written to the folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::board::Board;
use super::folder::{RecordFile, RoomFolder};
use super::link::{InstructorLink, RoomError};
use super::record::{ClassState, InstructorRequest, Participant};
use super::state::{JoinError, RoomState};
use crate::course::Course;
use crate::course::save_file::in_words;

/// Interval at which the folder is read, or received records are written to it.
const LOOK: Duration = Duration::from_secs(1);

/// A handle to the room; clones share its state.
#[derive(Clone)]
pub struct RoomHandle {
    room: Arc<Mutex<RoomState>>,
    folder: Arc<RoomFolder>,
    began: Instant,
    /// Whether participants write their files themselves; over the network this side writes them.
    shared: bool,
    course: Arc<Course>,
}

impl RoomHandle {
    /// Opens a room in a folder. `shared` means that participants can access the folder.
    pub fn open(dir: PathBuf, shared: bool, course: Course) -> Result<Self, String> {
        let folder = |dir| match shared {
            true => RoomFolder::new(dir),
            false => RoomFolder::private(dir),
        };
        let mut keeper = FolderSync {
            folder: folder(dir.clone()),
            class: ClassState::new(),
            written: BTreeMap::new(),
        };
        keeper.class = keeper.folder.open()?;
        let mut room = RoomState::new(keeper.class.clone());
        take(&mut room, keeper.folder.read_changed()?, &course, 0);
        let handle = Self {
            room: Arc::new(Mutex::new(room)),
            folder: Arc::new(folder(dir)),
            began: Instant::now(),
            shared,
            course: Arc::new(course),
        };
        let of = handle.clone();
        let keep = move || {
            loop {
                std::thread::sleep(LOOK);
                keeper.keep_up(&of);
            }
        };
        let thread = Builder::new().name("room".to_owned()).spawn(keep);
        thread.map_err(|error| error.to_string())?;
        Ok(handle)
    }

    /// Reads a room's folder without opening the room.
    pub fn read(dir: PathBuf, course: &Course) -> Result<RoomState, String> {
        let mut folder = RoomFolder::new(dir);
        let class = folder.class().map_err(|why| why.to_string())?;
        let mut room = RoomState::new(class);
        take(&mut room, folder.read_changed()?, course, 0);
        Ok(room)
    }

    /// The room's state. The lock is never held while a file is read or written.
    pub fn state(&self) -> MutexGuard<'_, RoomState> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// The present board.
    pub fn board(&self) -> Board {
        Board::of(&self.state(), &self.course, self.now_ms())
    }

    /// Receives a participant's record. Implausible results are left out, and the board lists them.
    pub fn hear(&self, record: Participant) -> Result<ClassState, JoinError> {
        let now_ms = self.now_ms();
        let mut room = self.state();
        hear(&mut room, record, &self.course, now_ms)?;
        Ok(room.class.clone())
    }

    /// Applies a request of the instructor, and writes the class to the folder.
    pub fn order(&self, order: &InstructorRequest) -> Result<(), String> {
        // A presenter on another machine may have changed the class.
        let newest = self.shared.then(|| self.folder.class().ok()).flatten();
        let mut room = self.state();
        if let Some(class) = newest {
            room.class = class;
        }
        room.apply(order);
        let class = room.class.clone();
        drop(room);
        self.folder.write_class(&class).map_err(not_written)
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

/// Synchronises the state with the folder.
struct FolderSync {
    folder: RoomFolder,
    /// The class as last read from or written to the file.
    class: ClassState,
    /// The last written record of each participant.
    written: BTreeMap<String, Participant>,
}

impl FolderSync {
    fn keep_up(&mut self, handle: &RoomHandle) {
        if handle.shared {
            let (class, found) = (self.folder.class(), self.folder.read_changed());
            let now_ms = handle.now_ms();
            let mut room = handle.state();
            if let Ok(class) = class
                && room.class == self.class
                && class != self.class
            {
                (self.class, room.class) = (class.clone(), class);
                room.revision += 1;
                room.drop_removed();
            }
            room.note(String::new(), found.as_ref().err().cloned());
            take(&mut room, found.unwrap_or_default(), &handle.course, now_ms);
            let there =
                |file: &String| file.is_empty() || self.folder.has(file) || file.starts_with(DOUBT);
            let before = room.faults.len();
            room.faults.retain(|file, _| there(file));
            room.revision += (before - room.faults.len()) as u64;
        } else {
            self.write_participants(handle);
        }
        let class = handle.state().class.clone();
        if class != self.class && self.folder.write_class(&class).is_ok() {
            self.class = class;
        }
    }

    /// Writes records that came over the network, which keeps them when this process ends.
    fn write_participants(&mut self, handle: &RoomHandle) {
        let still = |it: &Participant| Participant {
            sequence: 0,
            here_s: 0,
            ..it.clone()
        };
        let room = handle.state();
        let people = room.people.values().map(|it| &it.record);
        let changed = people.filter(|it| self.written.get(&it.id) != Some(&still(it)));
        let changed: Vec<Participant> = changed.cloned().collect();
        drop(room);
        for record in changed {
            let written = self.folder.write_participant(&record);
            let why = written.err().map(not_written);
            let fails = why.is_some();
            handle.state().note(String::new(), why);
            if fails {
                return;
            }
            self.written.insert(record.id.clone(), still(&record));
        }
    }
}

/// Prefix of a participant's id in the list of faults, for implausible results.
const DOUBT: &str = "doubt ";

fn not_written(error: std::io::Error) -> String {
    let why = in_words(&error);
    format!("the room's record could not be written: {why}")
}

/// Receives a record without its implausible results, and notes that there were some, or clears this note.
fn hear(
    room: &mut RoomState,
    mut record: Participant,
    course: &Course,
    now_ms: u64,
) -> Result<(), JoinError> {
    let doubt = record.leave_out_implausible(course);
    let id = record.id.clone();
    room.hear(record, now_ms)?;
    let known = room.people.get(&id);
    let name = known.map_or("", |it| room.name_of(&it.record)).to_owned();
    let doubt = doubt.map(|it| format!("{name} {it}"));
    room.note(format!("{DOUBT}{id}"), doubt);
    Ok(())
}

/// Applies the records that were read from the folder.
fn take(room: &mut RoomState, found: Vec<RecordFile>, course: &Course, now_ms: u64) {
    for (file, read) in found {
        let why = match read {
            Ok(record) => {
                let heard = hear(room, record, course, now_ms);
                (heard == Err(JoinError::Full)).then(|| "is left out: the room is full".to_owned())
            }
            Err(why) => Some(why),
        };
        room.note(file, why);
    }
}
