//! What a room is to a participant, whichever way it is reached.

use std::fmt;

use super::board::Board;
use super::record::{ClassState, InstructorRequest, Participant};

/// Why a room did not take something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomError {
    /// It cannot be reached now.
    Later(String),
    /// Trying again is no use.
    Never(String),
}

impl fmt::Display for RoomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(why) | Self::Never(why) => f.write_str(why),
        }
    }
}

/// Where a room is, as a participant sees it.
pub trait ParticipantLink: Send {
    /// Shares a record in the place of the one before, and hears from the class.
    fn share(&mut self, me: &Participant) -> Result<ClassState, RoomError>;
}

/// Where a room is, as a program of its instructor sees it.
pub trait InstructorLink: Send {
    fn board(&mut self) -> Result<Board, RoomError>;
    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError>;
}
