//! The start of a session and the way from stage to stage: which run begins, where the learner comes back to.

use super::*;

#[test]
fn the_first_run_starts_on_the_cpu_before_devices_are_asked_for() {
    let (app, effects) = begin();
    let (device, run) = start_of(&effects);
    assert_eq!(
        (device, run.stage, run.variant.as_str(), run.slot, run.steps),
        ("cpu", 1, "broken", Slot::A, None)
    );
    assert!(matches!(
        commands(&effects)[..],
        [Command::Start { .. }, Command::Probe]
    ));
    assert!(effects.contains(&Effect::Save(ProgressChange::Current(
        "broken-init".to_owned()
    ))));
    assert_eq!(app.bench.run.state, RunState::Starting);
}

#[test]
fn a_device_named_on_the_command_line_is_used() {
    let (_, effects) = begin_with(Options {
        device: Some("vulkan-cpu".to_owned()),
        ..Options::default()
    });
    assert_eq!(start_of(&effects).0, "vulkan-cpu");
}

#[test]
fn the_learner_comes_back_to_the_last_stage_unless_another_is_named() {
    let progress = Progress {
        current: Some("strides".to_owned()),
        ..Progress::default()
    };
    let (app, effects) = App::new(sample::course(), progress.clone(), Options::default());
    assert_eq!((app.lesson.learner.at, start_of(&effects).1.stage), (1, 2));
    let (app, _) = App::new(
        sample::course(),
        progress,
        Options {
            stage: Some(3),
            ..Options::default()
        },
    );
    assert_eq!(app.lesson.learner.at, 2, "the command line decides");
    let (app, _) = begin_with(Options {
        stage: Some(9),
        ..Options::default()
    });
    assert_eq!(app.lesson.learner.at, 0);
    assert!(notice(&app).contains("no stage 9"));
}

#[test]
fn a_run_warms_up_before_its_first_step() {
    let (mut app, _) = begin();
    hear(
        &mut app,
        Event::Compiling {
            kernels: 3,
            latest: "matmul".to_owned(),
        },
    );
    assert_eq!(app.bench.run.state, RunState::Warming);
    assert_eq!(app.bench.run.compiling, Some((3, "matmul".to_owned())));
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    assert_eq!(
        (app.bench.run.state.clone(), app.bench.run.compiling.clone()),
        (RunState::Warming, None)
    );
    hear(&mut app, sample::step(&run, 0));
    assert_eq!(app.bench.run.state, RunState::Running);
    assert_eq!(app.shown_run().step(), Some(0));
}

#[test]
fn events_of_a_replaced_run_are_dropped() {
    let mut app = running(30);
    let (old, request) = (wanted(&app), app.bench.pending.request);
    act(&mut app, Action::NextStage);
    for event in [
        sample::step(&old, 31),
        sample::throughput(&old, 31),
        answer(sample::started(&old, 0), request),
    ] {
        hear(&mut app, event);
    }
    assert_eq!(app.bench.run.state, RunState::Starting);
    assert!(app.bench.run.shown().loss.is_empty() && app.bench.run.shown().throughput.is_none());
    let new = wanted(&app);
    hear(&mut app, sample::started(&new, 0));
    hear(&mut app, sample::step(&new, 0));
    assert_eq!(app.shown_run().step(), Some(0));
}

#[test]
fn stages_are_reached_by_number_by_neighbour_and_from_the_list() {
    let mut app = running(1);
    assert_eq!(start_of(&act(&mut app, Action::Stage(3))).1.stage, 3);
    assert_eq!(act(&mut app, Action::NextStage), [Effect::ReadJourney]);
    assert_eq!(start_of(&act(&mut app, Action::PreviousStage)).1.stage, 2);
    assert_eq!(act(&mut app, Action::Stage(7)), []);
    act(&mut app, Action::Open(Overlay::Stages));
    assert_eq!(app.view.selected, 1);
    act(&mut app, Action::Scroll(-5));
    assert_eq!(start_of(&act(&mut app, Action::Choose)).1.stage, 1);
    assert_eq!(app.view.overlay, None);
}

#[test]
fn every_key_is_safe_in_an_empty_course() {
    let (mut app, effects) = App::new(
        perflings::course::Course::default(),
        Progress::default(),
        Options::default(),
    );
    assert_eq!(commands(&effects), [&Command::Probe]);
    for action in [
        Action::Toggle,
        Action::Pair,
        Action::Answer(0),
        Action::Hint,
        Action::NextStage,
        Action::Restart,
        Action::OpenEditor,
    ] {
        act(&mut app, action);
    }
    act(&mut app, Action::Solution);
    act(&mut app, Action::Yes);
}

#[test]
fn the_progress_of_earlier_sessions_is_shown() {
    let known = StageProgress {
        state: StageState::Passed,
        prediction: Some(Prediction::Choice {
            choice: 1,
            right: true,
        }),
        hints: 2,
        ..StageProgress::default()
    };
    let progress = Progress {
        stages: [("broken-init".to_owned(), known)].into(),
        ..Progress::default()
    };
    let (app, _) = App::new(sample::course(), progress, Options::default());
    let stage = app.stage().expect("a stage");
    assert_eq!(
        (
            app.lesson.learner.activity(stage),
            app.reading().hints().shown
        ),
        (Activity::LookBack, 2)
    );
}
