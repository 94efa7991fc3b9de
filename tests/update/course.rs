//! Skipped stages, exercises about recorded runs, and the background texts.

use perflings::app::source::{FromEngine, ReplayControl};
use perflings::app::{Action, App, Effect, Message, Options, Overlay, RunState, update};
use perflings::course::Course;
use perflings::course::save_file::{Prediction, Progress, StageState};
use protocol::{Command, Event, StreamLine};

use super::session::{act, begin, open, play_recording, resize, train, wanted};
use super::{sample, saved_progress, start_of};

/// The built-in course at 80 columns. A of stage 1 has trained 3 steps.
fn built_in_course() -> App {
    let (mut app, _) = begin(Course::builtin(), Options::default());
    resize(&mut app, 80, 24);
    train(&mut app, 3);
    app
}

fn state(app: &App, id: &str) -> StageState {
    app.lesson.learner.progress.stage(id).state
}

#[test]
fn skipped_stages_are_marked_and_do_not_count_as_passed() {
    let mut app = built_in_course();
    let effects = act(&mut app, Action::Stage(4));
    for id in ["broken-init", "strides", "missing-sync"] {
        assert_eq!(state(&app, id), StageState::Skipped, "{id}");
        let saves_skipped = saved_progress(&effects)
            .iter()
            .any(|(stage, progress)| *stage == id && progress.state == StageState::Skipped);
        assert!(saves_skipped, "{id} is saved");
    }
    assert_eq!(state(&app, "naive-swiglu"), StageState::Seen);
    // The new stage begins with its broken configuration.
    let run = start_of(&effects).1;
    let stage = app.lesson.course.stage(4).expect("stage 4");
    assert_eq!((run.stage, &run.config), (4, &stage.broken));
    let score = app.lesson.learner.progress.calibration();
    assert_eq!((score.answered, score.ranges), (0, 0));
    // Going back changes nothing; a passed stage stays passed.
    act(&mut app, Action::Stage(1));
    assert_eq!(state(&app, "naive-swiglu"), StageState::Seen);
    let stage = app.lesson.course.stages[0].clone();
    app.lesson.learner.progress_mut(&stage.id).state = StageState::Passed;
    act(&mut app, Action::Stage(6));
    assert_eq!(state(&app, "broken-init"), StageState::Passed);
    assert_eq!(state(&app, "hybrid"), StageState::Skipped);
}

#[test]
fn a_start_at_a_later_stage_marks_the_earlier_ones_as_skipped() {
    let options = Options {
        stage: Some(3),
        ..Options::default()
    };
    let (app, effects) = App::new(Course::builtin(), Progress::default(), options);
    assert_eq!(state(&app, "strides"), StageState::Skipped);
    assert_eq!(start_of(&effects).1.stage, 3);
}

#[test]
fn the_fault_of_a_recorded_run_is_named_and_the_live_run_resumes() {
    let mut app = built_in_course();
    let first_loss = app.bench.run.shown().first_loss();
    let effects = open(&mut app, "d02");
    assert!(
        effects.contains(&Effect::Send(Command::Pause)),
        "the stage's run waits"
    );
    assert!(effects.contains(&Effect::ShowRecording {
        exercise: "sprint".to_owned()
    }));
    assert!(
        app.mode
            .recording()
            .is_some_and(|recording| !recording.device.name.is_empty())
    );
    // Late events of the engine are about the live run.
    let run = wanted(&built_in_course());
    for event in sample::until(&run, 2) {
        update(
            &mut app,
            Message::Engine(FromEngine::Line(StreamLine { t: 0.0, event })),
        );
    }
    assert!(!app.bench.run.shown().has_begun());
    assert!(play_recording(&mut app) > 100);
    let shown = app.bench.run.shown();
    let gradients = shown.gradients.as_ref().expect("gradients");
    assert_eq!(gradients.with_grad, 1);
    assert!(shown.lints.is_empty());
    assert_eq!(
        act(&mut app, Action::Pause),
        [Effect::Replay(ReplayControl::Pause)]
    );
    assert_eq!(
        app.question().map(|question| question.choices.len()),
        Some(4)
    );
    // The first answer counts. A right answer after a wrong one makes the exercise seen, not passed.
    assert!(app.is_unsolved());
    act(&mut app, Action::Answer(0));
    assert!(app.is_unsolved() && app.question().is_some(), "another try");
    act(&mut app, Action::Answer(1));
    assert!(!app.is_unsolved() && app.question().is_none());
    let prediction_and_state = |app: &App| {
        let progress = app.lesson.learner.progress.stage("sprint");
        (progress.prediction, progress.state)
    };
    let first = Some(Prediction::Choice {
        choice: 0,
        right: false,
    });
    assert_eq!(prediction_and_state(&app), (first, StageState::Seen));
    let effects = act(&mut app, Action::LeaveExercise);
    assert!(effects.contains(&Effect::HideRecording));
    assert!(effects.contains(&Effect::Send(Command::Resume)));
    assert_eq!(
        app.bench.run.shown().first_loss(),
        first_loss,
        "the live run is on the screen again"
    );
    assert!(app.mode.recording().is_none() && app.exercise().is_none());
    open(&mut app, "d02");
    act(&mut app, Action::Answer(3));
    assert_eq!(prediction_and_state(&app), (first, StageState::Seen));
    assert_eq!(app.lesson.learner.progress.calibration().answered, 0);
}

