//! The table of keys is checked in many states of the screen, and the mouse against the layout.

use crate::{readme, sample, session};
use std::collections::BTreeSet;

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use perflings::app::{Action, App, Confirm, Options, Overlay, Panel, Replay, RunState};
use perflings::tui::keys::{BINDINGS, Group, action, footer, key_name, label, reference};
use perflings::tui::layout::arrange;
use perflings::tui::mouse;
use perflings::tui::panels::CARDS;
use protocol::*;
use ratatui::layout::Rect;
use strum::VariantArray;

use session::{act, hear, resize, solve, train};

fn begin(options: Options) -> App {
    session::begin(sample::course(), options).0
}

fn trained() -> App {
    let mut app = begin(Options::default());
    train(&mut app, 10);
    app
}

/// Returns a trained app after a change.
fn trained_and<T>(change: impl FnOnce(&mut App) -> T) -> App {
    let mut app = trained();
    change(&mut app);
    app
}

/// Returns the app in every state on which the meaning of keys depends, with a name for each.
fn states() -> Vec<(&'static str, App)> {
    let device = Device {
        kind: "gpu".to_owned(),
        name: "H100".to_owned(),
    };
    let info = DeviceInfo {
        select: "gpu:0".to_owned(),
        device: device.clone(),
        ..DeviceInfo::default()
    };
    let recording = Replay {
        file: "x".to_owned(),
        device: sample::device(),
        date: "2026-11-01".to_owned(),
        stage: Some(1),
        paused: false,
        speed: 1.0,
        unsolved: false,
        watched: false,
    };
    let mut states = vec![
        ("starting", begin(Options::default())),
        ("trained", trained()),
        ("small", trained_and(|app| resize(app, 80, 24))),
        ("tiny", trained_and(|app| resize(app, 20, 5))),
        (
            "confirming",
            trained_and(|app| app.view.confirm = Some(Confirm::Reset)),
        ),
        ("guessing", trained_and(|app| act(app, Action::Answer(1)))),
        (
            "toggled",
            trained_and(|app| {
                act(app, Action::Answer(1));
                solve(app);
                act(app, Action::Toggle);
            }),
        ),
        (
            "paused",
            trained_and(|app| app.bench.run.state = RunState::Paused),
        ),
        (
            "gone",
            trained_and(|app| {
                app.bench.run.state = RunState::EngineGone {
                    reason: String::new(),
                }
            }),
        ),
        (
            "recording",
            begin(Options {
                recording: Some(recording),
                ..Options::default()
            }),
        ),
        (
            "offered",
            trained_and(|app| {
                hear(
                    app,
                    Event::Devices {
                        devices: vec![info],
                    },
                );
                hear(app, Event::DeviceReady { device });
            }),
        ),
        (
            "small guessing",
            trained_and(|app| {
                act(app, Action::Answer(1));
                resize(app, 80, 24);
                act(app, Action::Lesson);
            }),
        ),
        (
            "looking a word up",
            trained_and(|app| {
                act(app, Action::Search);
                act(app, Action::Type('w'));
            }),
        ),
    ];
    for card in &CARDS {
        let app = trained_and(|app| act(app, Action::Open(card.overlay)));
        states.push(("overlay", app));
    }
    states
}

/// Returns the event of a key as the table of keys writes it.
fn event(key: KeyCode) -> KeyEvent {
    match key {
        // The table has the control character that the key types while ctrl is held: 3 for ctrl-c.
        KeyCode::Char(c) if c.is_control() => {
            let letter = (c as u8 | 0x60) as char;
            KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
        }
        // `Null` means every key.
        KeyCode::Null => KeyEvent::new(KeyCode::F(5), KeyModifiers::NONE),
        code => KeyEvent::new(code, KeyModifiers::NONE),
    }
}

#[test]
fn a_key_never_has_two_meanings_in_one_state() {
    for (name, app) in states() {
        for key in BINDINGS.iter().flat_map(|binding| binding.keys) {
            let mut actions: Vec<Action> = Vec::new();
            for binding in BINDINGS {
                let is_meant = binding.keys.contains(key) && binding.applies(&app);
                if is_meant && !actions.contains(&binding.action) {
                    actions.push(binding.action);
                }
            }
            assert!(actions.len() <= 1, "{name}: {key:?} means {actions:?}");
        }
    }
}

#[test]
fn every_key_gives_the_action_of_its_row_where_the_row_works() {
    for (name, app) in states() {
        for binding in BINDINGS.iter().filter(|binding| binding.works(&app)) {
            // The action of a letter has the letter that was typed, not the one of the table.
            if matches!(binding.action, Action::Type(_)) {
                continue;
            }
            for key in binding.keys {
                let given = action(event(*key), &app);
                assert_eq!(given, Some(binding.action), "{name}: {key:?}");
            }
        }
    }
}

