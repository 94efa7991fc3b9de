//! A class: learners share what they do, and the instructor sees it on a board, opens votes and offers stages. Each participant has
//! one record, which is written whole; the class has one record, which every participant reads; the board is computed from all records.
//!
//! Records are exchanged through a shared folder (`folder`: one small file each, no locks) or over HTTP (`server`, `client`). Both
//! are a `ParticipantLink`. Times are sent as durations, so clocks are never compared.

pub mod board;
pub mod client;
pub mod folder;
pub mod handle;
pub mod http;
pub mod link;
pub mod member;
pub mod news;
pub mod page;
pub mod record;
pub mod server;
pub mod state;

use std::path::PathBuf;

use client::Http;
use folder::RoomFolder;
use handle::RoomHandle;
use link::{InstructorLink, ParticipantLink};

use crate::course::Course;

/// The participant's link to the room of `--room WHERE`, which is an address or a folder.
pub fn participant_link(at: &str) -> Result<Box<dyn ParticipantLink>, String> {
    match address(at)? {
        Some(rest) => Ok(Box::new(Http::new(rest)?)),
        None => Ok(Box::new(RoomFolder::new(PathBuf::from(at)))),
    }
}

/// The presenter's link to the room: an address contains the instructor's key; in a folder without a room, one is opened.
pub fn instructor_link(at: &str, course: &Course) -> Result<Box<dyn InstructorLink>, String> {
    Ok(match address(at)? {
        Some(rest) => Box::new(Http::new(rest)?),
        None => Box::new(RoomHandle::open(PathBuf::from(at), true, course.clone())?),
    })
}

/// The part after `http://`; `None` for a folder.
fn address(at: &str) -> Result<Option<&str>, String> {
    match at.split_once("://") {
        Some(("http", rest)) => Ok(Some(rest)),
        Some((other, _)) => Err(format!(
            "a room has no {other} address; write http://HOST:PORT/CODE, or the path of a folder"
        )),
        None => Ok(None),
    }
}
