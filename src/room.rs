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
pub mod place;
pub mod record;
pub mod server;

use std::path::PathBuf;

use client::Http;
use folder::Folder;
use place::Place;

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
