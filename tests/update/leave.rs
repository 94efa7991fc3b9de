//! Leaving a stage, the welcome card, and the search in the glossary.

use perflings::app::guide::{SentencePart, confirmation};
use perflings::app::{Action, App, Confirm, Effect, Message, Options, Overlay, Replay, update};
use perflings::course::save_file::{Prediction, Progress, ProgressChange, StageState};
use protocol::Slot;

use super::session::{act, pair, solve, train};
use super::{begin_with, running, sample, start_of};

/// Returns the text of the open confirmation, with each key as `_`.
fn question(app: &App) -> String {
    let confirm = app.view.confirm.expect("a question");
    confirmation(confirm, app)
        .into_iter()
        .map(|part| match part {
            SentencePart::Text(text) => text,
            SentencePart::Key(_) => "_".to_owned(),
        })
        .collect()
}

/// A session in which the learner has predicted, toggled and measured pairs. The quiz is open.
fn looking_back() -> App {
    let mut app = running(20);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    solve(&mut app);
    act(&mut app, Action::Toggle);
    train(&mut app, 20);
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    app
}

#[test]
fn leaving_asks_nothing_if_nothing_is_unfinished() {
    for action in [Action::Stage(3), Action::NextStage] {
        let mut app = running(20);
        assert_eq!(start_of(&act(&mut app, action)).1.variant, "broken");
        assert_eq!(app.view.confirm, None);
    }
    // The learner is in this stage already.
    let mut app = running(20);
    act(&mut app, Action::Answer(1));
    assert_eq!(act(&mut app, Action::Stage(1)), []);
    assert_eq!(app.view.confirm, None);
    // The stage was passed in an earlier session.
    let mut app = running(20);
    let stage = app.stage().expect("a stage").clone();
    app.lesson.learner.progress_mut(&stage.id).state = StageState::Passed;
    act(&mut app, Action::NextStage);
    assert_eq!((app.view.confirm, app.lesson.learner.at), (None, 1));
}

#[test]
fn leaving_an_unfinished_stage_asks_first_and_keeps_the_prediction() {
    for (action, to) in [
        (Action::Stage(3), 2),
        (Action::NextStage, 1),
        (Action::ChooseLine(2), 2),
    ] {
        let mut app = running(20);
        act(&mut app, Action::Answer(1));
        act(&mut app, Action::Open(Overlay::Stages));
        assert_eq!(act(&mut app, action), []);
        assert_eq!(app.view.confirm, Some(Confirm::Leave { to }));
        assert!(question(&app).contains("your prediction is kept. _ _"));
        act(&mut app, Action::No);
        assert_eq!((app.lesson.learner.at, app.view.confirm), (0, None));
        act(&mut app, action);
        let effects = act(&mut app, Action::Yes);
        assert_eq!(start_of(&effects).1.stage as usize, to + 1);
        assert_eq!((app.lesson.learner.at, app.view.overlay), (to, None));
        let kept = app.lesson.learner.progress.stage("broken-init").prediction;
        assert!(matches!(kept, Some(Prediction::Choice { choice: 1, .. })));
    }
    // After a toggle without a prediction there is none to keep.
    let mut app = running(20);
    solve(&mut app);
    act(&mut app, Action::Toggle);
    act(&mut app, Action::Yes);
    act(&mut app, Action::NextStage);
    assert!(
        question(&app).contains("it is not passed"),
        "{}",
        question(&app)
    );
}

#[test]
fn leaving_asks_while_a_question_is_open() {
    let mut app = looking_back();
    act(&mut app, Action::NextStage);
    assert!(question(&app).starts_with("A question is still open, and the stage is not passed"));
    act(&mut app, Action::No);
    let stage = app.stage().expect("a stage").clone();
    app.lesson.learner.progress_mut(&stage.id).state = StageState::Passed;
    act(&mut app, Action::NextStage);
    assert!(question(&app).starts_with("A question is still open. Go on"));
    act(&mut app, Action::No);
    act(&mut app, Action::Question);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::NextStage);
    assert_eq!((app.view.confirm, app.lesson.learner.at), (None, 1));
}

