//! What the board of a room does every second, and how it receives the files of participants.

use std::sync::{Arc, Weak};
use std::thread::{Builder, sleep};
use std::time::Duration;

use super::OpenRoom;
use crate::class::folder::{RecordFile, RoomFolder};
use crate::class::locked;
use crate::class::log::Origin;
use crate::class::record::{ClassState, Participant};
use crate::class::state::{JoinError, RoomState};
use crate::course::Course;
use crate::course::save_file::explain_write_error;

/// The interval at which the lock is counted on, the folder is read and silence is noticed.
const INTERVAL: Duration = Duration::from_secs(1);
/// The letters before a participant's id in the list of faults, for implausible results.
const DOUBT: &str = "doubt ";

/// Counts on in the lock and notices silence. In a shared folder it also carries out what was left there, and writes what everybody
/// reads.
pub(super) struct Keeper {
    room: Weak<OpenRoom>,
    /// The folder in which participants write their files; `None` for a room on the network.
    folder: Option<RoomFolder>,
    /// The class as it was written last.
    told: Option<ClassState>,
}

impl Keeper {
    /// Keeps up once, and then in a thread of its own until the room is dropped.
    ///
    /// # Errors
    /// If the room cannot be kept up even once.
    pub(super) fn start(room: &Arc<OpenRoom>, folder: Option<RoomFolder>) -> Result<(), String> {
        let mut keeper = Self {
            room: Arc::downgrade(room),
            folder,
            told: None,
        };
        keeper.keep_up(room)?;
        let keep = move || {
            loop {
                sleep(INTERVAL);
                let Some(room) = keeper.room.upgrade() else {
                    return;
                };
                // The board already shows what could not be read or written.
                let _ = keeper.keep_up(&room);
            }
        };
        let thread = Builder::new().name("room".to_owned()).spawn(keep);
        thread.map(drop).map_err(|error| error.to_string())
    }

    fn keep_up(&mut self, room: &OpenRoom) -> Result<(), String> {
        let beat = locked(&room.lock).beat();
        let lost = beat.err().map(|error| explain_write_error(&error));
        locked(&room.state).note("lock".to_owned(), lost);
        room.commit(|state, now_ms| {
            state.fall_silent(now_ms);
            state.end_race(now_ms);
            Ok::<_, String>(())
        })?;
        match &mut self.folder {
            Some(folder) => keep_folder(folder, room, &mut self.told),
            None => Ok(()),
        }
    }
}

/// Carries out what was left in the folder, and writes the class if it has changed. `told` is the class as it was written last.
fn keep_folder(
    folder: &mut RoomFolder,
    room: &OpenRoom,
    told: &mut Option<ClassState>,
) -> Result<(), String> {
    let orders = folder.orders();
    let (records, unread) = match folder.read_changed() {
        Ok(records) => (records, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    room.commit(|state, now_ms| {
        for (name, order) in &orders {
            // An order that is no longer possible is dropped, as a key would be.
            let _ = state.obey_once(name, order, &room.course, now_ms);
        }
        for (file, record) in records {
            hear_file(state, file, record, &room.course, now_ms);
        }
        Ok::<_, String>(())
    })
    .inspect_err(|_| folder.forget())?;
    folder.done(&orders);
    let class = {
        let mut state = locked(&room.state);
        state.note(String::new(), unread);
        state.note("folder".to_owned(), folder.closed_to_others());
        let before = state.faults.len();
        state
            .faults
            .retain(|file, _| !file.ends_with(".json") || folder.has(file));
        state.revision += (before - state.faults.len()) as u64;
        state.class_of_all()
    };
    if told.as_ref() != Some(&class) || folder.access_changed() {
        folder
            .write_class(&class)
            .map_err(|error| folder.failed(&error))?;
        *told = Some(class);
    }
    Ok(())
}

/// Receives a record without its implausible results, and notes that there were some, or clears this note.
pub(super) fn hear(
    room: &mut RoomState,
    mut record: Participant,
    origin: &Origin,
    course: &Course,
    now_ms: u64,
) -> Result<(), JoinError> {
    let doubt = record.leave_out_implausible(course);
    let id = record.id.clone();
    room.hear_from(record, origin, now_ms)?;
    let doubt = doubt.map(|what| {
        let person = room.person(&id);
        let name = person.map_or("", |person| room.name_of(&person.record));
        format!("{name} {what}")
    });
    room.note(format!("{DOUBT}{id}"), doubt);
    Ok(())
}

/// Receives a participant's file, and notes its fault, or clears this note.
pub(super) fn hear_file(
    room: &mut RoomState,
    file: String,
    record: RecordFile,
    course: &Course,
    now_ms: u64,
) {
    let fault = match record {
        Ok(record) => {
            let id = record.id.clone();
            match hear(room, record, &Origin::default(), course, now_ms) {
                Ok(()) => {
                    room.refused.remove(&id);
                    None
                }
                Err(why) => {
                    room.refused.insert(id, why.to_string());
                    let is_full = why == JoinError::Full;
                    is_full.then(|| format!("{file} is left out: the room is full"))
                }
            }
        }
        Err(why) => Some(format!("{file} {why}")),
    };
    room.note(file, fault);
}
