//! What a screen hears from its room.

use super::board::Board;
use super::record::ClassState;

#[derive(Clone, Debug, PartialEq)]
pub enum RoomNews {
    /// The class says something new, or is reached again.
    Class(Box<ClassState>),
    /// What the instructor's presenter is told: the board, as it is now.
    Board(Box<Board>),
    /// The room cannot be reached: why, and whether it is tried again.
    Lost { why: String, again: bool },
}
