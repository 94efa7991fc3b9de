//! The requests of an instructor to the room.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Question;

/// A request of the instructor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructorRequest {
    /// Opens the vote on a stage's prediction, or the next round after a counted one.
    OpenVote(String),
    /// Asks a free question.
    Ask(Question),
    CloseVote,
    /// Marks the right choice of a stage's closed vote, with its reason.
    ShowAnswer {
        stage: String,
        reason: String,
    },
    /// Invites everybody to a stage; `None` ends the invitation.
    Offer(Option<String>),
    /// Starts a race that the instructor ends; `None` ends the race.
    Race(Option<String>),
    /// Starts a race that ends by itself.
    RaceFor {
        task: String,
        minutes: u64,
    },
    /// Closes the room, or opens it again.
    Close(bool),
    /// Lets nobody else join, or everybody again.
    Lock(bool),
    /// Requires a name of everybody who joins, or no longer.
    RequireNames(bool),
    /// Removes participants by their ids or by their numbers on the board, and keeps them out.
    Remove(BTreeSet<String>),
    /// Removes everybody who joined from this address, and keeps them out.
    RemoveFrom(String),
    /// Readmits all removed participants.
    LetIn,
    /// Takes back the last order, for a minute.
    Undo,
}
