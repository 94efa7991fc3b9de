//! A class: learners share what they do, and the instructor sees it on a board, opens votes and offers stages.
//!
//! What happens is a line of the class's log (`log`), which only the board writes; board, pages, tallies and reports are folds of it
//! (`state`). Participants leave requests: in a shared folder a small file each (`folder`), over the network by HTTP (`server`,
//! `client`), and phones with a page of their own (`phone`). A request counts when the board has logged it, and only then is it
//! answered. Durations are sent in place of times, so clocks are never compared.

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

use client::Http;
use folder::RoomFolder;
use handle::{OpenError, RoomHandle, RoomLooker};
use link::{InstructorLink, ParticipantLink};

use crate::course::Course;

/// The participant's link to the room of `--room WHERE`, which is an address or a folder.
pub fn participant_link(at: &str) -> Result<Box<dyn ParticipantLink>, String> {
    match address(at)? {
        Some(rest) => Ok(Box::new(Http::new(rest)?)),
        None => Ok(Box::new(RoomFolder::new(PathBuf::from(at)))),
    }
}

/// The link of an instructor's other program to the room: an address contains the instructor's key; in a folder that no board has
/// open, this program becomes its board.
pub fn instructor_link(at: &str, course: &Course) -> Result<Box<dyn InstructorLink>, String> {
    Ok(match address(at)? {
        Some(rest) => Box::new(Http::new(rest)?),
        None => match RoomHandle::open(PathBuf::from(at), true, course.clone()) {
            Ok(handle) => Box::new(handle),
            Err(OpenError::Taken(_)) => {
                Box::new(RoomLooker::new(PathBuf::from(at), course.clone()))
            }
            Err(OpenError::Failed(why)) => return Err(why),
        },
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
