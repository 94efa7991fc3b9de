//! Every key, once: dispatch, footer, help and the documentation read this table. No other file names a key.
//! A binding counts only while its condition holds, so a key never does what the screen does not offer.

mod table;

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::app::{Action, App, RunState};

pub use table::BINDINGS;
use table::choices;

/// A key as the table writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Char(char),
    Control(char),
    Enter,
    Escape,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Backspace,
    /// In the table: whichever it is. As an event: one that the table names nowhere.
    Any,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(' ') => f.write_str("space"),
            Self::Char(c) => write!(f, "{c}"),
            Self::Control(c) => write!(f, "ctrl-{c}"),
            Self::Enter => f.write_str("enter"),
            Self::Escape => f.write_str("esc"),
            Self::Tab => f.write_str("tab"),
            Self::BackTab => f.write_str("shift-tab"),
            Self::Up => f.write_str("↑"),
            Self::Down => f.write_str("↓"),
            Self::Left => f.write_str("←"),
            Self::Right => f.write_str("→"),
            Self::PageUp => f.write_str("PgUp"),
            Self::PageDown => f.write_str("PgDn"),
            Self::Home => f.write_str("home"),
            Self::End => f.write_str("end"),
            Self::Backspace => f.write_str("backspace"),
            Self::Any => f.write_str("any key"),
        }
    }
}

/// Under which heading the help lists a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Stage,
    Run,
    Screen,
    Move,
    Program,
}

impl Group {
    pub const ALL: [Self; 5] = [
        Self::Stage,
        Self::Run,
        Self::Screen,
        Self::Move,
        Self::Program,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stage => "the stage",
            Self::Run => "the run",
            Self::Screen => "the screen",
            Self::Move => "moving",
            Self::Program => "the program",
        }
    }
}

/// One line of the table.
pub struct Binding {
    pub keys: &'static [Key],
    pub action: Action,
    /// In the footer; empty: not there. Earlier lines come first.
    pub label: &'static str,
    /// In the help; neighbours with the same text share a line of it. Empty: not told.
    pub help: &'static str,
    pub group: Group,
    pub when: fn(&App) -> bool,
}

/// What a key event asks for now.
pub fn action(event: KeyEvent, app: &App) -> Option<Action> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let key = key(event);
    let binding = BINDINGS.iter().find(|binding| {
        let named = binding.keys.contains(&key) || binding.keys.contains(&Key::Any);
        named && (binding.when)(app)
    })?;
    match (binding.action, key) {
        (Action::Type(_), Key::Char(letter)) => Some(Action::Type(letter)),
        (Action::Type(_), _) => None,
        (action, _) => Some(action),
    }
}

fn key(event: KeyEvent) -> Key {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        KeyCode::Char(c) if control => Key::Control(c.to_ascii_lowercase()),
        KeyCode::Char(c) if !event.modifiers.contains(KeyModifiers::ALT) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Backspace => Key::Backspace,
        _ => Key::Any,
    }
}

/// The key that does this now, or would if it could.
pub fn label(action: Action, app: &App) -> String {
    let doing = || BINDINGS.iter().filter(|binding| binding.action == action);
    let binding = doing()
        .find(|binding| (binding.when)(app))
        .or_else(|| doing().next());
    binding
        .and_then(|binding| binding.keys.first())
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// The key that does this somewhere, whatever is open now.
pub fn name(action: Action) -> Option<String> {
    BINDINGS
        .iter()
        .find(|binding| binding.action == action)
        .and_then(|binding| binding.keys.first())
        .map(ToString::to_string)
}

/// What the footer offers now: key and label, the more useful first.
pub fn footer(app: &App) -> Vec<(String, &'static str)> {
    let offered = BINDINGS
        .iter()
        .filter(|binding| !binding.label.is_empty() && (binding.when)(app));
    let mut keys: Vec<(String, &'static str, Action)> = Vec::new();
    for binding in offered {
        let Some(key) = binding.keys.first() else {
            continue;
        };
        // The first line that matches a key is the one that counts.
        let taken = keys
            .iter()
            .any(|(name, _, action)| *action == binding.action || *name == key.to_string());
        // What is open is closed by the key for that; opening it is no offer.
        let open = matches!(binding.action, Action::Open(it) if app.view.overlay == Some(it));
        if !(taken || open) {
            let name = match binding.action {
                Action::Answer(0) => format!(
                    "a-{}",
                    crate::app::figures::letter(choices(app).saturating_sub(1))
                ),
                _ => key.to_string(),
            };
            let label = match binding.action {
                Action::Pause if paused(app) => "resume",
                Action::Toggle
                    if app
                        .run
                        .wanted
                        .as_ref()
                        .is_some_and(|run| run.variant != "broken") =>
                {
                    "toggle back"
                }
                Action::Lesson if app.view.lesson_open => "panels",
                Action::Lesson if app.mode.exercise().is_some() => "exercise",
                Action::Close if app.view.search.is_open() && !app.view.typing() => "show all",
                _ => binding.label,
            };
            keys.push((name, label, binding.action));
        }
    }
    keys.into_iter()
        .map(|(key, label, _)| (key, label))
        .collect()
}

fn paused(app: &App) -> bool {
    app.recording()
        .map_or(app.run.state == RunState::Paused, |recording| {
            recording.paused
        })
}

/// A line of the help: keys that belong together and what they do.
pub struct Row {
    pub group: Group,
    pub keys: Vec<Key>,
    pub help: &'static str,
    bindings: Vec<&'static Binding>,
}

impl Row {
    /// The keys in words; letters and digits that follow each other as a range: `1-9`.
    pub fn names(&self) -> Vec<String> {
        let letters: Vec<char> = self.keys.iter().filter_map(letter).collect();
        let follow = letters
            .windows(2)
            .all(|two| two[0] as u32 + 1 == two[1] as u32);
        match letters.as_slice() {
            [first, .., last]
                if letters.len() == self.keys.len() && letters.len() > 3 && follow =>
            {
                vec![format!("{first}-{last}")]
            }
            _ => self.keys.iter().map(ToString::to_string).collect(),
        }
    }

    /// Whether any of them does something now.
    pub fn works(&self, app: &App) -> bool {
        self.bindings.iter().any(|binding| (binding.when)(app))
    }
}

fn letter(key: &Key) -> Option<char> {
    match key {
        Key::Char(c) => Some(*c),
        _ => None,
    }
}

/// The table as documentation, each key once, by heading.
pub fn reference() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for group in Group::ALL {
        let told = |binding: &&Binding| binding.group == group && !binding.help.is_empty();
        for binding in BINDINGS.iter().filter(told) {
            let row = match rows
                .iter()
                .position(|row| row.group == group && row.help == binding.help)
            {
                Some(at) => &mut rows[at],
                None => {
                    rows.push(Row {
                        group,
                        keys: Vec::new(),
                        help: binding.help,
                        bindings: Vec::new(),
                    });
                    let last = rows.len() - 1;
                    &mut rows[last]
                }
            };
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
