//! What a screen hears from its room.

use super::board::Board;
use super::record::Class;

#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The class says something new, or is reached again.
    Class(Box<Class>),
    /// What the instructor's presenter is told: the board, as it is now.
    Board(Box<Board>),
    /// The room cannot be reached: why, and whether it is tried again.
    Lost { why: String, again: bool },
}
