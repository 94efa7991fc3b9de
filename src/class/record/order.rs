//! The orders of an instructor to the room.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Question;

/// An order of the instructor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructorRequest {
    /// Opens the vote on the prediction of the stage with this id, or on a question that was asked before. If a round of this vote has
    /// ballots, the next round is opened.
    OpenVote(String),
    /// Asks a free question.
    Ask(Question),
    CloseVote,
    /// Shows everybody the right answer of a stage's closed vote, and its explanation.
    ShowAnswer {
        stage: String,
        reason: String,
    },
    /// Invites everybody to the stage with this id; `None` ends the invitation.
    Offer(Option<String>),
    /// Starts a race at this exercise or mystery, which the instructor ends; `None` ends the race.
    Race(Option<String>),
    /// Starts a race that ends by itself.
    RaceFor {
        task: String,
        minutes: u64,
    },
    /// Closes the room with its open vote; `false` opens the room again.
    Close(bool),
    /// Lets nobody else join; `false` lets everybody join again.
    Lock(bool),
    /// Requires a name of everybody who joins; `false` no longer requires one.
    RequireNames(bool),
    /// Removes participants by their ids or by their numbers on the board, and keeps them out.
    Remove(BTreeSet<String>),
    /// Removes everybody who joined from this address, and keeps them out.
    RemoveFrom(String),
    /// Lets all removed participants join again.
    LetIn,
    /// Takes back the last order, if it was given less than a minute ago.
    Undo,
}
