//! News from a room for the screen.

use super::board::Board;
use super::record::ClassState;

#[derive(Clone, Debug, PartialEq)]
pub enum RoomNews {
    /// The class has changed, or can be reached again.
    Class(Box<ClassState>),
    /// The present board, for the instructor's presenter.
    Board(Box<Board>),
    /// The room cannot be reached: the reason, and whether the member tries again.
    Lost { why: String, again: bool },
}
