//! The learner's membership in a room: what is shared, what the class reports, and which offers the learner may accept. A room only
//! makes offers; it never changes the learner's work. Plain data; `member/share.rs` changes it.
//!
//! A vote has a number for each round, and a ballot names the round: what was predicted before is no vote. A prediction made while the
//! first round is open is cast as its ballot. A ballot counts once the board has logged it, and only then the learner is told so. A
//! call waits on the guidance line until the learner takes it up (`App::call`).

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
    /// The nickname; empty for none.
    pub name: String,
    /// The folder or the address of the room, without its code.
    pub at: String,
    /// True to present to the room instead of learning in it.
    pub instructor: bool,
}

/// The state of the link to the room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Joining,
    Joined,
    /// The room is not reached for this reason; it is tried again.
    Lost(String),
    /// The learner left, or the room refused, for this reason. It is not tried again.
    Over(String),
}

/// The learner in a room.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    pub me: JoinSettings,
    pub link: Link,
    /// The state of the class as the room told it last.
    pub class: ClassState,
    /// True while the learner's hand is up.
    pub raised: bool,
    /// The learner's votes by the number of their round, counted or not yet.
    ballots: BTreeMap<u64, usize>,
    /// The free question that is voted on.
    asked: Option<Question>,
    /// The number of the open round, and true if the prediction was made before it, which makes it no vote.
    round: Option<(u64, bool)>,
    /// The results of this session that count, by exercise or mystery.
    races: BTreeMap<String, RaceResult>,
    /// The id of the open task, and the time at which it was opened, in milliseconds since the program began.
    here: (String, u64),
    /// The record that was shared last.
    pub shared: Participant,
    /// The stage or the race of the last offer that the learner accepted.
    taken: Option<String>,
    /// The time at which something new to share was last looked for, in milliseconds since the program began.
    looked_ms: u64,
    /// The board that a presenter sees; `None` for a learner.
    pub board: Option<Box<Board>>,
    /// The last order of a presenter, and its time in milliseconds since the program began.
    ordered: Option<(InstructorRequest, u64)>,
}

/// A call of the class to the learner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructorCall {
    /// The learner is asked to answer the prediction of the stage with this index; `again` after a discussion.
    Vote { at: usize, again: bool },
    /// The learner is asked to answer a free question; `again` after a discussion.
    Ask { again: bool },
    /// The learner is invited to the stage with this index.
    Stage(usize),
    /// The learner is invited to race in this exercise or mystery.
    Race(String),
}
