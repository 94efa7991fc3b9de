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
    /// In the help; empty: told by a neighbour.
    pub help: &'static str,
    pub group: Group,
    pub when: fn(&App) -> bool,
}

/// What a key event asks for now.
pub fn action(event: KeyEvent, app: &App) -> Option<Action> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let key = key(event)?;
    BINDINGS
        .iter()
        .find(|binding| binding.keys.contains(&key) && (binding.when)(app))
        .map(|binding| binding.action)
}

fn key(event: KeyEvent) -> Option<Key> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
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
        _ => return None,
    })
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
        if !taken {
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
    app.recording
        .as_ref()
        .map_or(app.run.state == RunState::Paused, |recording| {
            recording.paused
        })
}

/// The table as documentation: heading, keys, what they do.
pub fn reference() -> Vec<(Group, String, &'static str)> {
    let mut lines = Vec::new();
    for group in Group::ALL {
        for binding in BINDINGS
            .iter()
            .filter(|binding| binding.group == group && !binding.help.is_empty())
        {
            let keys: Vec<String> = binding.keys.iter().map(ToString::to_string).collect();
            lines.push((group, keys.join(" "), binding.help));
        }
    }
    lines
}
