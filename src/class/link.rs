//! The traits with which a program talks to a room, over the network or through a folder, and the news that it gets from there.

use super::board::Board;
use super::record::{ClassState, InstructorRequest, Participant};

/// The reason why a room could not be used. The text is a sentence for the screen.
#[derive(Clone, Debug, PartialEq, Eq, strum::Display)]
pub enum RoomError {
    /// The room cannot be reached now. The program tries again.
    #[strum(transparent)]
    Later(String),
    /// Trying again would not help, for instance after a wrong code.
    #[strum(transparent)]
    Never(String),
}

/// A participant's link to a room.
pub trait ParticipantLink: Send {
    /// Replaces the participant's record in the room. Returns the state of the class.
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
    /// The room cannot be reached, now or ever.
    Lost(RoomError),
}
