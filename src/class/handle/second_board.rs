//! A second board of a room in a folder: it shows what the log says while another program has the room open, and takes the room over
//! once that program has ended.

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

/// A board of a room that another program has open. Its orders are left in the folder for that program.
pub struct SecondBoard {
    /// The room, once this board has taken it over.
    own: Option<RoomHandle>,
    watch: LockWatch,
    dir: PathBuf,
    folder: RoomFolder,
    room: RoomState,
    /// The length of the log in bytes when it was read last.
    log_bytes: u64,
    /// A clock that started at the time of the log's last line when it was read last.
    clock: RoomClock,
    course: Course,
}

impl SecondBoard {
    pub fn new(dir: PathBuf, course: Course) -> Self {
        Self {
            own: None,
            watch: LockWatch::new(&dir),
            folder: RoomFolder::new(dir.clone()),
            dir,
            room: RoomState::default(),
            log_bytes: u64::MAX,
            clock: RoomClock::starting_at(0),
            course,
        }
    }
}

impl InstructorLink for SecondBoard {
    fn board(&mut self) -> Result<Board, RoomError> {
        if self.own.is_none() && self.watch.is_over() {
            let dir = self.dir.clone();
            let course = self.course.clone();
            self.own = RoomHandle::open_after(Duration::ZERO, dir, true, course).ok();
        }
        if let Some(handle) = &self.own {
            return Ok(handle.board());
        }
        let path = self.dir.join(LOG);
        let length = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if length != self.log_bytes {
            let log = read(&path).map_err(|error| RoomError::Later(self.folder.failed(&error)))?;
            self.room = RoomState::from_log(log.lines);
            self.clock = RoomClock::starting_at(self.room.last_ms());
            self.log_bytes = length;
        }
        Ok(Board::from_room(
            &self.room,
            &self.course,
            self.clock.now_ms(),
        ))
    }

    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError> {
        match &self.own {
            Some(handle) => handle.order(order),
            None => self
                .folder
                .leave_order(order)
                .map_err(|error| self.folder.failed(&error)),
        }
        .map_err(RoomError::Later)
    }
}
