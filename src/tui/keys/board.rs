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
    /// Opens a vote on the marked stage, or closes the open vote.
    Vote,
    /// Shows which choice of the vote is right.
    Answer,
    /// Invites everybody to the marked stage, or takes this invitation back.
    Offer,
    /// Begins to type a free question.
    Ask,
    /// Asks for the name of a new race, or ends the running race.
    Race,
    /// Closes the room, or opens it again.
    Close,
    /// Locks the room, so that nobody else joins, or unlocks it.
    Lock,
    /// Turns on or off that everybody who joins must give a name.
    Names,
    /// Takes back the last order.
    Undo,
    /// Removes everybody who joined from the address of the warning.
    RemoveCrowd,
    /// Dismisses the warnings that are shown.
    Dismiss,
    /// Shows the next address of this machine on the screen that says how to join.
    NextPlace,
    /// Chooses the participant this many rows further down. While a question is typed, chooses another prepared question.
    Choose(i32),
    /// Adds the chosen participant to the selection, or removes them from it.
    Select,
    /// Asks for a word and selects all participants whose name contains it.
    SelectNamed,
    /// Removes the selected participants, or the chosen one. The key must be pressed twice.
    Remove,
    /// Lets everybody who was removed join again.
    LetIn,
    /// Shows another screen, or the board again where that screen is shown.
    Show(BoardScreen),
    /// Ends the board. The key must be pressed twice.
    Quit,
    /// Adds a letter to the line that is being typed.
    Type(char),
    /// Removes the last letter of this line.
    Erase,
    /// Carries out the order of this line.
    Take,
    /// Gives this line up.
    Drop,
}

/// Each row has keys, their action and its label in the footer. A row with an empty label is not in the footer.
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

/// Returns the action of a key, or `None` if it has none. If `is_typing` is set, letters are text.
pub fn action(event: KeyEvent, is_typing: bool) -> Option<BoardAction> {
    match key(event)? {
        KeyCode::Enter if is_typing => Some(BoardAction::Take),
        KeyCode::Esc if is_typing => Some(BoardAction::Drop),
        KeyCode::Backspace if is_typing => Some(BoardAction::Erase),
        KeyCode::Up if is_typing => Some(Choose(-1)),
        KeyCode::Down if is_typing => Some(Choose(1)),
        KeyCode::Char(letter) if is_typing && !letter.is_control() => {
            Some(BoardAction::Type(letter))
        }
        _ if is_typing => None,
        code => {
            let row = KEYS.iter().find(|(keys, ..)| keys.contains(&code));
            row.map(|(_, action, _)| *action)
        }
    }
}

/// Returns the name of the first key of an action.
pub fn key_of(action: BoardAction) -> String {
    let row = KEYS.iter().find(|(_, other, _)| *other == action);
    row.map_or_else(String::new, |(keys, ..)| key_name(keys[0]))
}

/// Returns the keys and labels of the footer. The key of the screen that is shown has the label `board`, because it goes back there.
pub fn footer(shown: BoardScreen) -> Vec<(String, &'static str)> {
    let mut keys_and_labels = Vec::new();
    for (keys, action, label) in KEYS.iter().filter(|(.., label)| !label.is_empty()) {
        let goes_back = *action == BoardAction::Show(shown);
        keys_and_labels.push((key_name(keys[0]), if goes_back { "board" } else { label }));
    }
    keys_and_labels
}
