//! The keys of the viewer for profiles of other programs.

use crossterm::event::{KeyCode, KeyEvent};

use super::{key, key_name};
use crate::app::opened::{OpenedAction, OpenedPanel};
use crate::app::timeline::TimelineMove;

/// Each row has the keys, their action, its label in the footer and its text in the help.
#[rustfmt::skip] // One line for each.
const KEYS: &[(&[KeyCode], OpenedAction, &str, &str)] = &[
    (&[KeyCode::Tab], OpenedAction::Next(1), "panel", "mark the next panel"),
    (&[KeyCode::BackTab], OpenedAction::Next(-1), "", "mark the previous panel"),
    (&[KeyCode::Char('k'), KeyCode::Char('1')], OpenedAction::Focus(OpenedPanel::Kernels), "", "show the kernels; press again to enlarge them"),
    (&[KeyCode::Char('d'), KeyCode::Char('2')], OpenedAction::Focus(OpenedPanel::Ledger), "", "show the ledger: where the time went"),
    (&[KeyCode::Char('t'), KeyCode::Char('3')], OpenedAction::Focus(OpenedPanel::Timeline), "", "show the timeline"),
    (&[KeyCode::Char('i'), KeyCode::Char('4')], OpenedAction::Focus(OpenedPanel::Lints), "", "show the lints"),
    (&[KeyCode::Char('z')], OpenedAction::Expand, "large", "enlarge the panel, and back"),
    (&[KeyCode::Enter], OpenedAction::Name, "full name", "show the full name of the marked kernel"),
    (&[KeyCode::Char('g')], OpenedAction::Page, "", "read the course's page about a lint: open, next, close"),
    (&[KeyCode::Down, KeyCode::Char('j')], OpenedAction::Move(1), "", "go to the next kernel, line or lane"),
    (&[KeyCode::Up], OpenedAction::Move(-1), "", "go to the previous kernel, line or lane"),
    (&[KeyCode::PageDown], OpenedAction::Move(10), "", "go ten down"),
    (&[KeyCode::PageUp], OpenedAction::Move(-10), "", "go ten up"),
    (&[KeyCode::Left, KeyCode::Char('h')], OpenedAction::Timeline(TimelineMove::Pan(-1)), "", "timeline: go to earlier times, as dragging does"),
    (&[KeyCode::Right], OpenedAction::Timeline(TimelineMove::Pan(1)), "", "timeline: go to later times"),
    (&[KeyCode::Char('+'), KeyCode::Char('=')], OpenedAction::Timeline(TimelineMove::Zoom(1)), "zoom", "timeline: zoom in, as the wheel does"),
    (&[KeyCode::Char('-')], OpenedAction::Timeline(TimelineMove::Zoom(-1)), "", "timeline: zoom out"),
    (&[KeyCode::Char('n'), KeyCode::Char('.')], OpenedAction::Timeline(TimelineMove::Slice(1)), "next", "timeline: go to the next piece of the lane"),
    (&[KeyCode::Char('p'), KeyCode::Char(',')], OpenedAction::Timeline(TimelineMove::Slice(-1)), "", "timeline: go to the previous piece of the lane"),
    (&[KeyCode::Char('l')], OpenedAction::Timeline(TimelineMove::Link), "launch", "timeline: go from a kernel to its launch, and back"),
    (&[KeyCode::Char(']')], OpenedAction::Timeline(TimelineMove::Step(1)), "", "timeline: go to the next step"),
    (&[KeyCode::Char('[')], OpenedAction::Timeline(TimelineMove::Step(-1)), "", "timeline: go to the previous step"),
    (&[KeyCode::Char('0')], OpenedAction::Timeline(TimelineMove::Whole), "", "timeline: show the whole trace"),
    (&[KeyCode::Char('a')], OpenedAction::Timeline(TimelineMove::Everything), "", "timeline: show or hide all calls and operations of the host"),
    (&[KeyCode::Char('?')], OpenedAction::Help, "help", "show or hide this list"),
    (&[KeyCode::Char('q'), KeyCode::Esc], OpenedAction::Quit, "quit", "quit"),
];

/// Returns the action of a key, or `None` if it has none.
pub fn action(event: KeyEvent) -> Option<OpenedAction> {
    let key = key(event)?;
    let row = KEYS.iter().find(|(keys, ..)| keys.contains(&key));
    row.map(|(_, action, ..)| *action)
}

/// Returns the footer in at most `columns`: keys with their labels. Labels are never cut; help and quit are always there.
pub fn footer(columns: usize) -> String {
    let mut offers: Vec<String> = KEYS
        .iter()
        .filter(|(_, _, label, _)| !label.is_empty())
        .map(|(keys, _, label, _)| format!(" {} {label} ", key_name(keys[0])))
        .collect();
    while offers.len() > 2 && offers.iter().map(String::len).sum::<usize>() > columns {
        offers.remove(offers.len() - 3);
    }
    offers.concat()
}

/// Returns a line of the help for each row: its keys and its text.
pub fn help() -> Vec<(String, &'static str)> {
    KEYS.iter()
        .map(|(keys, _, _, text)| {
            let names: Vec<String> = keys.iter().map(|key| key_name(*key)).collect();
            (names.join(" "), *text)
        })
        .collect()
}
