//! A room from outside: over the network and in a folder, with hostile guests, and what the learner's screen makes of it.
#![cfg(unix)]

use crate::{learner, sample, session};

#[path = "room/board.rs"]
mod board;
#[path = "room/command.rs"]
mod command;
#[path = "room/folder.rs"]
mod folder;
#[path = "room/log.rs"]
mod log;
#[path = "room/network.rs"]
mod network;
#[path = "room/screen.rs"]
mod screen;
#[path = "room/state.rs"]
mod state;
#[path = "room/wall.rs"]
mod wall;

use std::time::{Duration, Instant};

use perflings::class::link::RoomNews;
use perflings::class::member::Member;
use perflings::class::record::{Participant, VERSION};

/// A participant whose id is one digit, many times.
fn participant(digit: char, name: &str) -> Participant {
    Participant {
        version: VERSION,
        id: digit.to_string().repeat(32),
        name: name.to_owned(),
        sequence: 1,
        ..Participant::default()
    }
}

/// Waits for something.
fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "waited for {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The next news of a member.
fn news(member: &Member) -> RoomNews {
    wait("news", || member.next_news())
}