#[test]
fn the_question_before_leaving_fits_the_smallest_screen() {
    let mut app = looking_back();
    for state in [StageState::Predicted, StageState::Passed] {
        let stage = app.stage().expect("a stage").clone();
        app.lesson.learner.progress_mut(&stage.id).state = state;
        act(&mut app, Action::NextStage);
        assert!(question(&app).chars().count() <= 74, "{}", question(&app));
        act(&mut app, Action::No);
    }
}

#[test]
fn a_presenter_is_not_asked() {
    let mut app = looking_back();
    act(&mut app, Action::Present);
    act(&mut app, Action::NextStage);
    assert_eq!((app.view.confirm, app.lesson.learner.at), (None, 1));
}

/// Begins the first session of a learner.
fn welcome(options: Options) -> (App, Vec<Effect>) {
    begin_with(Options {
        welcome: true,
        ..options
    })
}

#[test]
fn the_welcome_is_shown_once_while_the_run_begins() {
    let (mut app, effects) = welcome(Options::default());
    assert_eq!(app.view.overlay, Some(Overlay::Welcome));
    assert_eq!(start_of(&effects).1.slot, Slot::A);
    // The run starts before the card is noted as shown, so that the learner does not wait.
    assert_eq!(
        effects.last(),
        Some(&Effect::Save(ProgressChange::Welcomed))
    );
    act(&mut app, Action::Close);
    assert_eq!(app.view.overlay, None);
    act(&mut app, Action::Open(Overlay::Welcome));
    assert_eq!(app.view.overlay, Some(Overlay::Welcome));
}

#[test]
fn a_recording_and_a_presentation_have_no_welcome() {
    let recording = Replay {
        file: "x".to_owned(),
        device: sample::device(),
        date: "2026-11-01".to_owned(),
        stage: Some(1),
        speed: 1.0,
        ..Replay::default()
    };
    for options in [
        Options {
            recording: Some(recording),
            ..Options::default()
        },
        Options {
            present: true,
            ..Options::default()
        },
    ] {
        let (app, effects) = welcome(options);
        assert_eq!(app.view.overlay, None);
        assert!(!effects.contains(&Effect::Save(ProgressChange::Welcomed)));
    }
    let (app, effects) = begin_with(Options::default());
    assert_eq!(app.view.overlay, None);
    assert!(!effects.contains(&Effect::Save(ProgressChange::Welcomed)));
}

#[test]
fn a_search_takes_letters_until_it_is_kept_or_closed() {
    let (mut app, _) = App::new(sample::course(), Progress::default(), Options::default());
    act(&mut app, Action::Search);
    assert_eq!(app.view.overlay, Some(Overlay::Glossary));
    for letter in ['W', 'a', '\u{1b}', 'x'] {
        act(&mut app, Action::Type(letter));
    }
    act(&mut app, Action::Erase);
    assert_eq!(
        (app.view.search.text.as_str(), app.view.typing()),
        ("Wa", true)
    );
    assert!(app.view.search.finds("a warp") && !app.view.search.finds("wrap"));
    act(&mut app, Action::KeepSearch);
    assert!(!app.view.typing() && app.view.search.is_open());
    // The first key closes the search, the second one the glossary.
    act(&mut app, Action::Close);
    assert_eq!(app.view.overlay, Some(Overlay::Glossary));
    assert!(!app.view.search.is_open());
    act(&mut app, Action::Close);
    assert_eq!(app.view.overlay, None);
    // Another card ends the search.
    act(&mut app, Action::Search);
    act(&mut app, Action::Type('w'));
    act(&mut app, Action::Open(Overlay::Log));
    act(&mut app, Action::Open(Overlay::Glossary));
    assert!(!app.view.search.is_open());
    act(&mut app, Action::Search);
    for _ in 0..100 {
        act(&mut app, Action::Type('w'));
    }
    assert_eq!(app.view.search.text.len(), 32);
    update(&mut app, Message::Tick { now_ms: 9 });
}
