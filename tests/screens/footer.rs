//! The footer names only keys that work: on every page of a stage and in every mode, each of its keys changes something that is visible,
//! or leaves the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::app::Refusal;
use perflings::tui::keys::{BINDINGS, action, footer, key_name};

use super::*;

/// Returns a stage at each page and activity, with a name.
fn pages() -> Vec<(String, App)> {
    let mut all = Vec::new();
    let mut app = built_in_course();
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
    while app.lesson.learner.pointer.is_some() {
        act(&mut app, Action::NextPointer);
    }
    page("the background", &app);
    while matches!(
        app.reading().page(),
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
    asking.view.confirm = Some(perflings::app::Confirm::Reset);
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

#[test]
fn a_refused_action_changes_nothing_and_an_allowed_one_changes_something() {
    let mut wrong = Vec::new();
    let states = pages().into_iter().chain(modes()).chain(presented());
    let exercises = crate::exercises::states().into_iter();
    let exercises = exercises.map(|(name, app)| (name.to_owned(), app));
    for (name, mut app) in states.chain(exercises) {
        screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
        let before = fingerprint(&app);
        for binding in BINDINGS {
            let (asked, mut after) = (binding.action, app.clone());
            let effects = act(&mut after, asked);
            let changes = !effects.is_empty() || fingerprint(&after) != before;
            let may = app.may(asked);
            let right = match &may {
                Ok(()) => changes || moves(asked) || !binding.works(&app),
                Err(Refusal::NothingHere) => !changes && after.view.notice == app.view.notice,
                Err(Refusal::NotNow(why)) => {
                    let told = after.view.notice.map(|notice| notice.text);
                    !changes && told.as_deref() == Some(why)
                }
            };
            if !right {
                wrong.push(format!("{name}: {asked:?} is {may:?}"));
            }
        }
        for (written, _) in footer(&app) {
            let asked = action(key(&written), &app).expect("a key of the table");
            if let Err(refusal) = app.may(asked) {
                wrong.push(format!("{name}: the footer offers {written}: {refusal:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the key with this name in the footer.
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
fn every_key_of_the_footer_changes_something_visible() {
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
