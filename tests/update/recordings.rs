//! A recording on the screen.

use super::*;

/// A session that shows a recording.
fn recording() -> App {
    let replay = Replay {
        file: "h100.jsonl".to_owned(),
        device: sample::device(),
        date: "2026-11-01".to_owned(),
        stage: Some(1),
        speed: 1.0,
        ..Replay::default()
    };
    let (app, effects) = begin_with(Options {
        recording: Some(replay),
        ..Options::default()
    });
    assert_eq!(effects, [], "a recording starts nothing");
    app
}

#[test]
fn a_recording_can_be_steered_but_not_changed() {
    let mut app = recording();
    let stage = app.lesson.course.stages[1].clone();
    for event in sample::until(&spec(&stage, "broken"), 10) {
        hear(&mut app, event);
    }
    assert_eq!(
        app.lesson.learner.at, 1,
        "the recording is about this stage"
    );
    assert_eq!(app.shown_run().step(), Some(10));
    assert_eq!(app.bench.run.state, RunState::Running);
    assert_eq!(
        act(&mut app, Action::Pause),
        [Effect::Replay(ReplayControl::Pause)]
    );
    assert_eq!(
        act(&mut app, Action::ReplayStep),
        [Effect::Replay(ReplayControl::Step)]
    );
    assert_eq!(
        act(&mut app, Action::Pause),
        [Effect::Replay(ReplayControl::Resume)]
    );
    assert_eq!(
        act(&mut app, Action::ReplayFaster),
        [Effect::Replay(ReplayControl::Speed(2.0))]
    );
    for action in [
        Action::Toggle,
        Action::Pair,
        Action::Restart,
        Action::Profile,
        Action::Hint,
    ] {
        assert_eq!(
            commands(&act(&mut app, action)),
            Vec::<&Command>::new(),
            "{action:?}"
        );
    }
    update(
        &mut app,
        Message::Engine(FromEngine::Gone {
            reason: "end of file".to_owned(),
        }),
    );
    assert_eq!(app.bench.run.state, RunState::Finished);
}
