//! Every key, once: dispatch, footer, help and the documentation read the table. No other file names a key.
//! The table chooses between the meanings of a key; `App::may` says which of them are possible, so the footer offers only what works.

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

/// A key as the screen and the documents write it.
pub fn key_name(key: KeyCode) -> String {
    match key {
        KeyCode::Char(' ') => "space",
        KeyCode::Char(c @ '\u{1}'..='\u{1a}') => return format!("ctrl-{}", (c as u8 + 96) as char),
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

/// What a key event asks for now.
pub fn action(event: KeyEvent, app: &App) -> Option<Action> {
    let key = key(event)?;
    let binding = BINDINGS.iter().find(|binding| {
        let named = binding.keys.contains(&key) || binding.keys.contains(&KeyCode::Null);
        named && binding.counts(app)
    })?;
    match (binding.action, key) {
        (Action::Type(_), KeyCode::Char(letter)) if !letter.is_control() => {
            Some(Action::Type(letter))
        }
        (Action::Type(_), _) => None,
        (action, _) => Some(action),
    }
}

/// The action of a pasted letter: it is typed, where a word is typed.
pub fn typed(letter: char, app: &App) -> Option<Action> {
    let event = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
    action(event, app).filter(|action| matches!(action, Action::Type(_)))
}

/// Whether it is ctrl-c, which ends every screen as the signal does.
pub fn interrupts(event: KeyEvent) -> bool {
    key(event) == Some(KeyCode::Char('\u{3}'))
}

/// What the speaker view is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeakerKey {
    /// So many beats forward.
    By(isize),
    /// What the presentation does, whatever is shown.
    Ask(SpeakerRequest),
    /// Leaves the view.
    Leave,
}

/// What a key of the speaker view asks for. `esc` is a clicker's key, too: it does nothing here.
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

/// The key of an event as the table has it; none where it is released.
fn key(event: KeyEvent) -> Option<KeyCode> {
    Some(match event.code {
        _ if event.kind == KeyEventKind::Release => return None,
        KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::CONTROL) => {
            let control = c.is_ascii_alphabetic().then_some(c as u8 & 0x1f);
            control.map_or(KeyCode::Null, |it| KeyCode::Char(it as char))
        }
        KeyCode::Char(_) if event.modifiers.contains(KeyModifiers::ALT) => KeyCode::Null,
        KeyCode::F(5) if event.modifiers.contains(KeyModifiers::SHIFT) => SHIFT_F5,
        code => code,
    })
}

/// The key for this action now, or where it is possible.
pub fn label(action: Action, app: &App) -> String {
    let mut bindings = BINDINGS.iter().filter(|binding| binding.action == action);
    let now = bindings.clone().find(|binding| binding.counts(app));
    now.or_else(|| bindings.next())
        .map_or_else(String::new, first_key)
}

/// The key for this action anywhere, whatever is open now.
pub fn name(action: Action) -> Option<String> {
    let mut bindings = BINDINGS.iter();
    bindings
        .find(|binding| binding.action == action)
        .map(first_key)
}

fn first_key(binding: &KeyBinding) -> String {
    let key = binding.keys.first().copied();
    key.map_or_else(String::new, key_name)
}

/// What the footer offers now: key and label, the more useful first.
pub fn footer(app: &App) -> Vec<(String, &'static str)> {
    let mut offers: Vec<(String, &KeyBinding)> = Vec::new();
    let with_label = BINDINGS.iter().filter(|binding| !binding.label.is_empty());
    for binding in with_label.filter(|binding| binding.counts(app)) {
        let (key, action) = (first_key(binding), binding.action);
        // The first line that matches a key is what it means, also where that is not possible now.
        let known = offers
            .iter()
            .any(|(name, other)| other.action == action || *name == key);
        // An open card is closed by its own key; it is not offered to open it.
        let open = matches!(action, Action::Open(it) if app.view.overlay == Some(it));
        if !(known || open) {
            offers.push((key, binding));
        }
    }
    let working = offers.into_iter().filter(|(_, binding)| binding.works(app));
    let named = working.map(|(key, binding)| {
        let keys = match binding.action {
            Action::Answer(0) => letters(app.question()),
            Action::Vote(0) => letters(app.voting()),
            _ => key,
        };
        (keys, offered_label(binding, app))
    });
    named.collect()
}

/// The keys of the choices of a question: `a-d`.
fn letters(question: Option<&Question>) -> String {
    let choices = question.map_or(0, |question| question.choices.len());
    let last = crate::course::save_file::letter(choices.saturating_sub(1));
    format!("a-{last}")
}

/// What the footer calls an action in the present state.
fn offered_label(binding: &KeyBinding, app: &App) -> &'static str {
    let wanted = app.bench.run.wanted.as_ref();
    let toggled = || wanted.is_some_and(|run| run.slot == Slot::B);
    match binding.action {
        Action::Pause if paused(app) => "resume",
        Action::Toggle if toggled() => "back to A",
        Action::Pair if app.mode.plays_mystery() => "verdict on B",
        Action::Knobs if app.knobs_open() => "close knobs",
        Action::Lesson if app.view.lesson_open => "panels",
        Action::Lesson if app.mode.is_exercise() => "exercise",
        Action::Close if app.view.search.is_open() && !app.view.typing() => "show all",
        _ => binding.label,
    }
}

fn paused(app: &App) -> bool {
    match app.mode.recording() {
        Some(recording) => recording.paused,
        None => app.bench.run.state == RunState::Paused,
    }
}

/// A line of the help: keys that belong together and what they do.
pub struct HelpLine {
    pub group: Group,
    pub keys: Vec<KeyCode>,
    pub help: &'static str,
    bindings: Vec<&'static KeyBinding>,
}

impl HelpLine {
    /// The keys in words; more than three letters or digits that follow each other as a range: `1-9`.
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

    /// Whether any of them does something now.
    pub fn works(&self, app: &App) -> bool {
        self.bindings.iter().any(|binding| binding.works(app))
    }
}

/// The table as documentation, each key once, by heading.
pub fn reference() -> Vec<HelpLine> {
    let mut rows: Vec<HelpLine> = Vec::new();
    for group in Group::VARIANTS {
        let listed = |it: &&KeyBinding| it.group == *group && !it.help.is_empty();
        for binding in BINDINGS.iter().filter(listed) {
            let same = |row: &HelpLine| row.group == *group && row.help == binding.help;
            let at = rows.iter().position(same).unwrap_or_else(|| {
                rows.push(HelpLine {
                    group: *group,
                    keys: Vec::new(),
                    help: binding.help,
                    bindings: Vec::new(),
                });
                rows.len() - 1
            });
            let row = &mut rows[at];
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
