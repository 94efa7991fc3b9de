//! Footer and behaviour agree: on every page of a stage, and in every mode, each key that the footer names does something that is
//! seen, or leaves the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::tui::keys::{BINDINGS, action, footer, key_name};

use super::*;

/// A stage with every kind of page, each as the learner comes to it.
fn pages() -> Vec<(String, App)> {
    let mut all = Vec::new();
    let mut app = shipped();
    let mut page = |name: &str, app: &App| all.push((name.to_owned(), app.clone()));
    page("the panels", &app);
    act(&mut app, Action::Lesson);
    page("the question", &app);
    act(&mut app, Action::Answer(1));
    page("no range yet", &app);
    act(&mut app, Action::RangeShift(1));
    page("a range", &app);
    act(&mut app, Action::RangeKeep);
    page("which panel", &app);
    let mut marked = app.clone();
    act(&mut marked, Action::Focus(Panel::Memory));
    page("a panel is marked", &marked);
    skip_locating(&mut app);
    page("the evidence", &app);
    while app.lesson.study.pointer.is_some() {
        act(&mut app, Action::NextPointer);
    }
    page("the background", &app);
    while matches!(
        app.page().0,
        perflings::app::pages::LessonPage::Background(_)
    ) {
        act(&mut app, Action::TurnPage(1));
    }
    page("the cause", &app);
    act(&mut app, Action::Knobs);
    page("the knobs", &app);
    act(&mut app, Action::KnobTurn(1));
    page("a knob turned", &app);
    act(&mut app, Action::Knobs);
    solve(&mut app);
    act(&mut app, Action::Toggle);
    train(&mut app, 60);
    act(&mut app, Action::Lesson);
    page("the result", &app);
    act(&mut app, Action::Pair);
    page("pairs begin", &app);
    super::pair(&mut app, 40, true);
    page("pairs are done", &app);
    for _ in 0..9 {
        act(&mut app, Action::TurnPage(1));
    }
    if !app.view.lesson_visible() {
        act(&mut app, Action::Lesson);
    }
    page("the quiz", &app);
    for _ in &app.stage().expect("a stage").quiz.clone() {
        act(&mut app, Action::Answer(0));
    }
    assert!(app.question().is_none(), "every question is answered");
    page("the quiz is answered", &app);
    all
}

/// Other modes. A presentation has no footer.
fn modes() -> Vec<(String, App)> {
    let mut all = vec![
        ("free run".to_owned(), free()),
        ("mystery".to_owned(), riddled()),
        ("recorded".to_owned(), recorded("d01")),
        ("no engine".to_owned(), {
            let mut app = first();
            app.bench.run.state = RunState::EngineGone {
                reason: String::new(),
            };
            app
        }),
    ];
    for label in ["k01", "c01", "d02"] {
        let mut app = shipped();
        open(&mut app, label);
        all.push((label.to_owned(), app));
    }
    // A kernel of the CPU has no text that could be large.
    for card in CARDS.iter().filter(|it| it.overlay != Overlay::Kernel) {
        let mut app = shipped();
        if card.overlay == Overlay::Skipped {
            act(&mut app, Action::Stage(3));
        }
        act(&mut app, Action::Open(card.overlay));
        all.push((format!("{:?}", card.overlay), app));
    }
    all
}

/// The key that the footer writes so.
fn key(written: &str) -> KeyEvent {
    let first = written.strip_prefix("a-").map_or(written, |_| "a");
    let mut keys = BINDINGS.iter().flat_map(|binding| binding.keys);
    let code = keys.find(|key| key_name(**key) == first);
    match *code.expect("a key of the table") {
        KeyCode::Null => KeyEvent::new(KeyCode::F(5), KeyModifiers::NONE),
        code => KeyEvent::new(code, KeyModifiers::NONE),
    }
}

#[test]
fn every_key_of_the_footer_does_what_can_be_seen() {
    let mut silent = Vec::new();
    let states: Vec<(String, App)> = pages().into_iter().chain(modes()).collect();
    for (name, mut app) in states {
        // What fills the small screen anyway is larger on a large one.
        let (width, height) = if name == "Kernel" {
            (120, 36)
        } else {
            (80, 24)
        };
        let draw =
            |app: &mut App| screen::screen(app, width, height, ThemeName::Dark, Markers::Braille);
        draw(&mut app);
        let before = draw(&mut app);
        for (written, says) in footer(&app) {
            let mut pressed = app.clone();
            let asked = action(key(&written), &pressed);
            let asked = asked.unwrap_or_else(|| panic!("{name}: {written} is not bound"));
            let effects = update(&mut pressed, Message::Action(asked));
            if effects.is_empty() && draw(&mut pressed) == before {
                silent.push(format!("{name}: {written} {says}"));
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
