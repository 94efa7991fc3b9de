//! Rooms of classes, over the network and in a folder, with hostile participants; and the screens of learners and instructors.
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

/// Returns a record whose id is one digit, 32 times.
fn participant(digit: char, name: &str) -> Participant {
    Participant {
        version: VERSION,
        id: digit.to_string().repeat(32),
        name: name.to_owned(),
        sequence: 1,
        ..Participant::default()
    }
}

/// Calls `find` until it returns something, for at most 20 seconds. The message of a failure names `what` did not come.
fn wait<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "waited for {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the next news of a member.
fn news(member: &Member) -> RoomNews {
    wait("news", || member.next_news())
}
