//! The work that the board of a room does every second: it renews its lock, notices who has gone away and whether a race is over, and
//! reads the files that participants have left in a shared folder.

use std::sync::Arc;
use std::thread::{Builder, sleep};
use std::time::Duration;

use super::OpenRoom;
use crate::class::folder::{RecordFile, RoomFolder};
use crate::class::locked;
use crate::class::log::Origin;
use crate::class::record::Participant;
use crate::class::state::{JoinError, RoomState};
use crate::course::Course;
use crate::course::save_file::explain_write_error;

/// The interval at which the work is done.
const INTERVAL: Duration = Duration::from_secs(1);
/// The sources of faults about implausible results are this text and the participant's id.
const DOUBT: &str = "doubt ";

/// Does the work once, and then every second in a new thread until the room is dropped. `folder` is the folder in which participants write
/// their files; `None` for a room on the network.
///
/// # Errors
/// If the work fails the first time, or the thread cannot be started.
pub(super) fn start_keeper(
    room: &Arc<OpenRoom>,
    mut folder: Option<RoomFolder>,
) -> Result<(), String> {
    work(room, folder.as_mut())?;
    let weak = Arc::downgrade(room);
    let run = move || {
        loop {
            sleep(INTERVAL);
            let Some(room) = weak.upgrade() else {
                return;
            };
            // The board shows the error.
            let _ = work(&room, folder.as_mut());
        }
    };
    let thread = Builder::new().name("room".to_owned()).spawn(run);
    thread.map(drop).map_err(|error| error.to_string())
}

fn work(room: &OpenRoom, folder: Option<&mut RoomFolder>) -> Result<(), String> {
    let beat = locked(&room.lock).beat();
    let fault = beat.err().map(|error| explain_write_error(&error));
    locked(&room.state).set_fault("lock".to_owned(), fault);
    room.commit(|state, now_ms| {
        state.mark_away(now_ms);
        state.end_race(now_ms);
        Ok::<_, String>(())
    })?;
    folder.map_or(Ok(()), |folder| update_folder(folder, room))
}

/// Carries out the orders in the folder, receives the participants' files, and writes the state of the class.
fn update_folder(folder: &mut RoomFolder, room: &OpenRoom) -> Result<(), String> {
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
    let written = folder.write_class(&class);
    written.map_err(|error| folder.failed(&error))
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
