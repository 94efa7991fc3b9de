//! The footer names only keys that work: on every page of a stage and in every mode, each key of the footer changes something that is visible,
//! or leaves the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::app::pages::LessonPage;
use perflings::app::{Confirm, Refusal};
use perflings::tui::keys::{BINDINGS, action, footer, key_name};

use super::*;

/// Returns a stage at each page and activity, with a name.
fn pages() -> Vec<(String, App)> {
    let mut all = Vec::new();
    let mut app = built_in_course();
    let mut add = |name: &str, app: &App| all.push((name.to_owned(), app.clone()));
    add("the panels", &app);
    act(&mut app, Action::Lesson);
    add("the question", &app);
    act(&mut app, Action::Answer(1));
    add("no range yet", &app);
    act(&mut app, Action::RangeShift(1));
    add("a range", &app);
    act(&mut app, Action::RangeKeep);
    add("which panel", &app);
    let mut marked = app.clone();
    act(&mut marked, Action::Focus(Panel::Memory));
    add("a panel is marked", &marked);
    skip_locating(&mut app);
    add("the evidence", &app);
    while app.lesson.learner.pointer.is_some() {
        act(&mut app, Action::NextPointer);
    }
    add("the background", &app);
    while matches!(app.reading().page().0, LessonPage::Background(_)) {
        act(&mut app, Action::TurnPage(1));
    }
    add("the cause", &app);
    act(&mut app, Action::Knobs);
    add("the knobs", &app);
    act(&mut app, Action::KnobTurn(1));
    add("a knob turned", &app);
    act(&mut app, Action::Knobs);
    solve(&mut app);
    act(&mut app, Action::Toggle);
    train(&mut app, 60);
    act(&mut app, Action::Lesson);
    add("the result", &app);
    act(&mut app, Action::Pair);
    add("pairs begin", &app);
    super::pair(&mut app, 40, true);
    add("pairs are done", &app);
    for _ in 0..9 {
        act(&mut app, Action::TurnPage(1));
    }
    if !app.view.lesson_visible() {
        act(&mut app, Action::Lesson);
    }
    add("the quiz", &app);
    for _ in 0..app.stage().expect("a stage").quiz.len() {
        act(&mut app, Action::Answer(0));
    }
    assert!(app.question().is_none(), "every question is answered");
    add("the quiz is answered", &app);
    all
}

/// Returns the other modes with their names. A presentation has no footer.
fn modes() -> Vec<(String, App)> {
    let mut all = vec![
        ("free run".to_owned(), free_run()),
        ("mystery".to_owned(), mystery_not_solved()),
        ("recorded".to_owned(), recorded_run("d01")),
        ("no engine".to_owned(), {
            let mut app = a_trains();
            app.bench.run.state = RunState::EngineGone {
                reason: String::new(),
            };
            app
        }),
    ];
    for label in ["k01", "c01", "d02"] {
        let mut app = built_in_course();
        open(&mut app, label);
        all.push((label.to_owned(), app));
    }
    // A kernel of the CPU has no text that could be large.
    for card in CARDS.iter().filter(|card| card.overlay != Overlay::Kernel) {
        let mut app = built_in_course();
        if card.overlay == Overlay::Skipped {
            act(&mut app, Action::Stage(3));
        }
        act(&mut app, Action::Open(card.overlay));
        all.push((format!("{:?}", card.overlay), app));
    }
    all
}

/// Returns a presented stage at each of its first beats, and an open confirmation.
fn presented() -> Vec<(String, App)> {
    let mut app = built_in_course();
    let mut asking = app.clone();
    asking.view.confirm = Some(Confirm::Reset);
    let mut all = vec![("asking".to_owned(), asking)];
    act(&mut app, Action::Present);
    for beat in 0..6 {
        all.push((format!("beat {beat}"), app.clone()));
        act(&mut app, Action::NextBeat);
    }
    all
}

/// Returns everything visible or saved of a state as text, except the notice and the time.
fn fingerprint(app: &App) -> String {
    let mut app = app.clone();
    app.view.notice = None;
    app.view.revision = 0;
    let work = (&app.lesson.learner, &app.bench, &app.exercise, &app.mode);
    let rest = (&app.view, &app.devices, &app.class, &app.presenter);
    format!("{work:?} {rest:?}")
}

/// Returns true for actions that only move the view. They are possible even at its ends.
fn moves(action: Action) -> bool {
    matches!(
        action,
        Action::Close
            | Action::Lesson
            | Action::Scroll(_)
            | Action::ScrollToTop
            | Action::ScrollToEnd
            | Action::KnobRow(_)
            | Action::PickOther(_)
            | Action::Timeline(_)
            | Action::Lanes(_)
            | Action::Type(_)
    )
}

/// Returns every page, mode, beat and exercise with its name.
fn every_place() -> impl Iterator<Item = (String, App)> {
    let exercises = crate::exercises::states().into_iter();
    let named = exercises.map(|(name, app)| (name.to_owned(), app));
    pages()
        .into_iter()
        .chain(modes())
        .chain(presented())
        .chain(named)
}

#[test]
fn a_refused_action_changes_nothing_and_an_allowed_one_changes_something() {
    let mut faults = Vec::new();
    for (name, mut app) in every_place() {
        screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
        let before = fingerprint(&app);
        for binding in BINDINGS {
            let action = binding.action;
            let mut after = app.clone();
            let effects = act(&mut after, action);
            let changes = !effects.is_empty() || fingerprint(&after) != before;
            let may = app.may(action);
            let is_right = match &may {
                Ok(()) => changes || moves(action) || !binding.works(&app),
                Err(Refusal::NothingHere) => !changes && after.view.notice == app.view.notice,
                Err(Refusal::NotNow(why)) => {
                    let notice = after.view.notice.map(|notice| notice.text);
                    !changes && notice.as_deref() == Some(why)
                }
            };
            if !is_right {
                faults.push(format!("{name}: {action:?} is {may:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_footer_offers_no_action_that_is_refused() {
    let mut faults = Vec::new();
    for (name, mut app) in every_place() {
        screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
        for (label, _) in footer(&app) {
            let offered = action(key(&label), &app).expect("a key of the table");
            if let Err(refusal) = app.may(offered) {
                faults.push(format!("{name}: the footer offers {label}: {refusal:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the key with this label in the footer. Of a range, such as `a-d`, it is the first key.
fn key(label: &str) -> KeyEvent {
    let first = label.strip_prefix("a-").map_or(label, |_| "a");
    let mut keys = BINDINGS.iter().flat_map(|binding| binding.keys);
    let code = keys.find(|key| key_name(**key) == first);
    match *code.expect("a key of the table") {
        KeyCode::Null => KeyEvent::new(KeyCode::F(5), KeyModifiers::NONE),
        code => KeyEvent::new(code, KeyModifiers::NONE),
    }
}

#[test]
fn every_key_of_the_footer_changes_something_visible() {
    let mut idle = Vec::new();
    for (name, mut app) in pages().into_iter().chain(modes()) {
        let draw = |app: &mut App| screen::screen(app, 80, 24, ThemeName::Dark, Markers::Braille);
        draw(&mut app);
        let before = draw(&mut app);
        for (label, effect) in footer(&app) {
            let mut pressed = app.clone();
            let action = action(key(&label), &pressed)
                .unwrap_or_else(|| panic!("{name}: {label} is not bound"));
            let effects = update(&mut pressed, Message::Action(action));
            if effects.is_empty() && draw(&mut pressed) == before {
                idle.push(format!("{name}: {label} {effect}"));
            }
        }
    }
    assert!(idle.is_empty(), "{}", idle.join("\n"));
}