#[test]
fn an_exercise_opened_while_presenting_goes_back_to_the_beat() {
    let mut app = built_in_course();
    act(&mut app, Action::Present);
    act(&mut app, Action::NextBeat);
    let effects = open(&mut app, "k01");
    assert_eq!(saved_progress(&effects), [], "a presentation saves nothing");
    assert!(app.exercise().is_some() && app.beat().is_none());
    act(&mut app, Action::LeaveExercise);
    assert_eq!(app.beat().map(|beat| beat.at), Some(1));
    act(&mut app, Action::Present);
    assert!(app.keeps_progress() && app.beat().is_none());
    assert_eq!(state(&app, "swiglu"), StageState::New);
}

#[test]
fn an_engine_that_ends_during_a_recording_is_replaced_afterwards() {
    let mut app = built_in_course();
    open(&mut app, "d01");
    let reason = "gone".to_owned();
    update(&mut app, Message::Engine(FromEngine::Gone { reason }));
    assert!(!matches!(app.bench.run.state, RunState::EngineGone { .. }));
    let effects = act(&mut app, Action::LeaveExercise);
    let restart = effects.iter().position(|effect| *effect == Effect::Restart);
    let start = effects
        .iter()
        .position(|effect| matches!(effect, Effect::Send(Command::Start { .. })));
    assert!(restart.is_some() && restart < start, "{effects:?}");
}

#[test]
fn the_next_exercise_after_the_last_recording_has_the_live_run() {
    let mut app = built_in_course();
    open(&mut app, "d05");
    play_recording(&mut app);
    let mut effects = act(&mut app, Action::NextStage);
    assert_eq!(app.exercise().map(|exercise| exercise.label()), Some("d06"));
    effects.extend(act(&mut app, Action::NextStage));
    assert_eq!(app.exercise().map(|exercise| exercise.label()), Some("k01"));
    assert!(app.mode.recording().is_none());
    let resumes = effects.contains(&Effect::Send(Command::Resume));
    assert!(resumes, "kernels need a live run");
    // Late lines of the recording are dropped.
    let late = FromEngine::Line(StreamLine {
        t: 9.0,
        event: Event::Heartbeat { device_s: None },
    });
    assert_eq!(update(&mut app, Message::Recorded(late)), []);
}

#[test]
fn the_pages_of_the_glossary_go_round() {
    let mut app = built_in_course();
    act(&mut app, Action::Open(Overlay::Glossary));
    let pages = app.lesson.course.readings.len() + 1;
    assert!(pages >= 4);
    act(&mut app, Action::TurnPage(-1));
    assert_eq!(app.view.page, pages - 1);
    act(&mut app, Action::TurnPage(1));
    assert_eq!(app.view.page, 0);
}

#[test]
fn the_card_of_skipped_stages_leads_back_to_them() {
    let mut app = built_in_course();
    act(&mut app, Action::Stage(4));
    assert_eq!(app.lesson.skipped_stages(), [0, 1, 2]);
    let effects = act(&mut app, Action::Open(Overlay::Skipped));
    assert_eq!(effects, [Effect::ReadJourney]);
    act(&mut app, Action::TurnPage(-1));
    assert_eq!(app.view.selected, 2);
    act(&mut app, Action::TurnPage(1));
    act(&mut app, Action::TurnPage(1));
    act(&mut app, Action::Choose);
    assert_eq!(app.stage().map(|stage| stage.number), Some(2));
    assert_eq!(
        app.lesson.skipped_stages(),
        [0],
        "a stage that is entered again stays skipped"
    );
}
