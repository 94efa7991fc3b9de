//! A class: learners share what they do, the instructor sees it on a board, opens votes and offers stages. A participant is one
//! record, written whole; the class is one record that every participant reads; the board follows from all of them.
//!
//! The records travel through a folder that everybody can reach (`folder`: one small file each, no locks), or over HTTP
//! (`server`, `client`). Both are a `Place`. Times are told as durations, so no two clocks are ever compared.

pub mod board;
pub mod client;
pub mod desk;
pub mod export;
pub mod folder;
pub mod hall;
pub mod http;
pub mod member;
pub mod page;
pub mod record;
pub mod server;

use std::fmt;
use std::path::PathBuf;

use client::Http;
use folder::Folder;
use record::{Class, Participant};

/// Why a room did not take something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be reached now.
    Later(String),
    /// Trying again is no use.
    Never(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(why) | Self::Never(why) => f.write_str(why),
        }
    }
}

/// Where a room is, as a participant sees it.
pub trait Place: Send {
    /// Shares a record in the place of the one before, and hears from the class.
    fn share(&mut self, me: &Participant) -> Result<Class, Refusal>;
}

/// The place that `--room WHERE` names: an address, or a folder.
pub fn place(at: &str) -> Result<Box<dyn Place>, String> {
    match at.split_once("://") {
        Some(("http", rest)) => Ok(Box::new(Http::new(rest)?)),
        Some((other, _)) => Err(format!(
            "a room is not reached by {other}; write http://HOST:PORT/CODE, or the path of a folder"
        )),
        None => Ok(Box::new(Folder::new(PathBuf::from(at)))),
    }
}
