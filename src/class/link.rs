//! The links to a room, for participants and for the instructor, and the news that they bring to the screen.

use super::board::Board;
use super::record::{ClassState, InstructorRequest, Participant};

/// The reason why a room could not be used.
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
    /// Replaces the participant's shared record. Returns the state of the class.
    fn share(&mut self, me: &Participant) -> Result<ClassState, RoomError>;
}

/// An instructor's link to a room.
pub trait InstructorLink: Send {
    /// Returns the present board.
    fn board(&mut self) -> Result<Board, RoomError>;
    /// Asks the room to carry out an order.
    fn order(&mut self, order: &InstructorRequest) -> Result<(), RoomError>;
}

/// News from a room for the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum RoomNews {
    /// The class has changed, or can be reached again.
    Class(Box<ClassState>),
    /// The present board, for the instructor's presenter.
    Board(Box<Board>),
    /// The room cannot be reached for this reason. `again` is true if the member tries again.
    Lost { why: String, again: bool },
}

impl From<RoomError> for RoomNews {
    fn from(error: RoomError) -> Self {
        let again = matches!(error, RoomError::Later(_));
        let (RoomError::Later(why) | RoomError::Never(why)) = error;
        Self::Lost { why, again }
    }
}
