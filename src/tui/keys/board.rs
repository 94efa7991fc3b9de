//! The keys of the instructor's board.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::key_name;

/// What the instructor asks the board for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Marks another stage.
    Mark(i32),
    Vote,
    Offer,
    /// Names a race; ends the one that is on.
    Race,
    Close,
    /// Another participant.
    Choose(i32),
    /// Removes the participant, once it was asked twice.
    Remove,
    LetIn,
    Quit,
    // While a race is named.
    Type(char),
    Erase,
    Take,
    Drop,
}

/// Keys, what they do and what the footer says.
const KEYS: &[(&[KeyCode], Ask, &str)] = &[
    (&[KeyCode::Right, KeyCode::Char('n')], Ask::Mark(1), "stage"),
    (&[KeyCode::Left, KeyCode::Char('p')], Ask::Mark(-1), ""),
    (&[KeyCode::Char('v')], Ask::Vote, "vote"),
    (&[KeyCode::Char('a')], Ask::Offer, "invite all"),
    (&[KeyCode::Char('r')], Ask::Race, "race"),
    (&[KeyCode::Char('x')], Ask::Close, "close"),
    (&[KeyCode::Char('d')], Ask::Remove, "remove"),
    (&[KeyCode::Char('u')], Ask::LetIn, ""),
    (&[KeyCode::Down, KeyCode::Char('j')], Ask::Choose(1), ""),
    (&[KeyCode::Up, KeyCode::Char('k')], Ask::Choose(-1), ""),
    (&[KeyCode::PageDown], Ask::Choose(10), ""),
    (&[KeyCode::PageUp], Ask::Choose(-10), ""),
    (&[KeyCode::Char('q')], Ask::Quit, "quit"),
];

/// What a key asks for; while a race is named, letters are text.
pub fn ask(event: KeyEvent, naming: bool) -> Option<Ask> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        _ if control => None,
        KeyCode::Enter if naming => Some(Ask::Take),
        KeyCode::Esc if naming => Some(Ask::Drop),
        KeyCode::Backspace if naming => Some(Ask::Erase),
        KeyCode::Char(letter) if naming => Some(Ask::Type(letter)),
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
