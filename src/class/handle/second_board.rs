//! A board that only looks at a room in a folder, because another program has it.

use std::path::PathBuf;
use std::time::Duration;

use super::{RoomClock, RoomHandle};
use crate::class::board::Board;
use crate::class::folder::RoomFolder;
use crate::class::link::{InstructorLink, RoomError};
use crate::class::lock::LockWatch;
use crate::class::log::{LOG, read};
use crate::class::record::InstructorRequest;
use crate::class::state::RoomState;
use crate::course::Course;

/// A board that looks at a room. Its orders are left in the folder for the board that has the room. Once that one has ended, this one
/// takes the room over.
pub struct RoomLooker {
    /// The room, once it was taken over.
    own: Option<RoomHandle>,
    watch: LockWatch,
    dir: PathBuf,
    folder: RoomFolder,
    room: RoomState,
    /// The length of the log when it was last read, in bytes.
    seen: u64,
    /// The clock of the log since then.
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
            return Ok(handle.board());
        }
        let path = self.dir.join(LOG);
        let length = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if length != self.seen {
            let found =
                read(&path).map_err(|error| RoomError::Later(self.folder.failed(&error)))?;
            self.room = RoomState::from_log(found.entries);
            self.clock = RoomClock::at(self.room.last_ms());
            self.seen = length;
        }
        Ok(Board::from_room(
            &self.room,
            &self.course,
            self.clock.now_ms(),
        ))
    }

    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError> {
        let ordered = match &self.own {
            Some(handle) => handle.order(order),
            None => self
                .folder
                .leave_order(order)
                .map_err(|error| self.folder.failed(&error)),
        };
        ordered.map_err(RoomError::Later)
    }
}
