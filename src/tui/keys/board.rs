//! The keys of the instructor's board.

use crossterm::event::{KeyCode, KeyEvent};

use BoardAction::{Choose, Mark};
use KeyCode::{Char, Down, Esc, Left, PageDown, PageUp, Right, Tab, Up};

use super::{key, key_name};
use crate::tui::board::BoardScreen;

/// What the instructor asks the board for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardAction {
    /// Marks another stage.
    Mark(i32),
    Vote,
    /// Marks the right choice of the vote.
    Answer,
    Offer,
    /// Types a free question.
    Ask,
    /// Names a race; ends the one that is on.
    Race,
    Close,
    /// Lets nobody else join, or everybody again; whether who joins has to give a name.
    Lock,
    Names,
    /// Takes back the last order.
    Undo,
    /// Removes everybody who joined from the address that the board warns of.
    RemoveCrowd,
    /// Puts the warnings away that are shown.
    Dismiss,
    /// Shows another address of this machine on the view of how to join.
    NextPlace,
    /// Another participant.
    Choose(i32),
    /// Selects the chosen participant, or no longer; and all whose name has some letters.
    Select,
    SelectNamed,
    /// Removes those who are selected, or the chosen one, once it was asked twice.
    Remove,
    LetIn,
    /// Shows another screen; the board again, where that is shown.
    Show(BoardScreen),
    /// Ends the board, once it was asked twice.
    Quit,
    // While a word is typed.
    Type(char),
    Erase,
    Take,
    Drop,
}

/// Keys, what they do and what the footer says.
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

/// What a key asks for; while a word is typed, letters are text.
pub fn action(event: KeyEvent, naming: bool) -> Option<BoardAction> {
    match key(event)? {
        KeyCode::Enter if naming => Some(BoardAction::Take),
        KeyCode::Esc if naming => Some(BoardAction::Drop),
        KeyCode::Backspace if naming => Some(BoardAction::Erase),
        KeyCode::Up if naming => Some(Choose(-1)),
        KeyCode::Down if naming => Some(Choose(1)),
        KeyCode::Char(letter) if naming && !letter.is_control() => Some(BoardAction::Type(letter)),
        code => {
            let mut keys = KEYS.iter().filter(|_| !naming);
            keys.find(|(keys, ..)| keys.contains(&code)).map(|it| it.1)
        }
    }
}

/// The footer: key and label.
pub fn footer() -> Vec<(String, &'static str)> {
    let named = KEYS.iter().filter(|(.., label)| !label.is_empty());
    named
        .map(|(keys, _, label)| (key_name(keys[0]), *label))
        .collect()
}
