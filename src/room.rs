//! A class: learners share what they do, the instructor sees it on a board, opens votes and offers stages. A participant is one
//! record, written whole; the class is one record that every participant reads; the board follows from all of them.
//!
//! The records travel through a folder that everybody can reach (`folder`: one small file each, no locks), or over HTTP
//! (`server`, `client`). Both are a `ParticipantLink`. Times are told as durations, so no two clocks are ever compared.

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
use folder::Folder;
use handle::RoomHandle;
use link::{InstructorLink, ParticipantLink};

use crate::course::Course;

/// The place that `--room WHERE` names: an address, or a folder.
pub fn participant_link(at: &str) -> Result<Box<dyn ParticipantLink>, String> {
    match address(at)? {
        Some(rest) => Ok(Box::new(Http::new(rest)?)),
        None => Ok(Box::new(Folder::new(PathBuf::from(at)))),
    }
}

/// The same for a presenter: the address has the instructor's key; a folder's room is opened where there is none.
pub fn seat(at: &str, course: &Course) -> Result<Box<dyn InstructorLink>, String> {
    Ok(match address(at)? {
        Some(rest) => Box::new(Http::new(rest)?),
        None => Box::new(RoomHandle::open(PathBuf::from(at), true, course.clone())?),
    })
}

/// What follows `http://`; nothing of a folder.
fn address(at: &str) -> Result<Option<&str>, String> {
    match at.split_once("://") {
        Some(("http", rest)) => Ok(Some(rest)),
        Some((other, _)) => Err(format!(
            "a room is not reached by {other}; write http://HOST:PORT/CODE, or the path of a folder"
        )),
        None => Ok(None),
    }
}
