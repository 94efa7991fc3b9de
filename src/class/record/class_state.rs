//! The state of a class that a room sends to its participants: votes, the offered stage, the race.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Question, RecordError, versioned};

/// The state of a class. Over the network each participant gets a copy of it as the answer to a record; in a folder it is one file that
/// everybody reads, `room.json`. Some fields therefore hold an entry for each participant in a folder, and only one's own over the
/// network.
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
    /// The votes, by the id of the stage or of the free question.
    pub votes: BTreeMap<String, Vote>,
    /// The free questions, by their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<String, Question>,
    /// The id of the stage or question whose vote was opened last.
    pub last_vote: Option<String>,
    /// The id of the stage that the instructor offers to everybody.
    pub offer: Option<String>,
    /// The exercise or mystery of the present race: `k04-matmul`, `mystery 7-1`.
    pub race: Option<String>,
    /// True if nobody else may join.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// True if everybody who joins has to give a name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub names_required: bool,
    /// The names, such as `Ana (2)`, of participants whose own name was already in use, by participant.
    pub renamed: BTreeMap<String, String>,
    /// The ids of participants whom the instructor has removed. Empty over the network.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
    /// The ballots that were counted in the newest round, by participant.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, Counted>,
    /// The reasons why participants whose files are in the folder are not in the room, by participant. Empty over the network.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// The code with which a phone joins as this participant. Empty in a folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seat: String,
}

/// A ballot that the board has logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The number of the round.
    pub round: u64,
    /// The chosen answer; the first answer, a, is 0.
    pub choice: usize,
}

/// A vote on the prediction of a stage, or on a free question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vote {
    pub open: bool,
    /// The index in `asked` of the open or last round: 0 for the first round, 1 for the round after the discussion.
    pub round: usize,
    /// The numbers of the rounds. A number is never used twice, so a ballot that names an older round cannot count in a newer one.
    pub asked: Vec<u64>,
    /// The number of answers to choose from.
    #[serde(skip_serializing_if = "is_zero")]
    pub choices: usize,
    /// The numbers of votes for each answer, by round. Filled only in exports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Vec<u32>>,
    /// The explanation of the right answer, once the instructor has shown the answer.
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
    /// Reads the state of a class that a room has written.
    ///
    /// # Errors
    /// If the bytes are of another version, or are no state of a class.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        versioned(bytes, "not a room's record")
    }

    /// Returns the number of the open round; `None` if no vote is open.
    pub fn open_round(&self) -> Option<u64> {
        self.open_vote().and_then(|(_, vote)| vote.number())
    }

    /// Returns the open vote, and the id of its stage or question; `None` if no vote is open.
    pub fn open_vote(&self) -> Option<(&str, &Vote)> {
        let (id, vote) = self.votes.iter().find(|(_, vote)| vote.open)?;
        Some((id.as_str(), vote))
    }

    /// Returns the vote that was opened last, and the id of its stage or question; `None` before the first vote. If a vote is open, it
    /// is this one.
    pub fn newest_vote(&self) -> Option<(&str, &Vote)> {
        let id = self.last_vote.as_deref()?;
        Some((id, self.votes.get(id)?))
    }
}
