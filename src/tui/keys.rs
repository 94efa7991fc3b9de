//! Turns keys into actions, and names keys on the screen. Every key is written once, in a table; dispatch, footer, help and the documentation
//! read the table. A key may have several meanings: the table has the state of the screen for each, and `App::may` decides whether the action
//! is possible, so the footer offers only what works.

pub mod board;
mod conditions;
pub mod decode;
pub mod opened;
mod table;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use strum::VariantArray;

use crate::app::notes::SpeakerRequest;
use crate::app::{Action, App, RunState};
use crate::course::Question;
use protocol::Slot;
use table::SHIFT_F5;
pub use table::{BINDINGS, Group, KeyBinding};

/// Returns the name of a key as the screen and the documents write it, such as `PgDn` or `ctrl-c`.
pub fn key_name(key: KeyCode) -> String {
    match key {
        KeyCode::Char(' ') => "space",
        KeyCode::Char(c @ '\u{1}'..='\u{1a}') => {
            return format!("ctrl-{}", (c as u8 | 0x60) as char);
        }
        KeyCode::Char(c) => return c.to_string(),
        KeyCode::Enter => "enter",
        KeyCode::Esc => "esc",
        KeyCode::Tab => "tab",
        KeyCode::BackTab => "shift-tab",
        KeyCode::Up => "↑",
        KeyCode::Down => "↓",
        KeyCode::Left => "←",
        KeyCode::Right => "→",
        KeyCode::PageUp => "PgUp",
        KeyCode::PageDown => "PgDn",
        KeyCode::Home => "home",
        KeyCode::End => "end",
        KeyCode::Backspace => "backspace",
        SHIFT_F5 => "shift-F5",
        KeyCode::F(n) => return format!("F{n}"),
        _ => "any key",
    }
    .to_owned()
}

/// Returns the action that a key event means in the present state, or `None` if it means nothing.
pub fn action(event: KeyEvent, app: &App) -> Option<Action> {
    let key = key(event)?;
    let binding = BINDINGS.iter().find(|binding| {
        let lists_key = binding.keys.contains(&key) || binding.keys.contains(&KeyCode::Null);
        lists_key && binding.applies(app)
    })?;
    match (binding.action, key) {
        (Action::Type(_), KeyCode::Char(letter)) if !letter.is_control() => {
            Some(Action::Type(letter))
        }
        (Action::Type(_), _) => None,
        (action, _) => Some(action),
    }
}

/// Returns the action that types a pasted letter, or `None` where no word is typed.
pub fn typed(letter: char, app: &App) -> Option<Action> {
    let event = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
    match action(event, app)? {
        typing @ Action::Type(_) => Some(typing),
        _ => None,
    }
}

/// Returns true for ctrl-c, which ends every screen as the signal does.
pub fn interrupts(event: KeyEvent) -> bool {
    key(event) == Some(KeyCode::Char('\u{3}'))
}

/// The meaning of a key in the speaker view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeakerKey {
    /// Skips forward by this many beats, or back where the number is negative.
    By(isize),
    /// Sends a request to the presentation.
    Ask(SpeakerRequest),
    /// Leaves the view.
    Leave,
}

/// Returns the meaning of a key in the speaker view. `esc` means nothing here, because clickers send it, too.
pub fn speaker(event: KeyEvent) -> Option<SpeakerKey> {
    use KeyCode::{Char, Down, Enter, Left, PageDown, PageUp, Right, Up};
    Some(match key(event)? {
        PageDown | Right | Down | Enter | Char(' ') => SpeakerKey::By(1),
        PageUp | Left | Up => SpeakerKey::By(-1),
        Char(digit @ '1'..='9') => SpeakerKey::Ask(SpeakerRequest::GoTo(digit.to_digit(10)?, 1)),
        Char('b' | '.') => SpeakerKey::Ask(SpeakerRequest::Blank),
        Char('F') => SpeakerKey::Ask(SpeakerRequest::Freeze),
        Char('X') => SpeakerKey::Ask(SpeakerRequest::End),
        Char('q') => SpeakerKey::Leave,
        _ => return None,
    })
}

/// Returns the key of an event as the table writes it; `None` when the key is released. The table has no key that is held with alt, and no
/// sign that is held with ctrl; such a key becomes `Null`.
fn key(event: KeyEvent) -> Option<KeyCode> {
    Some(match event.code {
        _ if event.kind == KeyEventKind::Release => return None,
        KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::CONTROL) => {
            let control = c.is_ascii_alphabetic().then_some(c as u8 & 0x1f);
            control.map_or(KeyCode::Null, |code| KeyCode::Char(code as char))
        }
        KeyCode::Char(_) if event.modifiers.contains(KeyModifiers::ALT) => KeyCode::Null,
        KeyCode::F(5) if event.modifiers.contains(KeyModifiers::SHIFT) => SHIFT_F5,
        code => code,
    })
}

