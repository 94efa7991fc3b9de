//! The work that the board of a room does every second: it renews its lock, notices who has gone away and whether a race is over, and
//! reads the files that participants have left in a shared folder.

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

/// The interval at which the work is done.
const INTERVAL: Duration = Duration::from_secs(1);
/// The sources of faults about implausible results are this text and the participant's id.
const DOUBT: &str = "doubt ";

/// Does the regular work of a room in a thread.
pub(super) struct Keeper {
    room: Weak<OpenRoom>,
    /// The folder in which participants write their files; `None` for a room on the network.
    folder: Option<RoomFolder>,
    /// The state of the class that was written to the folder last.
    written: Option<ClassState>,
}

impl Keeper {
    /// Does the work once, and then every second in a new thread until the room is dropped.
    ///
    /// # Errors
    /// If the first time fails.
    pub(super) fn start(room: &Arc<OpenRoom>, folder: Option<RoomFolder>) -> Result<(), String> {
        let mut keeper = Self {
            room: Arc::downgrade(room),
            folder,
            written: None,
        };
        keeper.work(room)?;
        let run = move || {
            loop {
                sleep(INTERVAL);
                let Some(room) = keeper.room.upgrade() else {
                    return;
                };
                // The board shows the error.
                let _ = keeper.work(&room);
            }
        };
        let thread = Builder::new().name("room".to_owned()).spawn(run);
        thread.map(drop).map_err(|error| error.to_string())
    }

    fn work(&mut self, room: &OpenRoom) -> Result<(), String> {
        let beat = locked(&room.lock).beat();
        let fault = beat.err().map(|error| explain_write_error(&error));
        locked(&room.state).set_fault("lock".to_owned(), fault);
        room.commit(|state, now_ms| {
            state.mark_away(now_ms);
            state.end_race(now_ms);
            Ok::<_, String>(())
        })?;
        match &mut self.folder {
            Some(folder) => update_folder(folder, room, &mut self.written),
            None => Ok(()),
        }
    }
}

/// Carries out the orders in the folder, receives the participants' files, and writes the state of the class if it differs from the one
/// that was `written` last.
fn update_folder(
    folder: &mut RoomFolder,
    room: &OpenRoom,
    written: &mut Option<ClassState>,
) -> Result<(), String> {
    let orders = folder.orders();
    let (records, read_fault) = match folder.read_changed() {
        Ok(records) => (records, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    room.commit(|state, now_ms| {
        for (name, order) in &orders {
            // An order that is no longer possible is dropped. The program that left it cannot be told.
            let _ = state.carry_out_once(name, order, &room.course, now_ms);
        }
        for (file, record) in records {
            receive_file(state, file, record, &room.course, now_ms);
        }
        Ok::<_, String>(())
    })
    .inspect_err(|_| folder.forget())?;
    folder.remove_orders(&orders);
    let class = {
        let mut state = locked(&room.state);
        state.set_fault(String::new(), read_fault);
        state.set_fault("folder".to_owned(), folder.closed_to_others());
        let before = state.faults.len();
        // A fault ends when its file is removed.
        state
            .faults
            .retain(|source, _| !source.ends_with(".json") || folder.has(source));
        state.revision += (before - state.faults.len()) as u64;
        state.class_for_folder()
    };
    if written.as_ref() != Some(&class) || folder.access_changed() {
        folder
            .write_class(&class)
            .map_err(|error| folder.failed(&error))?;
        *written = Some(class);
    }
    Ok(())
}

/// Receives a record without its implausible results. The faults of the room then say whether the participant shared any.
pub(super) fn receive_plausible(
    room: &mut RoomState,
    mut record: Participant,
    origin: &Origin,
    course: &Course,
    now_ms: u64,
) -> Result<(), JoinError> {
    let implausible = record.leave_out_implausible(course);
    let id = record.id.clone();
    room.receive(record, origin, now_ms)?;
    let fault = implausible.map(|results| {
        let person = room.person(&id);
        let name = person.map_or("", |person| room.name_of(&person.record));
        format!("{name} {results}")
    });
    room.set_fault(format!("{DOUBT}{id}"), fault);
    Ok(())
}

/// Receives a participant's file. The faults of the room then say whether the file could be read and its participant had room.
pub(super) fn receive_file(
    room: &mut RoomState,
    file: String,
    record: RecordFile,
    course: &Course,
    now_ms: u64,
) {
    let fault = match record {
        Ok(record) => {
            let id = record.id.clone();
            match receive_plausible(room, record, &Origin::default(), course, now_ms) {
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
    room.set_fault(file, fault);
}
