//! The keys of the viewer for profiles of other programs.

use crossterm::event::{KeyCode, KeyEvent};

use KeyCode::{BackTab, Char, Down, Enter, Esc, Left, PageDown, PageUp, Right, Tab, Up};
use OpenedAction::{Expand, Focus, Help, Move, Name, Next, Page, Quit, Timeline};
use OpenedPanel::{Kernels, Ledger, Lints};
use TimelineMove::{Everything, Link, Pan, Slice, Step, Whole, Zoom};

use super::{key, key_name};
use crate::app::opened::{OpenedAction, OpenedPanel};
use crate::app::timeline::TimelineMove;

/// Each row has keys, their action, its label in the footer and its text in the help. A row with an empty label is not in the footer.
#[rustfmt::skip] // A table reads best with one line for each action.
const KEYS: &[(&[KeyCode], OpenedAction, &str, &str)] = &[
    (&[Tab], Next(1), "panel", "mark the next panel"),
    (&[BackTab], Next(-1), "", "mark the previous panel"),
    (&[Char('k'), Char('1')], Focus(Kernels), "", "show the kernels; press again to enlarge them"),
    (&[Char('d'), Char('2')], Focus(Ledger), "", "show the ledger: where the time went"),
    (&[Char('t'), Char('3')], Focus(OpenedPanel::Timeline), "", "show the timeline"),
    (&[Char('i'), Char('4')], Focus(Lints), "", "show the lints"),
    (&[Char('z')], Expand, "large", "enlarge the panel, or shrink it again"),
    (&[Enter], Name, "full name", "show the full name of the marked kernel"),
    (&[Char('g')], Page, "", "read about a lint in the course: open, next, close"),
    (&[Down, Char('j')], Move(1), "", "go to the next kernel, line or lane"),
    (&[Up], Move(-1), "", "go to the previous kernel, line or lane"),
    (&[PageDown], Move(10), "", "go ten down"),
    (&[PageUp], Move(-10), "", "go ten up"),
    (&[Left, Char('h')], Timeline(Pan(-1)), "", "timeline: go to earlier times, as dragging does"),
    (&[Right], Timeline(Pan(1)), "", "timeline: go to later times"),
    (&[Char('+'), Char('=')], Timeline(Zoom(1)), "zoom", "timeline: zoom in, as the wheel does"),
    (&[Char('-')], Timeline(Zoom(-1)), "", "timeline: zoom out"),
    (&[Char('n'), Char('.')], Timeline(Slice(1)), "next", "timeline: go to the lane's next piece"),
    (&[Char('p'), Char(',')], Timeline(Slice(-1)), "", "timeline: go to the lane's previous piece"),
    (&[Char('l')], Timeline(Link), "launch", "timeline: go from a kernel to its launch, and back"),
    (&[Char(']')], Timeline(Step(1)), "", "timeline: go to the next step"),
    (&[Char('[')], Timeline(Step(-1)), "", "timeline: go to the previous step"),
    (&[Char('0')], Timeline(Whole), "", "timeline: show the whole trace"),
    (&[Char('a')], Timeline(Everything), "", "timeline: show or hide all work of the host"),
    (&[Char('?')], Help, "help", "show or hide this list"),
    (&[Char('q'), Esc], Quit, "quit", "quit"),
];

/// Returns the action of a key, or `None` if it has none.
pub fn action(event: KeyEvent) -> Option<OpenedAction> {
    let key = key(event)?;
    let row = KEYS.iter().find(|(keys, ..)| keys.contains(&key));
    row.map(|(_, action, ..)| *action)
}

/// Returns the name of the first key of an action.
pub fn key_of(action: OpenedAction) -> String {
    let row = KEYS.iter().find(|(_, other, ..)| *other == action);
    row.map_or_else(String::new, |(keys, ..)| key_name(keys[0]))
}

/// Returns the footer: keys with their labels, as many as fit into `columns`. The keys for help and for quitting are always there.
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