/// Returns the key for an action in the present state; where no key applies now, the first key that the table has for it.
pub fn label(action: Action, app: &App) -> String {
    let mut bindings = BINDINGS.iter().filter(|binding| binding.action == action);
    bindings
        .clone()
        .find(|binding| binding.applies(app))
        .or_else(|| bindings.next())
        .map_or_else(String::new, first_key)
}

/// Returns the first key that the table has for an action, in any state of the screen; `None` if the action has no key.
pub fn name(action: Action) -> Option<String> {
    let has_action = |binding: &&KeyBinding| binding.action == action;
    BINDINGS.iter().find(has_action).map(first_key)
}

fn first_key(binding: &KeyBinding) -> String {
    let first = binding.keys.first();
    first.map_or_else(String::new, |key| key_name(*key))
}

/// Returns the keys and labels that the footer offers now, the more useful ones first.
pub fn footer(app: &App) -> Vec<(String, &'static str)> {
    let mut offers: Vec<(String, &KeyBinding)> = Vec::new();
    for binding in BINDINGS {
        if binding.label.is_empty() || !binding.applies(app) {
            continue;
        }
        let key = first_key(binding);
        let action = binding.action;
        // The first line that matches a key is the meaning of the key, even where its action is not possible now.
        let is_listed = offers
            .iter()
            .any(|(name, other)| other.action == action || *name == key);
        // The key of an open card closes it, so the footer does not offer to open it.
        let is_open = matches!(action, Action::Open(card) if app.view.overlay == Some(card));
        if !(is_listed || is_open) {
            offers.push((key, binding));
        }
    }
    offers
        .into_iter()
        .filter(|(_, binding)| binding.works(app))
        .map(|(key, binding)| {
            let keys = match binding.action {
                Action::Answer(0) => choice_letters(app.question()),
                Action::Vote(0) => choice_letters(app.voting()),
                _ => key,
            };
            (keys, offered_label(binding, app))
        })
        .collect()
}

/// Returns the keys of the choices of a question, such as `a-d`.
fn choice_letters(question: Option<&Question>) -> String {
    let choices = question.map_or(0, |question| question.choices.len());
    let last = crate::course::save_file::letter(choices.saturating_sub(1));
    format!("a-{last}")
}

/// Returns the footer's label of an action in the present state.
fn offered_label(binding: &KeyBinding, app: &App) -> &'static str {
    let wanted = app.bench.run.wanted.as_ref();
    let wants_b = wanted.is_some_and(|run| run.slot == Slot::B);
    match binding.action {
        Action::Pause if is_paused(app) => "resume",
        Action::Toggle if wants_b => "back to A",
        Action::Pair if app.mode.plays_mystery() => "verdict on B",
        Action::Knobs if app.knobs_open() => "close knobs",
        Action::Lesson if app.view.lesson_open => "panels",
        Action::Lesson if app.mode.is_exercise() => "exercise",
        Action::Close if app.view.search.is_open() && !app.view.typing() => "show all",
        _ => binding.label,
    }
}

fn is_paused(app: &App) -> bool {
    match app.mode.recording() {
        Some(recording) => recording.paused,
        None => app.bench.run.state == RunState::Paused,
    }
}

/// A line of the help: keys that belong together, and a text that says what they do.
pub struct HelpLine {
    pub group: Group,
    pub keys: Vec<KeyCode>,
    pub help: &'static str,
    bindings: Vec<&'static KeyBinding>,
}

impl HelpLine {
    /// Returns the names of the keys. More than three letters or digits in a row become a range, such as `1-9`.
    pub fn names(&self) -> Vec<String> {
        let letters: Option<Vec<char>> = self.keys.iter().map(|key| key.as_char()).collect();
        if let Some([first, .., last]) = letters.as_deref()
            && self.keys.len() > 3
            && *last as usize == *first as usize + self.keys.len() - 1
        {
            return vec![format!("{first}-{last}")];
        }
        self.keys.iter().map(|key| key_name(*key)).collect()
    }

    /// Returns true if any of the keys does something now.
    pub fn works(&self, app: &App) -> bool {
        self.bindings.iter().any(|binding| binding.works(app))
    }
}

/// Returns the lines of the help: each key once, under its heading.
pub fn reference() -> Vec<HelpLine> {
    let mut rows: Vec<HelpLine> = Vec::new();
    for group in Group::VARIANTS {
        for binding in BINDINGS {
            if binding.group != *group || binding.help.is_empty() {
                continue;
            }
            let shares_line = |row: &HelpLine| row.group == *group && row.help == binding.help;
            let index = rows.iter().position(shares_line).unwrap_or_else(|| {
                rows.push(HelpLine {
                    group: *group,
                    keys: Vec::new(),
                    help: binding.help,
                    bindings: Vec::new(),
                });
                rows.len() - 1
            });
            let row = &mut rows[index];
            row.bindings.push(binding);
            for key in binding.keys {
                if !row.keys.contains(key) {
                    row.keys.push(*key);
                }
            }
        }
    }
    rows
}
