//! The state of a class as the room tells it to its participants.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Question, RecordError, versioned};

/// The state of the class as the room tells it to a participant. The board makes it from its log; in a folder it is the file that everybody reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassState {
    pub version: u32,
    /// A number that grows with every change.
    pub sequence: u64,
    /// The day on which the room was first opened.
    pub opened: String,
    /// True if the instructor has closed the room.
    pub closed: bool,
    /// The votes by stage, or by the id of a free question.
    pub votes: BTreeMap<String, Vote>,
    /// The free questions by their id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<String, Question>,
    /// The stage or question whose vote was opened last.
    pub last_vote: Option<String>,
    /// The stage that is offered to everybody.
    pub offer: Option<String>,
    /// The exercise or mystery of the race: `k04-matmul`, `mystery 7-1`.
    pub race: Option<String>,
    /// True if nobody else may join.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// True if everybody who joins has to give a name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub names_required: bool,
    /// The numbered names, by id, of participants whose name was already in use. Over the network everybody sees only their own.
    pub renamed: BTreeMap<String, String>,
    /// The ids of participants whom the instructor has removed. They are not sent over the network.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
    /// The choice that was counted in the open or last round, by participant. Over the network everybody sees only their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, Counted>,
    /// The reasons why participants whose files lie in the folder are not in the room, by id. They are only in a folder.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// The code with which a phone takes this participant's seat. It is only sent over the network.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seat: String,
}

/// A ballot that the board has logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The number of its round.
    pub round: u64,
    /// The choice, a = 0.
    pub choice: usize,
}

/// A vote on the prediction of a stage, or on a free question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vote {
    pub open: bool,
    /// The open or last round: 0 for the first one, 1 for the round after the discussion.
    pub round: usize,
    /// The number of each round. A ballot names its round, so older ballots do not count.
    pub asked: Vec<u64>,
    /// The number of choices.
    #[serde(skip_serializing_if = "is_zero")]
    pub choices: usize,
    /// The counts of each closed round, by choice. They are only in exports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Vec<u32>>,
    /// The reason for the right choice, once the instructor has shown it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Vote {
    /// Returns the number of the open or last round.
    pub fn number(&self) -> Option<u64> {
        self.asked.get(self.round).copied()
    }
}

impl ClassState {
    /// Reads what a room tells of its class.
    ///
    /// # Errors
    /// If it has another version, or is no such record.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        versioned(bytes, "not a room's record")
    }

    /// Returns the number of the open round; `None` if no vote is open.
    pub fn open_round(&self) -> Option<u64> {
        self.open_vote().and_then(|(_, vote)| vote.number())
    }

    /// Returns the open vote, and the id of its stage or question; `None` if no vote is open.
    pub fn open_vote(&self) -> Option<(&str, &Vote)> {
        let mut votes = self.votes.iter();
        votes
            .find(|(_, vote)| vote.open)
            .map(|(id, vote)| (id.as_str(), vote))
    }

    /// Returns the vote that was opened last, which is the open one if there is one, and the id of its stage or question.
    pub fn newest_vote(&self) -> Option<(&str, &Vote)> {
        let id = self.last_vote.as_deref()?;
        Some((id, self.votes.get(id)?))
    }
}
