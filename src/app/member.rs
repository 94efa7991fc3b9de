//! The state of the learner's membership in a room: what was shared, what the class reported, and which offers the learner accepted. A
//! room only makes offers; it never changes the learner's work. `member/calls.rs` follows the class, `member/share.rs` shares records.
//!
//! A vote has one or two rounds, and each round has a number. A ballot names its round. A prediction made before the round is no vote; one
//! made while the first round is open is cast as its ballot. A ballot counts once the board has logged it, and only then does a notice tell
//! the learner so. A call waits on the guidance line until the learner follows it (`App::call`).

pub(super) mod calls;
pub(super) mod share;

use std::collections::BTreeMap;

use crate::class::board::Board;
use crate::class::record::{ClassState, InstructorRequest, Participant, RaceResult};
use crate::course::Question;

/// The settings of the command line about the room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinSettings {
    /// The id of the participant.
    pub id: String,
    /// The nickname. Empty if the learner chose none.
    pub name: String,
    /// The folder or the address of the room, without its code.
    pub at: String,
    /// The program presents to the room instead of learning in it.
    pub instructor: bool,
}

/// The state of the link to the room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Joining,
    Joined,
    /// The room cannot be reached, for this reason. The link keeps trying.
    Lost(String),
    /// The learner left the room or was refused, for this reason. The link does not try again.
    Over(String),
}

/// The learner in a room.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    pub me: JoinSettings,
    pub link: Link,
    /// The last state of the class that the room sent.
    pub class: ClassState,
    /// The learner's hand is raised.
    pub raised: bool,
    /// The learner's votes by the number of their round, also those that are not counted yet.
    ballots: BTreeMap<u64, usize>,
    /// The free question of the open vote. `None` if the vote is about a stage.
    asked: Option<Question>,
    /// The number of the open round, and true if the prediction was made before it and is therefore no vote.
    round: Option<(u64, bool)>,
    /// The results of this session that count, by exercise or mystery.
    races: BTreeMap<String, RaceResult>,
    /// The id of the open task, and the time at which it was opened, in milliseconds since the program began.
    task: (String, u64),
    /// The record that was shared last.
    pub shared: Participant,
    /// The stage or the race of the last offer that the learner accepted.
    accepted: Option<String>,
    /// The time of the last check for something new to share, in milliseconds since the program began.
    checked_ms: u64,
    /// The board that a presenter sees. `None` for a learner.
    pub board: Option<Box<Board>>,
    /// The last order of a presenter, and its time in milliseconds since the program began.
    ordered: Option<(InstructorRequest, u64)>,
}

/// A call of the class to the learner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructorCall {
    /// The learner is asked to answer the prediction of the stage at this index, for the second time if `again`.
    Vote { at: usize, again: bool },
    /// The learner is asked to answer a free question, for the second time if `again`.
    Ask { again: bool },
    /// The learner is invited to the stage at this index.
    Stage(usize),
    /// The learner is invited to race in this exercise or mystery.
    Race(String),
}

impl InstructorCall {
    /// Returns true if the learner is asked to vote.
    fn is_vote(&self) -> bool {
        matches!(self, Self::Vote { .. } | Self::Ask { .. })
    }
}