#[test]
fn ctrl_c_always_quits() {
    for (name, app) in states() {
        assert_eq!(
            action(event(KeyCode::Char('\u{3}')), &app),
            Some(Action::Quit),
            "{name}"
        );
    }
}

#[test]
fn the_footer_offers_what_works() {
    for (name, app) in states() {
        let offered = footer(&app);
        assert!(!offered.is_empty(), "{name}");
        for (keys, label) in offered {
            // The keys of choices are a range, such as `a-d`.
            let first = if keys.starts_with("a-") { "a" } else { &keys };
            let works = BINDINGS.iter().any(|binding| {
                let names_key = binding.keys.iter().any(|key| key_name(*key) == first);
                names_key && binding.works(&app)
            });
            assert!(works, "{name}: {keys} {label}");
        }
    }
}

#[test]
fn the_footer_offers_only_yes_and_no_while_the_screen_asks_a_question() {
    let asking = trained_and(|app| app.view.confirm = Some(Confirm::Reset));
    let labels: Vec<&str> = footer(&asking)
        .into_iter()
        .map(|(_, label)| label)
        .collect();
    assert_eq!(labels, ["yes", "no"]);
}

#[test]
fn the_help_lists_every_key_once() {
    let mut texts = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for row in reference() {
        let names = row.names().join(" ");
        assert!(!row.help.is_empty() && texts.insert(row.help), "{names}");
        for key in &row.keys {
            assert!(keys.insert(key_name(*key)), "{key:?} is in two lines");
        }
        assert!(names.chars().count() <= 11, "{names} fits its column");
    }
}

#[test]
fn the_help_lists_the_most_important_actions() {
    for action in [
        Action::Toggle,
        Action::Pair,
        Action::Quit,
        Action::Hint,
        Action::Pause,
        Action::Lesson,
    ] {
        let is_listed = BINDINGS
            .iter()
            .any(|binding| binding.action == action && !binding.help.is_empty());
        assert!(is_listed, "{action:?}");
    }
    assert_eq!(label(Action::Toggle, &trained()), "t");
}

#[test]
fn any_key_closes_the_welcome_card() {
    let app = trained_and(|app| act(app, Action::Open(Overlay::Welcome)));
    for code in [
        KeyCode::Char('q'),
        KeyCode::Char('t'),
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::F(5),
        KeyCode::Delete,
    ] {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(action(key, &app), Some(Action::Close), "{code:?}");
    }
    assert_eq!(footer(&app), [("any key".to_owned(), "go on")]);
}

#[test]
fn arrows_scroll_a_welcome_card_that_is_longer_than_the_screen() {
    let mut app = trained_and(|app| act(app, Action::Open(Overlay::Welcome)));
    resize(&mut app, 60, 18);
    assert_eq!(action(event(KeyCode::Down), &app), Some(Action::Scroll(1)));
    assert_eq!(action(event(KeyCode::Enter), &app), Some(Action::Close));
}

#[test]
fn keys_have_their_usual_meaning_where_the_screen_is_too_small_for_the_welcome_card() {
    let mut app = trained_and(|app| act(app, Action::Open(Overlay::Welcome)));
    resize(&mut app, 40, 10);
    assert_eq!(action(event(KeyCode::Char('q')), &app), Some(Action::Quit));
}

#[test]
fn letters_are_text_while_a_word_is_looked_up() {
    let app = trained_and(|app| act(app, Action::Search));
    for letter in ['q', 't', '?', '/', ' ', 'W', 'ü'] {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
        assert_eq!(action(key, &app), Some(Action::Type(letter)));
    }
    assert_eq!(action(event(KeyCode::Tab), &app), None);
    assert_eq!(action(event(KeyCode::Backspace), &app), Some(Action::Erase));
    assert_eq!(action(event(KeyCode::Esc), &app), Some(Action::Close));
}

#[test]
fn the_footer_does_not_offer_to_open_the_card_that_is_open() {
    for overlay in [Overlay::Stages, Overlay::Help, Overlay::Glossary] {
        let app = trained_and(|app| act(app, Action::Open(overlay)));
        let key = label(Action::Open(overlay), &app);
        assert!(
            footer(&app).iter().all(|(offered, _)| *offered != key),
            "{overlay:?}"
        );
    }
    let reading = trained_and(|app| resize(app, 120, 40));
    let glossary = ("g".to_owned(), "glossary");
    assert!(footer(&reading).contains(&glossary));
}

#[test]
fn a_released_key_does_nothing_and_a_held_key_repeats() {
    let app = trained();
    let mut key = event(KeyCode::Char('t'));
    key.kind = KeyEventKind::Release;
    assert_eq!(action(key, &app), None);
    key.kind = KeyEventKind::Repeat;
    assert_eq!(action(key, &app), Some(Action::Toggle));
}

