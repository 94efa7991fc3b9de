//! The links to a room, for participants and for the instructor.

use super::board::Board;
use super::record::{ClassState, InstructorRequest, Participant};

/// Why a room could not be used.
#[derive(Clone, Debug, PartialEq, Eq, strum::Display)]
pub enum RoomError {
    /// The room cannot be reached now.
    #[strum(transparent)]
    Later(String),
    /// Trying again would not help.
    #[strum(transparent)]
    Never(String),
}

/// A participant's link to a room.
pub trait ParticipantLink: Send {
    /// Replaces the participant's shared record, and returns the class.
    fn share(&mut self, me: &Participant) -> Result<ClassState, RoomError>;
}

/// An instructor's link to a room.
pub trait InstructorLink: Send {
    fn board(&mut self) -> Result<Board, RoomError>;
    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError>;
}
