//! The one table of keys against the states of the screen, and the mouse against the layout.

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

fn with<T>(change: impl FnOnce(&mut App) -> T) -> App {
    let mut app = trained();
    change(&mut app);
    app
}

/// The screen in every mode that keys depend on.
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
    let badge = Replay {
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
        ("small", with(|app| resize(app, 80, 24))),
        ("tiny", with(|app| resize(app, 20, 5))),
        (
            "confirming",
            with(|app| app.view.confirm = Some(Confirm::Reset)),
        ),
        ("guessing", with(|app| act(app, Action::Answer(1)))),
        (
            "toggled",
            with(|app| {
                act(app, Action::Answer(1));
                solve(app);
                act(app, Action::Toggle);
            }),
        ),
        ("paused", with(|app| app.bench.run.state = RunState::Paused)),
        (
            "gone",
            with(|app| {
                app.bench.run.state = RunState::EngineGone {
                    reason: String::new(),
                }
            }),
        ),
        (
            "recording",
            begin(Options {
                recording: Some(badge),
                ..Options::default()
            }),
        ),
        (
            "offered",
            with(|app| {
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
            with(|app| {
                act(app, Action::Answer(1));
                resize(app, 80, 24);
                act(app, Action::Lesson);
            }),
        ),
    ];
    states.push((
        "looking a word up",
        with(|app| {
            act(app, Action::Search);
            act(app, Action::Type('w'));
        }),
    ));
    for card in &CARDS {
        let open = |app: &mut App| {
            act(app, Action::Open(card.overlay));
        };
        states.push(("overlay", with(open)));
    }
    states
}

fn event(key: KeyCode) -> KeyEvent {
    match key {
        // A control character is what a key types while ctrl is held.
        KeyCode::Char(c) if c.is_control() => {
            KeyEvent::new(KeyCode::Char((c as u8 + 96) as char), KeyModifiers::CONTROL)
        }
        KeyCode::Null => KeyEvent::new(KeyCode::F(5), KeyModifiers::NONE),
        code => KeyEvent::new(code, KeyModifiers::NONE),
    }
}

#[test]
fn in_no_state_does_a_key_mean_two_things() {
    for (name, app) in states() {
        for key in BINDINGS.iter().flat_map(|binding| binding.keys) {
            let mut actions: Vec<Action> = Vec::new();
            for binding in BINDINGS
                .iter()
                .filter(|b| b.applies(&app) && b.keys.contains(key))
            {
                if !actions.contains(&binding.action) {
                    actions.push(binding.action);
                }
            }
            assert!(actions.len() <= 1, "{name}: {key:?} means {actions:?}");
        }
    }
}

#[test]
fn every_binding_is_reached_by_its_key_where_it_counts() {
    for (name, app) in states() {
        for binding in BINDINGS.iter().filter(|binding| binding.works(&app)) {
            // A letter becomes the text that was typed.
            let typed = matches!(binding.action, Action::Type(_));
            for key in binding.keys.iter().filter(|_| !typed) {
                assert_eq!(
                    action(event(*key), &app),
                    Some(binding.action),
                    "{name}: {key:?}"
                );
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
        for (key, what) in offered {
            let first = key
                .strip_prefix("a-")
                .map_or(key.clone(), |_| "a".to_owned());
            let works = BINDINGS
                .iter()
                .any(|b| b.works(&app) && b.keys.iter().any(|k| key_name(*k) == first));
            assert!(works, "{name}: {key} {what}");
        }
    }
    let asking = with(|app| app.view.confirm = Some(Confirm::Reset));
    let labels: Vec<&str> = footer(&asking)
        .into_iter()
        .map(|(_, label)| label)
        .collect();
    assert_eq!(
        labels,
        ["yes", "no"],
        "nothing else works while a question is open"
    );
}

#[test]
fn the_help_lists_every_key_once() {
    let (mut texts, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for row in reference() {
        let names = row.names().join(" ");
        assert!(!row.help.is_empty() && texts.insert(row.help), "{names}");
        for key in &row.keys {
            assert!(keys.insert(key_name(*key)), "{key:?} stands in two lines");
        }
        assert!(names.chars().count() <= 11, "{names}");
    }
    for action in [
        Action::Toggle,
        Action::Pair,
        Action::Quit,
        Action::Hint,
        Action::Pause,
        Action::Lesson,
    ] {
        assert!(
            BINDINGS
                .iter()
                .any(|b| b.action == action && !b.help.is_empty()),
            "{action:?}"
        );
    }
    assert_eq!(label(Action::Toggle, &trained()), "t");
}

#[test]
fn any_key_puts_the_welcome_away() {
    let app = with(|app| act(app, Action::Open(Overlay::Welcome)));
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
    // Where it has more lines than the frame, it can be read to its end.
    let mut app = app;
    resize(&mut app, 60, 18);
    assert_eq!(action(event(KeyCode::Down), &app), Some(Action::Scroll(1)));
    assert_eq!(action(event(KeyCode::Enter), &app), Some(Action::Close));
    // Where it is not drawn, keys are what they are.
    resize(&mut app, 40, 10);
    assert_eq!(action(event(KeyCode::Char('q')), &app), Some(Action::Quit));
}

#[test]
fn letters_are_text_while_a_word_is_looked_up() {
    let app = with(|app| act(app, Action::Search));
    for letter in ['q', 't', '?', '/', ' ', 'W', 'ü'] {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
        assert_eq!(action(key, &app), Some(Action::Type(letter)));
    }
    assert_eq!(action(event(KeyCode::Tab), &app), None);
    assert_eq!(action(event(KeyCode::Backspace), &app), Some(Action::Erase));
    assert_eq!(action(event(KeyCode::Esc), &app), Some(Action::Close));
}

#[test]
fn the_footer_offers_no_way_to_where_one_is() {
    for overlay in [Overlay::Stages, Overlay::Help, Overlay::Glossary] {
        let app = with(|app| act(app, Action::Open(overlay)));
        let key = label(Action::Open(overlay), &app);
        assert!(
            footer(&app).iter().all(|(offered, _)| *offered != key),
            "{overlay:?}"
        );
    }
    let app = with(|app| resize(app, 120, 40));
    assert!(
        footer(&app).contains(&("g".to_owned(), "glossary")),
        "a lesson is read"
    );
}

#[test]
fn a_released_key_does_nothing_a_held_one_repeats() {
    let app = trained();
    let mut key = event(KeyCode::Char('t'));
    key.kind = KeyEventKind::Release;
    assert_eq!(action(key, &app), None);
    key.kind = KeyEventKind::Repeat;
    assert_eq!(action(key, &app), Some(Action::Toggle));
    let odd = KeyEvent::new(KeyCode::Char('t'), KeyModifiers::ALT);
    assert_eq!(action(odd, &app), None);
}

fn at(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
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
    let it = arrange(Rect::new(0, 0, width, height), app);
    it.panels
        .iter()
        .find(|(panel, _)| *panel == wanted)
        .expect("on screen")
        .1
}

#[test]
fn a_click_marks_a_panel_and_a_second_one_expands_it() {
    let mut app = trained();
    let area = area_of(&app, Panel::Loss);
    let click = at(CLICK, area.x + 3, area.y + 2);
    for expanded in [false, true, false] {
        let focus = mouse::action(click, &app).expect("a panel");
        act(&mut app, focus);
        assert_eq!(
            (app.view.focus, app.view.expanded),
            (Some(Panel::Loss), expanded)
        );
        if expanded {
            assert_eq!(area_of(&app, Panel::Loss).width, 120);
        }
    }
}

#[test]
fn the_wheel_scrolls_what_is_under_it() {
    let app = trained();
    let area = area_of(&app, Panel::Lesson);
    let turn = at(MouseEventKind::ScrollDown, area.x + 1, area.y + 5);
    assert_eq!(
        mouse::action(turn, &app),
        Some(Action::ScrollPanel(Panel::Lesson, 3))
    );
    let app = with(|app| act(app, Action::Open(Overlay::Help)));
    assert_eq!(mouse::action(turn, &app), Some(Action::Scroll(3)));
}

#[test]
fn a_click_marks_a_knob_and_a_second_one_turns_it() {
    for size in [(60, 16), (120, 36), (200, 50)] {
        let mut app = with(|app| {
            act(app, Action::Answer(1));
            act(app, Action::RangeShift(1));
            act(app, Action::RangeKeep);
            resize(app, size.0, size.1);
            act(app, Action::Knobs);
        });
        let area = area_of(&app, Panel::Lesson);
        let rows = area.y..area.bottom();
        let hits = rows.filter_map(|y| mouse::action(at(CLICK, area.x + 3, y), &app));
        let hits: Vec<Action> = hits.collect();
        assert!(
            hits.contains(&Action::KnobAt(0)) && hits.contains(&Action::KnobAt(1)),
            "{hits:?}"
        );
        act(&mut app, Action::KnobAt(2));
        assert!(app.bench.comparison.row == 2 && app.bench.comparison.b_equals_a());
        act(&mut app, Action::KnobAt(2));
        assert!(!app.bench.comparison.b_equals_a());
        let turn = at(MouseEventKind::ScrollUp, area.x + 3, area.y + 3);
        assert_eq!(mouse::action(turn, &app), Some(Action::KnobRow(-1)));
    }
}

#[test]
fn a_click_in_a_list_takes_the_line_and_beside_it_closes() {
    let mut app = with(|app| act(app, Action::Open(Overlay::Stages)));
    let it = arrange(Rect::new(0, 0, 120, 40), &app);
    let (_, area) = it.overlay.expect("the list");
    // Border, title; then the stages.
    let third = at(CLICK, area.x + 4, area.y + 1 + 1 + 2);
    assert_eq!(mouse::action(third, &app), Some(Action::ChooseLine(2)));
    assert_eq!(mouse::action(at(CLICK, area.x + 4, area.y + 1), &app), None);
    let beside = mouse::action(at(CLICK, 0, 0), &app);
    assert_eq!(beside, Some(Action::Close));
    act(&mut app, Action::ChooseLine(2));
    assert_eq!(app.lesson.learner.at, 2);
}

/// The keys of docs/keys.md are the table's: one Markdown table under each heading.
#[test]
fn the_readme_lists_the_keys_of_the_table() {
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
