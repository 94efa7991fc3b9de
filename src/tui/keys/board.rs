//! The keys of the instructor's board.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::key_name;

/// What the instructor asks the board for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardAction {
    /// Marks another stage.
    Mark(i32),
    Vote,
    /// Marks the right choice of the vote.
    Answer,
    Offer,
    /// Names a race; ends the one that is on.
    Race,
    Close,
    /// Another participant.
    Choose(i32),
    /// Selects the chosen participant, or no longer; and all whose name has some letters.
    Select,
    SelectNamed,
    /// Removes those who are selected, or the chosen one, once it was asked twice.
    Remove,
    LetIn,
    /// Shows how to join, for the projector; the instructor's own addresses; the board again.
    Join,
    Addresses,
    /// Ends the board, once it was asked twice.
    Quit,
    /// Shows the board again.
    Board,
    // While a word is typed.
    Type(char),
    Erase,
    Take,
    Drop,
}

/// Keys, what they do and what the footer says.
const KEYS: &[(&[KeyCode], BoardAction, &str)] = &[
    (
        &[KeyCode::Right, KeyCode::Char('n')],
        BoardAction::Mark(1),
        "stage",
    ),
    (
        &[KeyCode::Left, KeyCode::Char('p')],
        BoardAction::Mark(-1),
        "",
    ),
    (&[KeyCode::Char('c')], BoardAction::Join, "join"),
    (&[KeyCode::Char('v')], BoardAction::Vote, "vote"),
    (&[KeyCode::Char('s')], BoardAction::Answer, "answer"),
    (&[KeyCode::Char('a')], BoardAction::Offer, "invite"),
    (&[KeyCode::Char('r')], BoardAction::Race, "race"),
    (&[KeyCode::Char('x')], BoardAction::Close, "close"),
    (&[KeyCode::Char('d')], BoardAction::Remove, "remove"),
    (&[KeyCode::Char('u')], BoardAction::LetIn, ""),
    (&[KeyCode::Char(' ')], BoardAction::Select, ""),
    (&[KeyCode::Char('/')], BoardAction::SelectNamed, ""),
    (&[KeyCode::Char('y')], BoardAction::Addresses, "my page"),
    (
        &[KeyCode::Down, KeyCode::Char('j')],
        BoardAction::Choose(1),
        "",
    ),
    (
        &[KeyCode::Up, KeyCode::Char('k')],
        BoardAction::Choose(-1),
        "",
    ),
    (&[KeyCode::PageDown], BoardAction::Choose(10), ""),
    (&[KeyCode::PageUp], BoardAction::Choose(-10), ""),
    (&[KeyCode::Char('q')], BoardAction::Quit, "quit"),
    (&[KeyCode::Esc], BoardAction::Board, ""),
];

/// What a key asks for; while a word is typed, letters are text.
pub fn action(event: KeyEvent, naming: bool) -> Option<BoardAction> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        _ if control => None,
        KeyCode::Enter if naming => Some(BoardAction::Take),
        KeyCode::Esc if naming => Some(BoardAction::Drop),
        KeyCode::Backspace if naming => Some(BoardAction::Erase),
        KeyCode::Char(letter) if naming => Some(BoardAction::Type(letter)),
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
