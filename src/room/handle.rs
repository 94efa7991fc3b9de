//! The instructor's side of a room: one state, kept up to date from the folder, or by the server and written there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::board::Board;
use super::folder::{Folder, RecordFile};
use super::link::{InstructorLink, RoomError};
use super::record::{ClassState, InstructorRequest, Participant};
use super::state::{JoinError, RoomState};
use crate::course::Course;
use crate::course::progress::in_words;

/// Between two looks at the folder, or two times that what came in is written there.
const LOOK: Duration = Duration::from_secs(1);

/// A handle on the room; all of them are one.
#[derive(Clone)]
pub struct RoomHandle {
    hall: Arc<Mutex<RoomState>>,
    folder: Arc<Folder>,
    began: Instant,
    /// Participants write their files themselves; over the network this side does.
    shared: bool,
    course: Arc<Course>,
}

impl RoomHandle {
    /// Opens a room in a folder. `shared`: participants reach the folder.
    pub fn open(dir: PathBuf, shared: bool, course: Course) -> Result<Self, String> {
        let folder = |dir| match shared {
            true => Folder::new(dir),
            false => Folder::private(dir),
        };
        let mut keeper = FolderSync {
            folder: folder(dir.clone()),
            class: ClassState::new(),
            written: BTreeMap::new(),
        };
        keeper.class = keeper.folder.open()?;
        let mut hall = RoomState::new(keeper.class.clone());
        take(&mut hall, keeper.folder.look()?, &course, 0);
        let desk = Self {
            hall: Arc::new(Mutex::new(hall)),
            folder: Arc::new(folder(dir)),
            began: Instant::now(),
            shared,
            course: Arc::new(course),
        };
        let of = desk.clone();
        let keep = move || {
            loop {
                std::thread::sleep(LOOK);
                keeper.keep_up(&of);
            }
        };
        let thread = Builder::new().name("room".to_owned()).spawn(keep);
        thread.map_err(|error| error.to_string())?;
        Ok(desk)
    }

    /// What a room's folder holds, without opening the room.
    pub fn read(dir: PathBuf, course: &Course) -> Result<RoomState, String> {
        let mut folder = Folder::new(dir);
        let class = folder.class().map_err(|why| why.to_string())?;
        let mut hall = RoomState::new(class);
        take(&mut hall, folder.look()?, course, 0);
        Ok(hall)
    }

    /// Never held while a file is read or written.
    pub fn hall(&self) -> MutexGuard<'_, RoomState> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// The board as it is now.
    pub fn board(&self) -> Board {
        Board::of(&self.hall(), &self.course, self.now_ms())
    }

    /// Takes in what a participant sent, but for what is not plausible, which the board tells.
    pub fn hear(&self, mut record: Participant) -> Result<ClassState, JoinError> {
        let doubt = record.leave_out_implausible(&self.course);
        let (id, now_ms) = (record.id.clone(), self.now_ms());
        let mut hall = self.hall();
        hall.hear(record, now_ms)?;
        note_doubt(&mut hall, &id, doubt);
        Ok(hall.class.clone())
    }

    /// Does what the instructor asks for, and writes it down.
    pub fn order(&self, order: &InstructorRequest) -> Result<(), String> {
        // A presenter on another machine may have given an order as well.
        let newest = self.shared.then(|| self.folder.class().ok()).flatten();
        let mut hall = self.hall();
        if let Some(class) = newest {
            hall.class = class;
        }
        hall.apply(order);
        let class = hall.class.clone();
        drop(hall);
        let written = self.folder.write_class(&class);
        written.map_err(|error| format!("the room is not written: {}", in_words(&error)))
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

/// Works between the hall and the folder.
struct FolderSync {
    folder: Folder,
    /// As the file has it, as far as this side knows.
    class: ClassState,
    /// What was written of each participant.
    written: BTreeMap<String, Participant>,
}

impl FolderSync {
    fn keep_up(&mut self, desk: &RoomHandle) {
        if desk.shared {
            let (class, found) = (self.folder.class(), self.folder.look());
            let now_ms = desk.now_ms();
            let mut hall = desk.hall();
            if let Ok(class) = class
                && hall.class == self.class
                && class != self.class
            {
                (self.class, hall.class) = (class.clone(), class);
                hall.revision += 1;
                hall.send_out();
            }
            hall.note(String::new(), found.as_ref().err().cloned());
            take(&mut hall, found.unwrap_or_default(), &desk.course, now_ms);
            let there =
                |file: &String| file.is_empty() || self.folder.has(file) || file.starts_with(DOUBT);
            let gone: Vec<String> = hall
                .faults
                .keys()
                .filter(|it| !there(it))
                .cloned()
                .collect();
            gone.into_iter().for_each(|file| hall.note(file, None));
        } else {
            self.write_participants(desk);
        }
        let class = desk.hall().class.clone();
        if class != self.class && self.folder.write_class(&class).is_ok() {
            self.class = class;
        }
    }

    /// Writes what came over the network, so that nothing is lost when this process ends.
    fn write_participants(&mut self, desk: &RoomHandle) {
        let still = |it: &Participant| Participant {
            sequence: 0,
            here_s: 0,
            ..it.clone()
        };
        let hall = desk.hall();
        let people = hall.people.values().map(|it| &it.record);
        let changed = people.filter(|it| self.written.get(&it.id) != Some(&still(it)));
        let changed: Vec<Participant> = changed.cloned().collect();
        drop(hall);
        for record in changed {
            let written = self.folder.write_participant(&record);
            let failed = |error| format!("the room is not written: {}", in_words(&error));
            let why = written.err().map(failed);
            let fails = why.is_some();
            desk.hall().note(String::new(), why);
            if fails {
                return;
            }
            self.written.insert(record.id.clone(), still(&record));
        }
    }
}

/// What the faults of a participant's results are kept under, before the id.
const DOUBT: &str = "doubt ";

/// Notes what a participant shared that is not plausible, or that nothing is any more.
fn note_doubt(hall: &mut RoomState, id: &str, doubt: Option<String>) {
    let known = hall.people.get(id);
    let name = known.map_or("", |it| hall.name_of(&it.record)).to_owned();
    hall.note(
        format!("{DOUBT}{id}"),
        doubt.map(|it| format!("{name} {it}")),
    );
}

/// Takes in what was found in the folder.
fn take(hall: &mut RoomState, found: Vec<RecordFile>, course: &Course, now_ms: u64) {
    for (file, read) in found {
        let why = match read {
            Ok(mut record) => {
                let doubt = record.leave_out_implausible(course);
                let id = record.id.clone();
                let heard = hall.hear(record, now_ms);
                if heard.is_ok() {
                    note_doubt(hall, &id, doubt);
                }
                (heard == Err(JoinError::Full))
                    .then(|| "is one too many: the room is full".to_owned())
            }
            Err(why) => Some(why),
        };
        hall.note(file, why);
    }
}
