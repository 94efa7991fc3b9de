//! The learner's membership in a class: what the learner shares, what the class reports, and what the instructor asks for. A class only
//! makes offers; it never changes the learner's work. This file holds plain data; `member/share.rs` changes it.
//!
//! Each round of a vote has a number, and a ballot names the round, so that an earlier prediction is no vote. A prediction made while the
//! first round is open counts as its ballot. A call waits on the guidance line until the learner follows it (`App::call`).

pub(super) mod share;

use std::collections::BTreeMap;

use crate::class::board::Board;
use crate::class::record::{ClassState, InstructorRequest, Participant, RaceResult};

/// The options of the command line about the class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinSettings {
    pub id: String,
    pub name: String,
    /// The address or folder of the class, without its code.
    pub at: String,
    /// This program presents to the class instead of learning in it.
    pub instructor: bool,
}

/// The state of the connection to the class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Joining,
    Joined,
    /// The connection was lost for this reason. The program tries again.
    Lost(String),
    /// The connection has ended for this reason: the learner left, or the class refused.
    Over(String),
}

/// The learner as a member of a class.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    pub me: JoinSettings,
    pub link: Link,
    pub class: ClassState,
    pub raised: bool,
    /// The learner's votes, by the number of the round.
    ballots: BTreeMap<u64, usize>,
    /// The number of the open round. True if the prediction was made before it, so that it is no vote.
    round: Option<(u64, bool)>,
    /// The results of this session, by exercise or mystery.
    races: BTreeMap<String, RaceResult>,
    /// The id of the open stage, exercise or mystery, and the time when it was opened, in milliseconds.
    here: (String, u64),
    /// The last record that was shared.
    pub shared: Participant,
    /// The stage or race that the learner went to at the instructor's call.
    taken: Option<String>,
    /// The time of the last check for something new to share, in milliseconds.
    checked_ms: u64,
    /// The overview of the class, for a presenter.
    pub board: Option<Box<Board>>,
    /// The instructor's last request and its time, in milliseconds.
    ordered: Option<(InstructorRequest, u64)>,
}

/// The instructor's call to the learner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructorCall {
    /// Vote on the prediction of the stage at this index. `again` is true in the second round, after a discussion.
    Vote { at: usize, again: bool },
    /// Go to the stage at this index.
    Stage(usize),
    /// Race in the exercise or mystery with this id.
    Race(String),
}
