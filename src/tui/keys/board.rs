//! The keys of the instructor's board.

use crossterm::event::{KeyCode, KeyEvent};

use BoardAction::{Choose, Mark};
use KeyCode::{Char, Down, Esc, Left, PageDown, PageUp, Right, Tab, Up};

use super::{key, key_name};
use crate::tui::board::BoardScreen;

/// The meaning of a key on the instructor's board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardAction {
    /// Marks the stage this many places further on.
    Mark(i32),
    Vote,
    /// Shows which choice of the vote is right.
    Answer,
    Offer,
    /// Types a free question.
    Ask,
    /// Asks for the name of a new race, or ends the running race.
    Race,
    Close,
    /// Locks the room, so that nobody else joins, or opens it again.
    Lock,
    /// Requires a name of everybody who joins, or no longer.
    Names,
    /// Takes back the last order.
    Undo,
    /// Removes everybody who joined from the address of the warning.
    RemoveCrowd,
    /// Dismisses the warnings that are shown.
    Dismiss,
    /// Shows another address of this machine on the view of how to join.
    NextPlace,
    /// Chooses the participant this many rows further down; while a question is typed, another prepared question.
    Choose(i32),
    /// Adds the chosen participant to the selection, or removes them from it.
    Select,
    /// Asks for a word and selects all participants whose name contains it.
    SelectNamed,
    /// Removes the selected participants, or the chosen one. The key must be pressed twice.
    Remove,
    LetIn,
    /// Shows another screen, or the board again where that screen is shown.
    Show(BoardScreen),
    /// Ends the board. The key must be pressed twice.
    Quit,
    // The others are possible while a word is typed.
    Type(char),
    Erase,
    Take,
    Drop,
}

/// Each row has the keys, their action and its label in the footer.
const KEYS: &[(&[KeyCode], BoardAction, &str)] = &[
    (&[Right, Char('n')], Mark(1), "stage"),
    (&[Left, Char('p')], Mark(-1), ""),
    (&[Char('c')], BoardAction::Show(BoardScreen::Join), "join"),
    (&[Char('v')], BoardAction::Vote, "vote"),
    (&[Char('w')], BoardAction::Show(BoardScreen::Wall), "wall"),
    (&[Char('u')], BoardAction::Undo, "undo"),
    (&[Char('s')], BoardAction::Answer, "answer"),
    (&[Char('?')], BoardAction::Ask, "ask"),
    (&[Char('a')], BoardAction::Offer, "invite"),
    (&[Char('r')], BoardAction::Race, "race"),
    (&[Char('x')], BoardAction::Close, "close"),
    (&[Char('d')], BoardAction::Remove, "remove"),
    (&[Char('l')], BoardAction::Lock, "lock"),
    (&[Char('m')], BoardAction::Names, ""),
    (&[Char('i')], BoardAction::LetIn, ""),
    (&[Char('f')], BoardAction::RemoveCrowd, ""),
    (&[Char('z')], BoardAction::Dismiss, ""),
    (&[Tab], BoardAction::NextPlace, ""),
    (&[Char(' ')], BoardAction::Select, ""),
    (&[Char('/')], BoardAction::SelectNamed, ""),
    (&[Char('y')], BoardAction::Show(BoardScreen::Own), "my page"),
    (&[Down, Char('j')], Choose(1), ""),
    (&[Up, Char('k')], Choose(-1), ""),
    (&[PageDown], Choose(10), ""),
    (&[PageUp], Choose(-10), ""),
    (&[Char('q')], BoardAction::Quit, "quit"),
    (&[Esc], BoardAction::Show(BoardScreen::Board), ""),
];

/// Returns the meaning of a key, or `None` if it has none. While a word is typed (`naming`), letters are text.
pub fn action(event: KeyEvent, naming: bool) -> Option<BoardAction> {
    match key(event)? {
        KeyCode::Enter if naming => Some(BoardAction::Take),
        KeyCode::Esc if naming => Some(BoardAction::Drop),
        KeyCode::Backspace if naming => Some(BoardAction::Erase),
        KeyCode::Up if naming => Some(Choose(-1)),
        KeyCode::Down if naming => Some(Choose(1)),
        KeyCode::Char(letter) if naming && !letter.is_control() => Some(BoardAction::Type(letter)),
        _ if naming => None,
        code => {
            let row = KEYS.iter().find(|(keys, ..)| keys.contains(&code));
            row.map(|(_, action, _)| *action)
        }
    }
}

/// Returns the name of the first key of an action.
pub fn key_of(action: BoardAction) -> String {
    let row = KEYS.iter().find(|(_, known, _)| *known == action);
    row.map_or_else(String::new, |(keys, ..)| key_name(keys[0]))
}

/// Returns the keys and labels of the footer.
pub fn footer() -> Vec<(String, &'static str)> {
    KEYS.iter()
        .filter(|(.., label)| !label.is_empty())
        .map(|(keys, _, label)| (key_name(keys[0]), *label))
        .collect()
}
