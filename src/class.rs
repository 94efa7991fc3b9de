//! A class: learners share what they do, and the instructor sees it on a board, opens votes and offers stages. The place where they
//! meet, a folder or an address, is called a room.
//!
//! Each thing that happens becomes a line of the class's log (`log`). Only the board writes the log (`handle`); the board's picture,
//! the pages, the tallies and the reports are computed from it (`state`). A participant at a computer sends a record to the room: as a
//! small file in a shared folder (`folder`), or over HTTP (`server`, `client`). A phone sends requests from a page in its browser
//! (`phone`). The board logs a request before it answers, so an answered request always counts. Records carry durations and no times
//! of day, so the clocks of two machines are never compared.

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
use handle::{OpenError, RoomHandle, SecondBoard};
use link::{InstructorLink, ParticipantLink};

use crate::course::Course;

/// Returns a participant's link to a room. `place` is what `--room` names: `http://HOST:PORT/CODE`, or the path of a folder.
///
/// # Errors
/// If the address has another scheme than http, or lacks the host or the code.
pub fn participant_link(place: &str) -> Result<Box<dyn ParticipantLink>, String> {
    match http_address(place)? {
        Some(address) => Ok(Box::new(Http::new(address)?)),
        None => Ok(Box::new(RoomFolder::new(PathBuf::from(place)))),
    }
}

/// Returns an instructor's link to a room that another program may have open. `place` is `http://HOST:PORT/KEY`, or the path of a
/// folder. If no program has the folder's room open, this one opens it and becomes its board.
///
/// # Errors
/// If the address has another scheme than http, or lacks the host or the key, or if the folder cannot be used.
pub fn instructor_link(place: &str, course: &Course) -> Result<Box<dyn InstructorLink>, String> {
    if let Some(address) = http_address(place)? {
        return Ok(Box::new(Http::new(address)?));
    }
    let dir = PathBuf::from(place);
    match RoomHandle::open(dir.clone(), true, course.clone()) {
        Ok(handle) => Ok(Box::new(handle)),
        Err(OpenError::Taken(_)) => Ok(Box::new(SecondBoard::new(dir, course.clone()))),
        Err(OpenError::Failed(why)) => Err(why),
    }
}

/// Locks a mutex. A panic of another thread that held the lock is ignored: the room goes on for everybody else.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the part of an address after `http://`; `None` for the path of a folder.
fn http_address(place: &str) -> Result<Option<&str>, String> {
    match place.split_once("://") {
        Some(("http", address)) => Ok(Some(address)),
        Some((scheme, _)) => Err(format!(
            "a room has no {scheme} address; write http://HOST:PORT/CODE, or the path of a folder"
        )),
        None => Ok(None),
    }
}
