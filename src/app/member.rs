//! The learner's membership in a room: what is shared, what the class reports, and which offers the learner may accept. A room only
//! makes offers; it never changes the learner's work. Plain data; `member/share.rs` changes it.
//!
//! A vote has a number for each round, and a ballot names the round: what was predicted before is no vote. A prediction made while the first
//! round is open is cast as its ballot. A ballot counts once the board has logged it, and only then the learner is told so. A call waits on the guidance line until the learner takes it up (`App::call`).

pub(super) mod share;

use std::collections::BTreeMap;

use crate::class::board::Board;
use crate::class::record::{ClassState, InstructorRequest, Participant, RaceResult};
use crate::course::Question;

/// What the command line says about the room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinSettings {
    pub id: String,
    pub name: String,
    /// Where the room is, without its code.
    pub at: String,
    /// Presents to the room instead of learning in it.
    pub instructor: bool,
}

/// How the room is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Joining,
    Joined,
    /// It is tried again.
    Lost(String),
    /// For good: the learner left, or the room refused.
    Over(String),
}

/// The learner in a room.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    pub me: JoinSettings,
    pub link: Link,
    pub class: ClassState,
    pub raised: bool,
    /// Votes by the number of their round, counted or not yet.
    ballots: BTreeMap<u64, usize>,
    /// The free question that is voted on.
    asked: Option<Question>,
    /// The round that is open, and whether the prediction was made before it: then it is no vote.
    round: Option<(u64, bool)>,
    /// What counts of this session, by exercise or mystery.
    races: BTreeMap<String, RaceResult>,
    /// What is open, and since when.
    here: (String, u64),
    /// What was shared last.
    pub shared: Participant,
    /// The offer that was accepted.
    taken: Option<String>,
    looked_ms: u64,
    /// What a presenter sees of the room, and the last order with its time.
    pub board: Option<Box<Board>>,
    ordered: Option<(InstructorRequest, u64)>,
}

/// What the class asks for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructorCall {
    /// An answer to the prediction of the stage at this place of the course; once more, after a discussion.
    Vote { at: usize, again: bool },
    /// An answer to a free question.
    Ask { again: bool },
    /// To go to the stage at this place.
    Stage(usize),
    /// To run this exercise or mystery.
    Race(String),
}
