//! A class: learners share what they do, and the instructor sees it on a board, opens votes and offers stages.
//!
//! Each thing that happens is a line of the class's log (`log`), which only the board writes (`handle`); board, pages, tallies and
//! reports are folds of it (`state`). Participants leave requests: in a shared folder a small file each (`folder`), over the network by
//! HTTP (`server`, `client`), and phones with a page of their own (`phone`). A request counts when the board has logged it, and only
//! then is it answered. Durations are sent in place of times, so clocks are never compared.

pub mod board;
pub mod client;
pub mod folder;
pub mod handle;
pub mod http;
pub mod link;
pub mod lock;
pub mod log;
pub mod member;
pub mod page;
pub mod phone;
pub mod record;
pub mod secrets;
pub mod server;
pub mod state;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use client::Http;
use folder::RoomFolder;
use handle::{OpenError, RoomHandle, RoomLooker};
use link::{InstructorLink, ParticipantLink};

use crate::course::Course;

/// Returns the link of a participant to the room of `--room WHERE`, which is an address or a folder.
///
/// # Errors
/// If the address is none of a room.
pub fn participant_link(at: &str) -> Result<Box<dyn ParticipantLink>, String> {
    match address(at)? {
        Some(rest) => Ok(Box::new(Http::new(rest)?)),
        None => Ok(Box::new(RoomFolder::new(PathBuf::from(at)))),
    }
}

/// Returns the link of an instructor's other program to the room. An address contains the instructor's key; in a folder that no board
/// has open, this program becomes its board.
///
/// # Errors
/// If the address is none of a room, or the folder cannot be used.
pub fn instructor_link(at: &str, course: &Course) -> Result<Box<dyn InstructorLink>, String> {
    if let Some(rest) = address(at)? {
        return Ok(Box::new(Http::new(rest)?));
    }
    let dir = PathBuf::from(at);
    match RoomHandle::open(dir.clone(), true, course.clone()) {
        Ok(handle) => Ok(Box::new(handle)),
        Err(OpenError::Taken(_)) => Ok(Box::new(RoomLooker::new(dir, course.clone()))),
        Err(OpenError::Failed(why)) => Err(why),
    }
}

/// Locks a mutex, also after a thread that held it has panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the part after `http://`; `None` for a folder.
fn address(at: &str) -> Result<Option<&str>, String> {
    match at.split_once("://") {
        Some(("http", rest)) => Ok(Some(rest)),
        Some((other, _)) => Err(format!(
            "a room has no {other} address; write http://HOST:PORT/CODE, or the path of a folder"
        )),
        None => Ok(None),
    }
}