#[test]
fn a_key_that_is_held_with_alt_does_nothing() {
    let key = KeyEvent::new(KeyCode::Char('t'), KeyModifiers::ALT);
    assert_eq!(action(key, &trained()), None);
}

fn mouse_event(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
    MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    }
}

const CLICK: MouseEventKind = MouseEventKind::Down(MouseButton::Left);

fn area_of(app: &App, wanted: Panel) -> Rect {
    let (width, height) = app.view.size;
    let panels = arrange(Rect::new(0, 0, width, height), app).panels;
    let (_, area) = panels
        .into_iter()
        .find(|(panel, _)| *panel == wanted)
        .expect("a panel on the screen");
    area
}

#[test]
fn a_click_marks_a_panel_and_a_second_one_expands_it() {
    let mut app = trained();
    let area = area_of(&app, Panel::Loss);
    let click = mouse_event(CLICK, area.x + 3, area.y + 2);
    for expanded in [false, true, false] {
        let focus = mouse::action(click, &app).expect("a panel");
        act(&mut app, focus);
        assert_eq!(app.view.focus, Some(Panel::Loss));
        assert_eq!(app.view.expanded, expanded);
        if expanded {
            assert_eq!(area_of(&app, Panel::Loss).width, 120);
        }
    }
}

#[test]
fn the_wheel_scrolls_the_panel_or_the_card_under_the_pointer() {
    let app = trained();
    let area = area_of(&app, Panel::Lesson);
    let turn = mouse_event(MouseEventKind::ScrollDown, area.x + 1, area.y + 5);
    assert_eq!(
        mouse::action(turn, &app),
        Some(Action::ScrollPanel(Panel::Lesson, 3))
    );
    let app = trained_and(|app| act(app, Action::Open(Overlay::Help)));
    assert_eq!(mouse::action(turn, &app), Some(Action::Scroll(3)));
}

#[test]
fn a_click_marks_a_knob_and_a_second_one_turns_it() {
    for size in [(60, 16), (120, 36), (200, 50)] {
        let mut app = trained_and(|app| {
            act(app, Action::Answer(1));
            act(app, Action::RangeShift(1));
            act(app, Action::RangeKeep);
            resize(app, size.0, size.1);
            act(app, Action::Knobs);
        });
        let area = area_of(&app, Panel::Lesson);
        let click_in_row = |y| mouse_event(CLICK, area.x + 3, y);
        let hits: Vec<Action> = (area.y..area.bottom())
            .filter_map(|y| mouse::action(click_in_row(y), &app))
            .collect();
        for knob in [0, 1] {
            assert!(hits.contains(&Action::KnobAt(knob)), "{hits:?}");
        }
        act(&mut app, Action::KnobAt(2));
        assert!(app.bench.comparison.row == 2 && app.bench.comparison.b_equals_a());
        act(&mut app, Action::KnobAt(2));
        assert!(!app.bench.comparison.b_equals_a());
        let turn = mouse_event(MouseEventKind::ScrollUp, area.x + 3, area.y + 3);
        assert_eq!(mouse::action(turn, &app), Some(Action::KnobRow(-1)));
    }
}

#[test]
fn a_click_in_a_list_takes_the_line_and_a_click_beside_the_list_closes_it() {
    let mut app = trained_and(|app| act(app, Action::Open(Overlay::Stages)));
    let arrangement = arrange(Rect::new(0, 0, 120, 40), &app);
    let (_, area) = arrangement.overlay.expect("the list");
    // The border and a heading take a row each; then the stages follow.
    let heading = mouse_event(CLICK, area.x + 4, area.y + 1);
    assert_eq!(mouse::action(heading, &app), None);
    let third_stage = mouse_event(CLICK, area.x + 4, area.y + 1 + 1 + 2);
    let choice = mouse::action(third_stage, &app);
    assert_eq!(choice, Some(Action::ChooseLine(2)));
    let beside = mouse::action(mouse_event(CLICK, 0, 0), &app);
    assert_eq!(beside, Some(Action::Close));
    act(&mut app, Action::ChooseLine(2));
    assert_eq!(app.lesson.learner.at, 2);
}

/// docs/keys.md has one Markdown table under each heading.
#[test]
fn the_documentation_lists_the_keys_of_the_table() {
    let rows = reference();
    let table = |group: &Group| {
        let heading = group.into_str();
        let mut lines = format!("**{heading}**\n\n| key | what it does |\n|---|---|");
        for row in rows.iter().filter(|row| row.group == *group) {
            let keys: Vec<String> = row.names().iter().map(|key| format!("`{key}`")).collect();
            let help = row.help.replace('|', "\\|");
            lines += &format!("\n| {} | {help} |", keys.join(" "));
        }
        lines
    };
    let tables: Vec<String> = Group::VARIANTS.iter().map(table).collect();
    readme::holds("docs/keys.md", "keys", &(tables.join("\n\n") + "\n"));
}
